package storage

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/store"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/trail"
)

var ModelNames = modelNames

// AllPostings is a table of all postings of a book without a prefix. It needs an alias.
var AllPostings = strings.ReplaceAll(allPostings, "{{prefix}}", "")

// Personal are the columns that stay out of the leaf of a notification.
var Personal = personal

// Tables are the names of the tables that hold the book of a store and its records.
func Tables(s *store.Store) []string { return slices.Clone(s.Marker.(marks).tables) }

// ReliedOn are the tables of a store as it relies on them.
func ReliedOn(s *store.Store) []Relied { return s.Marker.(marks).relied }

// ReadKey reads the key of messages again, which a running service does not do.
func ReadKey(ctx context.Context, s *store.Store) error { return s.Schema.(*Schema).marks.readKey(ctx) }

// DropData sets Options.DropData.
func DropData(s *store.Store, drop bool) { s.Schema.(*Schema).dropData = drop }

// HotPath are the functions that build what one batch sends to a database that
// takes arrays.
func HotPath(d batch.Dialect) (sales func(*fund.Book), notifications func(*push.Inbox) error) {
	db := newDatabase(batch.NewDB(d, nil), "")
	maker := leafMaker{db, newTrailWriter(db)}
	books, inboxes := newBooks(maker), newInboxes(maker)
	arrays := func(requests []batch.Request) {
		for i := range requests {
			requests[i].Rows.Arrays()
		}
	}
	sales = func(book *fund.Book) {
		c := book.Changes()
		arrays(books.changes(book, &c))
	}
	notifications = func(inbox *push.Inbox) error {
		writes, err := inboxes.Writes(inbox, false)
		arrays(writes)
		return err
	}
	return sales, notifications
}

// FormatTranData is the text of the items in the table.
var FormatTranData = formatTranData

// MisplacePostings makes the open batches what versions with a schema up to 9 wrote: the
// leaves of these operations have no postings, and leaves of their own have them.
func MisplacePostings(ctx context.Context, s *store.Store, keys *trail.Keys, ids ...operation.ID) error {
	d := s.Trail.Log.(trailLog).leafMaker
	whole, without, apart := make(map[trail.Hash]operation.ID), make(map[operation.ID]func(trail.Kind) trail.Hash), make(map[operation.ID]trail.Entry)
	return d.change(ctx, func(tx *gorm.DB) error {
		for _, id := range ids {
			only := batch.UUID(id)
			err := readOperations(d.database, tx, idRange{only: &only}, func(of *storedOperation) error {
				for _, kind := range []trail.Kind{trail.Decided, trail.Settled} {
					l := d.decisionLeaf(nil, kind, of)
					whole[l.Hash()] = id
				}
				bare, postings := of.withoutPostings()
				without[id] = func(kind trail.Kind) trail.Hash {
					l := d.decisionLeaf(nil, kind, bare)
					return l.Hash()
				}
				apart[id] = entryOf(trail.Posted, id, d.postings.leaves.sumOf(keys, id, postings))
				return nil
			})
			if err != nil {
				return err
			}
		}
		var rows []TrailBatchRow
		if err := tx.Table(d.batches.Name).Where("position IS NULL").Find(&rows).Error; err != nil {
			return err
		}
		for i := range rows {
			b, err := rows[i].batch()
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
			encoded := trail.AppendEntries(nil, b.Entries)
			changed := TrailBatchRow{Entries: encoded, Seal: keys.Seal(b.Record(), encoded, trail.Seal{Base: trail.Base{Root: new(trail.Tree).Root()}})}
			err = tx.Table(d.batches.Name).Where("batch_id = ?", d.Dialect.Bind(rows[i].BatchID)).Select("entries", "seal").Updates(changed).Error
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
func WrittenAndRead(ctx context.Context, s *store.Store, fill func(c batch.Column, field any)) (wrote, read map[string]trail.Decoded, err error) {
	d := s.Trail.Log.(trailLog).database
	wrote, read = make(map[string]trail.Decoded), make(map[string]trail.Decoded)
	tx := d.writes.WithContext(ctx).Begin()
	defer tx.Rollback()
	for _, err := range []error{
		tx.Error,
		writtenAndRead(ctx, d, tx, d.sales.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.postings.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.operations.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.refusals.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.reversals.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.notifications.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.prices.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.subscriptions.Table, fill, wrote, read),
		writtenAndRead(ctx, d, tx, d.audits.Table, fill, wrote, read),
	} {
		if err != nil {
			return nil, nil, err
		}
	}
	return wrote, read, nil
}

func writtenAndRead[R any](ctx context.Context, d *database, tx *gorm.DB, t *batch.Table[R], fill func(batch.Column, any), wrote, read map[string]trail.Decoded) error {
	native, err := transaction(tx)
	if err != nil {
		return err
	}
	row := new(R)
	for i, field := range batch.Targets(row, t.Columns) {
		fill(t.Columns[i], field)
	}
	decoded := func(row *R) (trail.Decoded, error) {
		l := trail.NewLeaf(nil, trail.Decided, operation.ID{})
		encode(&l, t.Name, t, row)
		return trail.Decode(l.Content())
	}
	if wrote[t.Name], err = decoded(row); err != nil {
		return err
	}
	if err := d.Dialect.Within(native).Exchange(ctx, t.Insert().Request([]R{*row})); err != nil {
		return fmt.Errorf("insert %s: %w", t.Name, err)
	}
	return each(tx, t, func(tx *gorm.DB) *gorm.DB { return tx }, func(row *R) (err error) {
		read[t.Name], err = decoded(row)
		return err
	})
}

// Exec runs a statement that changes the book behind the back of the service.
func Exec(ctx context.Context, s *store.Store, statement string) error {
	return s.Marker.(marks).writes.WithContext(ctx).Exec(statement).Error
}

// Doubt makes the next transaction check the schema.
func Doubt(s *store.Store) { s.Schema.(*Schema).doubt() }

// ForgetKeys makes the batches of notifications what version 11 wrote: their digests have
// no key.
func ForgetKeys(ctx context.Context, s *store.Store, keys *trail.Keys) error {
	d := s.Trail.Log.(trailLog).leafMaker
	return d.change(ctx, func(tx *gorm.DB) error {
		plain := make(map[trail.Hash][]byte)
		err := each(tx, d.notifications.Table, nil, func(row *NotificationRow) error {
			plain[shortDigest(d.erasedDigests()(row.Digest))] = bytes.Clone(row.Digest)
			return nil
		})
		if err != nil {
			return err
		}
		var rows []TrailBatchRow
		if err := tx.Table(d.batches.Name).Find(&rows).Error; err != nil {
			return err
		}
		for i := range rows {
			row := &rows[i]
			b, err := row.batch()
			if err != nil {
				return err
			}
			for i := range b.Entries {
				if b.Entries[i].Kind == trail.Notified {
					b.Entries[i].Digest = shortDigest(plain[b.Entries[i].Digest])
				}
			}
			seal, _ := keys.OpenSeal(b.Record(), row.Entries, row.Seal)
			seal.IsKeyed = false
			encoded := trail.AppendEntries(nil, b.Entries)
			changed := TrailBatchRow{Entries: encoded, Seal: keys.Seal(b.Record(), encoded, seal)}
			err = tx.Table(d.batches.Name).Where("batch_id = ?", d.Dialect.Bind(row.BatchID)).Select("entries", "seal").Updates(changed).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
}
