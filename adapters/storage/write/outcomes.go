package write

import (
	"context"
	"errors"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/fund"
)

// writeOutcomes numbers the outcomes and returns the requests that write them. The session
// locks the counter until it has committed, so that no outcome appears below a number
// that was seen. It locks nothing else afterwards. Sales that end when they are
// answered have no outcomes, and do not come here.
func writeOutcomes(ctx context.Context, o *tables.OutcomeTables, session batch.Session, ended []fund.Ended) ([]batch.Request, error) {
	if len(ended) == 0 {
		return nil, nil
	}
	counter, err := tables.LookUp(ctx, session, o.Counters.Find, tables.OutcomeCounterRow{CounterID: tables.TheRow})
	if err != nil {
		return nil, err
	}
	if counter == nil {
		return nil, errors.New("the counter of outcomes is missing in the database")
	}
	rows := make([]tables.OutcomeRow, len(ended))
	for i := range ended {
		rows[i] = tables.NewOutcomeRow(&ended[i], counter.Last+int64(i)+1)
	}
	return []batch.Request{
		o.Counters.Put.Request([]tables.OutcomeCounterRow{{CounterID: tables.TheRow, Last: counter.Last + int64(len(rows))}}), o.Add.Request(rows),
	}, nil
}
