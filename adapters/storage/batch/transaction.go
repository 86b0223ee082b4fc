package batch

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"time"

	"bankingapi/domain/fault"
)

const (
	// maxAttempts bounds the attempts of a transaction that lost a race, to about two seconds
	// in total. A distributed database may reject every second commit: then one of two thousand
	// transactions would lose 11 times.
	maxAttempts = 24
	// firstBackoff doubles with every attempt, up to lastBackoff. Each wait is a random part of
	// it, so that two transactions that collided do not collide again.
	firstBackoff = 2 * time.Millisecond
	lastBackoff  = 250 * time.Millisecond
)

// DB runs transactions. It is safe for concurrent use.
type DB struct {
	Dialect Dialect
	Hooks

	attempts int
	host     Tx // the transaction of a host, which ends it; nil for transactions of our own
}

// Hooks are what a DB calls around its transactions. A hook that is nil is not called.
type Hooks struct {
	// Ready is called before each transaction. If it fails, the transaction does not start.
	Ready func(context.Context) error
	// MayWrite is called before each transaction that writes, after Ready. If it fails, the
	// transaction does not start. It may use other connections, so a DB of Inside does not call
	// it: the host may hold the only connection.
	MayWrite func(context.Context) error
	// Begun is called with each Session, before its first requests. If it fails, the Session is
	// rolled back. A DB of Inside does not call it.
	Begun func(context.Context, Session) error
	// Around is called before each round trip of a Session. The round trip gets the context that
	// it returns, and the function that it returns gets the error of the round trip.
	Around func(ctx context.Context, name string, requests []Request) (context.Context, func(error))
	// Failed is called after a failure that is not a lost race.
	Failed func()
	// Doubted is called after a failure that nothing explains. If it fails with a fault, this is
	// the error: somebody has changed the tables under the transaction. A DB of Inside does not
	// call it.
	Doubted func(context.Context) error
	// Explain returns a sentence that explains an error of the database, or "".
	Explain func(error) string
}

// NewDB returns a DB of a dialect.
func NewDB(d Dialect, hooks Hooks) *DB {
	if hooks.Ready == nil {
		hooks.Ready = always
	}
	if hooks.MayWrite == nil {
		hooks.MayWrite = always
	}
	if hooks.Failed == nil {
		hooks.Failed = func() {}
	}
	if hooks.Explain == nil {
		hooks.Explain = func(error) string { return "" }
	}
	return &DB{Dialect: d, Hooks: hooks, attempts: maxAttempts}
}

func always(context.Context) error { return nil }

// Inside returns the DB inside a transaction that the caller ends. It does not retry: the
// caller must retry a transaction that lost a race.
func (db *DB) Inside(tx Tx) *DB {
	inside := *db
	inside.MayWrite = always
	inside.Begun = nil
	inside.Doubted = nil
	inside.attempts = 1
	inside.host = tx
	return &inside
}

// IsInside reports whether the DB is one of Inside.
func (db *DB) IsInside() bool { return db.host != nil }

// Prepare returns the statements that begin a transaction of this purpose. There are none for the
// transaction of a host: it has begun, and the host has chosen its settings.
func (db *DB) Prepare(p Purpose) []string {
	if db.host != nil {
		return nil
	}
	return db.Dialect.Prepare(p)
}

// Transact runs work in a new transaction, and retries it if it loses a race. work must end
// with Commit, otherwise all changes are undone. The error has a kind of package fault.
func (db *DB) Transact(ctx context.Context, work func(Session) error) error {
	return db.Retry(ctx, func() error { return db.Attempt(ctx, work) })
}

// Retry runs a whole transaction. It runs it again if it loses a race, and once if its
// connection was broken. After a Fallback it runs it again at once, unless the database is
// unreachable or the result is unknown. The error has a kind of package fault, unless the work
// was Refused.
func (db *DB) Retry(ctx context.Context, transaction func() error) error {
	backoff := firstBackoff
	reconnected := false
	for attempt := 1; ; attempt++ {
		err := transaction()
		if err == nil {
			return nil
		}
		failure := db.Classify(err)
		known, _ := errors.AsType[FailureError](err)
		if failure == Refused {
			return known.Cause
		}
		if failure == Fallback {
			failure = db.Classify(known.Cause)
			if failure != Unreachable && failure != Interrupted {
				attempt--
				continue
			}
		}
		if failure != LostRace {
			db.Failed()
		}
		switch mayRetry := attempt < db.attempts && ctx.Err() == nil; {
		case mayRetry && failure == Broken && !reconnected:
			reconnected = true // a server that was restarted closes all connections at once
		case mayRetry && failure == LostRace && wait(ctx, backoff):
			backoff = min(2*backoff, lastBackoff)
		default:
			return db.explained(ctx, failure, err)
		}
	}
}

// explained gives an error its kind. If nothing explains it, the tables may: somebody may have
// changed them.
func (db *DB) explained(ctx context.Context, failure Failure, err error) error {
	if _, isKnown := errors.AsType[*fault.Error](err); isKnown || failure != Unknown || db.Doubted == nil {
		return db.withKind(failure, err)
	}
	flaw, isFlaw := errors.AsType[*fault.Error](db.Doubted(ctx))
	if !isFlaw {
		return db.withKind(failure, err)
	}
	return fault.Wrap(flaw.Kind, err, flaw.Detail)
}

// Attempt runs work in a transaction once. It returns the error unchanged.
func (db *DB) Attempt(ctx context.Context, work func(Session) error) error {
	if err := db.Ready(ctx); err != nil {
		return err
	}
	if err := db.MayWrite(ctx); err != nil {
		return err
	}
	session, err := db.begin(ctx)
	if err != nil {
		return err
	}
	defer session.Rollback()
	return work(session)
}

// begin begins a Session, or returns one in the transaction of the host.
func (db *DB) begin(ctx context.Context) (Session, error) {
	if db.host != nil {
		return db.observed(db.Dialect.Within(db.host)), nil
	}
	session, err := db.Dialect.Begin(ctx)
	if err != nil {
		return nil, err
	}
	if db.Begun != nil {
		err = db.Begun(ctx, session)
		if err != nil {
			session.Rollback()
			return nil, err
		}
	}
	return db.observed(session), nil
}

func (db *DB) observed(s Session) Session {
	if db.Around == nil {
		return s
	}
	return observed{s, db.Around}
}

// observed is a Session with the hook Around.
type observed struct {
	session Session
	around  func(context.Context, string, []Request) (context.Context, func(error))
}

func (o observed) Exchange(ctx context.Context, requests ...Request) error {
	ctx, end := o.around(ctx, "exchange", requests)
	err := o.session.Exchange(ctx, requests...)
	end(err)
	return err
}

func (o observed) Commit(ctx context.Context, requests ...Request) error {
	ctx, end := o.around(ctx, "commit", requests)
	err := o.session.Commit(ctx, requests...)
	end(err)
	return err
}

func (o observed) Rollback() { o.session.Rollback() }

// wait waits for a random part of backoff. It returns false if ctx ends first.
func wait(ctx context.Context, backoff time.Duration) bool {
	timer := time.NewTimer(rand.N(backoff) + 1) //nolint:gosec // jitter is no secret
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Translate gives an error its kind of package fault. nil stays nil.
func (db *DB) Translate(err error) error {
	if err == nil {
		return nil
	}
	failure := db.Classify(err)
	if failure != LostRace {
		db.Failed()
	}
	return db.withKind(failure, err)
}

func (db *DB) withKind(failure Failure, err error) error {
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return known
	}
	switch failure {
	case LostRace, Unreachable, Broken, Altered:
		return fault.Wrap(fault.Unavailable, err, cmp.Or(db.Explain(err), fault.Unreached))
	case Interrupted:
		return fault.Wrap(fault.Indeterminate, err, "The storage did not confirm the commit.")
	default:
		return fault.Wrap(fault.Internal, err, cmp.Or(db.Explain(err), "storage"))
	}
}

// Classify returns the kind of an error: from a FailureError, or from the dialect. It also
// handles two kinds of errors of package sql: the connection or the transaction has ended, or
// the context has ended. Package sql ends the transaction of a cancelled context. If a host has
// ended its transaction, a retry fails too.
func (db *DB) Classify(err error) Failure {
	failure := db.Dialect.Classify(err)
	if known, ok := errors.AsType[FailureError](err); ok {
		return known.Failure
	}
	if failure == Unknown && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, sql.ErrTxDone) && db.host == nil || errors.Is(err, driver.ErrBadConn) || errors.Is(err, errClosed())) {
		return Unreachable
	}
	return failure
}

// Way is one way to carry out a batch: it loads what the batch is decided on, and writes what was
// decided. There are several ways, because most batches do not need what some of them do. A Way is
// made for one batch. The last way of a batch works for every batch, and may be used again.
type Way[B any] interface {
	// Load returns the book to settle. It may read from s.
	Load(ctx context.Context, s Session) (book B, err error)
	// Store writes the changes of the settled book, and commits.
	Store(ctx context.Context, s Session, book B) error
}

// ErrOtherWay is returned by a Way that does not fit the batch and has sent nothing.
var ErrOtherWay = errors.New("the batch needs another way")

// Update carries out one batch with the first way that works: it loads, calls settle, and stores.
// If a way fails, the database has rolled back its changes, and the next way begins.
func Update[B any](ctx context.Context, db *DB, ways []Way[B], settle func(B)) error {
	return db.Transact(ctx, func(s Session) error {
		for {
			way := ways[0]
			isLast := len(ways) == 1
			if !isLast {
				ways = ways[1:] // also for the next attempt: a failed way is not tried twice
			}
			err := carryOut(ctx, s, way, settle)
			if err == nil || isLast {
				return err
			}
			if !errors.Is(err, ErrOtherWay) {
				return FailureError{Failure: Fallback, Cause: err}
			}
		}
	})
}

func carryOut[B any](ctx context.Context, s Session, way Way[B], settle func(B)) error {
	book, err := way.Load(ctx, s)
	if err != nil {
		return err
	}
	settle(book)
	return way.Store(ctx, s, book)
}
