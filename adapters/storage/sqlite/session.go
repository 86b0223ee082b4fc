package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
)

// readers is how many connections read at once, unless Options say more.
const readers = 4

// connections starts sessions on the connection that writes.
type connections struct {
	writes, reads *batch.Pool

	file        *file        // nil for a database that a host has opened
	checkpoints *checkpoints // likewise

	blockedSince atomic.Int64 // since when no transaction could begin, in ns; 0 if the last one could begin

	cannotWrite atomic.Bool // the disk reported an error to a commit, and none of a probe has succeeded since

	newest [len(sources)]atomic.Int64 // newest rows at the last call of index
}

// writer is a connection that writes. It keeps its prepared statements, because preparing one
// takes as long as running it for several rows. On the connection of a host it keeps them for one
// session.
type writer struct {
	native     driver.Conn
	statements map[string]driver.Stmt
}

func (c *connections) begin(ctx context.Context) (*session, error) {
	conn, err := c.writes.DB().Conn(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{connections: c, conn: conn}
	c.checkpoints.finish(ctx, conn)
	c.blockedSince.CompareAndSwap(0, time.Now().UnixNano()) //nolint:forbidigo // measures a duration
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		s.Rollback() // the transaction may have begun although ctx has ended
		return nil, c.file.explain(err)
	}
	c.blockedSince.Store(0)
	err = conn.Raw(func(raw any) error {
		native, ok := raw.(driver.Conn)
		if !ok {
			return fmt.Errorf("unexpected connection %T", raw)
		}
		own, isOwn := native.(*writerConn)
		if isOwn {
			s.writer = own.writer
		} else {
			s.writer = newWriter(native)
			s.isOfHost = true
		}
		return c.file.remember(native)
	})
	if err != nil {
		s.Rollback()
		return nil, err
	}
	return s, nil
}

// align is Align of storage.Engine. A transaction sees the state of its first read.
// While this session holds the write lock, no other connection writes. If an import writes for
// minutes, align returns an error.
func (c *connections) align(ctx context.Context, first, second *sql.Tx) error {
	ctx, cancel := context.WithTimeout(ctx, alignTimeout)
	defer cancel()
	s, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer s.Rollback()
	for _, tx := range []*sql.Tx{first, second} {
		var tables int
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_schema").Scan(&tables); err != nil {
			return err
		}
	}
	return nil
}

// alignTimeout is how long align waits for the write lock.
const alignTimeout = time.Second

func newWriter(native driver.Conn) *writer {
	return &writer{native: native, statements: make(map[string]driver.Stmt)}
}

// close closes the statements.
func (w *writer) close() error {
	var err error
	for _, statement := range w.statements {
		err = errors.Join(err, statement.Close())
	}
	clear(w.statements)
	return err
}

func (w *writer) prepare(command string) (driver.Stmt, error) {
	if s, ok := w.statements[command]; ok {
		return s, nil
	}
	s, err := w.native.Prepare(command)
	if err != nil {
		return nil, err
	}
	w.statements[command] = s
	return s, nil
}

// await waits a short time for a running transaction.
func (c *connections) await() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	conn, err := c.writes.DB().Conn(ctx)
	if err != nil {
		return
	}
	_ = conn.Close()
}

const closeTimeout = time.Second

// session is one transaction on the connection that writes.
type session struct {
	connections *connections
	conn        *sql.Conn
	writer      *writer // writer of conn
	// isOfHost: a host has opened the connection, and its pool may drop it at any time. SQLite keeps
	// a connection and its file open as long as it has statements, so each session closes its own.
	isOfHost bool
	rows     int // rows written
	ended    bool
}

// Exchange calls the driver directly. database/sql, and a goroutine that watches the context,
// would cost more for each row than the row itself.
func (s *session) Exchange(ctx context.Context, requests ...batch.Request) error {
	// A panic inside Raw would close the connection without ending its transaction: the
	// prepared statements would keep the transaction open.
	var panicked any
	defer func() {
		if panicked != nil {
			panic(panicked)
		}
	}()
	err := s.conn.Raw(func(any) error {
		defer func() { panicked = recover() }()
		for i := range requests {
			requests[i].Rows.Start()
		}
		for i := range requests {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := s.run(&requests[i]); err != nil {
				return requests[i].Named(err)
			}
			if requests[i].Found == nil {
				s.rows += requests[i].Rows.Len()
			}
		}
		return nil
	})
	return s.connections.file.explain(err)
}

func (s *session) run(r *batch.Request) error {
	prepared, err := s.writer.prepare(r.SQL)
	if err != nil {
		return err
	}
	var arguments []any
	var values []driver.Value
	for n := range r.Rows.Len() {
		arguments = r.Rows.Append(arguments[:0], n)
		values = values[:0]
		for _, a := range arguments {
			values = append(values, bind(a))
		}
		if r.Found != nil {
			err = find(prepared, values, n, r.Found)
			if err != nil {
				return err
			}
			continue
		}
		result, err := prepared.Exec(values) //nolint:staticcheck // the variant with a context would watch it for every row
		if err != nil {
			return err
		}
		err = wrote(r, result)
		if err != nil {
			return err
		}
	}
	return nil
}

// wrote returns an error if the database ignored the row.
func wrote(r *batch.Request, result driver.Result) error {
	if n, err := result.RowsAffected(); r.Writes && (err != nil || n != 1) {
		return fmt.Errorf("wrote %d rows instead of 1: does the table have a trigger?", n)
	}
	return nil
}

// find passes the rows of a lookup to visit. It copies values: the driver reuses its memory.
func find(prepared driver.Stmt, arguments []driver.Value, key int, visit func(batch.Scan) error) (err error) {
	rows, err := prepared.Query(arguments) //nolint:staticcheck // see run
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(values); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		err := visit(func(targets ...any) (int, error) { return key, assign(targets, values) })
		if err != nil {
			return err
		}
	}
}

func assign(targets []any, values []driver.Value) error {
	for i, v := range values {
		var fits bool
		switch target := targets[i].(type) {
		case *int64:
			*target, fits = v.(int64)
		case *string:
			*target, fits = v.(string)
		case *[]byte:
			*target, fits = v.([]byte)
		case sql.Scanner:
			if err := target.Scan(v); err != nil {
				return err
			}
			fits = true
		}
		if !fits {
			return fmt.Errorf("column %d is a %T, not what %T points at", i, v, targets[i])
		}
	}
	return nil
}

// Connection returns the connection. Each batch checks the tables: SQLite counts the changes of
// the schema, so a check reads one number, and nobody else can change it during the batch.
func (s *session) Connection() (*sql.Conn, *storage.Passed) { return s.conn, nil }

func (s *session) Commit(ctx context.Context, requests ...batch.Request) error {
	err := s.commit(ctx, requests)
	if codeOf(err) == sqlite3.SQLITE_IOERR {
		s.connections.cannotWrite.Store(true)
	}
	return err
}

func (s *session) commit(ctx context.Context, requests []batch.Request) error {
	if err := s.Exchange(ctx, requests...); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.connections.file.check(); err != nil {
		return err
	}
	// From here on, the context of the caller is ignored: a commit is not interrupted.
	_, err := s.conn.ExecContext(context.WithoutCancel(ctx), "COMMIT")
	if codeOf(err) == sqlite3.SQLITE_IOERR {
		// The log could not be synced, and after a crash SQLite may find the commit in it.
		return batch.FailureError{Failure: batch.Interrupted, Cause: fmt.Errorf("commit: %w", err)}
	}
	if err != nil {
		return err
	}
	s.ended = true
	s.connections.checkpoints.wrote(s.rows)
	return nil
}

func (s *session) Rollback() {
	if !s.ended {
		s.ended = true
		// Ignore the error: SQLite rolls back by itself after some errors.
		_, _ = s.conn.ExecContext(context.Background(), "ROLLBACK")
	}
	if s.isOfHost {
		_ = s.conn.Raw(func(any) error { return s.writer.close() })
	}
	_ = s.conn.Close()
}

// hostSession is a transaction that a host ends.
type hostSession struct{ tx batch.Tx }

func (s hostSession) Exchange(ctx context.Context, requests ...batch.Request) error {
	for i := range requests {
		if err := s.run(ctx, &requests[i]); err != nil {
			return requests[i].Named(err)
		}
	}
	return nil
}

func (s hostSession) Commit(ctx context.Context, requests ...batch.Request) error {
	return s.Exchange(ctx, requests...)
}

func (s hostSession) Rollback() {}

func (s hostSession) run(ctx context.Context, r *batch.Request) error {
	prepared, err := s.tx.PrepareContext(ctx, r.SQL)
	if err != nil {
		return err
	}
	defer prepared.Close()
	for key := range r.Rows.Len() {
		arguments := r.Rows.Append(nil, key)
		for i := range arguments {
			arguments[i] = bind(arguments[i])
		}
		if r.Found != nil {
			rows, err := prepared.QueryContext(ctx, arguments...) //nolint:rowserrcheck,sqlclosecheck // Each does it
			if err != nil {
				return err
			}
			err = batch.Each(rows, func() error {
				return r.Found(func(targets ...any) (int, error) { return key, rows.Scan(targets...) })
			})
			if err != nil {
				return err
			}
			continue
		}
		result, err := prepared.ExecContext(ctx, arguments...)
		if err != nil {
			return err
		}
		err = wrote(r, result)
		if err != nil {
			return err
		}
	}
	return nil
}

// lastInstant is the last time that sorts as a text. West of Greenwich, the last day of a calendar
// ends after it.
var lastInstant = time.Date(9999, time.December, 31, 23, 59, 59, 999_999_000, time.UTC)

// bind implements Bind of the dialector. It converts times to texts.
func bind(value any) any {
	switch v := value.(type) {
	case time.Time:
		if v.After(lastInstant) {
			v = lastInstant
		}
		return v.UTC().Format(batch.TextLayout)
	case batch.UUID:
		return v[:]
	case [16]byte:
		return v[:]
	}
	return value
}
