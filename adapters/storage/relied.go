package storage

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fault"
)

// Check returns an error unless the tables, as q sees them, are as the program relies on them.
// The error says what is wrong and how to fix it. It is a fault if the tables are wrong.
type Check func(ctx context.Context, q Querier) error

// Querier is a *sql.DB or a *sql.Conn.
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// CheckedSession is a session whose connection checks the tables before a batch. Each session
// from Begin of an engine must implement it. Sessions in the transaction of a host do not.
type CheckedSession interface {
	batch.Session
	// Connection returns the connection, and the last check that it has passed. An engine whose
	// check costs next to nothing returns nil: then the check runs in each batch.
	Connection() (*sql.Conn, *Passed)
}

// begun implements Begun of batch.Hooks: a session begins only while the tables pass the check.
func (c *checks) begun(ctx context.Context, s batch.Session) error {
	session, isChecked := s.(CheckedSession)
	if !isChecked {
		return nil
	}
	conn, last := session.Connection()
	return c.checkFirst(ctx, conn, last)
}

// doubted implements Doubted of batch.Hooks.
func (c *checks) doubted(ctx context.Context) error {
	_, err := c.Run(ctx, c.pool)
	return err
}

// Every batch relies on a check of this process that began at most maxUnchecked ago. After half
// of this time a check runs in the background, so that no batch waits for it. What may swallow or
// double rows is found by each batch itself: SQLite counts changes of the schema, and on Postgres
// a batch looks at the tables before its COMMIT. The transactions of a host rely only on the
// checks of readiness.
const maxUnchecked = time.Second

// checks is the state of the checks of the tables, shared by all connections of a database. The
// zero value means that no check was run. It is safe for concurrent use.
type checks struct {
	check Check
	pool  Querier // for checks outside of a session

	mu      sync.Mutex
	round   int64     // increased when a check fails; then earlier checks of a connection do not count
	passed  time.Time // start of the last successful check of this round; zero if there is none
	started time.Time // start of the last background check
}

// Passed is the last check that a connection has passed. An engine stores one with each of its
// connections, and returns it with a session.
type Passed struct {
	owner *checks
	round int64
}

// checkFirst runs a check on a connection before a batch, if one is due.
func (c *checks) checkFirst(ctx context.Context, conn *sql.Conn, last *Passed) error {
	if last == nil {
		_, err := c.Run(ctx, conn)
		return err
	}
	if last.owner != c {
		*last = Passed{c, -1}
	}
	if !c.Due(last.round) {
		return nil
	}
	round, err := c.Run(ctx, conn)
	if err != nil {
		return err
	}
	last.round = round
	return nil
}

// Due reports whether a connection must run a check before it begins a batch. round is the
// round of its last check, or -1. If a check will be due soon, Due starts one on the pool while
// batches continue. It ends when the database is closed, or after maxUnchecked.
func (c *checks) Due(round int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now() //nolint:forbidigo // measures a duration; the clock of the bank may be moved
	if round != c.round || now.Sub(c.passed) >= maxUnchecked {
		return true
	}
	if now.Sub(c.started) >= maxUnchecked/2 && now.Sub(c.passed) >= maxUnchecked/2 {
		c.started = now
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), maxUnchecked)
			defer cancel()
			_, _ = c.Run(ctx, c.pool) // Run stores the result
		}()
	}
	return false
}

// Run runs a check and returns the round in which it began. If the check finds a fault, all
// connections must check again, until one check succeeds.
func (c *checks) Run(ctx context.Context, q Querier) (round int64, err error) {
	c.mu.Lock()
	round, began := c.round, time.Now() //nolint:forbidigo // measures a duration, as in Due
	c.mu.Unlock()
	err = c.check(ctx, q)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, isFault := errors.AsType[*fault.Error](err); isFault {
		c.round++
		c.passed = time.Time{}
	} else if err == nil && round == c.round { // a check that began before the failed one does not clear it
		c.passed = began
	}
	return round, err
}
