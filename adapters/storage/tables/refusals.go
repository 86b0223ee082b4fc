package tables

import (
	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/operation"
)

// RefusalRow is a row of the table refusals: an operation that was refused at once.
type RefusalRow struct {
	OperationID  batch.UUID    `gorm:"primaryKey"`
	Operation    int64         `gorm:"not null"`
	Subscription string        `gorm:"not null"`
	Header       headerColumns `gorm:"embedded"`
	RequestID    string        `gorm:"not null;default:''"`
	State        int64         `gorm:"not null"`
	Faults       string        `gorm:"not null"`
	ReceivedAt   batch.Instant `gorm:"not null"`
}

// NewRefusalRow returns the row of a refusal.
func NewRefusalRow(r operation.Decision) RefusalRow {
	return RefusalRow{
		OperationID:  batch.UUID(r.ID),
		Operation:    int64(r.Operation),
		Subscription: r.Subscription,
		Header:       headerColumns(r.Header),
		RequestID:    r.Header.RequestID,
		State:        int64(r.State),
		Faults:       FormatFaults(r.Faults),
		ReceivedAt:   batch.Instant{Time: r.ReceivedAt},
	}
}

// Decision converts the row.
func (r *RefusalRow) Decision() (operation.Decision, error) {
	return operation.Decision{
		Envelope:  r.Header.envelope(r.OperationID, r.Subscription, r.RequestID, r.ReceivedAt),
		Operation: operation.Name(r.Operation), State: operation.State(r.State), //nolint:gosec // written by us
		Faults: ParseFaults(r.Faults),
	}, nil
}
