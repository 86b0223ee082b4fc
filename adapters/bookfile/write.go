package bookfile

import (
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"bankingapi/application/backoffice"
)

// Format is how rows are written.
type Format string

// The formats.
const (
	CSV    Format = "csv"
	NDJSON Format = "ndjson" // one JSON object a line
	// Spreadsheet is CSV in which a text that a spreadsheet may run as a formula
	// begins with an apostrophe. Import does not read it back as it was.
	Spreadsheet Format = "spreadsheet"
)

// column is one column of a file.
type column[T any] struct {
	name  string
	value func(*T) value
}

// value is a value of a row. Both formats have the same text and only differ in
// its quotes.
type value struct {
	text string
	kind valueKind
}

type valueKind uint8

const (
	text     valueKind = iota
	raw                // a number or other JSON; without text it is null
	optional           // a text that is null where it is not there
)

func integer(n int64) value { return value{strconv.FormatInt(n, 10), raw} }

func instant(t time.Time) value {
	if t.IsZero() {
		return value{"", optional}
	}
	t = t.UTC()
	// The layout of RFC 3339 is several times as fast as others.
	var buffer [32]byte
	b := t.AppendFormat(buffer[:0], time.RFC3339)
	b = append(b[:len(b)-1], '.')
	for unit := 100_000_000; unit >= 1000; unit /= 10 {
		b = append(b, byte('0'+t.Nanosecond()/unit%10))
	}
	return value{string(append(b, 'Z')), optional}
}

// write writes rows as they come. It stops at the first error of the rows or of w,
// which it returns, and does not buffer more than a row where w does not.
func write[T any](w io.Writer, f Format, columns []column[T], rows iter.Seq2[T, error]) error {
	appendRow := appendNDJSON[T]
	if f != NDJSON {
		names := make([]string, len(columns))
		for i, each := range columns {
			names[i] = each.name
		}
		if _, err := io.WriteString(w, strings.Join(names, ",")+"\n"); err != nil {
			return err
		}
		appendRow = func(b []byte, columns []column[T], row *T) []byte {
			return appendCSV(b, columns, row, f == Spreadsheet)
		}
	}
	var b []byte
	for row, err := range rows {
		if err == nil {
			b = appendRow(b[:0], columns, &row)
			_, err = w.Write(b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func appendCSV[T any](b []byte, columns []column[T], row *T, guarded bool) []byte {
	for i, c := range columns {
		if i > 0 {
			b = append(b, ',')
		}
		v := c.value(row)
		if guarded && v.kind != raw && backoffice.IsFormula(v.text) {
			v.text = "'" + v.text
		}
		b = appendField(b, v.text)
	}
	return append(b, '\n')
}

func appendField(b []byte, v string) []byte {
	if !needsQuotes(v) {
		return append(b, v...)
	}
	b = append(b, '"')
	for i := range len(v) { // byte for byte: line ends stay what they are
		if v[i] == '"' {
			b = append(b, '"')
		}
		b = append(b, v[i])
	}
	return append(b, '"')
}

// needsQuotes is true also for spaces at the ends, which some readers cut off.
func needsQuotes(v string) bool {
	for i := range len(v) {
		switch v[i] {
		case '"', ',', '\r', '\n':
			return true
		case ' ', '\t':
			if i == 0 || i == len(v)-1 {
				return true
			}
		}
	}
	return false
}

func appendNDJSON[T any](b []byte, columns []column[T], row *T) []byte {
	separator := byte('{')
	for _, c := range columns {
		b = append(b, separator, '"')
		b = append(b, c.name...)
		b = append(b, '"', ':')
		switch v := c.value(row); {
		case v.text == "" && v.kind != text:
			b = append(b, "null"...)
		case v.kind == raw:
			b = append(b, v.text...)
		default:
			// Storage has valid UTF-8 only; anything else would be replaced.
			b, _ = jsontext.AppendQuote(b, v.text)
		}
		separator = ','
	}
	return append(b, '}', '\n')
}
