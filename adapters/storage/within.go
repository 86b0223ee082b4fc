package storage

import (
	"context"
	"database/sql"

	"gorm.io/gorm"
)

// Within returns the store inside a transaction of a host's own, on the same
// database: what it writes is committed or rolled back with what the host
// writes. On SQLite the transaction must have begun as an immediate one.
//
// A transaction that lost a race is the host's to run again, so it is not
// tried twice here: the error is fault.Unavailable then, and the host rolls
// back.
func (s *Store) Within(tx *sql.Tx) *Store {
	engine := *s.engine
	engine.Begin = func(context.Context) (Session, error) { return hostSession{tx, engine.Dialect}, nil }
	engine.Close = func() error { return nil }
	// Nothing asks for another connection: the host may have no other. It is the
	// context that makes gorm copy the statement, which else is shared.
	engine.Reads = s.engine.Reads.Session(&gorm.Session{NewDB: true, Context: context.Background()})
	engine.Reads.Statement.ConnPool = tx
	within := *s
	within.engine = &engine
	within.attempts = 1
	return &within
}

// hostSession is a transaction that the host ends.
type hostSession struct {
	tx      *sql.Tx
	dialect Dialect
}

func (s hostSession) Exchange(ctx context.Context, requests ...Request) error {
	run := s.runOnce
	if s.dialect == SQLite {
		run = s.runForEach
	}
	for i := range requests {
		if err := run(ctx, &requests[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s hostSession) Commit(ctx context.Context, requests ...Request) error {
	return s.Exchange(ctx, requests...)
}

func (s hostSession) Rollback() {}

// runOnce runs a command for all rows (Postgres). The number of a row's key
// comes first, from 1.
func (s hostSession) runOnce(ctx context.Context, r *Request) error {
	if r.Found == nil {
		_, err := s.tx.ExecContext(ctx, r.SQL, r.Rows.Arrays()...)
		return err
	}
	found, err := s.tx.QueryContext(ctx, r.SQL, r.Rows.Arrays()...) //nolint:sqlclosecheck // eachFound closes it
	if err != nil {
		return err
	}
	return eachFound(found, r.Found, func(into ...any) (int, error) {
		var number int
		err := found.Scan(append([]any{&number}, into...)...)
		return number - 1, err
	})
}

// runForEach runs a command for each row (SQLite).
func (s hostSession) runForEach(ctx context.Context, r *Request) error {
	prepared, err := s.tx.PrepareContext(ctx, r.SQL)
	if err != nil {
		return err
	}
	defer prepared.Close()
	var arguments []any
	for key := range r.Rows.Len() {
		arguments = r.Rows.Row(key, arguments)
		if r.Found == nil {
			if _, err := prepared.ExecContext(ctx, arguments...); err != nil {
				return err
			}
			continue
		}
		found, err := prepared.QueryContext(ctx, arguments...) //nolint:sqlclosecheck // eachFound closes it
		if err != nil {
			return err
		}
		err = eachFound(found, r.Found, func(into ...any) (int, error) { return key, found.Scan(into...) })
		if err != nil {
			return err
		}
	}
	return nil
}

func eachFound(rows *sql.Rows, found func(Scan) error, scan Scan) error {
	defer rows.Close()
	for rows.Next() {
		if err := found(scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
