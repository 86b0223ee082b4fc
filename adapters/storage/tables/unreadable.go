package tables

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bankingapi/adapters/storage/batch"
)

// Unreadable is the error of a row with a value that cannot be read, such as a time that is none.
// The service never writes such a value.
type Unreadable struct {
	// Row names the row by its table and key.
	Row string
	// Cause says which column cannot be read, and why.
	Cause error
}

// Error implements error.
func (u *Unreadable) Error() string { return u.Row + ": " + u.Cause.Error() }

// Unwrap returns the cause.
func (u *Unreadable) Unwrap() error { return u.Cause }

type unreadableKey struct{}

// SkipUnreadable returns a context whose reads with Each pass a row that cannot be read to found,
// and go on with the next one. Other reads fail with this error.
func SkipUnreadable(ctx context.Context, found func(*Unreadable) error) context.Context {
	return context.WithValue(ctx, unreadableKey{}, found)
}

// explainScan returns the error of a row of rows that could not be read into targets, or nil if the
// reads with ctx go on.
func explainScan[R any](ctx context.Context, t *batch.Table[R], rows *sql.Rows, targets []any, err error) error {
	values := make([]any, len(t.Columns))
	anything := make([]any, len(t.Columns))
	for i := range values {
		anything[i] = &values[i]
	}
	if rows.Scan(anything...) != nil { // there is no row: the connection failed
		return err
	}
	names := batch.Names(t.Columns)
	unreadable := &Unreadable{Row: rowName(t.Name, t.Keys, names, values), Cause: err}
	for i := range targets {
		one := slices.Clone(anything)
		one[i] = targets[i]
		wrong := rows.Scan(one...)
		if wrong != nil {
			unreadable.Cause = fmt.Errorf("%s cannot be read: %w", names[i], innermost(wrong))
			break
		}
	}
	found, goesOn := ctx.Value(unreadableKey{}).(func(*Unreadable) error)
	if !goesOn {
		return unreadable
	}
	return found(unreadable)
}

// rowName names a row by its table and the values of its key.
func rowName(table string, keys, columns []string, values []any) string {
	var parts []string
	for _, key := range keys {
		at := slices.Index(columns, key)
		if at < 0 { // the rows of a list need not have the key of their table
			continue
		}
		value := values[at]
		if content, isBytes := value.([]byte); isBytes {
			value = hex.EncodeToString(content)
			if len(content) == len(batch.UUID{}) {
				value = batch.UUID(content)
			}
		}
		parts = append(parts, fmt.Sprintf("%s %v", key, value))
	}
	return fmt.Sprintf("row of %s with %s", table, strings.Join(parts, ", "))
}

// innermost leaves out what database/sql says about the place of the column.
func innermost(err error) error {
	inner := errors.Unwrap(err)
	if inner == nil {
		return err
	}
	return inner
}
