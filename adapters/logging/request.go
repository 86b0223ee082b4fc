package logging

import (
	"cmp"
	"net/http"
	"sync"
	"time"

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

// strangersLines is how many lines of requests without a subscription are written in a second.
const strangersLines = 50

// Requests writes the lines of requests. Of the requests without a known subscription it writes
// the first 50 of a second, and then how many more there were: a flood of wrong keys must not
// fill the disk. It is safe for concurrent use.
type Requests struct {
	to  *zap.Logger
	now func() time.Time

	mu     sync.Mutex
	second time.Time
	count  int // the requests without a subscription in this second
}

// NewRequests returns a Requests that writes to a logger.
func NewRequests(to *zap.Logger, now func() time.Time) *Requests {
	return &Requests{to: to, now: now}
}

// Log writes the line of a request, as the function Log does.
func (r *Requests) Log(x *summary.Exchange) {
	if x.Subscription != "" {
		Log(r.to, x)
		return
	}
	mayWrite, more := r.admit()
	if more > 0 {
		r.to.Warn("more requests without a known subscription", zap.Int("more", more))
	}
	if mayWrite {
		Log(r.to, x)
	}
}

// admit counts a request without a subscription. It returns how many lines were left out in the
// last second that had such requests, once that second has passed.
func (r *Requests) admit() (mayWrite bool, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	second := r.now().Truncate(time.Second)
	if !second.Equal(r.second) {
		more = max(0, r.count-strangersLines)
		r.second, r.count = second, 0
	}
	r.count++
	return r.count <= strangersLines, more
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
