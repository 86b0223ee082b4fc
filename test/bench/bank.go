package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The names of the sides that are the service.
const (
	plainName  = "bankingapi"
	secureName = "bankingapi over TLS"
	bookName   = "bankingapi, big book"
)

// A bank is everything that runs on one engine: the service on its stores, and
// the other side.
type bank struct {
	engine   engine
	describe []fact
	stores   []*store // the first is the plain one; empty if only the other side is measured
	other    side     // nil if only the service is measured
	peer     *peer    // also nil on SQLite
	patience time.Duration
	crowd    int
}

// An engine creates temporary stores.
type engine interface {
	name() string
	// create creates an empty store and returns its DSN for the service.
	create(ctx context.Context, purpose string) (dsn string, err error)
	// fill adds past sales and pushes to a store of the service.
	fill(ctx context.Context, dsn string, perGap, perCustomer int) error
	// checkpoint puts the engine into the same state before every run.
	checkpoint(ctx context.Context) error
	// close stops the other side and drops the stores.
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

	if base, ok := b.other.(*pgbench); ok && s.only != "service" {
		if b.peer, err = startPeer(ctx, base.dsn); err != nil {
			return b, err
		}
	}
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
	if err := plain.serve(ctx, plainName, false, s); err != nil {
		return b, err
	}
	if s.tls {
		if err := plain.serve(ctx, secureName, true, s); err != nil {
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
	return b, big.serve(ctx, bookName, false, s)
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
	if b.peer != nil {
		sides = append(sides, b.peer)
	}
	return sides
}

// measure runs one side and measures the processor time meanwhile.
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

// prove stops every service and checks its store.
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

// close stops everything and drops the stores.
func (b *bank) close() error {
	var errs []error
	for _, s := range b.stores {
		errs = append(errs, s.stop())
	}
	if b.peer != nil {
		errs = append(errs, b.peer.stop())
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

// A ledger counts the rows that a store must have, by the export that shows
// them.
type ledger struct {
	before       map[string]int // of the big book
	acknowledged map[string]int
	unknown      map[string]int // rows of requests without a response
}

// The most customers that a big book has in each gap, and how many rows it
// grows by: one sale and one push for each customer of the bench and ten times.
const (
	mostPerGap = 100
	bookStep   = 10 * customers
)

// openStore creates a store with the book of the benchmark and, if rows is
// positive, that many past sales and pushes.
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

// serve starts a service on the store, with or without TLS.
func (o *store) serve(ctx context.Context, name string, secure bool, s settings) error {
	side := &overHTTP{title: name, key: o.key, ledger: o.ledger}
	program := o.program
	if secure {
		program = program.with("tls.mode=self-signed")
	}
	var err error
	if side.server, err = program.serve(ctx); err != nil {
		return err
	}
	o.served = append(o.served, side)
	if secure {
		side.tls, err = program.trust()
	}
	return err
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
