// Package logging makes the log: one line per event, JSON for machines or a
// console form for people. It says operation, outcome, duration and ids, never
// keys, contents or whole numbers of customers and accounts.
//
// Durations are in seconds in JSON, and with their unit on the console. Nothing
// is sampled away, and nothing is global.
package logging

import (
	"errors"
	"fmt"
	"io"
	"log"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Options say how to log.
type Options struct {
	// Level is the least that is logged: debug, info, warn or error.
	Level string
	// Format is json, console, or auto: console on a terminal, else json.
	Format string
	// Writer gets each line in one Write, one line at a time.
	Writer io.Writer
	// IsTerminal: a person looks at Writer.
	IsTerminal bool
	// Now is the current time, in UTC.
	Now func() time.Time
}

// New returns a logger, and its level, which may be changed while it is in use.
func New(o Options) (*zap.Logger, zap.AtomicLevel, error) {
	level, err := zap.ParseAtomicLevel(o.Level)
	if err != nil {
		return nil, level, fmt.Errorf("log.level: %w", err)
	}
	config := zapcore.EncoderConfig{
		TimeKey: "time", LevelKey: "level", NameKey: "logger", MessageKey: "message",
		LineEnding:     zapcore.DefaultLineEnding,
		EncodeTime:     zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000000Z07:00"),
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
		EncodeDuration: zapcore.SecondsDurationEncoder,
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
	sink := zapcore.Lock(zapcore.AddSync(o.Writer))
	return zap.New(zapcore.NewCore(encoder, sink, level), zap.WithClock(clock(o.Now)), zap.ErrorOutput(sink)), level, nil
}

// clock is a zapcore.Clock.
type clock func() time.Time

// Now is the current time.
func (c clock) Now() time.Time { return c() }

// NewTicker is what buffered writers ask for; there is none here.
func (clock) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

// MaskNumber hides the number of a customer or an account: ******1234. It
// shows the last four digits, of short numbers fewer: never more than half.
func MaskNumber(n int64) string {
	digits := strings.TrimPrefix(strconv.FormatInt(n, 10), "-")
	return "******" + digits[len(digits)-min(4, len(digits)/2):]
}

// ServerErrors is for http.Server.ErrorLog. Failed handshakes are for debug
// only: whoever finds the port can make any number of them.
func ServerErrors(l *zap.Logger) *log.Logger { return log.New(serverErrors{l}, "", 0) }

type serverErrors struct{ *zap.Logger }

// Write is io.Writer: one message of net/http.
func (s serverErrors) Write(b []byte) (int, error) {
	text, level := strings.TrimSpace(string(b)), zap.WarnLevel
	if strings.HasPrefix(text, "http: TLS handshake error") {
		level = zap.DebugLevel
	}
	s.Log(level, "http server", zap.String("error", printable(text)))
	return len(b), nil
}

// printable is text without what could act on a terminal or fool its reader:
// escape sequences, line ends of all kinds, changes of direction. Encoders
// escape only what JSON needs.
func printable(text string) string {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' {
			return escape(text)
		}
	}
	return text
}

func escape(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}
