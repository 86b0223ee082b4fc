package tables

import (
	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// OutcomeRow is a row of the table outcomes: the result of an operation after its answer.
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

// NewOutcomeRow returns the row of an outcome.
func NewOutcomeRow(e *fund.Ended, number int64) OutcomeRow {
	return OutcomeRow{
		Number: number, OperationID: batch.UUID(e.OperationID), Subscription: e.Subscription, CallerID: e.CallerID,
		State: int64(e.State), Faults: FormatFaults(e.Faults), Reversed: Flag(e.Reversed), EndedAt: batch.Instant{Time: e.At},
	}
}

// Ended converts the row.
func (r OutcomeRow) Ended() fund.Ended {
	return fund.Ended{
		Number: r.Number, OperationID: operation.ID(r.OperationID), Subscription: r.Subscription, CallerID: r.CallerID,
		State: operation.State(r.State), Faults: ParseFaults(r.Faults), Reversed: r.Reversed != 0, At: r.EndedAt.Time, //nolint:gosec // written by us
	}
}
