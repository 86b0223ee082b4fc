package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mattn/go-isatty"
)

// How often progress is shown: often on a terminal, rarely in files and pipes,
// which may be logs.
const (
	terminalPace = 200 * time.Millisecond
	plainPace    = 5 * time.Second
)

// progress shows the progress of long work: as a bar on a terminal, and otherwise
// as a plain line now and then. Short work ends before anything is shown.
type progress struct {
	// rows counts the finished rows. The working code updates it.
	rows atomic.Int64

	phase    atomic.Pointer[phase]
	bytes    atomic.Int64
	terminal bool
	end      chan struct{}
	ended    sync.WaitGroup

	writing sync.Mutex // guards the fields below
	out     io.Writer
	drawn   bool // the cursor is at the end of a bar
}

// phase is a part of the work. bytes and lines are how many there are; 0 if that
// is unknown.
type phase struct {
	what         string
	bytes, lines int64
}

func startProgress(out io.Writer, what string, total int64) *progress {
	p := newProgress(out, what, total, isTerminal(out))
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

func newProgress(out io.Writer, what string, total int64, terminal bool) *progress {
	p := &progress{out: out, terminal: terminal, end: make(chan struct{})}
	p.phase.Store(&phase{what: what, bytes: total})
	return p
}

// enter begins another phase, with that many lines; 0 if that is unknown.
func (p *progress) enter(what string, lines int64) {
	p.rows.Store(0)
	p.phase.Store(&phase{what: what, lines: lines})
}

// stop stops showing progress and removes the bar.
func (p *progress) stop() {
	close(p.end)
	p.ended.Wait()
	p.clear()
}

// reading counts the bytes that are read from r as finished.
func (p *progress) reading(r io.Reader) io.Reader { return &countingReader{r, &p.bytes} }

type countingReader struct {
	io.Reader
	count *atomic.Int64
}

func (r *countingReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.count.Add(int64(n))
	return n, err
}

// printf writes a line of its own above the bar.
func (p *progress) printf(format string, args ...any) {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.wipe()
	fmt.Fprintf(p.out, format, args...)
}

// clear removes the bar until the next tick.
func (p *progress) clear() {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.wipe()
}

func (p *progress) wipe() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}

const barWidth = 30

func (p *progress) tell() {
	p.writing.Lock()
	defer p.writing.Unlock()
	in, rows := p.phase.Load(), p.rows.Load()
	done, total := p.bytes.Load(), in.bytes
	text := in.what
	switch {
	case in.lines > 0:
		done, total = rows, in.lines
		text += fmt.Sprintf(": %d of %d lines", rows, in.lines)
	case in.bytes == 0 && rows > 0:
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
		fmt.Fprintln(p.out, text)
		return
	}
	p.wipe()
	fmt.Fprint(p.out, text)
	p.drawn = true
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	if _, ok := w.(*escaping); ok {
		return true
	}
	file, ok := w.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}
