package logging

import (
	"log"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// ServerErrors returns a logger for http.Server.ErrorLog. Failed handshakes get
// level debug, because anyone who finds the port can cause any number of them.
//
// Callers can cause other messages too, such as broken HTTP/2 connections. So at most 10
// messages of one kind are logged in a minute. The next line has the number of messages that
// were not logged, as not_logged.
func ServerErrors(l *zap.Logger) *log.Logger { return log.New(serverErrors{newLimited(l)}, "", 0) }

type serverErrors struct{ limited }

// Write implements io.Writer. It receives one message of net/http.
func (s serverErrors) Write(b []byte) (int, error) {
	text := strings.TrimSpace(string(b))
	level := zap.WarnLevel
	if strings.HasPrefix(text, "http: TLS handshake error") {
		level = zap.DebugLevel
	}
	s.log(level, kindOf(text), "http server", zap.String("error", printable(text)))
	return len(b), nil
}

// SlowStatements returns a function that logs slow statements. While the database hangs, each check
// of readiness is slow. So at most 10 lines of the same statements are logged in a minute. The next
// line has the number of lines that were not logged, as not_logged.
func SlowStatements(l *zap.Logger, level zapcore.Level) func(statements string, took time.Duration) {
	limited := newLimited(l)
	return func(statements string, took time.Duration) {
		limited.log(level, statements, "slow statements", zap.String("statements", statements), zap.Duration("duration", took))
	}
}

// linesPerMinute is how many lines of one kind are logged in a minute.
const linesPerMinute = 10

// limited is a logger that omits most lines of a flood, and counts them.
type limited struct {
	logger    *zap.Logger
	notLogged *atomic.Int64
}

func newLimited(l *zap.Logger) limited {
	notLogged := new(atomic.Int64)
	sampled := zapcore.SamplerHook(func(_ zapcore.Entry, decision zapcore.SamplingDecision) {
		if decision&zapcore.LogDropped != 0 {
			notLogged.Add(1)
		}
	})
	return limited{l.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, linesPerMinute, 0, sampled)
	})), notLogged}
}

func (l limited) log(level zapcore.Level, kind, message string, fields ...zap.Field) {
	entry := l.logger.Check(level, kind) // the sampler counts by message
	if entry == nil {
		return
	}
	entry.Message = message
	n := l.notLogged.Swap(0)
	if n > 0 {
		fields = append(fields, zap.Int64("not_logged", n))
	}
	entry.Write(fields...)
}

// kindOf returns the first three words of a message. Addresses and reasons come later.
func kindOf(text string) string {
	return strings.Join(strings.SplitN(text, " ", 4)[:min(3, strings.Count(text, " ")+1)], " ")
}
