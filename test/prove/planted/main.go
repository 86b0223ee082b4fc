//go:build planted

// Command planted is the service with one bug in it, which the environment
// variable PLANTED names. The product's code is not touched: the bug stands
// between the store and its engine. The checks of package prove must find each
// of them, so that it is known that they can.
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
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/bootstrap"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	bug, ok := bugs[os.Getenv("PLANTED")]
	if !ok {
		return fmt.Errorf("PLANTED=%q is no bug", os.Getenv("PLANTED"))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	loaded, err := bootstrap.Load(bootstrap.Sources{Environment: os.Environ()})
	if err != nil {
		return err
	}
	app, err := bootstrap.Open(ctx, loaded.Settings,
		bootstrap.WithDriver(bootstrap.SQLite, with(bug, sqlite.Open)),
		bootstrap.WithDriver(bootstrap.Postgres, with(bug, postgres.Open)),
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

type opener func(context.Context, storage.Options) (*storage.Engine, error)

func with(plant func(storage.Session) storage.Session, open opener) opener {
	return func(ctx context.Context, o storage.Options) (*storage.Engine, error) {
		engine, err := open(ctx, o)
		if err != nil {
			return nil, err
		}
		begin := engine.Begin
		engine.Begin = func(ctx context.Context) (storage.Session, error) {
			session, err := begin(ctx)
			if err != nil {
				return nil, err
			}
			return plant(session), nil
		}
		return engine, nil
	}
}

var bugs = map[string]func(storage.Session) storage.Session{
	// Every second time the CallerIds of a batch are not kept, so that a
	// caller who asks again sells again.
	"double-sale": func(s storage.Session) storage.Session { return forgetful{s, []string{"insert operations"}, every(2)} },
	// Every fifth time what an account got is not written.
	"lost-credit": func(s storage.Session) storage.Session {
		return forgetful{s, []string{"insert accounts", "move accounts"}, every(5)}
	},
	// Every fifth time a notification is not written.
	"lost-push": func(s storage.Session) storage.Session {
		return forgetful{s, []string{"insert notifications"}, every(5)}
	},
	// The answer goes out, and the commit follows.
	"early-answer": func(s storage.Session) storage.Session { return &early{Session: s} },
	// Holdings and accounts are read without a lock (Postgres).
	"no-lock": func(s storage.Session) storage.Session { return unlocked{s} },
	// None: the same program has to pass.
	"none": func(s storage.Session) storage.Session { return s },
}

// every reports true for each n-th call in the process.
func every(n int64) func() bool {
	return func() bool { return calls.Add(1)%n == 0 }
}

var calls atomic.Int64

// forgetful drops one of the statements now and then.
type forgetful struct {
	storage.Session
	statements []string
	forgets    func() bool
}

// Commit is storage.Session.
func (s forgetful) Commit(ctx context.Context, requests ...storage.Request) error {
	var kept []storage.Request
	for _, r := range requests {
		if !slices.Contains(s.statements, r.Name) || !s.forgets() {
			kept = append(kept, r)
		}
	}
	return s.Session.Commit(ctx, kept...)
}

// early commits after it said that it had.
type early struct {
	storage.Session
	later sync.WaitGroup
}

// Commit is storage.Session.
func (s *early) Commit(ctx context.Context, requests ...storage.Request) error {
	ctx = context.WithoutCancel(ctx)
	s.later.Go(func() {
		time.Sleep(20 * time.Millisecond)
		_ = s.Session.Commit(ctx, requests...)
	})
	return nil
}

// Rollback is storage.Session.
func (s *early) Rollback() {
	go func() {
		s.later.Wait()
		s.Session.Rollback()
	}()
}

// unlocked reads without locks.
type unlocked struct{ storage.Session }

// Exchange is storage.Session.
func (s unlocked) Exchange(ctx context.Context, requests ...storage.Request) error {
	for i := range requests {
		requests[i].SQL = strings.ReplaceAll(requests[i].SQL, " FOR UPDATE", "")
	}
	return s.Session.Exchange(ctx, requests...)
}
