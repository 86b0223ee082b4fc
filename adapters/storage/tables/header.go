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

// envelope combines the header with the other columns of an operation.
func (c headerColumns) envelope(id batch.UUID, subscription, requestID string, received batch.Instant) operation.Envelope {
	c.RequestID = requestID
	return operation.Envelope{ID: operation.ID(id), Subscription: subscription, Header: operation.Header(c), ReceivedAt: received.Time}
}
