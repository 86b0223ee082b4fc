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

const errTooLong = badRecord("The line is too long, or a quote is not closed.")

// records reads the records of a CSV file. Unlike encoding/csv it does not change line ends
// inside quotes, continues after a bad line, and limits the length of a record.
type records struct {
	foreign   string // not empty: the file is no text in UTF-8
	r         *bufio.Reader
	separator string // between two values
	line      int64  // the number of the current line
	end       string // its line end
	size      int    // length of the record so far
}

func newRecords(r io.Reader) *records {
	buffered := bufio.NewReaderSize(r, 2*recordLimit)
	mark, _ := buffered.Peek(3)
	if bytes.Equal(mark, []byte("\xef\xbb\xbf")) { // Excel writes this byte order mark
		_, _ = buffered.Discard(3)
	}
	begin, _ := buffered.Peek(4)
	return &records{r: buffered, separator: comma, foreign: foreignFile(string(begin))}
}

// foreignFile returns what is wrong with a file that begins in this way, if it is no text in
// UTF-8. Lines and values of such a file would be blamed for what they are not.
func foreignFile(begin string) string {
	switch {
	case strings.HasPrefix(begin, "PK\x03\x04"):
		return "The file is a workbook of a spreadsheet or another zip archive: save the workbook as CSV UTF-8, or unpack the archive."
	case begin == "\xd0\xcf\x11\xe0":
		return "The file is a workbook of a spreadsheet: save it as CSV UTF-8."
	case strings.HasPrefix(begin, "\x1f\x8b"):
		return "The file is compressed: unpack it first."
	case strings.HasPrefix(begin, "\xff\xfe"), strings.HasPrefix(begin, "\xfe\xff"), strings.Contains(begin, "\x00"):
		return "The file is UTF-16: save it as CSV UTF-8."
	}
	return ""
}

// The separators of values.
const (
	comma     = ","
	semicolon = ";"
)

// first returns the first record. It decides what separates the values of the file: a file
// whose first line has semicolons and no comma comes from a spreadsheet with decimal commas.
// Names of columns have neither. A format that is given decides instead.
func (c *records) first(format Format) (record, error) {
	if c.foreign != "" {
		return record{line: 1, broken: badRecord(c.foreign)}, nil
	}
	text, err := c.nextLine()
	hasSemicolons := strings.Contains(text, semicolon) && !strings.Contains(text, comma)
	if format == Excel || format == "" && hasSemicolons {
		c.separator = semicolon
	}
	switch {
	case err != nil && !errors.As(err, new(badRecord)):
	case hasLoneReturn(text) || errors.Is(err, errTooLong) && hasLoneReturn(c.end):
		err = badRecord("The lines end in CR, which no program of today writes: save the file again as CSV UTF-8.")
	case strings.HasPrefix(strings.ToLower(text), "sep="):
		err = badRecord("The line sep= is for a spreadsheet only: remove it, so that the file begins with the names of the columns.")
	}
	if err != nil {
		return brokenAt(c.line, err)
	}
	return c.split(text)
}

func hasLoneReturn(text string) bool {
	return strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\r")
}

// next returns the next record that is not an empty line. The error is io.EOF after the last
// record.
func (c *records) next() (record, error) {
	text, err := c.nextLine()
	if err != nil {
		return brokenAt(c.line, err)
	}
	return c.split(text)
}

// nextLine returns the next line that is not empty.
func (c *records) nextLine() (string, error) {
	for {
		c.size = 0
		text, err := c.readLine()
		if err != nil || text != "" {
			return text, err
		}
	}
}

// split makes a record of the current line.
func (c *records) split(text string) (record, error) {
	line := c.line
	fields, err := c.fields(text)
	if err != nil {
		return brokenAt(line, err)
	}
	return record{line: line, fields: fields}, nil
}

// brokenAt returns a broken record if the line breaks a rule of CSV. Otherwise it returns err.
func brokenAt(line int64, err error) (record, error) {
	if broken, ok := errors.AsType[badRecord](err); ok {
		return record{line: line, broken: broken}, nil
	}
	return record{line: line}, err
}

// fields returns the values of a line. It reads more lines if a value has line ends inside quotes.
func (c *records) fields(text string) (fields []string, err error) {
	for more := true; more; {
		var field string
		field, text, err = c.field(text)
		if err != nil {
			return nil, err
		}
		fields = append(fields, field)
		text, more = strings.CutPrefix(text, c.separator)
	}
	return fields, nil
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
		c.end = string(read)
		return "", errTooLong
	case len(read) == 0:
		return "", err
	}
	line := string(read)
	text := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	c.end = line[len(text):]
	return text, nil
}

// field splits the first field from a text. If the field has line ends inside quotes, it reads
// more lines. rest begins with a separator or is empty.
func (c *records) field(text string) (field, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		field, _, _ = strings.Cut(text, c.separator)
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
		case after == "" || strings.HasPrefix(after, c.separator):
			return field, after, nil
		case c.separator == semicolon:
			return "", "", badRecord("A semicolon or the end of the line must follow a closing quote.")
		default:
			return "", "", badRecord("A comma or the end of the line must follow a closing quote.")
		}
	}
}
