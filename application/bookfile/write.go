package bookfile

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Format is the format of a file.
type Format string

// The formats.
const (
	CSV    Format = "csv"
	NDJSON Format = "ndjson" // one JSON object per line
	// Spreadsheet is CSV in which an apostrophe stands before each text that a spreadsheet may
	// run as a formula. Such a text may also follow a separator inside a value. Import does not
	// remove this apostrophe.
	Spreadsheet Format = "spreadsheet"
	// Excel is Spreadsheet for a version of Excel that uses a decimal comma, as in Turkey. It
	// has semicolons, a byte order mark, and times in Style.Zone to the second. The name of a
	// column with times includes the zone. Import removes the apostrophes.
	Excel Format = "excel"
)

// Style controls how rows are written. Without a Zone, times for Excel are in UTC. Without a
// Mask, personal values are written in full. Rows, if it is not nil, counts the rows.
type Style struct {
	Format
	Zone *time.Location
	Mask Mask
	Rows *int64
}

// Column is one column of a file. Value accepts the zero row too.
type Column[T any] struct {
	Name  string
	Value func(*T) Value
}

// Value is a value of a row. Its text is the same in CSV and NDJSON, only the quotes differ. Make
// one with Text, MessageText, Integer or Instant.
type Value struct {
	text     string
	raw      bool // a number or other JSON. An empty text is null
	personal Personal
	instant  bool // text is the field time, in UTC
	time     time.Time
}

// Personal is the kind of a personal value. Some readers must not see such values in full.
type Personal uint8

// The kinds of personal values.
const (
	Customer Personal = iota + 1 // the number of a customer
	Suffix                       // the suffix of an account
	User                         // the code of a user
	Message                      // a text that may name a person
)

// Mask returns the part of a personal text that a reader may see.
type Mask func(kind Personal, text string) string

// Text is a value that is a text.
func Text(s string) Value { return Value{text: s} }

// MessageText is a text that may name a person.
func MessageText(s string) Value { return Text(s).marked(Message) }

// marked returns the value, marked as personal.
func (v Value) marked(kind Personal) Value {
	v.personal = kind
	return v
}

// number is a number or other JSON.
func number(s string) Value { return Value{text: s, raw: true} }

// Integer is an integer.
func Integer(n int64) Value { return number(strconv.FormatInt(n, 10)) }

func boolean(b bool) Value { return number(strconv.FormatBool(b)) }

// Instant is a time in UTC. It is missing if t is the zero time.
func Instant(t time.Time) Value {
	if t.IsZero() {
		return Value{raw: true, instant: true}
	}
	// The RFC 3339 layouts are several times faster than others. The nanosecond keeps the
	// zeros.
	var buffer [40]byte
	b := t.UTC().Truncate(time.Microsecond).Add(time.Nanosecond).AppendFormat(buffer[:0], time.RFC3339Nano)
	return Value{text: string(b[:len(b)-4]) + "Z", instant: true, time: t}
}

// Write writes each row when it arrives. It stops at the first error of the rows or of w, and
// returns it. Write itself buffers at most one row.
func Write[T any](w io.Writer, s Style, columns []Column[T], rows iter.Seq2[T, error]) error {
	if s.Mask != nil {
		columns = maskColumns(columns, s.Mask)
	}
	if s.Zone == nil {
		s.Zone = time.UTC
	}
	appendRow := appendNDJSON[T]
	if s.Format != NDJSON {
		appendRow = func(b []byte, columns []Column[T], row *T) []byte { return appendCSV(b, columns, row, s) }
		_, err := io.WriteString(w, firstLine(columns, s))
		if err != nil {
			return err
		}
	}
	var b []byte
	for row, err := range rows {
		if err != nil {
			return err
		}
		b = appendRow(b[:0], columns, &row)
		_, err = w.Write(b)
		if err != nil {
			return err
		}
		if s.Rows != nil {
			*s.Rows++
		}
	}
	return nil
}

// JSON returns a row as Write writes it in NDJSON, without the line end.
func JSON[T any](columns []Column[T], row *T) json.RawMessage {
	line := appendNDJSON(nil, columns, row)
	return line[:len(line)-1]
}

func firstLine[T any](columns []Column[T], s Style) string {
	if s.Format == Excel {
		return "\ufeff" + strings.Join(zoneNames(columns, s.Zone), ";") + "\n"
	}
	return strings.Join(names(columns), ",") + "\n"
}

func names[T any](columns []Column[T]) (list []string) {
	for _, c := range columns {
		list = append(list, c.Name)
	}
	return list
}

// zoneNames returns the names of columns. Names of columns with times include the zone. The zero
// row tells which columns have times, so that a file without rows has the same names.
func zoneNames[T any](columns []Column[T], zone *time.Location) []string {
	headers := names(columns)
	for i, c := range columns {
		if c.Value(new(T)).instant {
			headers[i] += " (" + zone.String() + ")"
		}
	}
	return headers
}

// maskColumns returns columns that mask personal values. A masked value is a text.
func maskColumns[T any](columns []Column[T], mask Mask) (masked []Column[T]) {
	for _, c := range columns {
		masked = append(masked, Column[T]{c.Name, func(row *T) Value {
			v := c.Value(row)
			if v.personal != 0 && v.text != "" {
				v = Text(mask(v.personal, v.text))
			}
			return v
		}})
	}
	return masked
}

func appendCSV[T any](b []byte, columns []Column[T], row *T, s Style) []byte {
	separator := byte(',')
	excel := s.Format == Excel
	if excel {
		separator = ';'
	}
	for _, c := range columns {
		v := c.Value(row)
		switch {
		case s.Format == CSV:
		case excel && !v.time.IsZero():
			v.text = v.time.In(s.Zone).Format(time.DateTime)
		case !v.raw || strings.HasPrefix(v.text, "["): // a text, or JSON with texts
			v.text = guarded(v.text)
		case excel:
			v.text = strings.Replace(v.text, ".", ",", 1)
		}
		b = append(appendField(b, v.text, separator), separator)
	}
	b[len(b)-1] = '\n'
	return b
}

// appendField quotes a value if necessary, also for spaces at its ends: some readers cut them.
func appendField(b []byte, v string, separator byte) []byte {
	for i := range len(v) {
		isEnd := i == 0 || i == len(v)-1
		c := v[i]
		if c == separator || c == '"' || c == '\r' || c == '\n' || isEnd && (c == ' ' || c == '\t') {
			return append(append(append(b, '"'), strings.ReplaceAll(v, `"`, `""`)...), '"')
		}
	}
	return append(b, v...)
}

func appendNDJSON[T any](b []byte, columns []Column[T], row *T) []byte {
	separator := byte('{')
	for _, c := range columns {
		b = append(b, separator, '"')
		b = append(b, c.Name...)
		b = append(b, '"', ':')
		switch v := c.Value(row); {
		case v.text == "" && v.raw:
			b = append(b, "null"...)
		case v.raw:
			b = append(b, v.text...)
		default:
			b = appendQuoted(b, v.text)
		}
		separator = ','
	}
	return append(b, '}', '\n')
}

// appendQuoted appends a JSON string. Invalid UTF-8, which the storage never has, is replaced.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		if r >= ' ' && r != '"' && r != '\\' {
			b = utf8.AppendRune(b, r)
		} else if i := strings.IndexRune("\b\f\n\r\t\"\\", r); i >= 0 {
			b = append(b, '\\', `bfnrt"\`[i])
		} else {
			b = fmt.Appendf(b, "\\u%04x", r)
		}
	}
	return append(b, '"')
}
