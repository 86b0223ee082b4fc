package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"bankingapi/domain/subscription"
)

// A document is what a command prints: fields, then tables. It is text for people
// or, with --format json, an object for programs. Both have the same names and
// values. A document of one table without a name is an array.
type document struct {
	fields []field
	tables []table
}

// A field is left out of the text if its value is empty. A []string is a line
// for each.
type field struct {
	name  string
	value any
}

// A table with a name is left out of the text if it has no rows. The header has
// its columns in capitals; their names in JSON end at a parenthesis.
type table struct {
	name    string
	columns []string
	rows    [][]any
	// line is the format of a row of text, for tables without a header.
	line string
}

func (t *table) add(cells ...any) { t.rows = append(t.rows, cells) }

// A cell is a value with another text for people. A raw text has spaces.
type (
	cell struct {
		text string
		json any
	}
	raw string
)

// Layouts of times, with the offset of the zone.
const (
	micros  = "2006-01-02T15:04:05.000000Z07:00"
	minutes = "2006-01-02T15:04Z07:00"
)

// optional is a text that may be missing.
func optional(text string) cell {
	if text == "" {
		return cell{"-", nil}
	}
	return cell{text, text}
}

// write prints the documents in the format that the user wants. layout is how
// times of the bank look in the text; in JSON they are UTC.
func (c *call) write(layout string, documents ...document) error {
	zone, err := c.settings.Bank.Location()
	for _, d := range documents {
		if err == nil {
			err = d.write(c.OutOrStdout(), layout, zone, c.format() == "json")
		}
	}
	return err
}

// writeLine prints a document whose fields are one line of text.
func (c *call) writeLine(line string, d document) error {
	if c.format() == "text" {
		d.fields = nil
		if err := c.print("%s\n", line); err != nil {
			return err
		}
	}
	return c.write("", d)
}

func (d document) write(out io.Writer, layout string, zone *time.Location, isJSON bool) error {
	if isJSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(d.object())
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range d.fields {
		lines, ok := f.value.([]string)
		if text, value := show(f.value, layout, zone); !ok && value != nil {
			lines = []string{text}
		}
		if text, ok := f.value.(string); ok {
			lines = []string{text}
		}
		for _, line := range lines {
			if strings.ContainsFunc(line, func(r rune) bool { return !strconv.IsPrint(r) }) {
				line = strconv.Quote(line)
			}
			if line != "" {
				fmt.Fprintf(w, "%s\t%s\n", f.name, line)
			}
		}
	}
	for i, t := range d.tables {
		if t.line == "" && (t.name == "" || len(t.rows) > 0) {
			if i > 0 || len(d.fields) > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintln(w, strings.ToUpper(strings.Join(t.columns, "\t")))
		}
		for _, row := range t.rows {
			cells := make([]any, len(row))
			for i, value := range row {
				cells[i], _ = show(value, layout, zone)
			}
			line := t.line
			if line == "" {
				line = strings.Repeat("\t%s", len(cells))[1:] + "\n"
			}
			fmt.Fprintf(w, line, cells...)
		}
	}
	return w.Flush()
}

// object is the document as JSON has it.
func (d document) object() any {
	object := map[string]any{}
	for _, f := range d.fields {
		_, object[f.name] = show(f.value, "", time.UTC)
	}
	for _, t := range d.tables {
		rows := make([]map[string]any, len(t.rows))
		for i, row := range t.rows {
			rows[i] = map[string]any{}
			for at, value := range row {
				name, _, _ := strings.Cut(t.columns[at], "(")
				_, rows[i][strings.ReplaceAll(name, "-", "")] = show(value, "", time.UTC)
			}
		}
		if t.name == "" && len(d.fields) == 0 && len(d.tables) == 1 {
			return rows
		}
		object[t.name] = rows
	}
	return object
}

// show returns a value as the text of a table has it, and as JSON has it.
func show(value any, layout string, zone *time.Location) (text string, json any) {
	switch value := value.(type) {
	case cell:
		return value.text, value.json
	case string:
		if value == "" {
			return "-", value
		}
		return oneWord(value), value
	case time.Time:
		if value.IsZero() {
			return "-", nil
		}
		return value.In(zone).Format(layout), value.UTC()
	case subscription.KeyLife:
		created, createdJSON := show(value.Created, layout, zone)
		used, usedJSON := show(value.Used, layout, zone)
		expires, expiresJSON := show(value.Expires, layout, zone)
		return created + "," + used + "," + expires, map[string]any{"Created": createdJSON, "Used": usedJSON, "Expires": expiresJSON}
	case fmt.Stringer:
		return value.String(), value.String()
	}
	return fmt.Sprint(value), value
}

// oneWord quotes a text that contains spaces or does not print.
func oneWord(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
