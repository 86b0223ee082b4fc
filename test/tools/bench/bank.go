package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// The names of the sides that are the service.
const (
	plainName = "bankingapi"
	bookName  = "bankingapi, big book"
	otherName = "other version"
)

// A bank is everything that runs on one engine: the service on its stores, and the other side.
type bank struct {
	engine   engine
	describe []fact
	stores   []*store // the first is the plain one; empty if only the other side is measured
	other    side     // nil if only the service is measured
	peer     *peer    // also nil on SQLite
	dir      string
	versions []version // ours is the first
	patience time.Duration
	t        *runner
}

// A version is a binary of the service.
type version struct{ name, binary string }

// purpose is the name of its stores.
func (v version) purpose() string { return strings.ReplaceAll(v.name, " ", "_") }

// An engine creates temporary stores.
type engine interface {
	name() string
	// create creates an empty store and returns its DSN for the service.
	create(ctx context.Context, purpose string) (dsn string, err error)
	// fill runs a script of sql on a store of the service: "book" adds past
	// sales and pushes, "due" adds sales that are due. The size is a list of
	// SQL expressions with the names that the script uses.
	fill(ctx context.Context, dsn, script, size string) error
	// checkpoint puts the engine into the same state before every run.
	checkpoint(ctx context.Context) error
	// used returns how much a store takes, and how much its database has written to
	// its log, after a checkpoint.
	used(ctx context.Context, dsn string) (used, error)
	// close stops the other side and drops the stores.
	close() error
}

// used is a number of bytes in a database and in its log, 0 if the log is not counted.
type used struct{ stored, logged int64 }

// openBank prepares both sides of one engine. The book is the same on both.
func openBank(ctx context.Context, t *runner, name, dir, binary string, s settings) (b *bank, err error) {
	dir = filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	b = &bank{dir: dir, patience: s.patience, t: t}
	if s.only != "other" {
		b.versions = append(b.versions, version{plainName, binary})
	}
	if s.otherBinary != "" {
		b.versions = append(b.versions, version{otherName, s.otherBinary})
	}
	switch name {
	case "postgres":
		if s.standby {
			if s.postgres, _, err = testdb.StartPair("fsync=on", "synchronous_commit=on", "full_page_writes=on"); err != nil {
				return nil, err
			}
		}
		b.engine, b.other, b.describe, err = openPostgres(ctx, s.postgres, dir)
	case "sqlite":
		b.engine, b.other, b.describe, err = openSQLite(ctx, dir)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil || t.Failed() {
			err = errors.Join(err, b.close())
		}
	}()

	if base, ok := b.other.(*pgbench); ok && s.only != "service" {
		if b.peer, err = startPeer(ctx, base.dsn, peerName); err != nil {
			return b, err
		}
	}
	switch s.only {
	case "other":
		return b, nil
	case "service":
		b.other = nil
	}
	for _, v := range b.versions {
		o, err := b.openStore(ctx, v.purpose(), v.binary, 0, s.service)
		if err != nil {
			return b, err
		}
		if err := o.serve(v.name, 1); err != nil {
			return b, err
		}
	}
	if s.book == 0 {
		return b, nil
	}
	big, err := b.openStore(ctx, "book", binary, s.book, s.service)
	if err != nil {
		return b, err
	}
	return b, big.serve(bookName, 1)
}

// sides lists what is compared.
func (b *bank) sides() []side {
	var sides []side
	for _, s := range b.stores {
		sides = append(sides, s.served)
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
	var pids []int
	if side, ok := side.(interface{ pids() []int }); ok {
		pids = side.pids()
	}
	before := readClock(pids...)
	m, err := side.run(ctx, w, connections, length)
	if err != nil {
		return m, err
	}
	m.used = readClock(pids...).since(before)
	m.engine, m.side, m.work, m.connections = b.engine.name(), side.name(), w.name, connections
	for _, pid := range pids {
		m.memory += memoryBytes(pid, "VmRSS")
	}
	return m, nil
}

// prove stops every service and checks its store.
func (b *bank) prove() ([]string, error) {
	var proofs []string
	for _, s := range b.stores {
		proof, err := s.prove()
		if err != nil {
			return nil, err
		}
		proofs = append(proofs, b.engine.name()+", "+s.purpose+": "+proof)
	}
	return proofs, nil
}

// close stops everything and drops the stores, even if a service does not stop.
func (b *bank) close() (err error) {
	defer func() {
		if b.peer != nil {
			err = errors.Join(err, b.peer.stop())
		}
		err = errors.Join(err, b.engine.close())
	}()
	for _, s := range b.stores {
		s.stop()
	}
	return nil
}

// A store is one database of the service, and the service that runs on it.
type store struct {
	purpose string
	dsn     string
	program program
	key     string
	served  *overHTTP // nil if no service runs on it
	ledger  ledger
}

// A ledger counts the rows that a store must have, by the export that shows them.
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
// positive, that many past sales and pushes. At the end the bank checks it.
func (b *bank) openStore(ctx context.Context, purpose, binary string, rows int, settings []string) (*store, error) {
	o, err := b.newStore(ctx, purpose, binary, settings)
	if err != nil {
		return nil, err
	}
	b.stores = append(b.stores, o)
	perGap := min(mostPerGap, max(1, rows/bookStep))
	if o.key, err = o.program.prepare(perGap); err != nil || rows == 0 {
		return o, err
	}
	// The service has not written these rows, so they have no leaves.
	o.program.Set("trail.enabled", "false")
	o.ledger.before["sales"], o.ledger.before["notifications"] = rows+rows/500, rows // some failed, some wait
	return o, b.fillBook(ctx, o, perGap, rows/(customers*perGap))
}

// fillBook adds past sales and pushes: perCustomer for each customer, of whom
// there are perGap in each gap.
func (b *bank) fillBook(ctx context.Context, o *store, perGap, perCustomer int) error {
	return b.engine.fill(ctx, o.dsn, "book", fmt.Sprintf("%d AS per_gap, %d AS per_customer", perGap, perCustomer))
}

// newStore creates an empty store.
func (b *bank) newStore(ctx context.Context, purpose, binary string, settings []string) (*store, error) {
	dir := filepath.Join(b.dir, purpose)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	dsn, err := b.engine.create(ctx, purpose)
	if err != nil {
		return nil, err
	}
	return &store{
		purpose: purpose,
		dsn:     dsn,
		program: newProgram(b.t, service.Open(b.engine.name(), dir, binary).On(dsn).Set("tls.mode", "off"), settings),
		ledger:  ledger{before: map[string]int{}, acknowledged: map[string]int{}, unknown: map[string]int{}},
	}, nil
}

// serve starts services on the store, as one side.
func (o *store) serve(name string, count int) error {
	o.served = &overHTTP{title: name, key: o.key, ledger: o.ledger}
	for range count {
		server, err := o.program.serve()
		if err != nil {
			return err
		}
		o.served.servers = append(o.served.servers, server)
	}
	return nil
}

func (o *store) stop() {
	if o.served != nil {
		for _, server := range o.served.servers {
			server.Stop(o.program.t)
		}
	}
	o.served = nil
}

// prove stops the services and checks what they left behind: every
// acknowledged operation is stored, none twice, and the book balances.
func (o *store) prove() (string, error) {
	o.stop()
	proof := ""
	for _, export := range []string{"sales", "notifications"} {
		rows, err := o.program.countRows(export)
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
	o.program.Must(o.program.t, "verify")
	return proof + "`bankingapi verify` found nothing wrong", nil
}
