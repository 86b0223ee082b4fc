// Package storage keeps everything in a relational database: one
// implementation of all storage ports, on gorm, for SQLite and Postgres. What
// differs between the two is an Engine, made by the packages sqlite and
// postgres below this one.
package storage

import (
	"context"
	"strings"
	"sync/atomic"
	"time"
)

// Store implements the storage ports of every use case. It is safe for
// concurrent use.
type Store struct {
	engine     *Engine
	now        func() time.Time
	prefix     string
	statements statements
	attempts   int
	presumed   *presumption
	fits       *atomic.Bool // the schema, once it did
}

// New returns a Store on an opened engine. now dates what imports write.
func New(engine *Engine, tablePrefix string, now func() time.Time) *Store {
	return &Store{engine, now, tablePrefix, newStatements(newTables(tablePrefix)), maxAttempts, new(presumption), new(atomic.Bool)}
}

// request is a statement with its rows, in the engine's dialect.
func (s *Store) request(st *statement, rows *Rows, found func(Scan) error) Request {
	if st.lean != nil {
		st, rows = st.lean.of(rows)
	}
	sql := st.postgres
	if s.engine.Dialect == SQLite {
		sql = st.sqlite
	}
	return Request{Name: st.name, SQL: sql, Rows: rows, Found: found}
}

// some leaves out the requests that carry nothing.
func some(requests ...Request) []Request {
	n := 0
	for _, r := range requests {
		if r.Rows.Len() > 0 {
			requests[n] = r
			n++
		}
	}
	return requests[:n]
}

// Ping returns nil when the database answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.translate(s.engine.Reads.WithContext(ctx).Exec("SELECT 1").Error)
}

// IsEmpty reports whether the book has no price, no holding and no account.
func (s *Store) IsEmpty(ctx context.Context) (bool, error) {
	var rows int64
	query := "SELECT COUNT(*) FROM (SELECT 1 FROM %sprices UNION ALL SELECT 1 FROM %sholdings UNION ALL SELECT 1 FROM %saccounts LIMIT 1) AS anything"
	err := s.engine.Reads.WithContext(ctx).Raw(strings.ReplaceAll(query, "%s", s.prefix)).Scan(&rows).Error
	return rows == 0, s.translate(err)
}

// Close closes the database, unless it was handed in open.
func (s *Store) Close() error { return s.engine.Close() }
