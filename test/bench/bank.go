package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The names of our sides.
const (
	plainName  = "bankingapi"
	secureName = "bankingapi over TLS"
	bookName   = "bankingapi, big book"
)

// A bank is everything that runs on one engine: the service on its stores and
// the other side.
type bank struct {
	engine   engine
	describe []fact
	stores   []*store // the first is the plain one; none where only the other side is measured
	other    side     // nil where only the service is measured
	patience time.Duration
	crowd    int
}

// An engine lends throw-away stores.
type engine interface {
	name() string
	// create makes an empty store and returns the DSN that the service takes.
	create(ctx context.Context, purpose string) (dsn string, err error)
	// fill writes the past of a big book into a store of the service.
	fill(ctx context.Context, dsn string, perGap, perCustomer int) error
	// checkpoint puts the engine into the same state before every run.
	checkpoint(ctx context.Context) error
	// close ends the other side and drops what was lent.
	close() error
}

// openBank prepares both sides of one engine. The book is the same on both.
func openBank(ctx context.Context, name, dir, binary string, s settings) (b *bank, err error) {
	dir = filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	b = &bank{patience: s.patience, crowd: s.crowd}
	switch name {
	case "postgres":
		b.engine, b.other, b.describe, err = openPostgres(ctx, s.postgres, dir)
	case "sqlite":
		b.engine, b.other, b.describe, err = openSQLite(ctx, dir)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()

	switch s.only {
	case "other":
		return b, nil
	case "service":
		b.other = nil
	}
	plain, err := b.openStore(ctx, "service", dir, binary, 0, s)
	if err != nil {
		return b, err
	}
	if err := plain.serve(ctx, plainName, nil, s); err != nil {
		return b, err
	}
	if s.tls {
		if err := plain.serveTLS(ctx, s); err != nil {
			return b, err
		}
	}
	if s.book == 0 {
		return b, nil
	}
	big, err := b.openStore(ctx, "book", dir, binary, s.book, s)
	if err != nil {
		return b, err
	}
	return b, big.serve(ctx, bookName, nil, s)
}

// sides lists what is compared.
func (b *bank) sides() []side {
	var sides []side
	for _, s := range b.stores {
		for _, served := range s.served {
			sides = append(sides, served)
		}
	}
	if b.other != nil {
		sides = append(sides, b.other)
	}
	return sides
}

// measure runs one side between two looks at what the machine did.
func (b *bank) measure(ctx context.Context, side side, w work, connections int, length time.Duration) (measure, error) {
	if err := b.engine.checkpoint(ctx); err != nil {
		return measure{}, err
	}
	waitQuiet(ctx, b.patience)
	var pid int
	over, isService := side.(*overHTTP)
	if isService {
		pid = over.server.cmd.Process.Pid
	}
	before := readClock(pid)
	m, err := side.run(ctx, w, connections, length)
	if err != nil {
		return m, err
	}
	m.used = readClock(pid).since(before)
	m.engine, m.side, m.work, m.connections = b.engine.name(), side.name(), w.name, connections
	if isService {
		m.memory = residentBytes(pid)
	}
	return m, nil
}

// prove stops every service and checks what it left behind.
func (b *bank) prove(ctx context.Context) ([]string, error) {
	var proofs []string
	for _, s := range b.stores {
		proof, err := s.prove(ctx)
		if err != nil {
			return nil, err
		}
		proofs = append(proofs, b.engine.name()+", "+s.purpose+": "+proof)
	}
	return proofs, nil
}

// close ends everything that still runs and drops what was lent.
func (b *bank) close() error {
	var errs []error
	for _, s := range b.stores {
		errs = append(errs, s.stop())
	}
	return errors.Join(append(errs, b.engine.close())...)
}

// A store is one database of the service, and the services that run on it.
type store struct {
	purpose string
	program program
	key     string
	served  []*overHTTP
	ledger  ledger
}

// A ledger is what must be in a store: rows by the export that shows them.
type ledger struct {
	before       map[string]int // of the big book
	acknowledged map[string]int
	unknown      map[string]int // of requests that got no answer
}

// The most customers that a big book has in each gap, and how many rows it
// grows by: one sale and one push for each customer of the bench and ten times.
const (
	mostPerGap = 100
	bookStep   = 10 * customers
)

// openStore makes a store with the bench's book and, where rows are asked for,
// that many sales and pushes of the past.
func (b *bank) openStore(ctx context.Context, purpose, dir, binary string, rows int, s settings) (*store, error) {
	dir = filepath.Join(dir, purpose)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	dsn, err := b.engine.create(ctx, purpose)
	if err != nil {
		return nil, err
	}
	o := &store{
		purpose: purpose,
		program: newProgram(binary, dir, append([]string{"storage.driver=" + b.engine.name(), "storage.dsn=" + dsn, "tls.mode=off"}, s.service...)),
		ledger:  ledger{before: map[string]int{}, acknowledged: map[string]int{}, unknown: map[string]int{}},
	}
	b.stores = append(b.stores, o)
	perGap := min(mostPerGap, max(1, rows/bookStep))
	if o.key, err = o.program.prepare(ctx, perGap); err != nil || rows == 0 {
		return o, err
	}
	o.ledger.before["sales"], o.ledger.before["notifications"] = rows, rows
	return o, b.engine.fill(ctx, dsn, perGap, rows/(customers*perGap))
}

// serve starts a service on the store.
func (o *store) serve(ctx context.Context, name string, secure *secureSettings, s settings) error {
	side := &overHTTP{title: name, key: o.key, ledger: o.ledger}
	program := o.program
	if secure != nil {
		side.tls = secure.client
		program = program.with(secure.service...)
	}
	if s.profile {
		side.profiles = s.out
	}
	var err error
	if side.server, err = program.serve(ctx); err != nil {
		return err
	}
	o.served = append(o.served, side)
	return nil
}

// serveTLS starts a second service on the store, over TLS.
func (o *store) serveTLS(ctx context.Context, s settings) error {
	secure, err := writeCertificate(o.program.dir)
	if err != nil {
		return err
	}
	return o.serve(ctx, secureName, secure, s)
}

func (o *store) stop() error {
	var errs []error
	for _, served := range o.served {
		errs = append(errs, served.server.stop())
	}
	o.served = nil
	return errors.Join(errs...)
}

// prove stops the services and checks what they left behind: every
// acknowledged operation is stored, none twice, and the book balances.
func (o *store) prove(ctx context.Context) (string, error) {
	if err := o.stop(); err != nil {
		return "", err
	}
	proof := ""
	for _, export := range []string{"sales", "notifications"} {
		rows, err := o.program.countRows(ctx, export)
		if err != nil {
			return "", err
		}
		rows -= o.ledger.before[export]
		acknowledged, unknown := o.ledger.acknowledged[export], o.ledger.unknown[export]
		if rows < acknowledged || rows > acknowledged+unknown {
			return "", fmt.Errorf("%d %s stored, but %d acknowledged and %d without an answer", rows, export, acknowledged, unknown)
		}
		proof += fmt.Sprintf("%d %s acknowledged, %d stored; ", acknowledged, export, rows)
	}
	if _, err := o.program.output(ctx, "verify"); err != nil {
		return "", err
	}
	return proof + "`bankingapi verify` found nothing wrong", nil
}
