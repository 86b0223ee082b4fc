package tables

import (
	"strings"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

// CalendarRow is the only row of the table calendars. It does not exist before the first
// import. An import replaces the whole calendar, so the lock of one row serializes imports.
type CalendarRow struct {
	CalendarID int64 `gorm:"primaryKey;autoIncrement:false"`
	// ClosedDays has a line for each closed day: the day, a space and the reason.
	ClosedDays string `gorm:"not null"`
}

// TheRow is the key of tables with one row.
const TheRow = 1

// Days yields the closed days of the row.
func (r *CalendarRow) Days(yield func(fund.ClosedDay, error) bool) {
	for line := range strings.Lines(r.ClosedDays) {
		text, reason, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		closed, err := day.Parse(text)
		if !yield(fund.ClosedDay{Day: closed, Reason: reason}, err) || err != nil {
			return
		}
	}
}
