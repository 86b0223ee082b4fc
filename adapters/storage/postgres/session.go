package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"bankingapi/adapters/storage"
)

// rollbackTimeout bounds a rollback, which nobody waits for.
const rollbackTimeout = 2 * time.Second

// session is one transaction. Its begin travels with the first requests, its
// commit with the last: a batch is as many round trips as it has exchanges.
type session struct {
	conn     *sql.Conn
	settings string
	begun    bool
	demoted  bool // the server has become read-only: another host is the primary now
}

func begin(ctx context.Context, db *sql.DB, settings string) (storage.Session, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &session{conn: conn, settings: settings}, nil
}

// Exchange is storage.Session.
func (s *session) Exchange(ctx context.Context, requests ...storage.Request) error {
	return s.send(ctx, !s.begun, requests, false)
}

// Commit is storage.Session. All that is sent at once is one transaction
// without a begin or commit of its own.
func (s *session) Commit(ctx context.Context, requests ...storage.Request) error {
	if !s.begun && len(requests) == 0 {
		return nil
	}
	err := s.send(ctx, false, requests, s.begun)
	if err == nil {
		s.begun = false
		return nil
	}
	if isUndone(err) {
		return err
	}
	return commitError{err}
}

// isUndone reports a failed commit of which certainly nothing is left: the
// server says that it undid everything, or never heard of it.
func isUndone(err error) bool {
	var native *pgconn.PgError
	var unsent pgx.ErrPreprocessingBatch // statements are prepared before any is sent
	if errors.As(err, &native) {
		return native.SeverityUnlocalized == "ERROR" // Severity is in the language of lc_messages
	}
	return pgconn.SafeToRetry(err) || errors.As(err, &unsent)
}

func (s *session) send(ctx context.Context, begin bool, requests []storage.Request, commit bool) error {
	var batch pgx.Batch
	if begin {
		// Row locks are what keeps books right. Under a stricter default everyone
		// who waited for one would have to begin again.
		batch.Queue("begin isolation level read committed")
	}
	if !s.begun {
		batch.Queue(s.settings)
	}
	s.begun = s.begun || begin
	for i := range requests {
		r := &requests[i]
		queued := batch.Queue(r.SQL, r.Rows.Arrays()...)
		if r.Found != nil {
			queued.Query(func(rows pgx.Rows) error { return find(rows, r.Found) })
		}
	}
	if commit {
		batch.Queue("commit")
	}
	return s.conn.Raw(func(raw any) error {
		conn, ok := raw.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("unexpected connection %T", raw)
		}
		err := conn.Conn().SendBatch(ctx, &batch).Close()
		var native *pgconn.PgError
		s.demoted = errors.As(err, &native) && native.Code == readOnly
		return err
	})
}

// find hands out the rows of a look-up: the number of the key comes first,
// from 1.
func find(rows pgx.Rows, found func(storage.Scan) error) error {
	var columns [8]any
	for rows.Next() {
		err := found(func(into ...any) (int, error) {
			var number int64
			columns[0] = &number
			n := copy(columns[1:], into)
			err := rows.Scan(columns[:n+1]...)
			return int(number) - 1, err
		})
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

// Rollback is storage.Session. A connection that cannot roll back, or that
// leads to a demoted primary, is not used again: the next one is made to
// whoever is the primary then.
func (s *session) Rollback() {
	if s.begun || s.demoted {
		s.begun = false
		ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
		defer cancel()
		_ = s.conn.Raw(func(raw any) error {
			if conn, ok := raw.(*stdlib.Conn); ok && !s.demoted && !conn.Conn().IsClosed() {
				if _, err := conn.Conn().Exec(ctx, "rollback"); err == nil {
					return nil
				}
			}
			return driver.ErrBadConn
		})
	}
	_ = s.conn.Close()
}

// isBroken reports an error of a connection that ended in the middle.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) ||
		err.Error() == "conn closed"
}
