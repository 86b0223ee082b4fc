package storage

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/read"
	"bankingapi/adapters/storage/tables"
	"bankingapi/adapters/storage/trail"
	"bankingapi/adapters/storage/write"
	"bankingapi/application/store"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	domain "bankingapi/domain/trail"
)

// AllPostings is a table of all postings of a book without a prefix. It needs an alias.
var AllPostings = strings.ReplaceAll(tables.AllPostings, "{{prefix}}", "")

type Checks = checks

// NewChecks returns the checks of a database that nothing has checked.
func NewChecks(check Check) *Checks { return &Checks{check: check} }

// Personal are the columns that stay out of the leaf of a notification.
var Personal = tables.Personal

// Tables are the names of the tables that hold the book of a store and its records.
func Tables(s *store.Store) []string { return slices.Clone(s.Marker.(service).TableNames) }

// ReliedOn are the tables of a store as it relies on them.
func ReliedOn(s *store.Store) []tables.Relied { return s.Marker.(service).Relied }

// ReadKey reads the key of messages again, which a running service does not do.
func ReadKey(ctx context.Context, s *store.Store) error { return s.Schema.(*migrator).ReadKey(ctx) }

// HotPath are the functions that build what one batch sends to a database that
// takes arrays.
func HotPath(d batch.Dialect) (sales func(*fund.Book), notifications func(*push.Inbox) error) {
	db := tables.NewDatabase(batch.NewDB(d, nil), "")
	maker := trail.NewWriter(db)
	books, inboxes := write.NewBooks(maker), write.NewInboxes(maker)
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
		writes, err := inboxes.Writes(inbox, false)
		arrays(writes)
		return err
	}
	return sales, notifications
}

// MisplacePostings makes the open batches what versions with a schema up to 9 wrote: the
// leaves of these operations have no postings, and leaves of their own have them.
func MisplacePostings(ctx context.Context, s *store.Store, keys *domain.Keys, ids ...operation.ID) error {
	d := s.Marker.(service).Writer
	whole, without, apart := make(map[domain.Hash]operation.ID), make(map[operation.ID]func(domain.Kind) domain.Hash), make(map[operation.ID]domain.Entry)
	return d.Change(ctx, func(tx *gorm.DB) error {
		for _, id := range ids {
			only := batch.UUID(id)
			err := read.Operations(d.Database, tx, read.Range{Only: &only}, func(of *read.StoredOperation) error {
				for _, kind := range []domain.Kind{domain.Decided, domain.Settled} {
					l := d.DecisionLeaf(nil, kind, of)
					whole[l.Hash()] = id
				}
				bare, postings := of.WithoutPostings()
				without[id] = func(kind domain.Kind) domain.Hash {
					l := d.DecisionLeaf(nil, kind, bare)
					return l.Hash()
				}
				apart[id] = tables.EntryOf(domain.Posted, id, d.Postings.Leaves.SumOf(keys, id, postings))
				return nil
			})
			if err != nil {
				return err
			}
		}
		var rows []tables.TrailBatchRow
		if err := tx.Table(d.TrailBatches.Name).Where("position IS NULL").Find(&rows).Error; err != nil {
			return err
		}
		for i := range rows {
			b, err := rows[i].Batch()
			if err != nil {
				return err
			}
			for _, e := range b.Entries {
				for k := range b.Entries {
					if id, is := whole[e.Leaf]; is && b.Entries[k] == e {
						b.Entries[k].Leaf = without[id](e.Kind)
						b.Entries = append(b.Entries, apart[id])
					}
				}
			}
			encoded := domain.AppendEntries(nil, b.Entries)
			changed := tables.TrailBatchRow{Entries: encoded, MAC: keys.MAC(b.Record(), encoded, domain.Provenance{Base: domain.Base{Root: new(domain.Tree).Root()}})}
			err = tx.Table(d.TrailBatches.Name).Where("batch_id = ?", d.Dialect.Bind(rows[i].BatchID)).Select("entries", "seal").Updates(changed).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// WrittenAndRead writes one row into each table of which the trail has leaves,
// in a transaction that is undone. It returns the leaf of each row as it was
// written, and as it was read, by the name of the table. fill sets a column.
func WrittenAndRead(ctx context.Context, s *store.Store, fill func(c batch.Column, field any)) (wrote, read map[string]domain.Decoded, err error) {
	d := s.Marker.(service).Database
	wrote, read = make(map[string]domain.Decoded), make(map[string]domain.Decoded)
	tx := d.Writes.WithContext(ctx).Begin()
	defer tx.Rollback()
	for _, err := range []error{
		tx.Error,
		writtenAndRead(ctx, d, tx, d.Sales.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.Postings.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.Operations.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.Refusals.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.Reversals.Table, fill, wrote, read),
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

func writtenAndRead[R any](ctx context.Context, d *tables.Database, tx *gorm.DB, t *batch.Table[R], fill func(batch.Column, any), wrote, read map[string]domain.Decoded) error {
	row := new(R)
	for i, field := range batch.Targets(row, t.Columns) {
		fill(t.Columns[i], field)
	}
	decoded := func(row *R) (domain.Decoded, error) {
		l := domain.NewLeaf(nil, domain.Decided, operation.ID{})
		tables.Encode(&l, t.Name, t, row)
		return domain.Decode(l.Content())
	}
	var err error
	if wrote[t.Name], err = decoded(row); err != nil {
		return err
	}
	if err := d.Dialect.Within(tx.Statement.ConnPool).Exchange(ctx, t.Insert().Request([]R{*row})); err != nil {
		return fmt.Errorf("insert %s: %w", t.Name, err)
	}
	return tables.Each(tx, t, func(row *R) (err error) {
		read[t.Name], err = decoded(row)
		return err
	})
}

// Exec runs a statement that changes the book behind the back of the service.
func Exec(ctx context.Context, s *store.Store, statement string) error {
	return s.Marker.(service).Writes.WithContext(ctx).Exec(statement).Error
}

// Doubt makes the next transaction check the schema.
func Doubt(s *store.Store) { s.Schema.(*migrator).doubt() }

// ForgetKeys makes the batches of notifications what version 11 wrote: their digests have
// no key.
func ForgetKeys(ctx context.Context, s *store.Store, keys *domain.Keys) error {
	d := s.Marker.(service).Writer
	return d.Change(ctx, func(tx *gorm.DB) error {
		plain := make(map[domain.Hash][]byte)
		err := tables.Each(tx, d.Notifications.Table, func(row *tables.NotificationRow) error {
			plain[tables.ShortDigest(tables.ErasedDigests(d.MessagesKey())(row.Digest))] = bytes.Clone(row.Digest)
			return nil
		})
		if err != nil {
			return err
		}
		var rows []tables.TrailBatchRow
		if err := tx.Table(d.TrailBatches.Name).Find(&rows).Error; err != nil {
			return err
		}
		for i := range rows {
			row := &rows[i]
			b, err := row.Batch()
			if err != nil {
				return err
			}
			for i := range b.Entries {
				if b.Entries[i].Kind == domain.Notified {
					b.Entries[i].Digest = tables.ShortDigest(plain[b.Entries[i].Digest])
				}
			}
			from, _ := keys.OpenMAC(b.Record(), row.Entries, row.MAC)
			from.IsKeyed = false
			encoded := domain.AppendEntries(nil, b.Entries)
			changed := tables.TrailBatchRow{Entries: encoded, MAC: keys.MAC(b.Record(), encoded, from)}
			err = tx.Table(d.TrailBatches.Name).Where("batch_id = ?", d.Dialect.Bind(row.BatchID)).Select("entries", "seal").Updates(changed).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
}
