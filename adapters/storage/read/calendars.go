package read

import (
	"context"
	"iter"

	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/fund"
)

func (r reader) ClosedDays(ctx context.Context) iter.Seq2[fund.ClosedDay, error] {
	return func(yield func(fund.ClosedDay, error) bool) {
		err := r.Ready(ctx)
		var row tables.CalendarRow
		if err == nil {
			err = r.Translate(r.Reads.WithContext(ctx).Table(r.Calendars.Name).Limit(1).Find(&row).Error)
		}
		if err != nil {
			yield(fund.ClosedDay{}, err)
			return
		}
		row.Days(yield)
	}
}
