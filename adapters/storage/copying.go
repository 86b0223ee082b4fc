package storage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/adapters/storage/trail"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
)

// copyTo implements Copy of store.Store.
func (d service) copyTo(ctx context.Context, other *store.Store, w store.CopyWatch) (rows int64, err error) {
	target, ok := other.Marker.(service)
	if !ok || target.mark != store.CopyMark || target.db.Prefix != d.db.Prefix {
		return 0, errors.New("a book can only be copied to a relational database, with the same prefix of its tables")
	}
	targetDB := target.db
	withContext := func(step func(context.Context) error) func() error { return func() error { return step(ctx) } }
	checkUnused := func() error { return tables.InTurn(withContext(d.engine.Alone), withContext(target.engine.Alone)) }
	if err := tables.InTurn(withContext(d.db.Ready), withContext(targetDB.DB.Ready), checkUnused, func() error { return target.claimCopy(ctx, d) }); err != nil {
		return 0, err
	}
	eachTable := func(work string, source *gorm.DB, do func(t *tables.Relied) error) error {
		for i := range targetDB.Relied {
			t := &targetDB.Relied[i]
			if t.Table == targetDB.Replicas.Name { // no replica runs on the copy
				continue
			}
			var count int64
			if err := source.Table(t.Table).Count(&count).Error; err != nil {
				return err
			}
			w.Phase(work+" "+strings.TrimPrefix(t.Table, d.db.Prefix), count)
			if err := do(t); err != nil {
				return err
			}
		}
		return nil
	}
	err = d.db.Snapshot(ctx, func(source *gorm.DB) error {
		return eachTable("copying", source, func(t *tables.Relied) error {
			// Migrations add rows to this table.
			isFull := t.Table == targetDB.Properties.Name
			if err := t.Copies.Copy(ctx, d.db, targetDB, d.copied(source, t), isFull, w.Row); err != nil {
				return fmt.Errorf("copy the table %s: %w", t.Table, err)
			}
			return nil
		})
	})
	if err != nil {
		return 0, err
	}
	// This snapshot of the source also includes changes that were made during the copy.
	err = d.db.Snapshot(ctx, func(source *gorm.DB) error {
		return targetDB.Snapshot(ctx, func(copied *gorm.DB) error {
			return eachTable("comparing", source, func(t *tables.Relied) error {
				want, err := t.Copies.Sum(d.copied(source, t), w.Row)
				if err != nil {
					return err
				}
				got, err := t.Copies.Sum(d.copied(copied, t), func(int64) {})
				if err != nil {
					return err
				}
				if got != want {
					return fault.New(fault.Conflict, fmt.Sprintf("The table %s is not the same in the copy: %d rows here, %d there, or other values."+
						" The book was changed meanwhile, or the target had other rows. Begin again with an empty database.", t.Table, want.Rows, got.Rows))
				}
				rows += want.Rows
				return nil
			})
		})
	})
	if err != nil {
		return rows, err
	}
	return rows, tables.InTurn(checkUnused, withContext(d.markCopied), withContext(target.removeMark), withContext(target.analyze))
}

// copied selects the rows of a table that a copy has: all but the mark of its database.
func (d service) copied(tx *gorm.DB, t *tables.Relied) *gorm.DB {
	if t.Table == d.db.Properties.Name {
		tx = tx.Where("t.name NOT IN ?", []string{tables.MarkProperty, tables.MarkNoteProperty})
	}
	return tx
}

// claimCopy stores in the mark which book the target is a copy of.
func (d service) claimCopy(ctx context.Context, source service) error {
	digest := sha256.Sum256(append([]byte("copy of "), source.db.MessagesKey()...))
	book := hex.EncodeToString(digest[:])
	note, err := d.Note(ctx)
	switch {
	case err != nil || note == book:
		return err
	case note == "" && source.mark == store.CopiedMark:
		return otherMark(source.mark, "")
	case note != "":
		return fault.Wrap(fault.Conflict, store.MarkError(store.CopyMark), "The target has an interrupted copy of another book:")
	}
	return d.SetNote(ctx, book)
}

// markCopied marks the source of a copy, so that no service sells what its copy sells. It keeps
// the act that ctx carries first.
func (d service) markCopied(ctx context.Context) error {
	if d.mark == store.CopiedMark { // by the copy that was interrupted
		return nil
	}
	if _, ok := audit.From(ctx); ok {
		err := d.db.Transact(ctx, func(session batch.Session) error {
			return session.Commit(ctx, d.log.ActWrites(ctx, trail.Changes{})...)
		})
		if err != nil {
			return err
		}
	}
	return d.db.Change(ctx, func(tx *gorm.DB) error {
		return d.setMark(tx, store.CopiedMark)
	})
}

// analyze makes statistics of a copy where the engine needs them: without them, a server takes
// its tables for empty, and reads them once for each row.
func (d service) analyze(ctx context.Context) error {
	if !d.engine.Facts().NeedsStatistics {
		return nil
	}
	return d.db.Change(ctx, func(tx *gorm.DB) error {
		for i := range d.db.Relied {
			if err := tx.Exec("ANALYZE " + d.db.Relied[i].Table).Error; err != nil {
				return err
			}
		}
		return nil
	})
}

// removeMark removes the mark. Then a copy is a book.
func (d service) removeMark(ctx context.Context) error {
	return d.db.Change(ctx, func(tx *gorm.DB) error {
		removed := tx.Exec("DELETE FROM "+d.db.Properties.Name+" WHERE name = ? AND value = ?", tables.MarkProperty, d.mark)
		if removed.Error != nil || removed.RowsAffected == 0 {
			return removed.Error
		}
		return tx.Exec("DELETE FROM "+d.db.Properties.Name+" WHERE name = ?", tables.MarkNoteProperty).Error
	})
}
