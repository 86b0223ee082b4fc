package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
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
		text any // a string is printed as it is
		json any
	}
	raw string
)

// optional is a text that may be missing.
func optional(text string) cell {
	if text == "" {
		return cell{"-", nil}
	}
	return cell{text, text}
}

// addFormat adds the flag --format, which write obeys.
func addFormat(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Var(new(outputFormat), "format", "text, or json for programs")
	complete(cmd, "format", "text", "json")
	return cmd
}

type outputFormat struct{ isJSON bool }

func (f *outputFormat) Type() string { return "text|json" }

func (f *outputFormat) String() string {
	if f.isJSON {
		return "json"
	}
	return "text"
}

func (f *outputFormat) Set(text string) error {
	if text != "text" && text != "json" {
		return errors.New("must be text or json")
	}
	f.isJSON = text == "json"
	return nil
}

func wantsJSON(cmd *cobra.Command) bool { return cmd.Flag("format").Value.String() == "json" }

// write prints the documents in the format that the user wants. layout is how
// times of the bank look in the text; in JSON they are UTC.
func (c *call) write(layout string, documents ...document) error {
	zone, err := c.loaded.Settings.Bank.Location()
	if err != nil {
		return err
	}
	for _, d := range documents {
		if err := d.write(c.OutOrStdout(), layout, zone, wantsJSON(c.Command)); err != nil {
			return err
		}
	}
	return nil
}

func (d document) write(out io.Writer, layout string, zone *time.Location, isJSON bool) error {
	if isJSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(d.value())
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range d.fields {
		var lines []string
		switch value := f.value.(type) {
		case []string:
			lines = value
		case string:
			lines = []string{value}
		case time.Time:
			if !value.IsZero() {
				lines = []string{value.In(zone).Format(layout)}
			}
		default:
			lines = []string{text(value, layout, zone)}
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
				cells[i] = text(value, layout, zone)
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

// value is the document as JSON has it.
func (d document) value() any {
	object := map[string]any{}
	for _, f := range d.fields {
		object[f.name] = jsonOf(f.value)
	}
	for _, t := range d.tables {
		rows := make([]map[string]any, len(t.rows))
		for i, row := range t.rows {
			rows[i] = map[string]any{}
			for at, value := range row {
				name, _, _ := strings.Cut(t.columns[at], "(")
				rows[i][strings.ReplaceAll(name, "-", "")] = jsonOf(value)
			}
		}
		if t.name == "" && len(d.fields) == 0 && len(d.tables) == 1 {
			return rows
		}
		object[t.name] = rows
	}
	return object
}

func jsonOf(value any) any {
	switch value := value.(type) {
	case cell:
		return value.json
	case time.Time:
		if value.IsZero() {
			return nil
		}
		return value.UTC()
	case fmt.Stringer:
		return value.String()
	}
	return value
}

func text(value any, layout string, zone *time.Location) string {
	switch value := value.(type) {
	case cell:
		if as, ok := value.text.(string); ok {
			return as
		}
		return text(value.text, layout, zone)
	case []time.Time:
		all := make([]string, len(value))
		for i, each := range value {
			all[i] = text(each, layout, zone)
		}
		return strings.Join(all, ",")
	case string:
		return orDash(value)
	case time.Time:
		if value.IsZero() {
			return "-"
		}
		return value.In(zone).Format(layout)
	}
	return fmt.Sprint(value)
}

// Layouts of times, with the offset of the zone.
const (
	micros  = "2006-01-02T15:04:05.000000Z07:00"
	minutes = "2006-01-02T15:04Z07:00"
)

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return oneWord(text)
}

// oneWord quotes a text that contains spaces or does not print.
func oneWord(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
