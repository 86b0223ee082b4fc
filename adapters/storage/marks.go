package storage

import (
	"context"
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bankingapi/adapters/storage/tables"
	"bankingapi/adapters/storage/trail"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
)

// marks reads and writes the mark of a database.
type marks struct {
	trail.Writer
	engine *Engine
	mark   string
}

var _ store.Marker = marks{}

// Note is store.Marker.
func (m marks) Note(ctx context.Context) (note string, err error) {
	err = m.Reads.WithContext(ctx).Table(m.Marks.Name).Where("mark = ?", m.mark).Select("note").Scan(&note).Error
	return note, m.Translate(err)
}

// SetNote is store.Marker.
func (m marks) SetNote(ctx context.Context, note string) error {
	return m.Change(ctx, func(tx *gorm.DB) error { return m.setNote(tx, note) })
}

func (m marks) setNote(tx *gorm.DB, note string) error {
	result := tx.Table(m.Marks.Name).Where("mark = ?", m.mark).Update("note", note)
	if result.Error == nil && result.RowsAffected == 0 {
		return otherMark("", m.mark)
	}
	return result.Error
}

// Empty is store.Marker. The first statement fails without the mark, and the
// transaction with it.
func (m marks) Empty(ctx context.Context, note string) error {
	if m.mark == "" {
		return otherMark("", "sandbox")
	}
	return m.Change(ctx, func(tx *gorm.DB) error {
		if err := m.setNote(tx, note); err != nil {
			return err
		}
		own := tables.Convert(m.engine.Tables, func(table string) string { return m.Prefix + table })
		for _, table := range append(own, m.TableNames...) {
			if table == m.Subscriptions.Name {
				continue
			}
			if err := tx.Exec("DELETE FROM " + table).Error; err != nil {
				return err
			}
		}
		return m.ClearLog(tx)
	})
}

// add marks the database if it has no row yet. A database that has the mark
// stays as it is.
func (m marks) add(ctx context.Context) error {
	return m.Change(ctx, func(tx *gorm.DB) error {
		var found []string
		if err := tx.Table(m.Marks.Name).Pluck("mark", &found).Error; err != nil {
			return err
		}
		if len(found) > 0 && found[0] == m.mark {
			return nil
		}
		if filled, err := m.tablesWithRows(tx); err != nil {
			return err
		} else if len(filled)+len(found) > 0 {
			return otherMark("", m.mark)
		}
		return tx.Table(m.Marks.Name).Clauses(clause.OnConflict{DoNothing: true}).Create(&tables.MarkRow{Mark: m.mark}).Error
	})
}

// tablesWithRows are those of the book, without prefix. An older schema does not have all
// tables.
func (m marks) tablesWithRows(tx *gorm.DB) (names []string, err error) {
	for _, table := range m.TableNames {
		var tables int64
		var rows []int
		if err = tx.Raw(m.engine.Migrations.HasTable, table).Scan(&tables).Error; err == nil && tables > 0 {
			err = tx.Raw("SELECT 1 FROM " + table + " LIMIT 1").Scan(&rows).Error
		}
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 {
			names = append(names, strings.TrimPrefix(table, m.Prefix))
		}
	}
	return names, nil
}

// findMark reads the mark of the database; empty if it has none. known is false if
// its schema is older than marks.
func (s *Schema) findMark(ctx context.Context) (mark string, known bool, err error) {
	db := s.Reads.WithContext(ctx)
	var tables int64
	if err = db.Raw(s.engine.Migrations.HasTable, s.Marks.Name).Scan(&tables).Error; err == nil && tables > 0 {
		err = db.Table(s.Marks.Name).Select("mark").Limit(1).Scan(&mark).Error
	}
	return mark, tables > 0, s.plain.Translate(err)
}

// checkMark returns an error if the database has another mark than wanted.
func (s *Schema) checkMark(ctx context.Context) error {
	mark, _, err := s.findMark(ctx)
	if err == nil && mark != s.mark {
		err = otherMark(mark, s.mark)
	}
	return err
}

// mayMigrate returns an error if the database has another mark than wanted and
// is not empty, so that a mistake does not even change its schema.
func (s *Schema) mayMigrate(ctx context.Context) error {
	version, err := s.version(ctx)
	if err != nil || version == 0 {
		return err
	}
	mark, known, err := s.findMark(ctx)
	if err != nil || mark == s.mark {
		return err
	}
	if known && mark == "" {
		filled, err := s.tablesWithRows(s.Reads.WithContext(ctx))
		if err != nil || len(filled) == 0 {
			return s.plain.Translate(err)
		}
	}
	return otherMark(mark, s.mark)
}

// otherMark is the error of a database with another mark.
func otherMark(found, wanted string) error {
	cause := fmt.Errorf("it is %w: start with --%s, or choose another database", store.MarkError(found), found)
	switch found {
	case store.CopyMark:
		cause = fmt.Errorf("it is %w: run 'bankingapi copy' again, or choose another database", store.MarkError(found))
	case "":
		kind, _, _ := strings.Cut(wanted, " ")
		cause = fmt.Errorf("it is %w: a %s needs an empty database", store.MarkError(found), kind)
	}
	return fault.Wrap(fault.Unavailable, cause, "The service does not use this database:")
}
