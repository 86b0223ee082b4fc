package storage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/tables"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
)

// copyTo is store.Store.Copy.
func (d service) copyTo(ctx context.Context, other *store.Store, w store.CopyWatch) (rows int64, err error) {
	target, ok := other.Marker.(service)
	if !ok || target.mark != store.CopyMark || target.Prefix != d.Prefix {
		return 0, errors.New("a book can only be copied to a relational database, with the same prefix of its tables")
	}
	to := target.Database
	with := func(step func(context.Context) error) func() error { return func() error { return step(ctx) } }
	unused := func() error { return tables.InTurn(with(d.engine.Alone), with(target.engine.Alone)) }
	if err := tables.InTurn(with(d.Ready), with(to.Ready), unused, func() error { return target.claimCopy(ctx, d.Database) }); err != nil {
		return 0, err
	}
	each := func(work string, source *gorm.DB, do func(t *tables.Relied) error) error {
		for i := range to.Relied {
			t := &to.Relied[i]
			if t.Table == to.Marks.Name {
				continue
			}
			var count int64
			if err := source.Table(t.Table).Count(&count).Error; err != nil {
				return err
			}
			w.Phase(work+" "+strings.TrimPrefix(t.Table, d.Prefix), count)
			if err := do(t); err != nil {
				return err
			}
		}
		return nil
	}
	err = d.Snapshot(ctx, func(source *gorm.DB) error {
		return each("copying", source, func(t *tables.Relied) error {
			// Migrations make rows in these.
			all := slices.Contains([]string{to.Properties.Name, to.OutcomeCounter.Name, to.TrailLogs.Name}, t.Table)
			if err := t.Copies.Copy(ctx, d.Database, to, source, all, w.Row); err != nil {
				return fmt.Errorf("copy the table %s: %w", t.Table, err)
			}
			return nil
		})
	})
	if err != nil {
		return 0, err
	}
	// This snapshot of the source also has what was changed meanwhile.
	err = d.Snapshot(ctx, func(source *gorm.DB) error {
		return to.Snapshot(ctx, func(copied *gorm.DB) error {
			return each("comparing", source, func(t *tables.Relied) error {
				from, err := t.Copies.Sum(source, w.Row)
				if err != nil {
					return err
				}
				found, err := t.Copies.Sum(copied, func(int64) {})
				if err == nil && found != from {
					err = fault.New(fault.Conflict, fmt.Sprintf("The table %s is not the same in the copy: %d rows here, %d there, or other values."+
						" The book was changed meanwhile, or the target had other rows. Begin again with an empty database.", t.Table, from.Rows, found.Rows))
				}
				rows += from.Rows
				return err
			})
		})
	})
	if err == nil {
		err = tables.InTurn(unused, with(target.finishCopy))
	}
	return rows, err
}

// claimCopy keeps in the mark of which book it is the copy.
func (d service) claimCopy(ctx context.Context, of *tables.Database) error {
	digest := sha256.Sum256(append([]byte("copy of "), of.MessagesKey()...))
	book := hex.EncodeToString(digest[:])
	note, err := d.Note(ctx)
	switch {
	case err != nil || note == book:
		return err
	case note != "":
		return fault.Wrap(fault.Conflict, store.MarkError(store.CopyMark), "The target has an interrupted copy of another book:")
	}
	return d.SetNote(ctx, book)
}

// finishCopy takes the mark away: then the copy is a book.
func (d service) finishCopy(ctx context.Context) error {
	return d.Change(ctx, func(tx *gorm.DB) error {
		return tx.Exec("DELETE FROM "+d.Marks.Name+" WHERE mark = ?", d.mark).Error
	})
}
