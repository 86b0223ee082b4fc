package httpapi

import (
	"bankingapi/adapters/httpapi/strictjson"
	"bankingapi/domain/operation"
)

// keptRecords bounds the memory that a request leaves in a pool.
const keptRecords = 16

// request is the body of an operation. Its records differ by operation.
type request[Record any] struct {
	strictjson.Reader
	header                   operation.Header
	parameters               []Record
	hasHeader, hasParameters bool
}

// requestMembers returns the members of the outermost object.
func requestMembers[Record any](records []strictjson.Member[Record], limit int) []strictjson.Member[request[Record]] {
	return []strictjson.Member[request[Record]]{
		{Name: "Header", Read: func(r *strictjson.Reader, q *request[Record]) {
			if q.hasHeader = !r.IsNull(); q.hasHeader {
				strictjson.ReadObject(r, headerMembers, &q.header)
			}
		}},
		{Name: "Parameters", Read: func(r *strictjson.Reader, q *request[Record]) {
			if q.hasParameters = !r.IsNull(); q.hasParameters {
				strictjson.ReadArray(r, &q.parameters, limit, records)
			}
		}},
	}
}

var headerMembers = []strictjson.Member[operation.Header]{
	strictjson.Text("AppKey", func(h *operation.Header) *string { return &h.AppKey }),
	strictjson.Text("Channel", func(h *operation.Header) *string { return &h.Channel }),
	strictjson.Text("TellerName", func(h *operation.Header) *string { return &h.TellerName }),
	strictjson.Text("CallerId", func(h *operation.Header) *string { return &h.CallerID }),
	strictjson.Text("ChannelSessionId", func(h *operation.Header) *string { return &h.ChannelSessionID }),
	strictjson.Text("ChannelRequestId", func(h *operation.Header) *string { return &h.ChannelRequestID }),
}

// decode reads the text in Body.
func (q *request[Record]) decode(members []strictjson.Member[request[Record]]) {
	if !strictjson.Decode(&q.Reader, members, q) {
		return
	}
	if !q.hasHeader {
		q.Missing("/Header", "Required: an object. It may be empty.")
	}
	if !q.hasParameters {
		q.Missing("/Parameters", "Required: an array of records.")
	}
}

// reset drops the texts of the request, so that the pool does not keep them.
func (q *request[Record]) reset() {
	q.Reader.Reset()
	clear(q.parameters)
	q.parameters = q.parameters[:0]
	if cap(q.parameters) > keptRecords {
		q.parameters = nil
	}
	q.header = operation.Header{}
	q.hasHeader, q.hasParameters = false, false
}
