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

// Check returns an error if the tables are not as the program relies on them, as on sees
// them. It says what is wrong and how to mend it. What it finds is a fault.
type Check func(ctx context.Context, on Querier) error

// Querier is a *sql.DB or a *sql.Conn.
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checked is a dialect whose sessions begin only while the tables are as the program
// relies on them.
type checked struct {
	batch.Dialect
	*checks
}

// CheckedSession is a session whose connection checks the tables before a batch. Each session
// that the dialect of an engine begins must be one. Those in the transaction of a host are not.
type CheckedSession interface {
	batch.Session
	// Connection returns the connection, and the last check that it has passed.
	Connection() (*sql.Conn, *Passed)
}

func (d checked) Begin(ctx context.Context) (batch.Session, error) {
	s, err := d.Dialect.Begin(ctx)
	if err != nil {
		return nil, err
	}
	if own, ok := s.(CheckedSession); ok {
		conn, last := own.Connection()
		if err := d.checkFirst(ctx, conn, last); err != nil {
			s.Rollback()
			return nil, err
		}
	}
	return s, nil
}

// Every batch rests on a check of the whole process that began at most maxUnchecked ago. After
// half of that one runs beside the batches, so that none waits for it. What remains: until then
// a repeat may sell again after its key was dropped, because an insert without a key looks like
// any other. The transactions of a host rest on the checks of readiness alone.
const maxUnchecked = time.Second

// checks is what all connections of a database know of the checks whether the tables are as the
// program relies on them. Its zero value knows of none. It is safe for concurrent use.
type checks struct {
	check Check
	pool  Querier // for checks that are not of a connection

	mu     sync.Mutex
	round  int64     // grows when a check finds something: what a connection passed before does not count
	passed time.Time // when the last check of this round began that found nothing; zero if none did
	asked  time.Time // when a check beside the batches began last
}

// Passed is the last check that a connection has passed. An engine keeps one with each of
// its connections, and hands it out with a session.
type Passed struct {
	of    *checks
	round int64
}

// checkFirst checks on a connection if that is due before it begins a batch.
func (c *checks) checkFirst(ctx context.Context, conn *sql.Conn, last *Passed) error {
	if last.of != c {
		*last = Passed{c, -1}
	}
	if !c.Due(last.round) {
		return nil
	}
	round, err := c.Run(ctx, conn)
	if err == nil {
		last.round = round
	}
	return err
}

// Due reports whether a connection must run a check before it begins a batch. round is
// that of its last check, or -1. If a check is only soon due, one runs on the pool while
// batches go on; it ends when the database is closed, or after maxUnchecked.
func (c *checks) Due(round int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now() //nolint:forbidigo // measures a duration; the clock of the bank may be moved
	if round != c.round || now.Sub(c.passed) >= maxUnchecked {
		return true
	}
	if now.Sub(c.asked) >= maxUnchecked/2 && now.Sub(c.passed) >= maxUnchecked/2 {
		c.asked = now
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), maxUnchecked)
			defer cancel()
			_, _ = c.Run(ctx, c.pool) // Run keeps what it finds
		}()
	}
	return false
}

// Run runs a check and returns the round in which it began. A fault is what it found:
// all connections must check again, until one finds nothing.
func (c *checks) Run(ctx context.Context, on Querier) (round int64, err error) {
	c.mu.Lock()
	round, began := c.round, time.Now() //nolint:forbidigo // as in Due
	c.mu.Unlock()
	err = c.check(ctx, on)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, found := errors.AsType[*fault.Error](err); found {
		c.round++
		c.passed = time.Time{}
	} else if err == nil && round == c.round { // a check that began before the finding does not clear it
		c.passed = began
	}
	return round, err
}
