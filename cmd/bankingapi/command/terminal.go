package command

import (
	"fmt"
	"io"
	"os"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// isTerminal reports whether w is a terminal.
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

// Write is io.Writer.
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
