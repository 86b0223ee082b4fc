package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
	settings
	engine   engine
	stores   []*store // the first is the plain one
	others   []side   // the database alone, and on Postgres the peer; none with -alone
	peer     *peer    // nil on SQLite and with -alone
	dir      string
	versions []version // ours is the first
	t        *runner
	report   *report
	progress io.Writer
}

// A version is a binary of the service.
type version struct{ name, binary string }

// An engine creates temporary stores.
type engine interface {
	name() string
	// create creates an empty store and returns its DSN for the service.
	create(ctx context.Context, name string) (dsn string, err error)
	// fill runs a script of sql on a store of the service: "book" adds past
	// sales and pushes, "due" adds sales that are due. The size is a list of
	// SQL expressions with the names that the script uses.
	fill(ctx context.Context, dsn, script, size string) error
	// checkpoint puts the engine into the same state before every run.
	checkpoint(ctx context.Context) error
	// used returns how much a store takes, and how much its database has written to
	// its log (0 if that is not counted), after a checkpoint.
	used(ctx context.Context, dsn string) (stored, logged int64, err error)
}

// open prepares both sides of one engine. The book is the same on both.
func (b *bank) open(ctx context.Context, name, binary string) error {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	var err error
	if name == testdb.EnginePostgres {
		err = b.openPostgres(ctx)
	} else {
		err = b.openSQLite(ctx)
	}
	if err != nil {
		return err
	}
	b.versions = []version{{plainName, binary}}
	if b.otherBinary != "" {
		b.versions = append(b.versions, version{otherName, b.otherBinary})
	}
	for _, v := range b.versions {
		o, err := b.openStore(ctx, v.name, v)
		if err != nil {
			return err
		}
		b.stores = append(b.stores, o)
	}
	if b.book > 0 {
		return b.openBook(ctx)
	}
	return nil
}

// sides are all compared sides, ours first.
func (b *bank) sides() (all []side) {
	for _, o := range b.stores {
		all = append(all, o)
	}
	return append(all, b.others...)
}

// A store is one database of the service. It is the side of the services that run on it.
type store struct {
	*service.Bank
	t        *runner
	title    string
	purpose  string
	key      string
	services []*service.Process
	ledger   map[string]*rows // by the export that shows them
}

// rows are counts that a store must have.
type rows struct{ before, acknowledged, unknown int }

// check compares them with the rows of an export.
func (r rows) check(stored int) error {
	stored -= r.before
	if stored < r.acknowledged || stored > r.acknowledged+r.unknown {
		return fmt.Errorf("%d stored, but %d acknowledged and %d without an answer", stored, r.acknowledged, r.unknown)
	}
	return nil
}

// newStore creates an empty store.
func (b *bank) newStore(ctx context.Context, purpose string, v version) (*store, error) {
	folder := strings.NewReplacer(" ", "_", ",", "").Replace(purpose)
	dir := filepath.Join(b.dir, folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	dsn, err := b.engine.create(ctx, folder)
	if err != nil {
		return nil, err
	}
	program := service.Open(b.engine.name(), dir, v.binary).On(dsn).Set("tls.mode", "off")
	for name, value := range b.service {
		program.Set(name, value)
	}
	return &store{Bank: program, t: b.t, title: v.name, purpose: purpose, ledger: map[string]*rows{"sales": {}, "notifications": {}}}, nil
}

// openStore creates a store with the book of the benchmark, and starts the service on it.
func (b *bank) openStore(ctx context.Context, purpose string, v version) (*store, error) {
	o, err := b.newStore(ctx, purpose, v)
	if err != nil {
		return nil, err
	}
	if err := o.prepare(1); err != nil {
		return nil, err
	}
	return o, o.serve(1)
}

// openBook opens a store with many past sales and pushes, as one more side.
func (b *bank) openBook(ctx context.Context) error {
	o, err := b.newStore(ctx, "book", version{bookName, b.versions[0].binary})
	if err != nil {
		return err
	}
	o.Set("trail.enabled", "false") // the service has not written these rows, so they have no leaves
	if err := o.prepare(perGap(b.book)); err != nil {
		return err
	}
	o.ledger["sales"].before = b.book + b.book/500 // some failed, some wait
	o.ledger["notifications"].before = b.book
	if err := b.fillBook(ctx, o, b.book); err != nil {
		return err
	}
	b.stores = append(b.stores, o)
	return o.serve(1)
}

// mostPerGap is the most customers that a big book has in each gap.
const mostPerGap = 100

// perGap is how many customers a book of so many sales has in each gap: one for each sale, and a
// million in all at most.
func perGap(sales int) int { return min(mostPerGap, sales/customers) }

// fillBook adds past sales, and as many pushes, of the customers of a book.
func (b *bank) fillBook(ctx context.Context, o *store, sales int) error {
	perCustomer := sales / (customers * perGap(sales))
	return b.engine.fill(ctx, o.DSN, "book", fmt.Sprintf("%d AS per_gap, %d AS per_customer", perGap(sales), perCustomer))
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

// prepareImport migrates the store, imports the prices and writes the files of
// holdings and accounts.
func (o *store) prepareImport(perGap int) error {
	for _, book := range bookFiles {
		if err := writeFile(filepath.Join(o.Folder, book+".csv"), func(w io.Writer) error { return writeBook(w, book, perGap) }); err != nil {
			return err
		}
	}
	o.Migrate(o.t)
	o.Must(o.t, "import", "prices", "prices.csv")
	return nil
}

// serve starts services on the store and waits until they are ready. Their logs go to files, as
// under a service manager.
func (o *store) serve(count int) error {
	for range count {
		log, err := os.CreateTemp(o.Folder, "serve-*.log")
		if err != nil {
			return err
		}
		o.t.Cleanup(func() {
			if o.t.Failed() {
				text, _ := os.ReadFile(log.Name())
				o.t.Logf("%s", text[max(0, len(text)-2000):])
			}
			_ = log.Close()
		})
		o.Set("ops.address", service.FreeAddress(o.t))
		command := o.Command("serve")
		command.Stderr = log
		o.services = append(o.services, o.ServeCommand(o.t, command))
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

// load is a load with keys for its services.
func (o *store) load(w work, connections int, length time.Duration, keys ...string) load {
	l := load{Keys: keys, Work: w, Connections: connections, Length: length}
	for _, server := range o.services {
		l.Addresses = append(l.Addresses, strings.TrimPrefix(server.URL, "http://"))
	}
	return l
}

func (o *store) run(ctx context.Context, w work, connections int, length time.Duration) (*tally, error) {
	t, err := o.load(w, connections, length, o.key).run(ctx)
	if err != nil {
		return nil, err
	}
	o.note(w, t, t.Broken)
	return t, nil
}

// note notes the rows of a run.
func (o *store) note(w work, t *tally, unknown int) {
	o.ledger[w.export()].acknowledged += (t.Completed + t.Late - t.Rowless) * w.Records
	o.ledger[w.export()].unknown += unknown * w.Records
}

// countRows counts the rows of an export, which may be too many to keep. The rows of the
// benchmark have no line breaks, so each line is a row.
func (o *store) countRows(name string) (int, error) {
	var stderr strings.Builder
	var lines lineCounter
	command := o.Command("export", name)
	command.Stdout = &lines
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		return 0, fmt.Errorf("bankingapi export %s: %w\n%s", name, err, &stderr)
	}
	return int(lines) - 1, nil // the header line
}

type lineCounter int

func (c *lineCounter) Write(p []byte) (int, error) {
	*c += lineCounter(bytes.Count(p, []byte{'\n'}))
	return len(p), nil
}

// prove stops the services of a store and checks what they left behind: every
// acknowledged operation is stored, none twice, and the book balances.
func (b *bank) prove(o *store) error {
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
	b.report.proofs = append(b.report.proofs, b.engine.name()+", "+o.purpose+": "+proof+"`bankingapi verify` found nothing wrong")
	return nil
}
