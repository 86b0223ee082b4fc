package logging

import (
	"log"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// errorsPerWindow is how many messages of one kind are logged in a window.
	errorsPerWindow = 10
	errorWindow     = time.Minute
	// maxKinds bounds the memory for kinds of messages.
	maxKinds = 32
)

// ServerErrors returns a logger for http.Server.ErrorLog. Failed handshakes get
// level debug, because anyone who finds the port can cause any number of them.
//
// Callers can cause other messages too, such as broken HTTP/2 connections. So at
// most 10 messages of one kind are logged in a minute. The first message after
// that has the number of those that were not logged, as not_logged.
func ServerErrors(l *zap.Logger) *log.Logger {
	return log.New(&serverErrors{logger: l, windows: make(map[string]*window)}, "", 0)
}

type serverErrors struct {
	logger *zap.Logger

	mu      sync.Mutex // guards windows
	windows map[string]*window
}

// window counts the messages of one kind.
type window struct {
	began           time.Time
	logged, dropped int
}

// Write implements io.Writer. It receives one message of net/http.
func (s *serverErrors) Write(b []byte) (int, error) {
	text, level := strings.TrimSpace(string(b)), zap.WarnLevel
	if strings.HasPrefix(text, "http: TLS handshake error") {
		level = zap.DebugLevel
	}
	entry := s.logger.Check(level, "http server")
	if entry == nil {
		return len(b), nil
	}
	dropped, admitted := s.admit(kindOf(text), entry.Time)
	if !admitted {
		return len(b), nil
	}
	fields := []zap.Field{zap.String("error", printable(text))}
	if dropped > 0 {
		fields = append(fields, zap.Int("not_logged", dropped))
	}
	entry.Write(fields...)
	return len(b), nil
}

// admit reports whether another message of the kind is logged now, and how many
// were not logged before it.
func (s *serverErrors) admit(kind string, now time.Time) (dropped int, admitted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.windows[kind]
	if w == nil {
		if len(s.windows) >= maxKinds {
			clear(s.windows) // kinds are texts of net/http: there are fewer
		}
		w = &window{began: now}
		s.windows[kind] = w
	}
	if elapsed := now.Sub(w.began); elapsed < 0 || elapsed >= errorWindow {
		dropped = w.dropped
		*w = window{began: now}
	}
	if w.logged == errorsPerWindow {
		w.dropped++
		return 0, false
	}
	w.logged++
	return dropped, true
}

// kindOf is the first words of a message. Addresses and reasons come later.
func kindOf(text string) string {
	const words = 4
	end := 0
	for range words {
		space := strings.IndexByte(text[end:], ' ')
		if space < 0 {
			return text
		}
		end += space + 1
	}
	return text[:end]
}
