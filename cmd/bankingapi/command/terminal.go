package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"

	"bankingapi/domain/fund"
)

func isTerminal(w io.Writer) bool {
	if _, ok := w.(*escaping); ok {
		return true
	}
	file, ok := w.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// forTerminal returns w, or a writer that escapes control characters if w is a
// terminal: callers of the API choose texts that would move the cursor, change
// the title or rewrite lines. A file or a pipe gets every byte as it is.
func forTerminal(w io.Writer) io.Writer {
	if isTerminal(w) {
		return &escaping{w: w}
	}
	return w
}

// escaping escapes everything that a terminal does not print, except line ends and tabs.
type escaping struct {
	w io.Writer
	// begun has the first bytes of a character whose last bytes were not written yet, because a
	// buffer ended between them.
	begun []byte
}

func (e *escaping) Write(p []byte) (int, error) {
	var escaped []byte
	rest := append(e.begun, p...)
	for utf8.FullRune(rest) {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\n' && r != '\t', r == 0x7f:
			escaped = fmt.Appendf(escaped, `\x%02x`, rest[0])
		case r < 0x80 || unicode.IsGraphic(r) && !fund.IsUnseen(r):
			escaped = append(escaped, rest[:size]...)
		default: // C1 controls, and characters that nobody sees or that reverse the direction
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
		rest = rest[size:]
	}
	e.begun = rest
	if _, err := e.w.Write(escaped); err != nil {
		return 0, err
	}
	return len(p), nil
}

const barWidth = 30

// progress shows the progress of long work: as a bar on a terminal, and otherwise as a plain
// line at intervals. Short work ends before it shows anything.
type progress struct {
	// rows and bytes count what is done. The working code updates rows.
	rows, bytes atomic.Int64
	end         chan struct{}
	ended       sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	out      io.Writer
	terminal bool
	drawn    bool // the cursor is at the end of a bar
	phase    string
	// size and lines are the numbers of bytes and lines of the phase, or 0 if unknown.
	size, lines int64
}

func startProgress(out io.Writer, phase string, size int64) *progress {
	p := &progress{out: out, phase: phase, size: size, terminal: isTerminal(out), end: make(chan struct{})}
	pace := 5 * time.Second // files and pipes may be logs
	if p.terminal {
		pace = 200 * time.Millisecond
	}
	p.ended.Go(func() {
		for {
			select {
			case <-p.end:
				return
			case <-time.After(pace):
				p.tell()
			}
		}
	})
	return p
}

// enter begins the next phase. lines is its number of lines, or 0 if unknown.
func (p *progress) enter(phase string, lines int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows.Store(0)
	p.phase = phase
	p.size = 0
	p.lines = lines
}

// stop stops showing progress and removes the bar.
func (p *progress) stop() {
	close(p.end)
	p.ended.Wait()
	p.printf("")
}

// Write counts the bytes of the input.
func (p *progress) Write(read []byte) (int, error) {
	p.bytes.Add(int64(len(read)))
	return len(read), nil
}

// printf removes the bar until the next tick, and writes a separate line.
func (p *progress) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replace(fmt.Sprintf(format, args...), false)
}

// replace writes a text in place of the bar.
func (p *progress) replace(text string, isBar bool) {
	if p.drawn {
		text = "\r\x1b[K" + text
	}
	fmt.Fprint(p.out, text)
	p.drawn = isBar
}

func (p *progress) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.phase
	rows := p.rows.Load()
	done := p.bytes.Load()
	total := p.size
	switch {
	case p.lines > 0:
		done = rows
		total = p.lines
		text += fmt.Sprintf(": %d of %d lines", rows, total)
	case total == 0 && rows > 0:
		text += fmt.Sprintf(": %d lines, total unknown", rows)
	}
	if total > 0 {
		percent := min(100, 100*done/total)
		text += fmt.Sprintf(", %d %%", percent)
		full := int(percent) * barWidth / 100
		if p.terminal {
			text = fmt.Sprintf("[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), text)
		}
	}
	if !p.terminal {
		text += "\n"
	}
	p.replace(text, p.terminal)
}
