package logging

import (
	"cmp"
	"net/http"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"bankingapi/application/summary"
)

// request is a request and its answer as one line of the log. Empty fields are
// omitted, except operation, method, status, state and duration.
type request summary.Exchange

// Log writes the line of a request. Its level is error if the status is 500 or more, debug if
// nothing was decided and the caller had left, and info otherwise: a flood of requests that are
// reset at once must not flood the log. Log costs almost nothing if the logger does not want
// the level. A logger of a host may keep the line, but nothing keeps x.
func Log(to *zap.Logger, x *summary.Exchange) {
	level := zap.InfoLevel
	switch {
	case x.Status >= http.StatusInternalServerError:
		level = zap.ErrorLevel
	case x.Gone && x.State == 0:
		level = zap.DebugLevel
	}
	if entry := to.Check(level, "request"); entry != nil {
		entry.Write(zap.Inline(request(*x)))
	}
}

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (r request) MarshalLogObject(line zapcore.ObjectEncoder) error {
	text := func(key, value string) {
		if value != "" {
			line.AddString(key, printable(value))
		}
	}
	size := func(key string, n int64) {
		if n != 0 {
			line.AddInt64(key, n)
		}
	}
	text("operation", cmp.Or(r.Operation, r.Route, "other"))
	line.AddString("method", r.Method)
	line.AddInt64("status", int64(r.Status))
	line.AddString("state", r.State.String())
	line.AddDuration("duration", r.Duration)
	if r.Replayed {
		line.AddBool("replayed", true)
	}
	if len(r.Codes) > 0 {
		zap.Strings("codes", r.Codes).AddTo(line)
	}
	text("request_id", r.RequestID)
	text("operation_id", r.OperationID)
	text("caller_id", r.CallerID)
	text("subscription", r.Subscription)
	text("key_start", r.KeyStart)
	text("customer", r.Customer.String())
	text("address", r.Address)
	text("channel_request_id", r.ChannelRequestID)
	text("channel_session_id", r.ChannelSessionID)
	text("trace_id", r.TraceID)
	size("bytes_in", r.BytesIn)
	size("bytes_out", r.BytesOut)
	if r.Err != nil {
		// Not zap.Error: it adds more than the text of some errors.
		text("error", r.Err.Error())
	}
	return nil
}
