package bookfile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
)

// recordLimit is the maximum length of a record in bytes. All rows of the book are much
// shorter. It limits how much a quote that is never closed can include.
const recordLimit = 1 << 16

// record is one row of a CSV file.
type record struct {
	line   int64 // number of its first line, from 1
	fields []string
	broken badRecord // if set, fields is empty
}

// badRecord is the CSV rule that a record breaks.
type badRecord string

func (b badRecord) Error() string { return string(b) }

// records reads the records of a CSV file. Unlike encoding/csv it does not change line ends
// inside quotes, continues after a bad line, and limits the length of a record.
type records struct {
	r    *bufio.Reader
	line int64  // the number of the current line
	end  string // its line end
	size int    // length of the record so far
}

func newRecords(r io.Reader) *records {
	buffered := bufio.NewReaderSize(r, 2*recordLimit)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) { // Excel writes this byte order mark
		_, _ = buffered.Discard(3)
	}
	return &records{r: buffered}
}

// next returns the next record that is not an empty line. The error is io.EOF after the last
// record.
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

// readLine reads a line without its line end.
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

// field splits the first field from a text. If the field has line ends inside quotes, it reads
// more lines. rest begins with a comma or is empty.
func (c *records) field(text string) (field, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		field, _, _ = strings.Cut(text, ",")
		switch i := strings.IndexAny(field, "\"\r"); {
		case i < 0:
			return field, text[len(field):], nil
		case field[i] == '"':
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
		case strings.HasPrefix(after, `"`): // a doubled quote
			field += `"`
			text = after[1:]
		case after == "" || after[0] == ',':
			return field, after, nil
		default:
			return "", "", badRecord("A comma or the end of the line must follow a closing quote.")
		}
	}
}
