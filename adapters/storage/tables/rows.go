package tables

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
)

// AppendEntries appends the rows that can be converted, and returns the first error of others.
func AppendEntries[R, T any](entries []T, rows []R, entry func(*R) (T, error)) (_ []T, first error) {
	for i := range rows {
		value, err := entry(&rows[i])
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		entries = append(entries, value)
	}
	return entries, first
}

// InTurn runs the steps in order until one fails.
func InTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Each reads the rows of a table that match the conditions of tx, in its order. The name of the
// table in the query is t. A row is valid only during the call.
func Each[R any](tx *gorm.DB, t *batch.Table[R], visit func(*R) error) error {
	return Scan(tx.Table(t.Name+" AS t").Select(ColumnsOf("t", t)), t, visit)
}

// Scan reads the rows of a query of all columns. It reuses one model for all rows: gorm's own
// scan of a row takes several times longer. The error of a row that cannot be read is *Unreadable.
func Scan[R any](query *gorm.DB, t *batch.Table[R], visit func(*R) error) error {
	rows, err := query.Rows() //nolint:rowserrcheck // Each does it
	if err != nil {
		return err
	}
	row := new(R)
	targets := batch.Targets(row, t.Columns)
	return batch.Each(rows, func() error {
		err := rows.Scan(targets...)
		if err != nil {
			return explainScan(query.Statement.Context, t, rows, targets, err)
		}
		return visit(row)
	})
}

// RowsOf reads rows like Each and returns them.
func RowsOf[R any](tx *gorm.DB, t *batch.Table[R]) (rows []R, err error) {
	err = Each(tx, t, func(row *R) error {
		rows = append(rows, *row)
		return nil
	})
	return rows, err
}

// ColumnsOf returns the columns with the name of their table in the query. A column name alone
// may be a keyword.
func ColumnsOf[R any](table string, t *batch.Table[R]) []string {
	names := batch.Names(t.Columns)
	for i := range names {
		names[i] = table + "." + names[i]
	}
	return names
}

// Convert converts all values.
func Convert[T, R any](values []T, row func(T) R) []R {
	rows := make([]R, len(values))
	for i := range values {
		rows[i] = row(values[i])
	}
	return rows
}

// LookUp returns the row with this key, or nil if it does not exist.
func LookUp[R any](ctx context.Context, s batch.Session, q *batch.Query[R], key R) (result *R, err error) {
	err = s.Exchange(ctx, q.Request([]R{key}, func(_ int, row *R) error {
		kept := *row
		result = &kept
		return nil
	}))
	return result, err
}

// Aside starts work in another goroutine. wait returns its error. If work panics, wait panics.
func Aside(work func() error) (wait func() error) {
	wait = sync.OnceValue(work)
	go func() {
		defer func() { _ = recover() }() // wait panics too
		_ = wait()
	}()
	return wait
}

// Flag returns the value of a column of 0 or 1.
func Flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

// Microsecond returns the first instant not before t that the database can store.
func Microsecond(t time.Time) batch.Instant {
	return batch.Instant{Time: t.Add(time.Microsecond - time.Nanosecond).UTC().Truncate(time.Microsecond)}
}

// Chunk is the number of rows in one round trip of a long job.
const Chunk = 1000

// CompareIDs orders IDs by time.
func CompareIDs(a, b batch.UUID) int { return bytes.Compare(a[:], b[:]) }

// IDSlack is the maximum difference between the time of an ID and the time of receipt. It is not
// 0, because each replica has its own clock.
const IDSlack = time.Hour
