package bookfile

import (
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
)

// A layout says how a file is written.
type layout struct {
	order []int // index of each column in the file
	excel bool  // written as Excel does in Turkey: decimal commas, days like 27.11.2026
}

// line gives access to the fields of a record by column.
type line struct {
	layout
	columns []string
	fields  []string
	faults  fault.List // of fields with a wrong syntax
}

// isHeader reports whether the line has the names of the columns.
func (l *line) isHeader() bool {
	for i, name := range l.columns {
		if l.fields[l.order[i]] != name {
			return false
		}
	}
	return true
}

// isShortened matches what a spreadsheet makes of a number that is too long for its cell, and
// looksShortened the same with a sign, which no code of a fund has.
var (
	isShortened    = regexp.MustCompile(`^[+-]?[0-9]+(?:[.,][0-9]*)?[eE][+-]?[0-9]+$`).MatchString
	looksShortened = regexp.MustCompile(`^[+-]?[0-9]+(?:[.,][0-9]*)?[eE][+-][0-9]+$`).MatchString
)

const shortened = "A spreadsheet has shortened this number: format the column as text, and write all digits."

func (l *line) wrong(column int, code, rule string) {
	l.faults.Add("/"+l.columns[column], code, rule)
}

func (l *line) text(column int) string {
	text := l.fields[l.order[column]]
	if l.excel {
		text = unguarded(text)
	}
	switch {
	case strings.IndexByte(text, 0) >= 0:
		l.wrong(column, fault.InvalidFormat, "A NUL character cannot be kept.")
	case !utf8.ValidString(text):
		l.wrong(column, fault.InvalidFormat, "The text is not UTF-8: save the file as CSV UTF-8.")
	case looksShortened(text):
		l.wrong(column, fault.InvalidFormat, shortened)
	}
	return text
}

// day returns the text of a day. It changes a day like 27.11.2026 of Excel into YYYY-MM-DD.
func (l *line) day(column int) string {
	text := l.text(column)
	if l.excel {
		if t, err := time.Parse("2.1.2006", text); err == nil {
			return t.Format(time.DateOnly)
		}
	}
	if len(text) == 5 && strings.Trim(text, "0123456789") == "" { // days since 1900
		l.wrong(column, fault.InvalidDate, "A spreadsheet has written this day as a number: format the column as YYYY-MM-DD.")
	}
	if _, err := time.Parse(time.DateOnly, text); err != nil && l.excel {
		l.wrong(column, fault.InvalidDate, "Required: a real day like 27.11.2026 or 2026-11-27, without a time.")
	}
	return text
}

func (l *line) number(column int) decimal.Decimal {
	text := l.fields[l.order[column]]
	if text == "" {
		return decimal.Decimal{} // missing: the domain decides whether it is optional
	}
	if isShortened(text) {
		l.wrong(column, fault.InvalidFormat, shortened)
		return decimal.Decimal{}
	}
	plain := l.point(text)
	d, err := decimal.Parse(plain)
	if err != nil || l.excel && strings.Contains(text, ".") {
		l.wrong(column, fault.InvalidFormat, l.brokenNumber(text))
		return decimal.Decimal{}
	}
	return d
}

// point returns a number with a point before its decimals.
func (l *line) point(text string) string {
	if l.excel {
		return strings.ReplaceAll(text, ",", ".")
	}
	return text
}

// brokenNumber says what is wrong with a text that is not a number.
func (l *line) brokenNumber(text string) string {
	isNumber := func(text string) bool {
		_, err := decimal.Parse(text)
		return err == nil
	}
	trimmed := strings.TrimSpace(text)
	withoutZeros := strings.TrimLeft(text, "0")
	switch {
	case trimmed != text && isNumber(l.point(trimmed)):
		return "Remove the blanks around the number."
	case withoutZeros != text && isNumber("1"+l.point(withoutZeros)):
		return "A number must not begin with zeros: remove them."
	case l.excel:
		return "A number like 1234,5 is needed, with a comma before the decimals and nothing between thousands."
	case isNumber(strings.ReplaceAll(strings.ReplaceAll(text, ",", ""), ".", "")): // it has signs between its digits
		return "A number like 1234.5 is needed, with a point before the decimals and nothing between thousands."
	}
	return "A number like 1234.5 is needed."
}
