package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bankingapi/adapters/storage"
)

// beginner starts sessions on the connection that writes. It keeps that
// connection's prepared statements: preparing one takes as long as running it
// for several rows.
type beginner struct {
	db *sql.DB

	mu         sync.Mutex
	of         driver.Conn
	statements map[string]driver.Stmt
}

func (b *beginner) begin(ctx context.Context) (storage.Session, error) {
	conn, err := b.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &session{beginner: b, conn: conn}, nil
}

func (b *beginner) prepare(conn driver.Conn, command string) (driver.Stmt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of != conn {
		b.of, b.statements = conn, make(map[string]driver.Stmt)
	}
	if s, ok := b.statements[command]; ok {
		return s, nil
	}
	s, err := conn.Prepare(command)
	if err == nil {
		b.statements[command] = s
	}
	return s, err
}

// close ends the prepared statements. SQLite ends a connection only when it has
// none left, and only then moves the write-ahead log into the file.
func (b *beginner) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	conn, err := b.db.Conn(ctx) // waits for a transaction that still runs
	if err != nil {
		return nil // its owner has closed the database, or it hangs: nobody can end them
	}
	err = conn.Raw(func(raw any) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		var err error
		if b.of == raw {
			for _, each := range b.statements {
				err = errors.Join(err, each.Close())
			}
		}
		b.of, b.statements = nil, nil
		return err
	})
	return errors.Join(err, conn.Close())
}

const closeTimeout = time.Second

// session is one transaction on the connection that writes.
type session struct {
	beginner *beginner
	conn     *sql.Conn
	ended    bool
}

// Exchange is storage.Session. The driver is called directly: database/sql and
// a watcher of the context for every row would cost more than the row.
func (s *session) Exchange(ctx context.Context, requests ...storage.Request) error {
	return s.conn.Raw(func(raw any) error {
		conn, ok := raw.(driver.Conn)
		if !ok {
			return fmt.Errorf("unexpected connection %T", raw)
		}
		for i := range requests {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := s.run(conn, &requests[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *session) run(conn driver.Conn, r *storage.Request) error {
	prepared, err := s.beginner.prepare(conn, r.SQL)
	if err != nil {
		return err
	}
	var arguments []any
	var values []driver.Value
	for n := range r.Rows.Len() {
		arguments = r.Rows.Row(n, arguments)
		values = values[:0]
		for _, a := range arguments {
			values = append(values, a)
		}
		if r.Found == nil {
			_, err = prepared.Exec(values) //nolint:staticcheck // the variant with a context would watch it for every row
		} else {
			err = find(prepared, values, n, r.Found)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// find hands out the rows of a look-up. Values are copied: the driver reuses
// its memory.
func find(prepared driver.Stmt, arguments []driver.Value, key int, found func(storage.Scan) error) (err error) {
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
		err := found(func(into ...any) (int, error) { return key, assign(into, values) })
		if err != nil {
			return err
		}
	}
}

func assign(into []any, values []driver.Value) error {
	for i, v := range values {
		var fits bool
		switch to := into[i].(type) {
		case *int64:
			*to, fits = v.(int64)
		case *string:
			*to, fits = v.(string)
		case *[]byte:
			*to, fits = v.([]byte)
		}
		if !fits {
			return fmt.Errorf("column %d is a %T, not what %T points at", i, v, into[i])
		}
	}
	return nil
}

// Commit is storage.Session.
func (s *session) Commit(ctx context.Context, requests ...storage.Request) error {
	if err := s.Exchange(ctx, requests...); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// From here on the caller's time is not watched: a commit is not interrupted.
	_, err := s.conn.ExecContext(context.WithoutCancel(ctx), "COMMIT")
	if err == nil {
		s.ended = true
		return nil
	}
	var native *sqlitedriver.Error
	if errors.As(err, &native) && native.Code()&0xff == sqlite3.SQLITE_IOERR {
		return commitError{err}
	}
	return err
}

// Rollback is storage.Session.
func (s *session) Rollback() {
	if !s.ended {
		s.ended = true
		// Some errors have rolled back already, which is all the same.
		_, _ = s.conn.ExecContext(context.Background(), "ROLLBACK")
	}
	_ = s.conn.Close()
}
