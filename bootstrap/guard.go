package bootstrap

import (
	"context"
	"errors"
	"sync"
	"time"

	"bankingapi/domain/fault"
)

const (
	// guardEvery is how often the service checks whether it may change the book.
	guardEvery = time.Second
	// maxUnguarded is how old the last check may be when a transaction begins. If it is older,
	// for example because the checks in the background wait for a connection, the transaction
	// waits for a new one.
	maxUnguarded = guardEvery + guardEvery/2
	// guardTimeout is the maximum time of a check in the background.
	guardTimeout = 2 * time.Second
)

// guard decides whether this service may change the book. A service that cannot extend the log
// of the book, or whose clock is wrong, does lasting harm with each answer. So it is not ready,
// and each of its transactions is refused. The zero value allows everything.
type guard struct {
	checks []func(context.Context) error // complete before the service starts
	now    func() time.Time              // the clock of the service

	mu      sync.Mutex
	passed  time.Time // start of the last check that passed; zero if a later one failed
	clock   time.Time // what the clock of the service said then
	failed  time.Time // end of the last check that failed
	verdict error     // of the last check, without errors of a storage that did not answer
	ended   bool      // the service takes no transactions of the host any more
}

func newGuard(c clocks) *guard { return &guard{now: c.now} }

// exempt is the key of a context whose transactions the guard does not check.
type exempt struct{}

// unguarded returns a context for the checks themselves, and for work that ends what the checks
// complain about.
func unguarded(ctx context.Context) context.Context { return context.WithValue(ctx, exempt{}, true) }

// pass implements MayWrite of store.Options.
func (g *guard) pass(ctx context.Context) error {
	if len(g.checks) == 0 || ctx.Value(exempt{}) != nil {
		return nil
	}
	if g.isFresh() {
		return nil
	}
	return g.run(ctx)
}

// isFresh reports whether the last check passed, and still counts. It does not if the clock has
// jumped since.
func (g *guard) isFresh() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	passed := time.Since(g.passed)
	jump := g.now().Sub(g.clock) - passed
	return !g.passed.IsZero() && passed < maxUnguarded && jump.Abs() < maxUnguarded
}

// run runs the checks now.
func (g *guard) run(ctx context.Context) error {
	began := time.Now() //nolint:forbidigo // measures a duration: the clock of the service may be wrong
	clock := g.now()
	err := g.check(unguarded(ctx))
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err == nil && began.After(g.failed): // a check that began before a failed one does not clear it
		g.passed = began
		g.clock = clock
		g.verdict = nil
	case isFinding(err):
		g.passed = time.Time{}
		g.failed = time.Now() //nolint:forbidigo // as above
		g.verdict = err
	}
	return err
}

// isFinding reports whether an error says what is wrong, and not only that the storage did not
// answer.
func isFinding(err error) bool {
	finding := known(err)
	return finding != nil && finding.Cause == nil
}

// known returns the error with a kind in err, or nil.
func known(err error) *fault.Error {
	found, _ := errors.AsType[*fault.Error](err)
	return found
}

func (g *guard) check(ctx context.Context) error {
	for _, check := range g.checks {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// watch runs the checks in the background, so that transactions need not wait for them. It
// returns no error: readiness reports it.
func (g *guard) watch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, guardTimeout)
	defer cancel()
	_ = g.run(ctx)
	return nil
}

// last returns the result of the last check. A transaction of the host uses it: a check would
// need another connection, and the host may have only one.
func (g *guard) last() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return fault.New(fault.Busy, "The service is stopping.")
	}
	return g.verdict
}

// end refuses the transactions that a host begins from now on: the checks are about to end, and the
// database of the host stays open.
func (g *guard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
}
