package tables

import (
	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/operation"
)

// headerColumns has the columns of an operation.Header. The request ID is a separate column,
// the last one of its table.
type headerColumns struct {
	AppKey           string `gorm:"not null;default:''"`
	Channel          string `gorm:"not null;default:''"`
	TellerName       string `gorm:"not null;default:''"`
	CallerID         string `gorm:"not null;default:''"`
	ChannelSessionID string `gorm:"not null;default:''"`
	ChannelRequestID string `gorm:"not null;default:''"`
	RequestID        string `gorm:"-"`
}

// OfOperation has the columns of the table operations that a listed sale or notification needs.
type OfOperation struct {
	Subscription string        `gorm:"not null"`
	Header       headerColumns `gorm:"embedded"`
	RequestID    string        `gorm:"not null;default:''"`
	ReceivedAt   batch.Instant `gorm:"not null"`
}

// envelope returns what is kept of the operation with this ID.
func (o *OfOperation) envelope(id batch.UUID) operation.Envelope {
	header := operation.Header(o.Header)
	header.RequestID = o.RequestID
	return operation.Envelope{ID: operation.ID(id), Subscription: o.Subscription, Header: header, ReceivedAt: o.ReceivedAt.Time}
}

// Listed is a table whose rows are listed with the columns of their operations.
type Listed[R any] struct {
	*batch.Table[R]
	// Source is the table as t, joined with their operations as o.
	Source string
	// Selected are the columns of Source in the order of the row.
	Selected []string
}

// newListed returns a list of the rows of a table.
func newListed[R, T any](d *Database, table *batch.Table[T]) Listed[R] {
	l := Listed[R]{Table: newTable[R](d)}
	l.Source = table.Name + " t JOIN " + d.Operations.Name + " o ON o.operation_id = t.operation_id"
	for i, column := range batch.Names(l.Columns) {
		of := "o."
		if i < len(table.Columns) {
			of = "t."
		}
		l.Selected = append(l.Selected, of+column)
	}
	return l
}
