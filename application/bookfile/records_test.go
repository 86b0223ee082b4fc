package bookfile

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func readAll(t require.TestingT, content string) []record {
	var all []record
	file := newRecords(strings.NewReader(content))
	for {
		r, err := file.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, r)
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	const (
		notClosed = "A quote is not closed."
		bareQuote = "A quote stands inside a value that has none around it."
		lineBreak = "A line break inside a value needs quotes around it."
		afterward = "A comma or the end of the line must follow a closing quote."
		tooLong   = "The line is too long, or a quote is not closed."
	)
	fields := func(line int64, fields ...string) record { return record{line: line, fields: fields} }
	broken := func(line int64, rule string) record { return record{line: line, broken: badRecord(rule)} }
	long := strings.Repeat("x", recordLimit+1)
	for name, c := range map[string]struct {
		content string
		want    []record
	}{
		"nothing":                 {"", nil},
		"a byte order mark":       {"\xef\xbb\xbfa,b\n", []record{fields(1, "a", "b")}},
		"LF":                      {"a,b\nc,d\n", []record{fields(1, "a", "b"), fields(2, "c", "d")}},
		"CRLF":                    {"a,b\r\nc,d\r\n", []record{fields(1, "a", "b"), fields(2, "c", "d")}},
		"no end of line":          {"a,b\nc,d", []record{fields(1, "a", "b"), fields(2, "c", "d")}},
		"CR at the end":           {"a,b\r", []record{fields(1, "a", "b")}},
		"empty lines":             {"\n\r\na\n\n\nb\n\n", []record{fields(3, "a"), fields(6, "b")}},
		"empty values":            {",\n,,\n", []record{fields(1, "", ""), fields(2, "", "", "")}},
		"a quoted empty value":    {"\"\"\n\"\"", []record{fields(1, ""), fields(2, "")}},
		"quotes":                  {"\"a,\"\"b\"\"\",\"\"\"\"\n", []record{fields(1, `a,"b"`, `"`)}},
		"line ends in quotes":     {"\"a\r\nb\",\"\n\",\"\r\"\nc\n", []record{fields(1, "a\r\nb", "\n", "\r"), fields(4, "c")}},
		"spaces":                  {" a , b\n", []record{fields(1, " a ", " b")}},
		"a NUL, a bad rune":       {"\x00,\xff\n", []record{fields(1, "\x00", "\xff")}},
		"a quote inside":          {"a\"b\",c\nd\n", []record{broken(1, bareQuote), fields(2, "d")}},
		"a space before quotes":   {"a, \"b\"\nd\n", []record{broken(1, bareQuote), fields(2, "d")}},
		"text after quotes":       {"\"a\"b,c\nd\n", []record{broken(1, afterward), fields(2, "d")}},
		"CR inside":               {"a\rb\nd\n", []record{broken(1, lineBreak), fields(2, "d")}},
		"an open quote":           {"a\n\"b,c\nd\n", []record{fields(1, "a"), broken(2, notClosed)}},
		"a line too long":         {long + ",a\nb\n", []record{broken(1, tooLong), fields(2, "b")}},
		"the last too long":       {"a\n" + strings.Repeat("x", 4*recordLimit), []record{fields(1, "a"), broken(2, tooLong)}},
		"a last line of a buffer": {strings.Repeat("x", 2*recordLimit), []record{broken(1, tooLong)}},
		"a quote too long":        {"\"a\n" + long + "\nb\n", []record{broken(1, tooLong), fields(3, "b")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, readAll(t, c.content))
		})
	}
}

// What is written is read back byte for byte, whatever it is.
func TestRecordsReadWhatIsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune(" ,\"\r\n\tağ😀\x01")), 0, 12, -1))
		rows := rapid.SliceOfN(rapid.SliceOfN(texts, 2, 4), 1, 5).Draw(t, "rows")
		content := []byte("header\n") // a text that begins like a byte order mark is never first in a file
		for _, row := range rows {
			columns := make([]Column[[]string], len(row))
			for i := range row {
				columns[i].Value = cell(i)
			}
			content = appendCSV(content, columns, &row, Style{Format: CSV})
		}
		var got [][]string
		for _, r := range readAll(t, string(content))[1:] {
			require.Empty(t, r.broken)
			got = append(got, r.fields)
		}
		require.Equal(t, rows, got)
	})
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte("a,b\r\n\"c\"\"\n\",d\n"))
	f.Add([]byte("\xef\xbb\xbf\"\"\"\r\r\n,\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		file := newRecords(bytes.NewReader(content))
		last := int64(0)
		for {
			r, err := file.next()
			if errors.Is(err, io.EOF) {
				return
			}
			require.NoError(t, err)
			require.Greater(t, r.line, last)
			require.NotEqual(t, len(r.fields) > 0, r.broken != "")
			last = r.line
		}
	})
}

func cell(i int) func(*[]string) Value {
	return func(r *[]string) Value { return Text((*r)[i]) }
}
