package clock

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Watch notices when somebody sets the clock of the machine while the process runs. It is safe
// for concurrent use.
type Watch struct {
	began  time.Time
	booted time.Duration // uptime of the machine at that time; 0 if it is unknown
}

// NewWatch begins to watch the clock of the machine.
func NewWatch() *Watch { return &Watch{began: time.Now(), booted: uptime()} }

// Jump returns how far the clock has jumped since NewWatch: a positive value ahead, a negative
// value back.
func (w *Watch) Jump() time.Duration {
	now := time.Now()
	booted := uptime()
	passed := now.Round(0).Sub(w.began.Round(0)) // Round removes the monotonic clock
	running := now.Sub(w.began)
	up := now.Sub(w.began)
	if w.booted > 0 && booted > 0 {
		up = booted - w.booted
	}
	return jump(passed, running, up)
}

// jump compares the time that has passed by the clock with the time in which the process could
// run, and with the uptime of the machine. Only the uptime has the time for which the machine
// slept. So the clock has jumped only if it differs from both.
func jump(passed, running, up time.Duration) time.Duration {
	ofRunning := passed - running
	ofUp := passed - up
	if ofRunning.Abs() < ofUp.Abs() {
		return ofRunning
	}
	return ofUp
}

// uptime returns the uptime of the machine, or 0 if the system does not tell it.
func uptime() time.Duration {
	content, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0
	}
	seconds, _, _ := strings.Cut(string(content), " ")
	since, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		return 0
	}
	return time.Duration(since * float64(time.Second))
}
