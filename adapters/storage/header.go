package storage

import "bankingapi/domain/operation"

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

func (c *headerColumns) header(requestID string) operation.Header {
	return operation.Header{
		AppKey: c.AppKey, Channel: c.Channel, TellerName: c.TellerName, CallerID: c.CallerID,
		ChannelSessionID: c.ChannelSessionID, ChannelRequestID: c.ChannelRequestID, RequestID: requestID,
	}
}
