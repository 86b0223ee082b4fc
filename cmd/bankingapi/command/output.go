package command

import (
	_ "embed" // screens.txt
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// screensText has what commands print for people: templates of the values that programs
// get with --format json. Columns are between tabs.
//
//go:embed screens.txt
var screensText string

var screens = template.Must(template.New("").Funcs(template.FuncMap{
	"at":  func(string, any) string { return "" }, // write replaces it
	"add": func(a, b int) int { return a + b }, "field": field, "join": strings.Join, "quoted": quoted, "word": word,
	"usages": usages, "hasSettings": hasSettings,
}).Parse(screensText))

// An object is a value with names, as JSON has it.
type object = map[string]any

// write prints a value with the screen of that name, or with --format json as JSON.
func (c *call) write(screen string, value any) error {
	if c.text("format") == "json" {
		encoder := json.NewEncoder(c.OutOrStdout())
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	}
	zone, _ := c.settings.Bank.Location() // settings that validate have one
	inZone := template.Must(screens.Clone()).Funcs(template.FuncMap{"at": func(layout string, when any) string {
		if when, ok := when.(time.Time); ok {
			return when.In(zone).Format(layout)
		}
		return "-"
	}})
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	if err := inZone.ExecuteTemplate(w, screen, value); err != nil {
		return err
	}
	return w.Flush()
}

// screen is a text for people that has no other form.
func screen(name string, value any) string {
	var text strings.Builder
	if err := screens.ExecuteTemplate(&text, name, value); err != nil {
		return err.Error()
	}
	return text.String()
}

// instant is a time for JSON: in UTC, and null if there is none.
func instant(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC()
}

// field is a line of a name and a value, if there is one. A text that does not print is
// quoted.
func field(name string, value any) string {
	text, _ := value.(string)
	if strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		text = strconv.Quote(text)
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%s\t%s\n", name, text)
}

// word is a text in a column, and - if there is none.
func word(text string) string {
	if text == "" {
		return "-"
	}
	return quoted(text)
}

// quoted quotes a text that contains spaces or does not print.
func quoted(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

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

// escaping escapes everything that a terminal does not print, except line ends
// and tabs.
type escaping struct {
	w io.Writer
	// begun are the first bytes of a character whose last ones were not written
	// yet, because a buffer ended in between.
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
		case r < 0x80 || unicode.IsGraphic(r):
			escaped = append(escaped, rest[:size]...)
		default: // C1 controls, and format characters that reverse the direction
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

// progress shows the progress of long work: as a bar on a terminal, and otherwise
// as a plain line now and then. Short work ends before anything is shown.
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
	// size and lines are how many bytes and lines the phase has; 0 if that is unknown.
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
	p.printf("")
}

// Write counts the bytes of the input.
func (p *progress) Write(read []byte) (int, error) {
	p.bytes.Add(int64(len(read)))
	return len(read), nil
}

// printf removes the bar until the next tick, and writes a line of its own.
func (p *progress) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replace(fmt.Sprintf(format, args...), false)
}

// replace writes a text in the place of the bar.
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
		text += fmt.Sprintf(", %d %%", percent)
		if full := int(percent) * barWidth / 100; p.terminal {
			text = fmt.Sprintf("[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), text)
		}
	}
	if !p.terminal {
		text += "\n"
	}
	p.replace(text, p.terminal)
}
