package tables

import (
	"bytes"
	"context"
	"sync"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
)

// AppendEntries appends what entry makes of the rows.
func AppendEntries[R, T any](to []T, rows []R, entry func(*R) (T, error)) ([]T, error) {
	for i := range rows {
		value, err := entry(&rows[i])
		if err != nil {
			return to, err
		}
		to = append(to, value)
	}
	return to, nil
}

// InTurn takes steps until one fails.
func InTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Each reads rows of a table, which has the name t: those that the conditions of tx choose, in
// its order. A row is valid during the call.
func Each[R any](tx *gorm.DB, t *batch.Table[R], found func(*R) error) error {
	return Scan(tx.Table(t.Name+" AS t").Select(ColumnsOf("t", t)), t, found)
}

// Scan reads the rows of a query of all columns. They are scanned into one model again and
// again: gorm's own scan of a row takes several times longer.
func Scan[R any](query *gorm.DB, t *batch.Table[R], found func(*R) error) error {
	rows, err := query.Rows() //nolint:rowserrcheck,sqlclosecheck // Each does it
	if err != nil {
		return err
	}
	row := new(R)
	into := batch.Targets(row, t.Columns)
	return batch.Each(rows, func() error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		return found(row)
	})
}

// RowsOf reads rows as Each does, and returns them.
func RowsOf[R any](tx *gorm.DB, t *batch.Table[R]) (rows []R, err error) {
	err = Each(tx, t, func(row *R) error {
		rows = append(rows, *row)
		return nil
	})
	return rows, err
}

// ColumnsOf are the columns of a table with its name in the query. Alone, a name
// may be a keyword.
func ColumnsOf[R any](as string, t *batch.Table[R]) []string {
	names := batch.Names(t.Columns)
	for i := range names {
		names[i] = as + "." + names[i]
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

// LookUp finds the row of one key. It is nil if there is none.
func LookUp[R any](ctx context.Context, s batch.Session, q *batch.Query[R], key R) (found *R, err error) {
	err = s.Exchange(ctx, q.Request([]R{key}, func(_ int, row *R) error {
		kept := *row
		found = &kept
		return nil
	}))
	return found, err
}

// Aside begins work beside the caller. wait returns its error, or panics as it did.
func Aside(work func() error) (wait func() error) {
	wait = sync.OnceValue(work)
	go func() {
		defer func() { _ = recover() }() // who waits panics too
		_ = wait()
	}()
	return wait
}

// Flag is a column of 0 or 1.
func Flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

// Microsecond is the first instant not before t that can be stored.
func Microsecond(t time.Time) time.Time {
	return t.Add(time.Microsecond - time.Nanosecond).UTC().Truncate(time.Microsecond)
}

// Chunk is the number of rows in one round trip of much work.
const Chunk = 1000

// CompareIDs orders IDs by time.
func CompareIDs(a, b batch.UUID) int { return bytes.Compare(a[:], b[:]) }
