package calls

import (
	"context"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// outcomes implements Source of package application/outcomes.
type outcomes struct{ db *tables.Database }

// Outcomes waits for a standby too, because the transaction that wrote the last outcome may
// still wait for it.
func (o outcomes) Outcomes(ctx context.Context, subscription string, after int64, limit int) ([]fund.Ended, error) {
	listed := &o.db.ListedOutcomes
	query := o.db.Query(ctx).Table(listed.Source).Select(listed.Selected).Where("t.number > ?", after).Order("t.number").Limit(limit)
	if subscription != "" {
		query = query.Where("t.subscription = ?", subscription)
	}
	var ended []fund.Ended
	var last tables.OutcomeRow
	err := tables.Scan(query, listed.Table, func(row *tables.ListedOutcomeRow) error {
		ended = append(ended, row.Ended())
		last = row.Outcome
		return nil
	})
	if err != nil || len(ended) == 0 || o.db.OneWriter { // one writer has no standby, and a transaction that writes would stop the sales
		return ended, o.db.Translate(err)
	}
	find := o.db.Outcomes.Find.Request([]tables.OutcomeRow{last}, func(int, *tables.OutcomeRow) error { return nil })
	find.Decides = true
	err = o.db.Transact(ctx, func(session batch.Session) error { return session.Commit(ctx, find) })
	if fault.KindOf(err) == fault.Indeterminate { // a read has no effect that could be unknown
		return nil, fault.Wrap(fault.Unavailable, err, fault.Unreached)
	}
	if err != nil {
		return nil, err
	}
	return ended, nil
}

// Secret returns the key of the book.
func (o outcomes) Secret(context.Context) ([]byte, error) {
	key := o.db.MessagesKey()
	if len(key) == 0 {
		return nil, fault.New(fault.Unavailable, "The key of the book was not read yet.")
	}
	return key, nil
}

func (o outcomes) LastOutcome(ctx context.Context) (last int64, err error) {
	counter := tables.PropertyRow{Name: tables.OutcomesProperty}
	counter.Value, err = o.db.PropertyIn(o.db.Query(ctx), counter.Name)
	if err != nil {
		return 0, o.db.Translate(err)
	}
	last, err = counter.Number()
	return last, o.db.Translate(err)
}
