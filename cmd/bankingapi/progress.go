package main

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

// How often progress is told: on a terminal as often as an eye follows, in a
// file or pipe as often as a log bears.
const (
	terminalPace = 200 * time.Millisecond
	plainPace    = 5 * time.Second
)

// progress tells how far long work is: a bar that is drawn over on a terminal,
// a plain line now and then elsewhere. Short work ends before it says anything.
type progress struct {
	// rows is the work done; whoever does it stores it.
	rows atomic.Int64

	what     string
	total    int64 // bytes to read; 0 is not known
	bytes    atomic.Int64
	terminal bool
	end      chan struct{}
	ended    sync.WaitGroup

	writing sync.Mutex // guards what follows
	out     io.Writer
	drawn   bool // the cursor stands behind a bar
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
	return &progress{out: out, what: what, total: total, terminal: terminal, end: make(chan struct{})}
}

// stop ends the telling and takes the bar away.
func (p *progress) stop() {
	close(p.end)
	p.ended.Wait()
	p.clear()
}

// reading counts what is read from r, as the part of total that is done.
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

// printf writes a line of its own, beside the bar.
func (p *progress) printf(format string, args ...any) {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.wipe()
	fmt.Fprintf(p.out, format, args...)
}

// clear takes the bar away until the next tick.
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
	rows, percent := p.rows.Load(), int64(-1)
	if p.total > 0 {
		percent = min(100, 100*p.bytes.Load()/p.total)
	}
	switch {
	case !p.terminal && percent < 0:
		fmt.Fprintf(p.out, "%s: %d lines\n", p.what, rows)
	case !p.terminal:
		fmt.Fprintf(p.out, "%s: %d lines, %d %%\n", p.what, rows, percent)
	case percent < 0:
		p.wipe()
		fmt.Fprintf(p.out, "%s: %d lines", p.what, rows)
		p.drawn = true
	default:
		p.wipe()
		full := int(percent) * barWidth / 100
		fmt.Fprintf(p.out, "%s [%s%s] %d %%, %d lines", p.what, strings.Repeat("#", full), strings.Repeat(".", barWidth-full), percent, rows)
		p.drawn = true
	}
}

// isTerminal reports whether a person watches w.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}
