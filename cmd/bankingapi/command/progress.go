package command

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// How often progress is shown: often on a terminal, rarely in files and pipes,
// which may be logs.
const (
	terminalPace = 200 * time.Millisecond
	plainPace    = 5 * time.Second
)

const barWidth = 30

// progress shows the progress of long work: as a bar on a terminal, and otherwise
// as a plain line now and then. Short work ends before anything is shown.
type progress struct {
	// rows and bytes count what is done. The working code updates rows.
	rows  atomic.Int64
	bytes count
	end   chan struct{}
	ended sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	out      io.Writer
	terminal bool
	drawn    bool // the cursor is at the end of a bar
	phase    string
	// size and lines are how many bytes and lines the phase has; 0 if that is unknown.
	size, lines int64
}

// count counts the bytes that are written to it.
type count struct{ atomic.Int64 }

func (c *count) Write(p []byte) (int, error) {
	c.Add(int64(len(p)))
	return len(p), nil
}

func startProgress(out io.Writer, phase string, size int64) *progress {
	p := newProgress(out, phase, size, isTerminal(out))
	pace := plainPace
	if p.terminal {
		pace = terminalPace
	}
	p.ended.Go(func() {
		ticker := time.NewTicker(pace)
		defer ticker.Stop()
		for {
			select {
			case <-p.end:
				return
			case <-ticker.C:
				p.tell()
			}
		}
	})
	return p
}

func newProgress(out io.Writer, phase string, size int64, terminal bool) *progress {
	return &progress{out: out, phase: phase, size: size, terminal: terminal, end: make(chan struct{})}
}

// enter begins another phase, with that many lines; 0 if that is unknown.
func (p *progress) enter(phase string, lines int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows.Store(0)
	p.phase, p.size, p.lines = phase, 0, lines
}

// stop stops showing progress and removes the bar.
func (p *progress) stop() {
	close(p.end)
	p.ended.Wait()
	p.clear()
}

// reading counts the bytes that are read from r.
func (p *progress) reading(r io.Reader) io.Reader { return io.TeeReader(r, &p.bytes) }

// printf writes a line of its own above the bar.
func (p *progress) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replace(fmt.Sprintf(format, args...))
	p.drawn = false
}

// replace writes a text in the place of the bar.
func (p *progress) replace(text string) {
	if p.drawn {
		text = "\r\x1b[K" + text
	}
	fmt.Fprint(p.out, text)
}

// clear removes the bar until the next tick.
func (p *progress) clear() { p.printf("") }

func (p *progress) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, rows := p.phase, p.rows.Load()
	done, total := p.bytes.Load(), p.size
	switch {
	case p.lines > 0:
		done, total = rows, p.lines
		text += fmt.Sprintf(": %d of %d lines", rows, total)
	case total == 0 && rows > 0:
		text += fmt.Sprintf(": %d lines, total unknown", rows)
	}
	if total > 0 {
		percent := min(100, 100*done/total)
		full := int(percent) * barWidth / 100
		text += fmt.Sprintf(", %d %%", percent)
		if p.terminal {
			text = fmt.Sprintf("[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), text)
		}
	}
	if !p.terminal {
		text += "\n"
	}
	p.replace(text)
	p.drawn = p.terminal
}
