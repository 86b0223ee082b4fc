// Package trail defines what the trail proves: each event is a Leaf, and the leaves of one
// commit are the entries of a Batch.
//
// The trail is a log that only grows. A signed checkpoint proves that a leaf is in the log, and
// that a later checkpoint extends an earlier one. Package adapters/trail keeps the log and
// describes its format.
package trail

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"bankingapi/domain/operation"
)

// Kind says what a leaf is about.
type Kind uint8

// The kinds. Numbers and names are stored: never change them.
const (
	Decided  Kind = 1  // the first answer to a BuyFundFromCustomer
	Settled  Kind = 2  // the settlement of a recorded BuyFundFromCustomer on its day
	Notified Kind = 3  // one notification of an AddPushNotificationResponse
	Act      Kind = 4  // an act of administration
	Posted   Kind = 5  // all postings of an import or a correction
	Priced   Kind = 6  // an imported price
	Changed  Kind = 7  // a subscription after a change
	Answered Kind = 8  // the answer for the CallerId of an operation without sales
	Reversed Kind = 9  // the reversal of an operation
	Erased   Kind = 10 // all notifications whose personal data one act erased, in their new state
)

var kindNames = [...]string{"", "decided", "settled", "notified", "act", "posted", "priced", "changed", "answered", "reversed", "erased"}

// String returns the name of the kind in leaves, or "" for an unknown kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return ""
}

// Format is the first text of every leaf. Another encoding gets another number.
const Format = "bankingapi leaf 1"

// Leaf encodes the stored rows of one operation. The same rows always have the same hash. The
// content is a sequence of texts. Each text follows its length as a uvarint:
//
//	Format, the kind's name, the operation's ID,
//	then for each row: its table, name and value of each column, an empty text
//
// A column with an empty value is left out. So a column that is added later does not change the
// hashes of earlier rows. Make a Leaf with NewLeaf.
type Leaf struct{ content []byte }

// NewLeaf returns the leaf of an operation without rows. It reuses buffer, which may be nil.
func NewLeaf(buffer []byte, kind Kind, id operation.ID) Leaf {
	l := Leaf{append(buffer[:0], 0)} // the prefix of a leaf in RFC 6962
	l.text(Format)
	l.text(kind.String())
	l.text(id.String())
	return l
}

// BeginRow starts a row of the table.
func (l *Leaf) BeginRow(table string) { l.text(table) }

// Text adds a column with a text.
func (l *Leaf) Text(column, value string) {
	if value != "" {
		l.text(column)
		l.text(value)
	}
}

// Int adds a column with a number, even if the number is 0.
func (l *Leaf) Int(column string, value int64) {
	l.text(column)
	var digits [20]byte
	l.text(string(strconv.AppendInt(digits[:0], value, 10)))
}

// Bytes adds a column with bytes, as hexadecimal digits.
func (l *Leaf) Bytes(column string, value []byte) {
	if len(value) > 0 {
		l.text(column)
		digits := 2 * len(value)
		l.length(digits)
		l.content = append(l.content, make([]byte, digits)...) // allocates only if content grows
		hex.Encode(l.content[len(l.content)-digits:], value)
	}
}

// Time adds a column with a time in microseconds, as times are stored:
// 2026-11-20T09:30:00.000000Z. It adds no column for the zero time.
func (l *Leaf) Time(column string, value time.Time) {
	if !value.IsZero() {
		l.text(column)
		// No layout with six decimals is as fast as RFC3339, which has no decimals.
		var buffer [32]byte
		text := value.UTC().AppendFormat(buffer[:0], time.RFC3339)
		end := len(text) - 1
		text = strconv.AppendInt(text[:end], int64(1_000_000+value.Nanosecond()/1000), 10)
		text[end] = '.'
		l.text(string(append(text, 'Z')))
	}
}

// EndRow ends the row.
func (l *Leaf) EndRow() { l.text("") }

// Hash returns the hash of the leaf.
func (l *Leaf) Hash() Hash { return sha256.Sum256(l.content) }

// Content returns the encoded leaf, without the prefix that only the hash includes.
func (l *Leaf) Content() []byte { return l.content[1:] }

// Memory returns the memory of the leaf, for the next NewLeaf.
func (l *Leaf) Memory() []byte { return l.content }

func (l *Leaf) text(s string) {
	l.length(len(s))
	l.content = append(l.content, s...)
}

// length appends a uvarint. Almost all lengths have one byte. This append stores no pointer.
// With AppendUvarint it stores one, and the garbage collector then took a fifth of the time of
// a leaf.
func (l *Leaf) length(n int) {
	if n < 0x80 {
		l.content = append(l.content, byte(n)) //nolint:gosec // at most 127
		return
	}
	l.content = binary.AppendUvarint(l.content, uint64(n))
}

// Row is a row of a decoded leaf.
type Row struct {
	Table  string
	Fields []Field
}

// Value returns the value of a column, or "" if the row has no such column.
func (r *Row) Value(column string) string {
	for _, f := range r.Fields {
		if f.Column == column {
			return f.Value
		}
	}
	return ""
}

// Field is a column of a Row, as text.
type Field struct{ Column, Value string }

// Decoded is the content of a leaf, for people to read.
type Decoded struct {
	Kind string
	ID   operation.ID
	Rows []Row
}

// ErrFormat is returned for content that is not a leaf or a batch of this version.
var ErrFormat = errors.New("not in the format of the trail")

// Decode reads the content of a leaf. The error is ErrFormat.
func Decode(content []byte) (d Decoded, err error) {
	r := reader{content}
	if r.text() != Format {
		return d, ErrFormat
	}
	d.Kind = r.text()
	if d.ID, err = operation.ParseID(r.text()); err != nil {
		return d, ErrFormat
	}
	for len(r.rest) > 0 {
		row := Row{Table: r.text()}
		for name := r.text(); name != ""; name = r.text() {
			row.Fields = append(row.Fields, Field{name, r.text()})
		}
		d.Rows = append(d.Rows, row)
	}
	if r.rest == nil {
		return d, ErrFormat
	}
	return d, nil
}

// reader reads texts. If the content is too short, it sets rest to nil.
type reader struct{ rest []byte }

func (r *reader) text() string {
	length, n := binary.Uvarint(r.rest)
	if n <= 0 || length > uint64(len(r.rest)-n) { //nolint:gosec // n is at most the length
		r.rest = nil
		return ""
	}
	end := n + int(length) //nolint:gosec // not more than the length of rest
	value := string(r.rest[n:end])
	r.rest = r.rest[end:]
	return value
}
