package tables

import (
	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// OutcomeRow is a row of the table outcomes: the place of an end in the order of all ends.
type OutcomeRow struct {
	Number       int64      `gorm:"primaryKey;autoIncrement:false"`
	Reversed     int64      `gorm:"not null;default:0"` // 0 or 1
	OperationID  batch.UUID `gorm:"not null"`
	Subscription string     `gorm:"not null"`
}

func openOutcomes(d *Database) {
	t := &d.Outcomes
	open(d, t, Relied{Rights: addOnly})
	t.Find = t.Table.Find(batch.NoLock, "", "number")
	d.ListedOutcomes = newListed[ListedOutcomeRow](d, t.Table)
}

// NewOutcomeRow returns the row of an outcome.
func NewOutcomeRow(e *fund.Ended) OutcomeRow {
	return OutcomeRow{Number: e.Number, Reversed: Flag(e.Reversed), OperationID: batch.UUID(e.OperationID), Subscription: e.Subscription}
}

// ListedOutcomeRow is an outcome with the result of its operation.
type ListedOutcomeRow struct {
	Outcome    OutcomeRow `gorm:"embedded"`
	CallerID   string
	State      int64
	Faults     string
	EndedAt    batch.Instant
	ReversedAt batch.Instant
}

// Ended converts the row.
func (r ListedOutcomeRow) Ended() fund.Ended {
	e := fund.Ended{
		Number: r.Outcome.Number, OperationID: operation.ID(r.Outcome.OperationID), Subscription: r.Outcome.Subscription, CallerID: r.CallerID,
		State: operation.State(r.State), Faults: ParseFaults(r.Faults), At: r.EndedAt.Time, //nolint:gosec // written by us
	}
	if r.Outcome.Reversed != 0 {
		e.Reversed = true
		e.State = operation.Completed
		e.Faults = nil
		e.At = r.ReversedAt.Time
	}
	return e
}
