package bookfile

import (
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
	"bankingapi/domain/push"
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

// ParseFormat finds a format by its name.
func ParseFormat(name string) (Format, bool) {
	f := Format(name)
	return f, f == CSV || f == NDJSON || f == Spreadsheet
}

// WritePrices writes the rows as they come. Like the other Write functions it
// stops at the first error of the rows or of w, which it returns, and does not
// buffer more than a row where w does not.
func WritePrices(w io.Writer, f Format, rows iter.Seq2[fund.Price, error]) error {
	return write(w, f, priceColumns, rows)
}

// WriteHoldings writes the rows as they come.
func WriteHoldings(w io.Writer, f Format, rows iter.Seq2[fund.Holding, error]) error {
	return write(w, f, holdingColumns, rows)
}

// WriteAccounts writes the rows as they come.
func WriteAccounts(w io.Writer, f Format, rows iter.Seq2[fund.Account, error]) error {
	return write(w, f, accountColumns, rows)
}

// WriteSales writes the rows as they come.
func WriteSales(w io.Writer, f Format, rows iter.Seq2[fund.SaleEntry, error]) error {
	return write(w, f, saleColumns, rows)
}

// WritePostings writes two rows for each posting as it comes: the customer's
// side and the bank's.
func WritePostings(w io.Writer, f Format, rows iter.Seq2[fund.PostingEntry, error]) error {
	return write(w, f, postingColumns, bothSides(rows))
}

// WriteNotifications writes the rows as they come.
func WriteNotifications(w io.Writer, f Format, rows iter.Seq2[push.Entry, error]) error {
	return write(w, f, notificationColumns, rows)
}

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
	return value{t.UTC().Format("2006-01-02T15:04:05.000000Z"), optional}
}

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
	return strings.ContainsAny(v, "\",\r\n") || strings.Trim(v, " \t") != v
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
