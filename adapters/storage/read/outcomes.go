package read

import (
	"context"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/fund"
)

// outcomeSource is outcomes.Source.
type outcomeSource struct{ *tables.Database }

// Outcomes waits for a standby too: the transaction that wrote the last of them may still
// do so.
func (s outcomeSource) Outcomes(ctx context.Context, subscription string, after int64, limit int) (all []fund.Ended, err error) {
	if err := s.Ready(ctx); err != nil {
		return nil, err
	}
	query := s.Reads.WithContext(ctx).Table(s.Database.Outcomes.Name).Where("number > ?", after).Order("number").Limit(limit)
	if subscription != "" {
		query = query.Where("subscription = ?", subscription)
	}
	var rows []tables.OutcomeRow
	if err := query.Find(&rows).Error; err != nil || len(rows) == 0 {
		return nil, s.Translate(err)
	}
	for i := range rows {
		all = append(all, rows[i].Ended())
	}
	find := s.Database.Outcomes.Find.Request(rows[len(rows)-1:], func(int, *tables.OutcomeRow) error { return nil })
	find.Settled = true
	return all, s.Transact(ctx, func(session batch.Session) error { return session.Commit(ctx, find) })
}

func (s outcomeSource) LastOutcome(ctx context.Context) (last int64, err error) {
	if err = s.Ready(ctx); err == nil {
		err = s.Translate(s.Reads.WithContext(ctx).Table(s.Database.Outcomes.Counters.Name).Select("last").Scan(&last).Error)
	}
	return last, err
}
