package storage

import (
	"context"
	"errors"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// OutcomeRow is a row of the table outcomes: what became of an operation after it
// was answered.
type OutcomeRow struct {
	Number       int64         `gorm:"primaryKey;autoIncrement:false"`
	OperationID  batch.UUID    `gorm:"not null"`
	Subscription string        `gorm:"not null"`
	CallerID     string        `gorm:"not null;default:''"`
	State        int64         `gorm:"not null"`
	Faults       string        `gorm:"not null;default:''"`
	Reversed     int64         `gorm:"not null;default:0"` // 0 or 1
	EndedAt      batch.Instant `gorm:"not null"`
}

// OutcomeCounterRow is the one row of the table outcome_counters.
type OutcomeCounterRow struct {
	CounterID int64 `gorm:"primaryKey;autoIncrement:false"`
	// Last is the largest number of an outcome.
	Last int64 `gorm:"not null"`
}

// outcomeTables are the tables and their statements. Finding the counter locks it.
type outcomeTables struct {
	table[OutcomeRow]
	counters table[OutcomeCounterRow]
}

// write numbers the outcomes and returns the requests that write them. The session
// locks the counter until it has committed, so that no outcome appears below a number
// that was seen. It locks nothing else afterwards. Sales that end when they are
// answered have no outcomes, and do not come here.
func (o *outcomeTables) write(ctx context.Context, session batch.Session, ended []fund.Ended) ([]batch.Request, error) {
	if len(ended) == 0 {
		return nil, nil
	}
	counter, err := lookUp(ctx, session, o.counters.find, OutcomeCounterRow{CounterID: theRow})
	if err != nil {
		return nil, err
	}
	if counter == nil {
		return nil, errors.New("the counter of outcomes is missing in the database")
	}
	rows := make([]OutcomeRow, len(ended))
	for i := range ended {
		rows[i] = newOutcomeRow(&ended[i], counter.Last+int64(i)+1)
	}
	return []batch.Request{
		o.counters.put.Request([]OutcomeCounterRow{{CounterID: theRow, Last: counter.Last + int64(len(rows))}}), o.add.Request(rows),
	}, nil
}

// outcomeSource is outcomes.Source.
type outcomeSource struct{ *database }

// Outcomes waits for a standby too: the transaction that wrote the last of them may still
// do so.
func (s outcomeSource) Outcomes(ctx context.Context, subscription string, after int64, limit int) (all []fund.Ended, err error) {
	if err := s.Ready(ctx); err != nil {
		return nil, err
	}
	query := s.reads.WithContext(ctx).Table(s.outcomes.Name).Where("number > ?", after).Order("number").Limit(limit)
	if subscription != "" {
		query = query.Where("subscription = ?", subscription)
	}
	var rows []OutcomeRow
	if err := query.Find(&rows).Error; err != nil || len(rows) == 0 {
		return nil, s.Translate(err)
	}
	for i := range rows {
		all = append(all, rows[i].ended())
	}
	find := s.outcomes.find.Request(rows[len(rows)-1:], func(int, *OutcomeRow) error { return nil })
	find.Settled = true
	return all, s.Transact(ctx, func(session batch.Session) error { return session.Commit(ctx, find) })
}

func (s outcomeSource) LastOutcome(ctx context.Context) (last int64, err error) {
	if err = s.Ready(ctx); err == nil {
		err = s.Translate(s.reads.WithContext(ctx).Table(s.outcomes.counters.Name).Select("last").Scan(&last).Error)
	}
	return last, err
}

func newOutcomeRow(e *fund.Ended, number int64) OutcomeRow {
	return OutcomeRow{
		Number: number, OperationID: batch.UUID(e.OperationID), Subscription: e.Subscription, CallerID: e.CallerID,
		State: int64(e.State), Faults: formatFaults(e.Faults), Reversed: flag(e.Reversed), EndedAt: batch.Instant{Time: e.At},
	}
}

func (r *OutcomeRow) ended() fund.Ended {
	return fund.Ended{
		Number: r.Number, OperationID: operation.ID(r.OperationID), Subscription: r.Subscription, CallerID: r.CallerID,
		State: operation.State(r.State), Faults: parseFaults(r.Faults), Reversed: r.Reversed != 0, At: r.EndedAt.Time, //nolint:gosec // written by us
	}
}
