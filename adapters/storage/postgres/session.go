package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/application/commit"
)

const (
	// rollbackTimeout bounds a rollback.
	rollbackTimeout = time.Second
	// grace is how long a batch may continue after its context has ended. All waiting for the
	// server ends with the context, except a rollback that has just begun.
	grace = rollbackTimeout + 250*time.Millisecond
)

// session is one transaction. Its BEGIN is sent with the first requests and its COMMIT with the
// last. So a batch has as many round trips as exchanges.
//
// Without BEGIN and COMMIT, Postgres would also treat everything that is sent at once as one
// transaction. Some poolers and some servers like Postgres would commit each statement.
type session struct {
	conn     *sql.Conn
	native   *pgx.Conn // native connection of conn
	settings *settings
	// begins is the statement after BEGIN.
	begins    string
	arguments []any
	begun     bool
	demoted   bool // the server has become read-only: another host is now the primary
	// wrote: a request changed a row. decided: a row of an earlier transaction decides an
	// answer.
	wrote, decided bool
	changed        []string // the tables whose rows the requests change
}

func (s *session) Exchange(ctx context.Context, requests ...batch.Request) error {
	err := s.send(ctx, requests, false)
	if err != nil {
		return err
	}
	next := commit.Next(ctx)
	if next != nil {
		next() // the rows that the batch changes are now locked
	}
	return nil
}

// Connection returns the connection, and the last check that it has passed.
func (s *session) Connection() (*sql.Conn, *storage.Passed) {
	const passed = "bankingapi.passed"
	data := s.native.PgConn().CustomData()
	last, ok := data[passed].(*storage.Passed)
	if !ok {
		last = new(storage.Passed)
		data[passed] = last
	}
	return s.conn, last
}

func (s *session) Commit(ctx context.Context, requests ...batch.Request) error {
	if !s.begun && len(requests) == 0 {
		return nil
	}
	committing := hold(s.native)
	err := s.sendCommit(ctx, requests)
	known, _ := errors.AsType[batch.FailureError](err)
	if committing != nil && known.Failure != batch.Interrupted {
		committing.Store(false)
	}
	return err
}

// sendCommit sends the requests and the commit. The error is Interrupted if the commit may have
// taken effect.
func (s *session) sendCommit(ctx context.Context, requests []batch.Request) error {
	err := s.send(ctx, requests, true)
	if err != nil {
		if errors.Is(err, errShared) || isUndone(err) {
			return err
		}
		return asInterrupted(err)
	}
	if s.decided && !s.wrote {
		return s.witness(ctx)
	}
	return nil
}

// errNotCommitted: the server answered COMMIT with ROLLBACK after a statement failed.
var errNotCommitted = errors.New("the server rolled the transaction back")

// isUndone reports whether a failed commit left nothing behind: the server says that it rolled
// back everything, or it never received the commit.
func isUndone(err error) bool {
	if native, ok := errors.AsType[*pgconn.PgError](err); ok {
		return native.SeverityUnlocalized == "ERROR" // Severity is in the language of lc_messages
	}
	_, unsent := errors.AsType[pgx.ErrPreprocessingBatch](err) // the commit is sent after everything is prepared
	return unsent || errors.Is(err, errNotCommitted) || pgconn.SafeToRetry(err)
}

// send sends the requests in one round trip. It sends BEGIN before the first request. If ends
// is true, it sends COMMIT after the last one.
func (s *session) send(ctx context.Context, requests []batch.Request, ends bool) error {
	return s.conn.Raw(func(any) error {
		p := pipeline{session: s, verified: s.begun}
		if !s.begun {
			s.begun = true
			p.begin()
		}
		for i := range requests {
			p.add(&requests[i])
		}
		if ends {
			p.commit(ctx)
		}
		err := s.native.SendBatch(ctx, &p.batch).Close()
		if err != nil {
			return p.failed(err, requests)
		}
		if ends && !p.committed {
			return errNotCommitted
		}
		if ends && p.swallowed != nil { // the commit was in the same message
			return batch.FailureError{Failure: batch.Interrupted, Cause: p.swallowed}
		}
		return p.swallowed
	})
}

// pipeline is what one round trip of a session sends, and what the answers of the server say.
type pipeline struct {
	session *session
	batch   pgx.Batch
	// verified: the connection has its settings, and its marker. committed: the server has
	// answered COMMIT with COMMIT.
	verified, committed bool
	// swallowed is the error of the first request whose rows the database ignored.
	swallowed error
}

// begin adds BEGIN and the statement that sets what a batch needs.
func (p *pipeline) begin() {
	// Row locks keep books correct. With a stricter default, every transaction that
	// waited for a lock would have to start again.
	p.batch.Queue("begin isolation level read committed")
	p.batch.Queue(p.session.begins, p.session.arguments...).Exec(func(pgconn.CommandTag) error {
		p.verified = true
		return nil
	})
}

// add adds a request.
func (p *pipeline) add(r *batch.Request) {
	sql, arguments := formOf(r, p.session.native)
	queued := p.batch.Queue(sql, arguments...)
	if r.Found != nil {
		queued.Query(func(rows pgx.Rows) error { return p.found(r, rows) })
		return
	}
	if r.Changes != "" && !slices.Contains(p.session.changed, r.Changes) {
		p.session.changed = append(p.session.changed, r.Changes)
	}
	queued.Fn = func(results pgx.BatchResults) error { return p.wrote(r, sql, results) }
}

// found passes the rows that a request has found to it.
func (p *pipeline) found(r *batch.Request, rows pgx.Rows) error {
	count, err := find(rows, r.Found)
	p.session.decided = p.session.decided || r.Decides && count > 0
	return r.Named(err)
}

// wrote notes what a request has written.
func (p *pipeline) wrote(r *batch.Request, sql string, results pgx.BatchResults) error {
	tag, err := results.Exec()
	if err != nil {
		return r.Named(asLostRace(r, err))
	}
	s := p.session
	changed := tag.RowsAffected()
	s.wrote = s.wrote || changed > 0 && !tag.Select()
	s.decided = s.decided || r.Decides && changed < int64(r.Rows.Len())
	ignored := wrote(r, sql, changed)
	if ignored != nil && p.swallowed == nil {
		p.swallowed = r.Named(ignored)
	}
	return nil
}

// commit adds the last statements of a transaction.
func (p *pipeline) commit(ctx context.Context) {
	if len(p.session.arguments) > 0 { // a pooler may not forward a Flush
		callNext(commit.Next(ctx), &p.batch, p.session.native)
	}
	beforeCommit := p.session.settings.unchanged.statement(p.session.changed)
	if beforeCommit != "" {
		p.batch.Queue(beforeCommit).Exec(func(pgconn.CommandTag) error { return nil })
	}
	p.batch.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		p.committed = tag.String() == "COMMIT"
		return nil
	})
}

// failed notes what an error says about the server, and returns it for the caller.
func (p *pipeline) failed(err error, requests []batch.Request) error {
	s := p.session
	native, isOfServer := errors.AsType[*pgconn.PgError](err)
	if isOfServer {
		s.demoted = native.Code == readOnly
	}
	if isOfServer && native.Code == diskFull {
		s.settings.full.Store(&full{native, time.Now()}) //nolint:forbidigo // measures a duration; the clock of the bank may be moved
	}
	if isOfServer && native.Code == failed && !p.verified {
		s.settings.pooled.Store(true)
		return errShared
	}
	unsent, isUnsent := errors.AsType[pgx.ErrPreprocessingBatch](err)
	for i := range requests {
		if isUnsent && unsent.SQL() != "" && strings.Contains(requests[i].SQL, unsent.SQL()) {
			return requests[i].Named(err)
		}
	}
	return asChanged(err)
}

// formOf returns the form of a request for its number of rows, and its arguments. If conn is
// set, it does not wait for a late row: the row is computed while the message is written.
func formOf(r *batch.Request, conn *pgx.Conn) (sql string, arguments []any) {
	many, one, hasOne := strings.Cut(r.SQL, orOneRow)
	switch {
	case !hasOne || r.Rows.Len() != 1:
		return many, r.Rows.Arrays()
	case r.Rows.IsLate() && conn != nil:
		return one, lateValues(&r.Rows, conn)
	default:
		return one, r.Rows.Append(nil, 0)
	}
}

// All statements of a round trip are one message. Two actions must happen at a certain point of
// the message while pgx writes it. At this time pgx calls no code of ours except the encoding
// of arguments. So there are two arguments that act on the connection. Both are here,
// and no other argument has side effects.

// action is an argument that runs when pgx encodes it.
type action func() (driver.Value, error)

func (act action) Value() (driver.Value, error) { return act() }

// lateValues returns the values of a late row. They are computed while the server runs the
// statements before it: the first value flushes the part of the message that is already
// written. There is still only one round trip: the server answers only at the end of the
// message.
func lateValues(rows *batch.Rows, conn *pgx.Conn) []any {
	work := sync.OnceValues(func() ([]any, error) {
		if err := conn.PgConn().Frontend().Flush(); err != nil {
			return nil, err
		}
		return rows.Append(nil, 0), nil
	})
	values := make([]any, rows.Width())
	for i := range values {
		values[i] = action(func() (driver.Value, error) {
			late, err := work()
			if err != nil {
				return nil, err
			}
			return late[i], nil
		})
	}
	return values
}

// callNext makes the next batch of the queue begin when the statements in b have run. Otherwise
// it would begin when their commit is on the disk. next may be nil.
func callNext(next func(), b *pgx.Batch, conn *pgx.Conn) {
	if next == nil || b.Len() == 0 {
		return
	}
	last := b.QueuedQueries[b.Len()-1]
	done := last.Fn
	last.Fn = func(results pgx.BatchResults) error {
		err := done(results)
		if err != nil {
			return err
		}
		next()
		return nil
	}
	// The server keeps its answers until the end of the message, that is, until the commit is
	// on the disk. A Flush makes it send them earlier. The argument of this small statement
	// sends it.
	b.Queue("SELECT $1::bigint", action(func() (driver.Value, error) {
		conn.PgConn().Frontend().Send(&pgproto3.Flush{})
		return int64(0), nil
	}))
}

// wrote returns an error if the database ignored new rows. Statements that change rows check
// this themselves: see mustWriteAll.
func wrote(r *batch.Request, sql string, changed int64) error {
	if r.Writes && strings.HasPrefix(sql, "INSERT") && changed < int64(r.Rows.Len()) {
		return fmt.Errorf("wrote %d rows instead of %d: does the table have a trigger?", changed, r.Rows.Len())
	}
	return nil
}

// find passes the rows of a lookup to visit and returns their number. The first column is the
// number of the key, from 1.
func find(rows pgx.Rows, visit func(batch.Scan) error) (n int, err error) {
	var number int64
	columns := []any{&number}
	for ; rows.Next(); n++ {
		err := visit(func(targets ...any) (int, error) {
			columns = append(columns[:1], targets...)
			err := rows.Scan(columns...)
			return int(number) - 1, err
		})
		if err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}

// Rollback closes the connection if it cannot roll back, or if it leads to a demoted primary.
// The next connection goes to the current primary.
func (s *session) Rollback() {
	_ = s.conn.Raw(func(any) error {
		if s.demoted || s.native.IsClosed() {
			return driver.ErrBadConn
		}
		if s.native.PgConn().TxStatus() == 'I' {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
		defer cancel()
		if _, err := s.native.Exec(ctx, "rollback"); err != nil {
			return driver.ErrBadConn
		}
		return nil
	})
	_ = s.conn.Close()
}

// hostSession is a transaction that a host ends.
type hostSession struct {
	tx       batch.Tx
	settings *settings
	// wrote and decided are as in session.
	wrote, decided bool
}

func (s *hostSession) Exchange(ctx context.Context, requests ...batch.Request) error {
	for i := range requests {
		if err := s.run(ctx, &requests[i]); err != nil {
			return requests[i].Named(err)
		}
	}
	return nil
}

// Commit leaves the commit to the host. It makes that commit wait for the disk, as the service's own
// commits do: the default of the server may be not to wait.
func (s *hostSession) Commit(ctx context.Context, requests ...batch.Request) error {
	_, err := s.tx.ExecContext(ctx, durable)
	if err != nil {
		return err
	}
	err = s.Exchange(ctx, requests...)
	if err != nil || s.wrote || !s.decided {
		return err
	}
	has, err := s.settings.hasMessages(ctx, s.tx)
	if err != nil || !has {
		return err
	}
	_, err = s.tx.ExecContext(ctx, message)
	return err
}

func (s *hostSession) Rollback() {}

func (s *hostSession) run(ctx context.Context, r *batch.Request) error {
	sql, arguments := formOf(r, nil)
	if r.Found == nil {
		result, err := s.tx.ExecContext(ctx, sql, arguments...)
		if err != nil {
			return asLostRace(r, err)
		}
		changed, err := result.RowsAffected()
		if err != nil {
			return err
		}
		s.wrote = s.wrote || changed > 0
		s.decided = s.decided || r.Decides && changed < int64(r.Rows.Len())
		return wrote(r, sql, changed)
	}
	rows, err := s.tx.QueryContext(ctx, sql, arguments...) //nolint:rowserrcheck // Each does it
	if err != nil {
		return err
	}
	var number int
	return batch.Each(rows, func() error {
		s.decided = s.decided || r.Decides
		return r.Found(func(targets ...any) (int, error) {
			err := rows.Scan(append([]any{&number}, targets...)...)
			return number - 1, err
		})
	})
}
