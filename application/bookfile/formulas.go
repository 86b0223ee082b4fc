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

// guarded returns the text with an apostrophe before each part that a spreadsheet may run. It guards
// a guarded text again, so that unguarded always returns the original. A text that begins with a
// line end or tab has a guard of its own, whatever follows: some spreadsheet drops it.
func guarded(text string) string {
	text = eachCell(text, guardedCell)
	if beginsWithLineEnd(text) {
		return "'" + text
	}
	return text
}

// unguarded is the inverse of guarded.
func unguarded(text string) string {
	inner, hasGuard := strings.CutPrefix(text, "'")
	if hasGuard && beginsWithLineEnd(inner) {
		text = inner
	}
	return eachCell(text, unguardedCell)
}

func beginsWithLineEnd(text string) bool {
	return strings.IndexAny(strings.TrimLeft(text, "'"), lineEnds) == 0
}

// eachCell changes each part of a text that a spreadsheet may take for a cell.
func eachCell(text string, change func(string) string) string {
	if !strings.ContainsAny(text, formulaSigns) { // nothing to guard, and no guard
		return text
	}
	var changed strings.Builder
	for {
		end := strings.IndexAny(text, cellEnds)
		if end < 0 {
			changed.WriteString(change(text))
			return changed.String()
		}
		changed.WriteString(change(text[:end]))
		changed.WriteByte(text[end])
		text = text[end+1:]
	}
}

func guardedCell(cell string) string {
	if isFormula(strings.TrimLeft(cell, "'")) {
		return "'" + cell
	}
	return cell
}

func unguardedCell(cell string) string {
	inner, hasGuard := strings.CutPrefix(cell, "'")
	if hasGuard && isFormula(strings.TrimLeft(inner, "'")) {
		return inner
	}
	return cell
}

// isFormula skips what some spreadsheet skips: white space, invisible characters and quotes.
func isFormula(cell string) bool {
	for _, r := range cell {
		isSkipped := r == '"' || unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Cc)
		if !isSkipped {
			return strings.ContainsRune(formulaSigns, r)
		}
	}
	return false
}
