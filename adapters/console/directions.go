package console

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"bankingapi/domain/fund"
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

// isMark leaves alone the ends of lines, tabs, the joiner ZWJ, which emojis have, and ZWNJ, which
// Persian needs.
func isMark(r rune) bool {
	return fund.IsUnseen(r) && !strings.ContainsRune("\n\r\t\u200c\u200d", r)
}
