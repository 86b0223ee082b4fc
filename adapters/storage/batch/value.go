package batch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// The types of columns in addition to int64, sql.NullInt64, string and []byte. Each can scan
// the values of all drivers. In a gorm query, a UUID and an Instant are bound as the engine stores
// them.

// Dialector is gorm's dialector of an engine.
type Dialector interface {
	gorm.Dialector
	// Bind converts a UUID or a time.Time into an argument of a statement.
	Bind(value any) any
}

// bound returns an argument of a gorm query.
func bound(db *gorm.DB, value any) clause.Expr {
	return clause.Expr{SQL: "?", Vars: []any{db.Dialector.(Dialector).Bind(value)}}
}

// UUID is an identifier of 16 bytes. The zero UUID is NULL in a column that may be NULL.
type UUID [16]byte

// GormDataType names the type in gorm's schema.
func (UUID) GormDataType() string { return "uuid" }

// GormValue implements gorm.Valuer. It does not bind the zero UUID as NULL. Do not write "(?" for a
// UUID: gorm takes an array directly after a parenthesis for a list.
func (u UUID) GormValue(_ context.Context, db *gorm.DB) clause.Expr { return bound(db, u) }

// Scan reads NULL, 16 bytes, or the text form. It rejects the text form in bytes, because no lookup
// would find such a row.
func (u *UUID) Scan(value any) error {
	if value == nil {
		*u = UUID{}
		return nil
	}
	if b, isBytes := value.([]byte); isBytes && len(b) == len(u) {
		*u = UUID(b)
		return nil
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("an identifier is stored as %T", value)
	}
	id, err := uuid.Parse(text)
	if err != nil || len(text) > len("00000000-0000-0000-0000-000000000000") { // Parse accepts two longer forms
		return errors.New("a stored identifier is not a UUID")
	}
	*u = UUID(id)
	return nil
}

// String returns the form 8-4-4-4-12 in lower case.
func (u UUID) String() string { return uuid.UUID(u).String() }

// Day is a calendar day as YYYY-MM-DD. The empty Day is NULL.
type Day string

// GormDataType names the type in gorm's schema.
func (Day) GormDataType() string { return "date" }

// Scan reads a text, or the time at which the day begins.
func (d *Day) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*d = ""
	case string:
		*d = Day(v)
	case time.Time:
		*d = Day(v.Format(time.DateOnly))
	default:
		return fmt.Errorf("a day is stored as %T", value)
	}
	return nil
}

// Instant is a time in UTC, to the microsecond. The zero Instant is NULL.
type Instant struct{ Time time.Time }

// GormDataType names the type in gorm's schema.
func (Instant) GormDataType() string { return "timestamptz" }

// GormValue implements gorm.Valuer. It does not bind the zero Instant as NULL.
func (i Instant) GormValue(_ context.Context, db *gorm.DB) clause.Expr { return bound(db, i.Time) }

// Scan reads a time, or a text in TextLayout.
func (i *Instant) Scan(value any) (err error) {
	switch v := value.(type) {
	case nil:
		i.Time = time.Time{}
	case time.Time:
		i.Time = v.UTC()
	case string:
		layout := TextLayout
		if len(v) == len(TextLayout) && v[len(v)-1] == 'Z' {
			layout = time.RFC3339 // such a text has both layouts, and Parse is three times as fast with this one
		}
		i.Time, err = time.Parse(layout, v)
	default:
		return fmt.Errorf("a time is stored as %T", value)
	}
	return err
}

// TextLayout is the format of an Instant in a database without a time type. It has a fixed
// width, so that the texts sort like the times.
const TextLayout = "2006-01-02T15:04:05.000000Z"
