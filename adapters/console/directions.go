package console

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// visible writes marks that change the direction of a text, and characters that nobody sees, as
// their codes. Callers choose the texts: with such marks a name or a number would look like
// another one.
func visible(page []byte) []byte {
	if bytes.IndexFunc(page, isMark) < 0 {
		return page
	}
	var shown []byte
	for len(page) > 0 {
		r, size := utf8.DecodeRune(page)
		if isMark(r) {
			shown = fmt.Appendf(shown, "[U+%04X]", r)
		} else {
			shown = append(shown, page[:size]...)
		}
		page = page[size:]
	}
	return shown
}

// isMark leaves alone the joiners of ZWJ, which emojis have, and ZWNJ, which Persian needs.
func isMark(r rune) bool {
	return unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d'
}
