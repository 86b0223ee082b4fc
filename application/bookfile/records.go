package bookfile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
)

// recordLimit is the longest record in bytes. No row of the book comes near
// it; it bounds what a quote that is never closed can take in.
const recordLimit = 1 << 16

// record is one row of a CSV file.
type record struct {
	line   int64 // on which it begins, from 1
	fields []string
	broken badRecord // then there are no fields
}

// badRecord is the rule of CSV that a record breaks.
type badRecord string

func (b badRecord) Error() string { return string(b) }

// records reads the records of a CSV file. Unlike encoding/csv it keeps line ends inside quotes
// as they are, goes on after a bad line, and bounds the length of a record.
type records struct {
	r    *bufio.Reader
	line int64  // the number of the current line
	end  string // how it ends
	size int    // of the lines of the record so far
}

func newRecords(r io.Reader) *records {
	buffered := bufio.NewReaderSize(r, 2*recordLimit)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) { // Excel writes it
		_, _ = buffered.Discard(3)
	}
	return &records{r: buffered}
}

// next returns the next record that is not an empty line; the error is io.EOF
// after the last one.
func (c *records) next() (r record, err error) {
	text := ""
	for text == "" && err == nil {
		c.size = 0
		text, err = c.readLine()
	}
	r.line = c.line
	for more := err == nil; more; {
		var field string
		if field, text, err = c.field(text); err != nil {
			break
		}
		r.fields = append(r.fields, field)
		text, more = strings.CutPrefix(text, ",")
	}
	if errors.As(err, &r.broken) {
		return record{line: r.line, broken: r.broken}, nil
	}
	return r, err
}

// readLine reads a line without its end.
func (c *records) readLine() (string, error) {
	c.line++
	read, err := c.r.ReadSlice('\n')
	for c.size += len(read); errors.Is(err, bufio.ErrBufferFull); c.size += len(read) {
		read, err = c.r.ReadSlice('\n')
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return "", err
	case c.size > recordLimit:
		return "", badRecord("The line is too long, or a quote is not closed.")
	case len(read) == 0:
		return "", err
	}
	line := string(read)
	text := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	c.end = line[len(text):]
	return text, nil
}

// field takes a field from the beginning of a text, and from the lines after it if there
// are line ends inside its quotes. rest begins with a comma or is empty.
func (c *records) field(text string) (field, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		field, _, _ = strings.Cut(text, ",")
		switch at := strings.IndexAny(field, "\"\r"); {
		case at < 0:
			return field, text[len(field):], nil
		case field[at] == '"':
			return "", "", badRecord("A quote stands inside a value that has none around it.")
		}
		return "", "", badRecord("A line break inside a value needs quotes around it.")
	}
	for text = text[1:]; ; {
		part, after, isClosed := strings.Cut(text, `"`)
		field += part
		switch {
		case !isClosed:
			field += c.end
			if text, err = c.readLine(); errors.Is(err, io.EOF) {
				err = badRecord("A quote is not closed.")
			}
			if err != nil {
				return "", "", err
			}
		case strings.HasPrefix(after, `"`): // it was doubled
			field += `"`
			text = after[1:]
		case after == "" || after[0] == ',':
			return field, after, nil
		default:
			return "", "", badRecord("A comma or the end of the line must follow a closing quote.")
		}
	}
}
