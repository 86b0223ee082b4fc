package bookfile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// recordLimit is the longest record in bytes. No row of the book comes near
// it; it bounds what a quote that is never closed can take in.
const recordLimit = 1 << 16

// record is one row of a CSV file.
type record struct {
	line   int64 // on which it begins, from 1
	fields []string
	broken string // the rule of CSV it breaks; then there are no fields
}

// records reads the records of a CSV file. Unlike encoding/csv it keeps line
// ends inside quotes as they are, goes on after a bad line, and bounds the
// length of a record.
type records struct {
	r    *bufio.Reader
	line int64
	text []byte
	ends []int // of all fields in text but the last
}

func newRecords(r io.Reader) *records {
	buffered := bufio.NewReaderSize(r, 1<<16)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) { // Excel writes it
		_, _ = buffered.Discard(3)
	}
	return &records{r: buffered, line: 1}
}

// next returns the next record that is not an empty line; the error is io.EOF
// after the last one.
func (c *records) next() (record, error) {
	for {
		r := record{line: c.line}
		seen, broken, err := c.read()
		switch {
		case err != nil && (!seen || !errors.Is(err, io.EOF)):
			return r, err
		case broken != "":
			return record{line: r.line, broken: broken}, nil
		case seen:
			all, from := string(c.text), 0
			r.fields = make([]string, 0, len(c.ends)+1)
			for _, to := range append(c.ends, len(all)) {
				r.fields = append(r.fields, all[from:to])
				from = to
			}
			return r, nil
		}
	}
}

// The places in a record.
const (
	fieldStart = iota
	bare       // in a field without quotes
	quoted     // between quotes
	closed     // after a quote that may have been the closing one
	skipping   // after a mistake, to the end of the line
)

// read takes one record from the file. seen is false for an empty line; the
// error is io.EOF when the file ended in or before the record.
func (c *records) read() (seen bool, broken string, err error) {
	c.text, c.ends = c.text[:0], c.ends[:0]
	place := fieldStart
	fail := func(rule string) { place, broken = skipping, rule }
	for {
		b, err := c.r.ReadByte()
		if err != nil {
			if place == quoted {
				broken = "A quote is not closed."
			}
			return seen, broken, err
		}
		if b == '\n' {
			c.line++
		}
		if len(c.text) > recordLimit {
			fail("The line is too long, or a quote is not closed.")
		}
		if place != quoted && (b == '\n' || b == '\r' && c.endsLine()) {
			return seen, broken, nil
		}
		seen = true
		switch {
		case place == skipping:
		case b == '"' && place == fieldStart:
			place = quoted
		case b == '"' && place == quoted:
			place = closed
		case place == quoted:
			c.text = append(c.text, b)
		case b == '"' && place == closed: // it was doubled
			c.text = append(c.text, b)
			place = quoted
		case b == ',':
			c.ends = append(c.ends, len(c.text))
			place = fieldStart
		case place == closed:
			fail("A comma or the end of the line must follow a closing quote.")
		case b == '"':
			fail("A quote stands inside a value that has none around it.")
		case b == '\r':
			fail("A line break inside a value needs quotes around it.")
		default:
			c.text = append(c.text, b)
			place = bare
		}
	}
}

// endsLine takes the LF after a CR; a CR at the end of the file counts too.
func (c *records) endsLine() bool {
	next, err := c.r.Peek(1)
	if err == nil && next[0] == '\n' {
		_, _ = c.r.Discard(1)
		c.line++
		return true
	}
	return err != nil
}
