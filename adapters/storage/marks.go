package storage

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bankingapi/adapters/storage/tables"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
)

var _ store.Marker = service{}

func (d service) Note(ctx context.Context) (note string, err error) {
	tx := d.db.Reads.WithContext(ctx)
	mark, err := d.db.PropertyIn(tx, tables.MarkProperty)
	if err != nil {
		return "", d.db.Translate(err)
	}
	if mark != d.mark {
		return "", nil
	}
	note, err = d.db.PropertyIn(tx, tables.MarkNoteProperty)
	return note, d.db.Translate(err)
}

func (d service) SetNote(ctx context.Context, note string) error {
	return d.db.Change(ctx, func(tx *gorm.DB) error { return d.setNote(tx, note) })
}

func (d service) setNote(tx *gorm.DB, note string) error {
	locked := tx.Model(&tables.PropertyRow{Name: tables.MarkProperty}).Where("value = ?", d.mark).Update("value", d.mark)
	if locked.Error != nil {
		return locked.Error
	}
	if locked.RowsAffected == 0 {
		return otherMark("", d.mark)
	}
	return tx.Clauses(tables.Replacing).Create(&tables.PropertyRow{Name: tables.MarkNoteProperty, Value: note}).Error
}

// Empty implements store.Marker. Without the mark the first statement fails, and the
// transaction is rolled back.
func (d service) Empty(ctx context.Context, note string) error {
	if d.mark == "" {
		return otherMark("", store.SandboxMark)
	}
	ctx = context.WithValue(ctx, mayExceed{}, true)
	return d.db.Change(ctx, func(tx *gorm.DB) error {
		err := d.setNote(tx, note)
		if err != nil {
			return err
		}
		facts := d.engine.Facts()
		emptied := tables.Convert(facts.Tables, func(table string) string { return d.db.Prefix + table })
		emptied = append(emptied, d.db.TrailBatches.Name, d.db.TrailHashes.Name)
		for _, table := range append(emptied, d.db.TableNames...) {
			if table == d.db.Subscriptions.Name {
				continue
			}
			err = tx.Exec(facts.Empties + table).Error
			if err != nil {
				return err
			}
		}
		calendar := tables.PropertyRow{Name: tables.CalendarProperty}
		err = tx.Clauses(tables.Replacing).Create(&calendar).Error
		if err != nil {
			return err
		}
		err = tx.Delete(&tables.PropertyRow{Name: tables.RulesProperty}).Error // their act is gone
		if err != nil {
			return err
		}
		return d.journal.Clear(tx)
	})
}

// add marks the database if it has no rows yet. If it already has this mark, add does nothing.
func (d service) add(ctx context.Context) error {
	return d.db.Change(ctx, func(tx *gorm.DB) error {
		mark, err := d.db.PropertyIn(tx, tables.MarkProperty)
		if err != nil || mark == d.mark {
			return err
		}
		filled, err := d.tablesWithRows(tx)
		if err != nil {
			return err
		}
		if len(filled) > 0 || mark != "" {
			return otherMark("", d.mark)
		}
		return d.setMark(tx, d.mark)
	})
}

// setMark marks a database that has no mark.
func (d service) setMark(tx *gorm.DB, mark string) error {
	row := tables.PropertyRow{Name: tables.MarkProperty, Value: mark}
	return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error
}

// tablesWithRows returns the tables of the book that have rows, without prefix, and the calendar
// if it has days. An older schema does not have all tables.
func (d service) tablesWithRows(tx *gorm.DB) (names []string, err error) {
	for _, table := range d.db.TableNames {
		var rows []int
		_, err := d.ifExists(tx, table, func() *gorm.DB { return tx.Raw("SELECT 1 FROM " + table + " LIMIT 1").Scan(&rows) })
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 {
			names = append(names, strings.TrimPrefix(table, d.db.Prefix))
		}
	}
	var calendar string
	_, err = d.ifExists(tx, d.db.Properties.Name, func() *gorm.DB {
		return tx.Model(&tables.PropertyRow{}).Where("name = ?", tables.CalendarProperty).Select("value").Scan(&calendar)
	})
	if calendar != "" {
		names = append(names, tables.CalendarProperty)
	}
	return names, err
}

// ifExists calls read if the table exists.
func (d service) ifExists(tx *gorm.DB, table string, read func() *gorm.DB) (exists bool, err error) {
	var tables int64
	err = tx.Raw(d.engine.Migrations().HasTable, table).Scan(&tables).Error
	if err != nil || tables == 0 {
		return false, err
	}
	return true, read().Error
}

// readCopied says whether a book whose copy is used may be read, and whether this is one.
type readCopied struct {
	found func() // ReadCopied of store.Options
	is    atomic.Bool
	next  func(context.Context) error // MayWrite of another book; may be nil
}

// accepts reports whether a database with this mark, which is not the wanted one, may be read.
func (c *readCopied) accepts(mark string) bool {
	if c.found == nil || mark != store.CopiedMark {
		return false
	}
	if c.is.CompareAndSwap(false, true) {
		c.found()
	}
	return true
}

// mayWrite implements MayWrite of batch.Hooks.
func (c *readCopied) mayWrite(ctx context.Context) error {
	if c.is.Load() {
		return otherMark(store.CopiedMark, "")
	}
	if c.next == nil {
		return nil
	}
	return c.next(ctx)
}

// otherMark returns the error of a database with another mark.
func otherMark(mark, wanted string) error {
	cause := fmt.Errorf("it is %w: use 'bankingapi serve --%s', or choose another database", store.MarkError(mark), mark)
	switch mark {
	case store.CopiedMark:
		cause = fmt.Errorf("it is %w: start the copy, or take this book back with 'bankingapi copy --take-back --reason TEXT'", store.MarkError(mark))
	case store.CopyMark:
		cause = fmt.Errorf("it is %w: run 'bankingapi copy' again, or choose another database", store.MarkError(mark))
	case "":
		kind, _, _ := strings.Cut(wanted, " ")
		cause = fmt.Errorf("it is %w: a %s needs an empty database", store.MarkError(mark), kind)
	}
	return fault.Wrap(fault.Unavailable, cause, "The service does not use this database:")
}
