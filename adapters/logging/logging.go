// Package logging creates the log: one line per event, as JSON or for a console.
// A line has the operation, outcome, duration and ids. It never has keys,
// contents, or full numbers of customers and accounts.
//
// Durations are in seconds in JSON and have a unit on the console. No line is omitted by
// sampling, except in a flood of refused requests (see Requests), and nothing is global.
package logging

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"bankingapi/application/summary"
	"bankingapi/domain/fund"
)

// jsonTime is the time of a line in JSON.
const jsonTime = "2006-01-02T15:04:05.000000Z07:00"

// Options configure the log.
type Options struct {
	Level  string // the lowest level that is logged: debug, info, warn or error
	Format string // json, console or auto: console on a terminal, otherwise json
	// Writer receives whole lines, together and up to 10 ms later, in one call of Write at a
	// time, from a goroutine of the log. While a call hangs, 8,192 lines are kept and further
	// lines are dropped. When the call has returned, a line reports how many. Sync of the
	// logger waits for the lines, at most a second.
	Writer     io.Writer
	Dropped    *atomic.Int64    // counts the lines that were dropped; may be nil
	IsTerminal bool             // Writer is a terminal
	Now        func() time.Time // in UTC
}

// New returns a logger and its level. The level may be changed at run time.
func New(o Options) (*zap.Logger, zap.AtomicLevel, error) {
	level, err := zap.ParseAtomicLevel(o.Level)
	if err != nil {
		return nil, level, fmt.Errorf("log.level: %w", err)
	}
	config := zapcore.EncoderConfig{
		TimeKey: "time", LevelKey: "level", NameKey: "logger", MessageKey: "message",
		LineEnding: zapcore.DefaultLineEnding, EncodeTime: zapcore.TimeEncoderOfLayout(jsonTime),
		EncodeLevel: zapcore.LowercaseLevelEncoder, EncodeDuration: zapcore.SecondsDurationEncoder,
	}
	var encoder zapcore.Encoder
	switch {
	case o.Format == "console", o.Format == "auto" && o.IsTerminal:
		config.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02 15:04:05.000Z07:00")
		config.EncodeLevel = zapcore.CapitalLevelEncoder
		config.EncodeDuration = zapcore.StringDurationEncoder
		config.ConsoleSeparator = " "
		encoder = zapcore.NewConsoleEncoder(config)
	case o.Format == "json", o.Format == "auto":
		encoder = zapcore.NewJSONEncoder(config)
	default:
		return nil, level, errors.New("log.format must be auto, console or json")
	}
	sink := &buffer{to: o.Writer, dropped: cmp.Or(o.Dropped, new(atomic.Int64)), lost: func(count int64, cause error) []byte {
		e := zapcore.Entry{Level: zapcore.WarnLevel, Time: o.Now(), Message: "lines of the log were dropped: its reader was too slow"}
		fields := []zapcore.Field{zap.Int64("lines", count)}
		if cause != nil {
			e.Message = "lines of the log were dropped: they could not be written"
			fields = append(fields, zap.String("error", cause.Error()))
		}
		line, err := encoder.EncodeEntry(e, fields)
		if err != nil {
			return nil
		}
		return line.Bytes()
	}}
	return zap.New(zapcore.NewCore(encoder, sink, level), zap.WithClock(clock(o.Now)), zap.ErrorOutput(sink)), level, nil
}

// clock implements zapcore.Clock.
type clock func() time.Time

// Now returns the current time.
func (c clock) Now() time.Time { return c() }

// NewTicker is for the buffered writers of zap, which this log does not use.
func (clock) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

// printable escapes characters that could control a terminal or mislead a reader: escape
// sequences, line endings, changes of direction, letters that nobody sees. Encoders escape only
// what JSON requires.
func printable(text string) string {
	plain := 0 // most texts are plain
	for plain < len(text) && ' ' <= text[plain] && text[plain] <= '~' {
		plain++
	}
	rest := text[plain:]
	if utf8.ValidString(rest) && !strings.ContainsFunc(rest, misleads) {
		return text
	}
	quoted := strconv.QuoteToASCII(text) // Quote leaves some letters that nobody sees
	return quoted[1 : len(quoted)-1]
}

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
	entry := to.Check(level, "request")
	if entry != nil {
		entry.Write(zap.Inline(request(*x)))
	}
}

// linesOfRefused is how many lines of refused requests are written in a second: of each subscription,
// and of all requests without one.
const linesOfRefused = 50

// Requests writes the lines of requests. Of those that no rate limits it writes the first 50 of a
// second, and then how many more there were: a flood must not fill the disk. These are the requests
// without a known subscription, and of each subscription those that were not admitted or answered 429.
// It is safe for concurrent use.
type Requests struct {
	to  *zap.Logger
	now func() time.Time

	mu     sync.Mutex
	second time.Time
	counts map[string]int // by the subscription, or ""; of this second
}

// NewRequests returns a Requests that writes to a logger.
func NewRequests(to *zap.Logger, now func() time.Time) *Requests {
	return &Requests{to: to, now: now, counts: make(map[string]int)}
}

// Log writes the line of a request, as the function Log does.
func (r *Requests) Log(x *summary.Exchange) {
	if x.Admitted && x.Status != http.StatusTooManyRequests {
		Log(r.to, x)
		return
	}
	mayWrite, before := r.admit(x.Subscription)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		more := zap.Int("more", before[name]-linesOfRefused)
		switch {
		case before[name] <= linesOfRefused:
		case name == "":
			r.to.Warn("more requests without a known subscription", more)
		default:
			r.to.Warn("more refused requests of a subscription", zap.String("subscription", name), more)
		}
	}
	if mayWrite {
		Log(r.to, x)
	}
}

// admit counts a refused request. Once a second has passed, it returns the counts of the last second
// that had such requests.
func (r *Requests) admit(subscription string) (mayWrite bool, before map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	second := r.now().Truncate(time.Second)
	if !second.Equal(r.second) {
		before = r.counts
		r.second = second
		r.counts = make(map[string]int)
	}
	r.counts[subscription]++
	return r.counts[subscription] <= linesOfRefused, before
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
	if r.Operation != "" {
		text("operation", r.Operation)
	} else {
		text("route", cmp.Or(r.Route, "other"))
	}
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

func misleads(r rune) bool { return !unicode.IsPrint(r) || fund.IsUnseen(r) }

const (
	collectFor   = 10 * time.Millisecond // how long a line waits for other lines to be written together
	keptLines    = 8192                  // how many lines are kept while their reader is slow
	syncPatience = time.Second           // how long Sync waits for a reader
)

// buffer is a zapcore.WriteSyncer. It collects lines, which one goroutine writes in their
// order. Unlike with the writers of zap, a caller never waits for the reader of the log. If it
// hangs, lines beyond a limit are dropped and counted. A buffer is safe for concurrent use.
type buffer struct {
	to io.Writer
	// lost encodes the line that says how many lines were dropped. The cause is the last error of a
	// write, or nil if the reader was only too slow.
	lost    func(count int64, cause error) []byte
	dropped *atomic.Int64 // all dropped lines, for a metric

	mu           sync.Mutex
	lines, spare []byte
	count        int           // of the lines
	untold       int64         // dropped lines that were not reported yet
	done         chan struct{} // closed when the goroutine that writes ends; nil if none runs

	// Only the goroutine that writes uses these.
	cause error // of the last write, if it failed
	isCut bool  // the last write ended within a line
}

// Write adds a line. It never waits.
func (b *buffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count == keptLines {
		b.drop(1)
		return len(line), nil
	}
	b.lines = append(b.lines, line...)
	b.count++
	if b.done == nil {
		b.done = make(chan struct{})
		go b.write()
	}
	return len(line), nil
}

func (b *buffer) drop(count int) {
	b.untold += int64(count)
	b.dropped.Add(int64(count))
}

// Sync waits until the lines are written, but not for a reader that hangs.
func (b *buffer) Sync() error {
	b.mu.Lock()
	done := b.done
	b.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-time.After(syncPatience):
		return errors.New("the reader of the log is too slow")
	}
}

// write writes until no lines are left. Lines that cannot be written are dropped.
func (b *buffer) write() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.count > 0 {
		b.mu.Unlock()
		time.Sleep(collectFor)
		b.mu.Lock()
		lines := b.lines
		count := b.count
		untold := b.untold
		b.lines = b.spare[:0]
		b.count = 0
		b.untold = 0
		b.mu.Unlock()
		if untold > 0 {
			lines = append(lines, b.lost(untold, b.cause)...)
		}
		whole, err := b.writeLines(lines)
		b.mu.Lock()
		b.spare = lines
		b.cause = err
		if err != nil {
			b.untold += untold
			b.drop(count - min(count, whole))
		}
	}
	close(b.done)
	b.done = nil
}

// writeLines returns how many lines it has written whole. A full disk takes a part of a line: the next
// line must not continue it.
func (b *buffer) writeLines(lines []byte) (whole int, err error) {
	if b.isCut {
		_, err = io.WriteString(b.to, "\n")
		if err != nil {
			return 0, err
		}
		b.isCut = false
	}
	n, err := b.to.Write(lines)
	b.isCut = n > 0 && lines[n-1] != '\n'
	return bytes.Count(lines[:n], []byte("\n")), err
}
