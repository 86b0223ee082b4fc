package tables

import (
	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/operation"
)

// headerColumns are what tables keep of an operation's Header. The request ID
// is a column of its own, the last one of its table.
type headerColumns struct {
	AppKey           string `gorm:"not null;default:''"`
	Channel          string `gorm:"not null;default:''"`
	TellerName       string `gorm:"not null;default:''"`
	CallerID         string `gorm:"not null;default:''"`
	ChannelSessionID string `gorm:"not null;default:''"`
	ChannelRequestID string `gorm:"not null;default:''"`
}

func newHeaderColumns(h *operation.Header) headerColumns {
	return headerColumns{
		AppKey: h.AppKey, Channel: h.Channel, TellerName: h.TellerName, CallerID: h.CallerID,
		ChannelSessionID: h.ChannelSessionID, ChannelRequestID: h.ChannelRequestID,
	}
}

// envelope joins them with the other columns of an operation.
func (c *headerColumns) envelope(id batch.UUID, subscription, requestID string, received batch.Instant) operation.Envelope {
	return operation.Envelope{ID: operation.ID(id), Subscription: subscription, ReceivedAt: received.Time, Header: operation.Header{
		AppKey: c.AppKey, Channel: c.Channel, TellerName: c.TellerName, CallerID: c.CallerID,
		ChannelSessionID: c.ChannelSessionID, ChannelRequestID: c.ChannelRequestID, RequestID: requestID,
	}}
}
