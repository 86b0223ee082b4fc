package command

import (
	_ "embed" // screens.txt
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"
)

// screensText has what commands print for people: templates of the values that programs
// get with --format json. Columns are between tabs. A value that is a row of an export has methods
// for the template, and is the same row of NDJSON for programs.
//
//go:embed screens.txt
var screensText string

var screens = template.Must(template.New("").Funcs(template.FuncMap{
	"at":    func(string, any) string { return "" }, // write replaces it
	"field": field, "join": strings.Join, "quoted": quoted, "signed": signed, "word": word,
	"usages": usages, "hasSettings": hasSettings,
}).Option("missingkey=error").Parse(screensText))

// write prints a value with the named screen, or as JSON with --format json.
func (c *call) write(screen string, value any) error {
	if c.format == "json" {
		encoder := json.NewEncoder(c.cmd.OutOrStdout())
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	}
	zone := c.zone()
	inZone := template.Must(screens.Clone()).Funcs(template.FuncMap{"at": func(layout string, when any) string {
		if when, ok := when.(*moment); ok && when != nil {
			return when.at.In(zone).Format(layout)
		}
		return "-"
	}})
	w := tabwriter.NewWriter(c.cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	if err := inZone.ExecuteTemplate(w, screen, value); err != nil {
		return err
	}
	return w.Flush()
}

// screen returns a text for people that has no JSON form.
func screen(name string, value any) string {
	var text strings.Builder
	if err := screens.ExecuteTemplate(&text, name, value); err != nil {
		return err.Error()
	}
	return text.String()
}

// moment is a time that JSON has as exports do: in UTC, with six decimals, so that texts sort like
// their times.
type moment struct{ at time.Time }

// MarshalText implements encoding.TextMarshaler.
func (m *moment) MarshalText() ([]byte, error) {
	return m.at.UTC().AppendFormat(nil, "2006-01-02T15:04:05.000000Z"), nil
}

// instant returns a time for JSON, or null for the zero time.
func instant(t time.Time) *moment {
	if t.IsZero() {
		return nil
	}
	return &moment{t}
}

// decimalNumber returns a decimal number for JSON, or null for an empty text.
func decimalNumber(text string) *json.Number {
	if text == "" {
		return nil
	}
	n := json.Number(text)
	return &n
}

// signed returns a number with its sign, also with a plus.
func signed(n *json.Number) string {
	if strings.HasPrefix(n.String(), "-") {
		return n.String()
	}
	return "+" + n.String()
}

// field returns a line with a name and a value, if any. It quotes unprintable text.
func field(name string, value any) string {
	text, _ := value.(string)
	if pointer, ok := value.(*string); ok && pointer != nil {
		text = *pointer
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		text = strconv.Quote(text)
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%s\t%s\n", name, text)
}

// word returns a text for a column, or - for an empty text.
func word(text string) string {
	if text == "" {
		return "-"
	}
	return quoted(text)
}

// quoted quotes a text that contains spaces or is not printable.
func quoted(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
