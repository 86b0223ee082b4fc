package bookfile

import (
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
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
	// Excel is Spreadsheet for an Excel whose decimal sign is a comma, as in Turkey: with
	// semicolons, a byte order mark, and times of Style.Zone to the second. The name of a column
	// says which zone that is.
	Excel Format = "excel"
)

// Style is how rows are written. Without a Zone, times for Excel are in UTC. Without a Mask,
// values that name somebody are written in full. Rows, if it is not nil, counts the rows.
type Style struct {
	Format
	Zone *time.Location
	Mask Mask
	Rows *int64
}

// Column is one column of a file.
type Column[T any] struct {
	Name  string
	Value func(*T) Value
}

// Value is a value of a row. Both formats have the same text and only differ in
// its quotes. Make one with Text, MessageText, Integer or Instant.
type Value struct {
	text     string
	raw      bool // a number or other JSON; without text it is null
	personal Personal
	instant  bool // text is that of at, in UTC
	at       time.Time
}

// Personal says whom a value names. Some readers may not see such values in full.
type Personal uint8

// The values that name somebody.
const (
	Customer Personal = iota + 1 // the number of a customer
	Suffix                       // the suffix of an account
	User                         // the code of a user
	Message                      // a text that may name anybody
)

// Mask returns what a reader may see of a text that names somebody.
type Mask func(of Personal, text string) string

// Text is a value that is a text.
func Text(s string) Value { return Value{text: s} }

// MessageText is a text that may name somebody.
func MessageText(s string) Value { return Text(s).of(Message) }

// of says that the value names somebody.
func (v Value) of(p Personal) Value {
	v.personal = p
	return v
}

// number is a number or other JSON.
func number(s string) Value { return Value{text: s, raw: true} }

// Integer is a number.
func Integer(n int64) Value { return number(strconv.FormatInt(n, 10)) }

func boolean(b bool) Value { return number(strconv.FormatBool(b)) }

// Instant is a time in UTC. It is missing if t is the zero time.
func Instant(t time.Time) Value {
	if t.IsZero() {
		return Value{raw: true, instant: true}
	}
	// The layout of RFC 3339 is several times as fast as others. A nanosecond keeps the zeros.
	var buffer [40]byte
	b := t.UTC().Truncate(time.Microsecond).Add(time.Nanosecond).AppendFormat(buffer[:0], time.RFC3339Nano)
	return Value{text: string(b[:len(b)-4]) + "Z", instant: true, at: t}
}

// Write writes rows as they come. It stops at the first error of the rows or of w, which it
// returns. It does not buffer more than a row where w does not.
func Write[T any](w io.Writer, s Style, columns []Column[T], rows iter.Seq2[T, error]) error {
	if s.Mask != nil {
		columns = maskColumns(columns, s.Mask)
	}
	if s.Zone == nil {
		s.Zone = time.UTC
	}
	appendRow, headed := appendNDJSON[T], s.Format == NDJSON
	head := func(names []string) error {
		headed = true
		_, err := io.WriteString(w, s.header(names))
		return err
	}
	if !headed {
		appendRow = func(b []byte, columns []Column[T], row *T) []byte { return appendCSV(b, columns, row, s) }
	}
	if s.Format == CSV || s.Format == Spreadsheet {
		if err := head(names(columns)); err != nil {
			return err
		}
	}
	var b []byte
	for row, err := range rows {
		if err == nil && !headed { // the first row says which columns have times
			err = head(zoneNames(columns, &row, s.Zone))
		}
		if err == nil {
			b = appendRow(b[:0], columns, &row)
			_, err = w.Write(b)
		}
		if err != nil {
			return err
		}
		if s.Rows != nil {
			*s.Rows++
		}
	}
	if !headed {
		return head(names(columns))
	}
	return nil
}

func (s Style) header(names []string) string {
	if s.Format == Excel {
		return "\ufeff" + strings.Join(names, ";") + "\n"
	}
	return strings.Join(names, ",") + "\n"
}

func names[T any](columns []Column[T]) (all []string) {
	for _, c := range columns {
		all = append(all, c.Name)
	}
	return all
}

// zoneNames returns the names of columns, with the zone of those that have times.
func zoneNames[T any](columns []Column[T], row *T, zone *time.Location) []string {
	all := names(columns)
	for i, c := range columns {
		if c.Value(row).instant {
			all[i] += " (" + zone.String() + ")"
		}
	}
	return all
}

// maskColumns returns the columns as a reader may see them. What is masked is a text.
func maskColumns[T any](columns []Column[T], mask Mask) (all []Column[T]) {
	for _, c := range columns {
		all = append(all, Column[T]{c.Name, func(row *T) Value {
			v := c.Value(row)
			if v.personal != 0 && v.text != "" {
				v = Text(mask(v.personal, v.text))
			}
			return v
		}})
	}
	return all
}

func appendCSV[T any](b []byte, columns []Column[T], row *T, s Style) []byte {
	separator, excel := byte(','), s.Format == Excel
	if excel {
		separator = ';'
	}
	for _, c := range columns {
		v := c.Value(row)
		switch {
		case s.Format == CSV:
		case excel && !v.at.IsZero():
			v.text = v.at.In(s.Zone).Format(time.DateTime)
		case !v.raw && strings.IndexAny(v.text, "=+-@\t\r\n") == 0: // a formula; some skip white space before it
			v.text = "'" + v.text
		case excel && v.raw && !strings.HasPrefix(v.text, "["):
			v.text = strings.Replace(v.text, ".", ",", 1)
		}
		b = append(appendField(b, v.text, separator), separator)
	}
	b[len(b)-1] = '\n'
	return b
}

// appendField quotes what needs it, and spaces at the ends, which some readers cut off.
func appendField(b []byte, v string, separator byte) []byte {
	for i := range len(v) {
		isEnd := i == 0 || i == len(v)-1
		if c := v[i]; c == separator || c == '"' || c == '\r' || c == '\n' || isEnd && (c == ' ' || c == '\t') {
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

// appendQuoted appends a JSON string. Storage has valid UTF-8 only; anything else is replaced.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		if r >= ' ' && r != '"' && r != '\\' {
			b = utf8.AppendRune(b, r)
		} else if at := strings.IndexRune("\b\f\n\r\t\"\\", r); at >= 0 {
			b = append(b, '\\', `bfnrt"\`[at])
		} else {
			b = fmt.Appendf(b, "\\u%04x", r)
		}
	}
	return append(b, '"')
}
