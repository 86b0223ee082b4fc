package bookfile

import (
	"strings"
	"unicode"
)

// A spreadsheet runs a cell as a formula if it begins with one of these signs. Some read the
// full-width and small forms too.
const formulaSigns = "=+-@＝＋－＠﹦﹢﹣﹫−"

// cellEnds are the characters at which some spreadsheet begins a new cell, whatever separates the
// values of the file: a program that splits at semicolons ignores quotes inside a value.
const cellEnds = ",;|" + lineEnds

const lineEnds = "\t\r\n"

// eachCell changes each part of a text that a spreadsheet may take for a cell.
func eachCell(text string, change func(string) string) string {
	if !strings.ContainsAny(text, "\t\r\n"+formulaSigns) { // nothing to guard, and no guard
		return text
	}
	var changed strings.Builder
	start := len(text) - len(strings.TrimLeft(text, "'"+lineEnds)) // these belong to the first cell
	for {
		end := strings.IndexAny(text[start:], cellEnds)
		if end < 0 {
			changed.WriteString(change(text))
			return changed.String()
		}
		end += start
		changed.WriteString(change(text[:end]))
		changed.WriteByte(text[end])
		text, start = text[end+1:], 0
	}
}

// guarded returns the cell with an apostrophe before it, if a spreadsheet may run it. It guards
// a guarded cell again, so that unguarded always returns the original.
func guarded(cell string) string {
	if isFormula(strings.TrimLeft(cell, "'")) {
		return "'" + cell
	}
	return cell
}

// unguarded is the inverse of guarded.
func unguarded(cell string) string {
	inner, hasGuard := strings.CutPrefix(cell, "'")
	if hasGuard && isFormula(strings.TrimLeft(inner, "'")) {
		return inner
	}
	return cell
}

// isFormula skips what some spreadsheet skips: white space, invisible characters and quotes. A
// text that begins with a line end or tab counts as a formula, whatever follows.
func isFormula(cell string) bool {
	if strings.IndexAny(cell, lineEnds) == 0 {
		return true
	}
	for _, r := range cell {
		isSkipped := r == '"' || unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Cc)
		if !isSkipped {
			return strings.ContainsRune(formulaSigns, r)
		}
	}
	return false
}
