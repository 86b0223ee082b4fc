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
	others   []side   // the database alone, and on Postgres the peer
	peer     *peer    // nil on SQLite
	dir      string
	versions []version // ours is the first
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
	// its log (0 if that is not counted), after a checkpoint.
	used(ctx context.Context, dsn string) (stored, logged int64, err error)
	// close stops the other side and drops the stores.
	close() error
}

// openBank prepares both sides of one engine. The book is the same on both.
func openBank(ctx context.Context, t *runner, name, dir, binary string, s settings) (b *bank, err error) {
	b = &bank{dir: filepath.Join(dir, name), t: t}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return nil, err
	}
	var alone side
	if name == "postgres" {
		if s.standby {
			if s.postgres, _, err = testdb.StartPair("fsync=on", "synchronous_commit=on", "full_page_writes=on"); err != nil {
				return nil, err
			}
		}
		b.engine, alone, b.describe, err = openPostgres(ctx, s.postgres, b.dir)
	} else {
		b.engine, alone, b.describe, err = openSQLite(ctx, b.dir)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil || t.Failed() {
			err = errors.Join(err, b.close())
		}
	}()
	if s.only != "service" {
		b.others = append(b.others, alone)
		if base, ok := alone.(*pgbench); ok {
			if b.peer, err = startPeer(ctx, base.dsn, peerName); err != nil {
				return b, err
			}
			b.others = append(b.others, b.peer)
		}
	}
	if s.only == "other" {
		return b, nil
	}
	b.versions = []version{{plainName, binary}}
	if s.otherBinary != "" {
		b.versions = append(b.versions, version{otherName, s.otherBinary})
	}
	for _, v := range b.versions {
		o, err := b.openStore(ctx, v.purpose(), v, s.service)
		if err != nil {
			return b, err
		}
		b.stores = append(b.stores, o)
	}
	if s.book > 0 {
		err = b.openBook(ctx, s)
	}
	return b, err
}

// sides lists what is compared.
func (b *bank) sides() (sides []side) {
	for _, o := range b.stores {
		sides = append(sides, o)
	}
	return append(sides, b.others...)
}

// close stops everything and drops the stores, even if a service does not stop.
func (b *bank) close() (err error) {
	defer func() {
		if b.peer != nil {
			err = errors.Join(err, b.peer.stop())
		}
		err = errors.Join(err, b.engine.close())
	}()
	for _, o := range b.stores {
		o.stop()
	}
	return nil
}

// A store is one database of the service. It is the side of the services that run on it.
type store struct {
	program
	title    string
	purpose  string
	dsn      string
	key      string
	services []*service.Process
	ledger   map[string]*rows // by the export that shows them
}

// rows are counts that a store must have.
type rows struct{ before, acknowledged, unknown int }

// check compares them with the rows of an export.
func (r rows) check(stored int) error {
	if stored -= r.before; stored < r.acknowledged || stored > r.acknowledged+r.unknown {
		return fmt.Errorf("%d stored, but %d acknowledged and %d without an answer", stored, r.acknowledged, r.unknown)
	}
	return nil
}

// newStore creates an empty store.
func (b *bank) newStore(ctx context.Context, purpose string, v version, settings []string) (*store, error) {
	dir := filepath.Join(b.dir, purpose)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	dsn, err := b.engine.create(ctx, purpose)
	if err != nil {
		return nil, err
	}
	p := newProgram(b.t, service.Open(b.engine.name(), dir, v.binary).On(dsn).Set("tls.mode", "off"), settings)
	return &store{program: p, title: v.name, purpose: purpose, dsn: dsn, ledger: map[string]*rows{"sales": {}, "notifications": {}}}, nil
}

// openStore creates a store with the book of the benchmark, and starts the service on it.
func (b *bank) openStore(ctx context.Context, purpose string, v version, settings []string) (*store, error) {
	o, err := b.newStore(ctx, purpose, v, settings)
	if err != nil {
		return nil, err
	}
	if err := o.prepare(1); err != nil {
		return nil, err
	}
	return o, o.serve(1)
}

// The most customers that a big book has in each gap, and how many rows it
// grows by: one sale and one push for each customer of the bench and ten times.
const (
	mostPerGap = 100
	bookStep   = 10 * customers
)

// openBook opens a store with many past sales and pushes, as one more side.
func (b *bank) openBook(ctx context.Context, s settings) error {
	o, err := b.newStore(ctx, "book", version{bookName, b.versions[0].binary}, s.service)
	if err != nil {
		return err
	}
	o.Set("trail.enabled", "false") // the service has not written these rows, so they have no leaves
	perGap := min(mostPerGap, max(1, s.book/bookStep))
	if err := o.prepare(perGap); err != nil {
		return err
	}
	o.ledger["sales"].before = s.book + s.book/500 // some failed, some wait
	o.ledger["notifications"].before = s.book
	if err := b.fillBook(ctx, o, perGap, s.book/(customers*perGap)); err != nil {
		return err
	}
	b.stores = append(b.stores, o)
	return o.serve(1)
}

// fillBook adds past sales and pushes: perCustomer for each customer, of whom
// there are perGap in each gap.
func (b *bank) fillBook(ctx context.Context, o *store, perGap, perCustomer int) error {
	return b.engine.fill(ctx, o.dsn, "book", fmt.Sprintf("%d AS per_gap, %d AS per_customer", perGap, perCustomer))
}

// prepare migrates the store, imports the book and adds a subscription.
func (o *store) prepare(perGap int) error {
	if err := o.prepareImport(perGap); err != nil {
		return err
	}
	o.Must(o.t, "import", "holdings", "holdings.csv")
	o.Must(o.t, "import", "accounts", "accounts.csv")
	o.key = o.Subscribe(o.t, "bench")
	return nil
}

// serve starts services on the store.
func (o *store) serve(count int) error {
	for range count {
		server, err := o.program.serve()
		if err != nil {
			return err
		}
		o.services = append(o.services, server)
	}
	return nil
}

func (o *store) stop() {
	for _, server := range o.services {
		server.Stop(o.t)
	}
	o.services = nil
}

func (o *store) name() string { return o.title }

func (o *store) pids() (all []int) {
	for _, server := range o.services {
		all = append(all, server.Pid)
	}
	return all
}

// load is a load with a key for its services.
func (o *store) load(key string, w work, connections int, length time.Duration) load {
	l := load{key: key, work: w, connections: connections, length: length}
	for _, server := range o.services {
		l.addresses = append(l.addresses, strings.TrimPrefix(server.URL, "http://"))
	}
	return l
}

func (o *store) run(ctx context.Context, w work, connections int, length time.Duration) (*tally, error) {
	t, err := o.load(o.key, w, connections, length).run(ctx)
	if t != nil {
		o.note(w, t, t.broken)
	}
	return t, err
}

// note notes the rows of a run.
func (o *store) note(w work, t *tally, unknown int) {
	o.ledger[w.export()].acknowledged += (t.completed + t.late - t.rowless) * w.records
	o.ledger[w.export()].unknown += unknown * w.records
}

// prove stops the services of a store and checks what they left behind: every
// acknowledged operation is stored, none twice, and the book balances.
func (b *bench) prove(o *store, name string) error {
	o.stop()
	proof := ""
	for _, export := range []string{"sales", "notifications"} {
		stored, err := o.countRows(export)
		if err != nil {
			return err
		}
		r := o.ledger[export]
		if err := r.check(stored); err != nil {
			return fmt.Errorf("%s: %w", export, err)
		}
		proof += fmt.Sprintf("%d %s acknowledged, %d stored; ", r.acknowledged, export, stored-r.before)
	}
	o.Must(o.t, "verify")
	b.report.proofs = append(b.report.proofs, b.engine.name()+", "+name+": "+proof+"`bankingapi verify` found nothing wrong")
	return nil
}
