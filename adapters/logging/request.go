package logging

import (
	"net/http"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"bankingapi/domain/operation"
)

// Request is what one request came to: one line of the log. What is empty is
// left out of the line, but for the first five.
type Request struct {
	// Operation is the name of the operation, or the path of another route;
	// empty for a path that is not known.
	Operation string
	Method    string
	// Status is that of the answer, or 499 if the caller left before it.
	Status int
	// State is Data.State of an outcome, 0 where there is none.
	State    operation.State
	Duration time.Duration
	// Replayed: the outcome is that of the operation which this one repeats.
	Replayed bool
	// Codes are those of the answer's errors.
	Codes []string
	// BytesIn and BytesOut are the sizes of the bodies.
	BytesIn, BytesOut int64
	// RequestID is the answer's X-Request-Id.
	RequestID string
	// Subscription is the name of the subscription.
	Subscription string
	// ChannelRequestID and ChannelSessionID are the caller's, and may be any
	// text.
	ChannelRequestID, ChannelSessionID string
	// TraceID is the trace that the request belongs to.
	TraceID string
	// Err is why the service could not do its part.
	Err error
}

// Log writes the line: an error when the status is 500 or more, else an info.
// It costs next to nothing where the logger does not want it.
func (r Request) Log(to *zap.Logger) {
	level := zap.InfoLevel
	if r.Status >= http.StatusInternalServerError {
		level = zap.ErrorLevel
	}
	if entry := to.Check(level, "request"); entry != nil {
		line := r // on the heap only here
		entry.Write(zap.Inline(&line))
	}
}

// MarshalLogObject is zapcore.ObjectMarshaler: the fields of the line.
func (r *Request) MarshalLogObject(line zapcore.ObjectEncoder) error {
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
	if r.Operation == "" {
		line.AddString("operation", "other")
	} else {
		text("operation", r.Operation)
	}
	line.AddString("method", r.Method)
	line.AddInt("status", r.Status)
	line.AddString("state", r.State.String())
	line.AddDuration("duration", r.Duration)
	if r.Replayed {
		line.AddBool("replayed", true)
	}
	if len(r.Codes) > 0 {
		if err := line.AddArray("codes", texts(r.Codes)); err != nil {
			return err
		}
	}
	text("request_id", r.RequestID)
	text("subscription", r.Subscription)
	text("channel_request_id", r.ChannelRequestID)
	text("channel_session_id", r.ChannelSessionID)
	text("trace_id", r.TraceID)
	size("bytes_in", r.BytesIn)
	size("bytes_out", r.BytesOut)
	if r.Err != nil {
		// Not zap.Error, which asks some errors for more than their text.
		text("error", r.Err.Error())
	}
	return nil
}

type texts []string

// MarshalLogArray is zapcore.ArrayMarshaler.
func (t texts) MarshalLogArray(to zapcore.ArrayEncoder) error {
	for _, each := range t {
		to.AppendString(each)
	}
	return nil
}
