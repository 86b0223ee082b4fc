//go:build planted

// Command planted is the service with one bug. The environment variable PLANTED names the bug.
// The code of the product is unchanged: the bug is between the store and its engine. The checks
// of package prove must find every bug, which shows that they work.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/book"
	"bankingapi/adapters/storage/calls"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/store"
	"bankingapi/bootstrap"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	name := os.Getenv("PLANTED")
	bug, ok := bugs[name]
	if !ok {
		return fmt.Errorf("PLANTED=%q: unknown bug", name)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	loaded, err := bootstrap.Load(bootstrap.Sources{Environment: os.Environ()})
	if err != nil {
		return err
	}
	app, err := bootstrap.Open(ctx, loaded.Settings,
		bootstrap.WithDriver(bootstrap.SQLite, with(bug, false, sqlite.NewEngine)),
		bootstrap.WithDriver(bootstrap.Postgres, with(bug, name == "no-lock", postgres.NewEngine)),
	)
	if err != nil {
		return err
	}
	defer func() { _ = app.Close(context.WithoutCancel(ctx)) }()
	if err := app.Start(ctx); err != nil {
		return err
	}
	fmt.Printf("Listening on %s\n", app.URL())
	<-ctx.Done()
	return nil
}

// with plants a bug. plain leaves out the optimistic commit, which locks nothing.
func with(plant func(batch.Session) batch.Session, plain bool, newEngine func(storage.Options) (storage.Engine, error)) store.Opener {
	return func(_ context.Context, o storage.Options) (*store.Store, error) {
		engine, err := newEngine(o)
		if err != nil {
			return nil, err
		}
		return storage.Open(plantedEngine{engine, plant, plain}, o)
	}
}

// plantedEngine is an engine whose dialect has the bug.
type plantedEngine struct {
	storage.Engine
	plant func(batch.Session) batch.Session
	plain bool
}

// Dialect implements storage.Engine.
func (e plantedEngine) Dialect() batch.Dialect { return planted{e.Engine.Dialect(), e.plant} }

// Ways implements storage.Engine.
func (e plantedEngine) Ways(b *book.Books, i *calls.Inboxes, d *tables.Database) {
	if !e.plain {
		e.Engine.Ways(b, i, d)
	}
}

// planted is a dialect whose sessions have the bug.
type planted struct {
	batch.Dialect
	plant func(batch.Session) batch.Session
}

// Begin implements batch.Dialect.
func (p planted) Begin(ctx context.Context) (batch.Session, error) {
	session, err := p.Dialect.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return p.plant(session), nil
}

var bugs = map[string]func(batch.Session) batch.Session{
	// Does not store the CallerIds of every second batch, so a repeated request sells again.
	"double-sale": func(s batch.Session) batch.Session { return forgetful{s, []string{"insert operations"}, every(2)} },
	// Does not write every fifth change of accounts.
	"lost-credit": func(s batch.Session) batch.Session {
		return forgetful{s, []string{"insert accounts", "move accounts"}, every(5)}
	},
	// Does not write every fifth set of notifications.
	"lost-push": func(s batch.Session) batch.Session {
		return forgetful{s, []string{"insert notifications"}, every(5)}
	},
	// Answers before the commit.
	"early-answer": func(s batch.Session) batch.Session { return &early{Session: s} },
	// Reads holdings and accounts without a lock (Postgres).
	"no-lock": func(s batch.Session) batch.Session { return unlocked{s} },
	// No bug: the program must pass the checks.
	"none": func(s batch.Session) batch.Session { return s },
}

// every reports true for each n-th call in the process.
func every(n int64) func() bool {
	return func() bool { return called.Add(1)%n == 0 }
}

var called atomic.Int64

// forgetful skips some of the statements.
type forgetful struct {
	batch.Session
	statements []string
	forgets    func() bool
}

// Commit implements batch.Session.
func (s forgetful) Commit(ctx context.Context, requests ...batch.Request) error {
	var kept []batch.Request
	for _, r := range requests {
		if !slices.Contains(s.statements, r.Name) || !s.forgets() {
			kept = append(kept, r)
		}
	}
	return s.Session.Commit(ctx, kept...)
}

// early reports success before it commits.
type early struct {
	batch.Session
	later sync.WaitGroup
}

// Commit implements batch.Session.
func (s *early) Commit(ctx context.Context, requests ...batch.Request) error {
	ctx = context.WithoutCancel(ctx)
	s.later.Go(func() {
		time.Sleep(5 * time.Millisecond)
		_ = s.Session.Commit(ctx, requests...)
	})
	return nil
}

// Rollback implements batch.Session.
func (s *early) Rollback() {
	go func() {
		s.later.Wait()
		s.Session.Rollback()
	}()
}

// unlocked reads without locks, and waits between reading and writing: so two
// batches that overlap read the same rows.
type unlocked struct{ batch.Session }

// Exchange implements batch.Session.
func (s unlocked) Exchange(ctx context.Context, requests ...batch.Request) error {
	for i := range requests {
		requests[i].SQL = strings.ReplaceAll(requests[i].SQL, " FOR UPDATE", "")
	}
	err := s.Session.Exchange(ctx, requests...)
	time.Sleep(5 * time.Millisecond)
	return err
}
