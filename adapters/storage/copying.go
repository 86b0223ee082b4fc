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

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
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
	c := copying{d, target, w, make(map[string]int64)}
	err = c.begin(ctx)
	if err != nil {
		return 0, err
	}
	err = d.db.Snapshot(ctx, func(source *gorm.DB) error { return c.copyTables(ctx, source) })
	if err != nil {
		return 0, err
	}
	// This snapshot of the source also includes changes that were made during the copy.
	err = d.db.Snapshot(ctx, func(source *gorm.DB) error {
		return target.db.Snapshot(ctx, func(copied *gorm.DB) error {
			rows, err = c.compareTables(source, copied)
			return err
		})
	})
	if err != nil {
		return rows, err
	}
	return rows, c.end(ctx)
}

// copying is a copy of one book to another database.
type copying struct {
	source, target service
	watch          store.CopyWatch
	compared       map[string]int64 // how many rows each table had when both books were compared
}

// begin returns an error unless both databases fit and nobody uses them, and claims the target.
func (c *copying) begin(ctx context.Context) error {
	err := c.source.db.Ready(ctx)
	if err != nil {
		return err
	}
	err = c.target.db.Ready(ctx)
	if err != nil {
		return err
	}
	err = c.checkUnused(ctx)
	if err != nil {
		return err
	}
	return c.target.claimCopy(ctx, c.source)
}

func (c *copying) checkUnused(ctx context.Context) error {
	err := c.source.alone(ctx)
	if err != nil {
		return err
	}
	return c.target.alone(ctx)
}

// tables are the tables that a copy has. No replica runs on it.
func (c *copying) tables() []tables.Relied {
	all := slices.Clone(c.target.db.Relied)
	return slices.DeleteFunc(all, func(t tables.Relied) bool { return t.Table == c.target.db.Replicas.Name })
}

// phase tells that the work on a table begins.
func (c *copying) phase(work string, source *gorm.DB, table string) error {
	var count int64
	err := source.Table(table).Count(&count).Error
	if err != nil {
		return err
	}
	c.watch.Phase(work+" "+strings.TrimPrefix(table, c.source.db.Prefix), count)
	return nil
}

func (c *copying) copyTables(ctx context.Context, source *gorm.DB) error {
	for _, t := range c.tables() {
		err := c.phase("copying", source, t.Table)
		if err != nil {
			return err
		}
		// Migrations add rows to this table.
		isFull := t.Table == c.target.db.Properties.Name
		err = t.Copies.Copy(ctx, c.target.db, c.copied(source, t.Table), isFull, c.watch.Row)
		if err != nil {
			return fmt.Errorf("copy the table %s: %w", t.Table, err)
		}
	}
	return nil
}

// compareTables returns the number of rows that both books have, or an error if they differ.
func (c *copying) compareTables(source, copied *gorm.DB) (rows int64, err error) {
	for _, t := range c.tables() {
		err = c.phase("comparing", source, t.Table)
		if err != nil {
			return rows, err
		}
		want, err := t.Copies.Sum(c.copied(source, t.Table), c.watch.Row)
		if err != nil {
			return rows, err
		}
		got, err := t.Copies.Sum(c.copied(copied, t.Table), func(int64) {})
		if err != nil {
			return rows, err
		}
		if got != want {
			return rows, fault.New(fault.Conflict, fmt.Sprintf("The table %s is not the same in the copy: %d rows here, %d there, or other values."+
				" The book was changed meanwhile, or the target had other rows. Begin again with an empty database.", t.Table, want.Rows, got.Rows))
		}
		c.compared[t.Table] = want.Rows
		rows += want.Rows
	}
	return rows, nil
}

// requireUnchanged returns an error if the source has got rows since both books were compared. A command
// may have begun and ended meanwhile, and each act and each operation adds rows.
func (c *copying) requireUnchanged(source *gorm.DB) error {
	for _, statement := range c.source.db.DB.Prepare(batch.Import) { // to count may take longer than a statement of a request
		err := source.Exec(statement).Error
		if err != nil {
			return err
		}
	}
	for _, t := range c.tables() {
		var count int64
		err := c.copied(source, t.Table).Table(t.Table + " AS t").Count(&count).Error
		if err != nil {
			return err
		}
		if count != c.compared[t.Table] {
			return fault.New(fault.Conflict, fmt.Sprintf("The table %s has other rows than its copy. The book was changed meanwhile."+
				" Stop what changes it, and begin again with an empty database.", t.Table))
		}
	}
	return nil
}

// end marks the source. RemoveMark of the target then makes the copy the book: otherwise both would
// sell.
func (c *copying) end(ctx context.Context) error {
	err := c.target.analyze(ctx)
	if err != nil {
		return err
	}
	err = c.checkUnused(ctx)
	if err != nil {
		return err
	}
	return c.markSource(ctx)
}

// copied selects the rows of a table that a copy has: all but the mark of its database.
func (c *copying) copied(tx *gorm.DB, table string) *gorm.DB {
	if table == c.source.db.Properties.Name {
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

// markSource marks the source of a copy, so that no service sells what its copy sells. It keeps
// the act that ctx carries. A service or a command does not change a marked book. So what it changed
// before is found when the mark is set.
func (c *copying) markSource(ctx context.Context) error {
	d := c.source
	if d.mark == store.CopiedMark { // by the copy that was interrupted
		return nil
	}
	return d.db.Change(ctx, func(tx *gorm.DB) error {
		err := d.setMark(tx, store.CopiedMark)
		if err != nil {
			return err
		}
		err = c.requireUnchanged(tx)
		if err != nil {
			return err
		}
		return d.keepAct(ctx, tx)
	})
}

// keepAct keeps the act that ctx carries, if any.
func (d service) keepAct(ctx context.Context, tx *gorm.DB) error {
	if _, ok := audit.From(ctx); !ok {
		return nil
	}
	return d.db.Send(ctx, tx, d.journal.ActWrites(ctx, journal.Changes{})...)
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

// removeMark removes the mark, and keeps the act that ctx carries. Then a copy is a book. One
// transaction does both: if it is interrupted, the copy can go on.
func (d service) removeMark(ctx context.Context) error {
	return d.db.Change(ctx, func(tx *gorm.DB) error {
		removed := tx.Where("value = ?", d.mark).Delete(&tables.PropertyRow{Name: tables.MarkProperty})
		if removed.Error != nil || removed.RowsAffected == 0 {
			return removed.Error
		}
		err := tx.Delete(&tables.PropertyRow{Name: tables.MarkNoteProperty}).Error
		if err != nil {
			return err
		}
		return d.keepAct(ctx, tx)
	})
}
