package tables

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// PropertyRow is a row of the table properties: a property of the whole book.
type PropertyRow struct {
	Name  string `gorm:"primaryKey"`
	Value string `gorm:"not null"`
}

func openProperties(d *Database) {
	t := &d.Properties
	t.Table = openBeside[PropertyRow](d, Relied{Rights: addAndChange})
	t.Find = t.Table.Find(batch.ForUpdate, "", "value")
	t.Put = t.Update("value")
	d.FindRules = t.Table.Find(batch.NoLock, "", "value")
	d.LockRulesOfNewBook = t.Table.Find(batch.ForUpdate, "NOT EXISTS (SELECT 1 FROM "+d.Operations.Name+")", "value")
}

// The names of properties.
const (
	// KeyProperty is the key for the identities of messages. With this key a person can test
	// guesses of a text. So it is in no export, and in no other table.
	KeyProperty = "messages_key"
	// CalendarProperty has a line for each closed day: the day, a space and the reason. An
	// import replaces the whole calendar, so the lock of this row serializes imports.
	CalendarProperty = "calendar"
	// RulesProperty are the rules of the bank, as the text of fund.Rules. The text is their
	// version: what was prepared by another text was prepared by other rules.
	RulesProperty = "rules"
	// OutcomesProperty is the largest number of an outcome. A transaction that ends an
	// operation locks it.
	OutcomesProperty = "outcomes"
	// MarkProperty is what a database is that is not the book of a bank, such as a sandbox. The
	// book of a bank does not have it. MarkNoteProperty belongs to what made the mark.
	MarkProperty     = "mark"
	MarkNoteProperty = "mark_note"
	// The state of the log of the trail: see LogState. Sealing locks them.
	LogSizeProperty       = "log_size"
	LogCheckpointProperty = "log_checkpoint"
	logBegunProperty      = "log_begun"
)

// NumberProperty returns the row of a property that is a number.
func NumberProperty(name string, number int64) PropertyRow {
	return PropertyRow{name, strconv.FormatInt(number, 10)}
}

// Number returns the value of a property that is a count.
func (r *PropertyRow) Number() (int64, error) {
	number, err := strconv.ParseInt(r.Value, 10, 64)
	if err != nil || number < 0 {
		return 0, fault.New(fault.Unavailable, "The property "+r.Name+" of the book is not a count. "+mending(r.Name))
	}
	return number, nil
}

// mending says how to write the row of a property again. A backup has an older value: what has changed
// since then would be forgotten, and a log would never be sealed again.
func mending(name string) string {
	switch name {
	case OutcomesProperty:
		return "Write this row of the table properties again: it is the largest number in the table outcomes, or 0."
	case CalendarProperty:
		return "Restore this row of the table properties from a backup, and import the calendar again if it has changed since."
	default:
		return "Write the rows of the log in the table properties again: log_begun is 1; log_size is the number of sealed batches" +
			" (SELECT MAX(position) + 1 FROM trail_batches); log_checkpoint is the checkpoint that has this number in its second line," +
			" with all its line ends (also the last one), from the file trail.checkpoints of a replica or from where you keep checkpoints." +
			" Without sealed batches log_begun and log_size are 0, and log_checkpoint is empty. Do not take older ones from a backup."
	}
}

// Days yields the closed days of the calendar.
func (r *PropertyRow) Days(yield func(fund.ClosedDay, error) bool) {
	for line := range strings.Lines(r.Value) {
		text, reason, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		closed, err := day.Parse(text)
		if err != nil {
			err = fault.Wrap(fault.Unavailable, err, "The property calendar of the book has a line that begins with no day. "+mending(CalendarProperty))
		}
		if !yield(fund.ClosedDay{Day: closed, Reason: reason}, err) || err != nil {
			return
		}
	}
}

// RequireProperties returns an error if requests cannot use the properties that they read: the
// rules of the bank, its calendar, or the number of the newest outcome. A new book has no rules yet.
func (d *Database) RequireProperties(ctx context.Context) error {
	var rows []PropertyRow
	names := []string{RulesProperty, CalendarProperty, OutcomesProperty}
	err := d.Reads.WithContext(ctx).Table(d.Properties.Name).Where("name IN ?", names).Find(&rows).Error
	if err != nil {
		return d.DB.Translate(err)
	}
	found := make(map[string]PropertyRow, len(rows))
	for _, row := range rows {
		found[row.Name] = row
	}
	for _, name := range []string{CalendarProperty, OutcomesProperty} {
		if _, exists := found[name]; !exists {
			return MissingProperty(name)
		}
	}
	outcomes := found[OutcomesProperty]
	calendar := found[CalendarProperty]
	rules := found[RulesProperty]
	_, err = outcomes.Number()
	if err != nil {
		return err
	}
	for _, err := range calendar.Days {
		if err != nil {
			return err
		}
	}
	_, err = ParseRules(rules.Value)
	if errors.Is(err, backoffice.ErrNoRules) {
		return nil
	}
	return err
}

// MissingProperty is the error of a book without a property that every book has.
func MissingProperty(name string) error {
	return fault.New(fault.Unavailable, "The property "+name+" of the book is missing. "+mending(name))
}

// LogState is the state of the log of the trail.
type LogState struct {
	Size       int64
	Checkpoint string
	// HasBegun: all rows that are older than the trail have leaves.
	HasBegun bool

	begun string
}

// IsBegunReadable reports whether the log says how often it took rows in.
func (s *LogState) IsBegunReadable() bool {
	_, err := s.property().Number()
	return err == nil
}

func (s *LogState) property() *PropertyRow { return &PropertyRow{logBegunProperty, s.begun} }

// LogState reads the state of the log.
func (d *Database) LogState(tx *gorm.DB) (state LogState, err error) {
	var rows []PropertyRow
	names := []string{LogSizeProperty, LogCheckpointProperty, logBegunProperty}
	err = tx.Where("name IN ?", names).Order("name").Find(&rows).Error
	if err != nil {
		return state, err
	}
	if len(rows) != len(names) {
		return state, fault.New(fault.Unavailable, "The book lacks a property of its log. "+mending(logBegunProperty))
	}
	for i := range rows {
		switch rows[i].Name {
		case LogSizeProperty:
			state.Size, err = rows[i].Number()
		case LogCheckpointProperty:
			state.Checkpoint = rows[i].Value
		default:
			state.begun = rows[i].Value
			state.HasBegun = state.begun != notBegun
		}
	}
	return state, err
}

// notBegun is the value of logBegunProperty before the log begins. Later it counts how often rows
// that are older than their leaves came into the log.
const notBegun = "0"

// BeginLog says that the log has begun. It returns false if it had begun before.
func (d *Database) BeginLog(tx *gorm.DB) (begins bool, err error) {
	update := tx.Model(&PropertyRow{Name: logBegunProperty}).Where("value = ?", notBegun).Update("value", "1")
	return update.RowsAffected == 1, update.Error
}

// CountTaking says that rows come into a log that has begun. It returns false if other rows have come
// since somebody read state.
func (d *Database) CountTaking(tx *gorm.DB, state *LogState) (isNext bool, err error) {
	begun := state.property()
	count, err := begun.Number()
	if err != nil {
		return false, err
	}
	update := tx.Model(begun).Where("value = ?", begun.Value).Update("value", NumberProperty(begun.Name, count+1).Value)
	return update.RowsAffected == 1, update.Error
}

// ClearLogState sets the state of a log that has not begun.
func (d *Database) ClearLogState(tx *gorm.DB) error {
	rows := []PropertyRow{NumberProperty(LogSizeProperty, 0), {LogCheckpointProperty, ""}, {logBegunProperty, notBegun}}
	return tx.Clauses(Replacing).Create(&rows).Error
}

// Replacing makes an insert of a property replace the value that the book has.
var Replacing = clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"value"})}

// PropertyIn reads a property in a transaction. It returns "" if the book does not have it.
func (d *Database) PropertyIn(tx *gorm.DB, name string) (value string, err error) {
	err = tx.Model(&PropertyRow{}).Where("name = ?", name).Select("value").Scan(&value).Error
	return value, err
}

// Property reads a property. It returns "" if the book does not have it.
func (d *Database) Property(ctx context.Context, name string) (string, error) {
	value, err := d.PropertyIn(d.Reads.WithContext(ctx), name)
	return value, d.DB.Translate(err)
}

// SetProperty writes a property. existing says what to do if the book already has it.
func (d *Database) SetProperty(ctx context.Context, name, value string, existing clause.OnConflict) error {
	return d.Change(ctx, func(tx *gorm.DB) error {
		return tx.Clauses(existing).Create(&PropertyRow{Name: name, Value: value}).Error
	})
}

// RulesKey returns the row of the rules without its value.
func RulesKey() PropertyRow { return PropertyRow{Name: RulesProperty} }

// RulesActIn reads the newest act that wrote rules. It is nil if there is none.
func (d *Database) RulesActIn(tx *gorm.DB) (*AuditRow, error) {
	rows, err := RowsOf(tx.Where("t.action IN ?", backoffice.RulesActs).Order("t.audit_id DESC").Limit(1), d.Audits.Table)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// ParseRules reads the value of the property.
func ParseRules(text string) (fund.Rules, error) {
	if text == "" {
		return fund.Rules{}, backoffice.ErrNoRules
	}
	return fund.ParseRules(text)
}
