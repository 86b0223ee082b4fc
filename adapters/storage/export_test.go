package storage

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/book"
	"bankingapi/adapters/storage/calls"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/store"
	"bankingapi/domain/fund"
	"bankingapi/domain/push"
)

// AllPostings is a table of all postings of a book without a prefix. It needs an alias.
var AllPostings = strings.ReplaceAll(tables.AllPostings, "{{prefix}}", "")

type Checks = checks

// NewChecks returns the checks of a database that nothing has checked.
func NewChecks(check Check) *Checks { return &Checks{check: check} }

// Tables are the names of the tables that hold the book of a store and its records.
func Tables(s *store.Store) []string { return slices.Clone(s.Marker.(service).db.TableNames) }

// ReliedOn are the tables of a store as it relies on them.
func ReliedOn(s *store.Store) []tables.Relied { return s.Marker.(service).db.Relied }

// ReadKey reads the key of messages again, which a running service does not do.
func ReadKey(ctx context.Context, s *store.Store) error {
	return s.Schema.(*migrator).service.db.ReadKey(ctx)
}

// HotPath are the functions that build what one batch sends to a database that
// takes arrays.
func HotPath(d batch.Dialect) (sales func(*fund.Book), notifications func(*push.Inbox) error) {
	db := tables.NewDatabase(batch.NewDB(d, batch.Hooks{}), "")
	log := journal.New(db)
	books, inboxes := book.NewBooks(db, log), calls.NewInboxes(db, log)
	arrays := func(requests []batch.Request) {
		for i := range requests {
			requests[i].Rows.Arrays()
		}
	}
	sales = func(book *fund.Book) {
		c := book.Changes()
		arrays(books.Changes(book, &c))
	}
	notifications = func(inbox *push.Inbox) error {
		writes, err := inboxes.Writes(inbox)
		arrays(writes)
		return err
	}
	return sales, notifications
}

// RowText has the columns of a row as texts.
type RowText map[string]string

// Text implements batch.Encoder.
func (r RowText) Text(column, value string) { r[column] = value }

// Int implements batch.Encoder.
func (r RowText) Int(column string, value int64) { r[column] = strconv.FormatInt(value, 10) }

// Bytes implements batch.Encoder.
func (r RowText) Bytes(column string, value []byte) { r[column] = hex.EncodeToString(value) }

// Time implements batch.Encoder.
func (r RowText) Time(column string, value time.Time) {
	r[column] = value.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
}

// WrittenAndRead writes one row into each table of which the trail has leaves,
// in a transaction that is undone. It returns the leaf of each row as it was
// written, and as it was read, by the name of the table. fill sets a column.
func WrittenAndRead(ctx context.Context, s *store.Store, fill func(c batch.Column, field any)) (wrote, read map[string]RowText, err error) {
	d := s.Marker.(service).db
	wrote, read = make(map[string]RowText), make(map[string]RowText)
	tx := d.Writes.WithContext(ctx).Begin()
	defer tx.Rollback()
	for _, err := range []error{
		tx.Error,
		writtenAndRead(ctx, d, tx, d.Sales.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.Adjustments.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.Operations.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.Notifications.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.Prices.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.Subscriptions.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.Audits.Table, fill, wrote, read),
	} {
		if err != nil {
			return nil, nil, err
		}
	}
	return wrote, read, nil
}

func writtenAndRead[R any](ctx context.Context, d *tables.Database, tx *gorm.DB, t *batch.Table[R], fill func(batch.Column, any), wrote, read map[string]RowText) error {
	row := new(R)
	for i, field := range batch.Targets(row, t.Columns) {
		fill(t.Columns[i], field)
	}
	decoded := func(row *R) (RowText, error) {
		text := make(RowText)
		batch.Encode(t, row, text)
		return text, nil
	}
	var err error
	if wrote[t.Name], err = decoded(row); err != nil {
		return err
	}
	if err := d.DB.Dialect.Within(tx.Statement.ConnPool).Exchange(ctx, t.Insert().Request([]R{*row})); err != nil {
		return fmt.Errorf("insert %s: %w", t.Name, err)
	}
	return tables.Each(tx, t, func(row *R) (err error) {
		read[t.Name], err = decoded(row)
		return err
	})
}

// Exec runs a statement that changes the book behind the back of the service.
func Exec(ctx context.Context, s *store.Store, statement string) error {
	return s.Marker.(service).db.Writes.WithContext(ctx).Exec(statement).Error
}

// Doubt makes the next transaction check the schema.
func Doubt(s *store.Store) { s.Schema.(*migrator).doubt() }
