package storage

import (
	"context"
	"iter"
	"strings"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

// CalendarRow is the one row of the table calendars. There is none before the first
// import. An import replaces the whole calendar, so one row keeps two imports apart.
type CalendarRow struct {
	CalendarID int64 `gorm:"primaryKey;autoIncrement:false"`
	// ClosedDays has a line for each closed day: the day, a space and the reason.
	ClosedDays string `gorm:"not null"`
}

// theRow is the key of tables with one row.
const theRow = 1

// days yields the closed days of the row.
func (r *CalendarRow) days(yield func(fund.ClosedDay, error) bool) {
	for line := range strings.Lines(r.ClosedDays) {
		text, reason, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		on, err := day.Parse(text)
		if !yield(fund.ClosedDay{Day: on, Reason: reason}, err) || err != nil {
			return
		}
	}
}

func (r reader) ClosedDays(ctx context.Context) iter.Seq2[fund.ClosedDay, error] {
	return func(yield func(fund.ClosedDay, error) bool) {
		err := r.Ready(ctx)
		var row CalendarRow
		if err == nil {
			err = r.Translate(r.reads.WithContext(ctx).Table(r.calendars.Name).Limit(1).Find(&row).Error)
		}
		if err != nil {
			yield(fund.ClosedDay{}, err)
			return
		}
		row.days(yield)
	}
}

func (i imports) ClosedDays(ctx context.Context, lines backoffice.Lines[fund.ClosedDay], o backoffice.ImportOptions) (imported backoffice.Imported, err error) {
	err = i.Transact(ctx, func(session batch.Session) error {
		imported = backoffice.Imported{}
		row, err := lookUp(ctx, session, i.calendars.find, CalendarRow{CalendarID: theRow})
		if err != nil {
			return err
		}
		before, write := make(map[day.Day]string), i.calendars.add
		if row != nil {
			write = i.calendars.put
			for closed, err := range row.days {
				if err != nil {
					return err
				}
				before[closed.Day] = closed.Reason
			}
		}
		var text strings.Builder
		err = lines(func(_ int64, closed fund.ClosedDay) error {
			reason, known := before[closed.Day]
			delete(before, closed.Day)
			switch {
			case !known:
				imported.New++
			case reason == closed.Reason:
				imported.Unchanged++
			default:
				imported.Changed++
			}
			text.WriteString(closed.Day.String() + " " + closed.Reason + "\n")
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		imported.Removed = int64(len(before))
		o.Written(imported.Lines())
		return i.commit(ctx, session, o, imported, write.Request([]CalendarRow{{CalendarID: theRow, ClosedDays: text.String()}}))
	})
	return imported, err
}
