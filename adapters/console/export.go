package console

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"regexp"
	"strings"
	"time"

	"bankingapi/application/backoffice"
)

// rowWriter writes rows of texts.
type rowWriter interface {
	write(row []string) error
	flush() error
}

// export sends a whole list as a file: csv, or ndjson with the columns as
// members. The rows are those of the page: masked if the page is. It streams,
// and one export runs at a time.
func export[T any](q *request, name string, columns []string, rows func(context.Context) iter.Seq2[T, error], row func(*T) []string) error {
	select {
	case q.long <- struct{}{}:
		defer func() { <-q.long }()
	default:
		return errBusy
	}
	if err := q.look(); err != nil {
		return err
	}
	kind, extension := "text/csv; charset=utf-8", ".csv"
	if q.URL.Query().Get("format") == "ndjson" {
		kind, extension = "application/x-ndjson", ".ndjson"
	}
	begun := false
	begin := func() rowWriter {
		begun, q.streamed = true, true
		_ = http.NewResponseController(q.w).SetWriteDeadline(time.Time{}) // an export may take long
		q.w.Header().Set("Content-Type", kind)
		q.w.Header().Set("Content-Disposition", `attachment; filename="`+name+extension+`"`)
		buffered := bufio.NewWriterSize(q.w, 32<<10)
		if extension == ".csv" {
			return csvRows{csv.NewWriter(buffered), buffered}
		}
		return ndjsonRows{columns, buffered}
	}
	var out rowWriter
	for each, err := range rows(q.Context()) {
		if err != nil {
			if begun {
				panic(http.ErrAbortHandler) // a broken connection says that the file is not whole
			}
			return err
		}
		if !begun {
			out = begin()
			if err := out.write(header(columns, extension)); err != nil {
				return nil
			}
		}
		if out.write(row(&each)) != nil {
			return nil // the client disconnected
		}
	}
	if !begun {
		out = begin()
		_ = out.write(header(columns, extension))
	}
	_ = out.flush()
	return nil
}

// header is the first line of a csv file; ndjson has none.
func header(columns []string, extension string) []string {
	if extension == ".csv" {
		return columns
	}
	return nil
}

type csvRows struct {
	*csv.Writer
	buffered *bufio.Writer
}

func (c csvRows) write(row []string) error {
	guarded := make([]string, len(row))
	for i, cell := range row {
		guarded[i] = guard(cell)
	}
	return c.Write(guarded)
}

func (c csvRows) flush() error {
	c.Flush()
	return c.buffered.Flush()
}

var number = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// guard makes a cell a text that a spreadsheet does not run as a formula.
func guard(cell string) string {
	if backoffice.IsFormula(cell) && !number.MatchString(cell) {
		return "'" + cell
	}
	return cell
}

type ndjsonRows struct {
	columns []string
	out     *bufio.Writer
}

func (n ndjsonRows) write(row []string) error {
	if row == nil {
		return nil
	}
	var b strings.Builder
	for i, cell := range row {
		separator := ","
		if i == 0 {
			separator = "{"
		}
		name, _ := json.Marshal(n.columns[i])
		value, err := json.Marshal(cell)
		if err != nil {
			return err
		}
		b.WriteString(separator + string(name) + ":" + string(value))
	}
	_, err := io.WriteString(n.out, b.String()+"}\n")
	return err
}

func (n ndjsonRows) flush() error { return n.out.Flush() }

// instant is a time as files have it.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}
