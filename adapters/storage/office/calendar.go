package office

import (
	"context"
	"strings"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/proof"
)

func (i imports) ClosedDays(ctx context.Context, lines backoffice.Lines[fund.ClosedDay], o backoffice.ImportOptions) (imported backoffice.Imported, err error) {
	err = i.transact(ctx, o, func(session batch.Session) error {
		imported = backoffice.Imported{}
		row, err := tables.LookUp(ctx, session, i.db.Properties.Find, tables.PropertyRow{Name: tables.CalendarProperty})
		if err != nil {
			return err
		}
		if row == nil {
			return tables.MissingProperty(tables.CalendarProperty)
		}
		before := make(map[day.Day]string)
		for closed, err := range row.Days {
			if err != nil {
				return err
			}
			before[closed.Day] = closed.Reason
		}
		var text strings.Builder
		var all []fund.ClosedDay
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
			all = append(all, closed)
			text.WriteString(closed.Day.String() + " " + closed.Reason + "\n")
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		imported.Removed = int64(len(before))
		o.TellProgress(imported.Lines())
		ordered, err := i.journal.After(ctx, session)
		if err != nil {
			return err
		}
		leaf := proof.OfCalendar(all)
		put := i.db.Properties.Put.Request([]tables.PropertyRow{{Name: tables.CalendarProperty, Value: text.String()}})
		return i.commit(ctx, session, o, imported, nil, batch.NonEmpty(put, ordered.Write(leaf.Entry()))...)
	})
	return imported, err
}
