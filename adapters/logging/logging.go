// Package logging creates the log: one line per event, as JSON or for a console.
// A line has the operation, outcome, duration and ids. It never has keys,
// contents, or full numbers of customers and accounts.
//
// Durations are in seconds in JSON and have a unit on the console. No line is omitted by
// sampling, and nothing is global.
package logging

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
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
	sink := &buffer{to: o.Writer, dropped: cmp.Or(o.Dropped, new(atomic.Int64)), lost: func(count int64) []byte {
		e := zapcore.Entry{Level: zapcore.WarnLevel, Time: o.Now(), Message: "lines of the log were dropped: its reader was too slow"}
		line, err := encoder.EncodeEntry(e, []zapcore.Field{zap.Int64("lines", count)})
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
// sequences, line endings, changes of direction. Encoders escape only what JSON requires.
func printable(text string) string {
	plain := 0 // most texts are plain
	for plain < len(text) && ' ' <= text[plain] && text[plain] <= '~' {
		plain++
	}
	rest := text[plain:]
	if utf8.ValidString(rest) && !strings.ContainsFunc(rest, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

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
	// lost encodes the line that says how many lines were dropped.
	lost    func(count int64) []byte
	dropped *atomic.Int64 // all dropped lines, for a metric

	mu           sync.Mutex
	lines, spare []byte
	count        int           // of the lines
	untold       int64         // dropped lines that were not reported yet
	done         chan struct{} // closed when the goroutine that writes ends; nil if none runs
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
		lines, count, untold := b.lines, b.count, b.untold
		b.lines, b.count, b.untold = b.spare[:0], 0, 0
		b.mu.Unlock()
		if untold > 0 {
			lines = append(lines, b.lost(untold)...)
		}
		_, err := b.to.Write(lines)
		b.mu.Lock()
		if b.spare = lines; err != nil {
			b.untold += untold
			b.drop(count)
		}
	}
	close(b.done)
	b.done = nil
}
