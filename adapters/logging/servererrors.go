package logging

import (
	"log"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// errorsPerMinute is how many messages of one kind are logged in a minute.
const errorsPerMinute = 10

// ServerErrors returns a logger for http.Server.ErrorLog. Failed handshakes get
// level debug, because anyone who finds the port can cause any number of them.
//
// Callers can cause other messages too, such as broken HTTP/2 connections. So at most 10
// messages of one kind are logged in a minute. The next line has the number of messages that
// were not logged, as not_logged.
func ServerErrors(l *zap.Logger) *log.Logger {
	notLogged := new(atomic.Int64)
	sampled := zapcore.SamplerHook(func(_ zapcore.Entry, decision zapcore.SamplingDecision) {
		if decision&zapcore.LogDropped != 0 {
			notLogged.Add(1)
		}
	})
	return log.New(serverErrors{l.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, errorsPerMinute, 0, sampled)
	})), notLogged}, "", 0)
}

type serverErrors struct {
	logger    *zap.Logger
	notLogged *atomic.Int64
}

// Write implements io.Writer. It receives one message of net/http.
func (s serverErrors) Write(b []byte) (int, error) {
	text := strings.TrimSpace(string(b))
	level := zap.WarnLevel
	if strings.HasPrefix(text, "http: TLS handshake error") {
		level = zap.DebugLevel
	}
	entry := s.logger.Check(level, kindOf(text))
	if entry != nil { // the sampler counts by message
		entry.Message = "http server"
		fields := []zap.Field{zap.String("error", printable(text))}
		n := s.notLogged.Swap(0)
		if n > 0 {
			fields = append(fields, zap.Int64("not_logged", n))
		}
		entry.Write(fields...)
	}
	return len(b), nil
}

// kindOf returns the first three words of a message. Addresses and reasons come later.
func kindOf(text string) string {
	return strings.Join(strings.SplitN(text, " ", 4)[:min(3, strings.Count(text, " ")+1)], " ")
}
