package console

import (
	"bufio"
	"context"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"bankingapi/application/bookfile"
	"bankingapi/domain/audit"
)

// file is a download. Until its first bytes are sent, an error can be shown.
type file struct {
	name, kind string
	write      func(*bufio.Writer) error // ends with Flush
	limits

	w    http.ResponseWriter
	sent bool
	ends time.Time // when the client must have received it
}

// limits end a download whose client stalls: it holds a place, a connection and, on Postgres, a
// snapshot. part is the maximum time to receive the next 32 KiB, whole to receive the file.
type limits struct{ part, whole time.Duration }

var downloadLimits = limits{part: 10 * time.Second, whole: 30 * time.Minute}

// download sends a whole list as a file: csv, excel, or ndjson with the columns as members. It
// masks values like the page. It streams, and one download runs at a time. rows must use the
// context of the HTTP request, which may take longer than a page. The audit records the
// download before the first row is sent, and the number of rows afterwards.
func download[T any](q *request, name string, columns []bookfile.Column[T], rows iter.Seq2[T, error]) (any, error) {
	f := &file{name: name + ".csv", kind: "text/csv; charset=utf-8", limits: downloadLimits}
	style := bookfile.Style{Format: bookfile.Spreadsheet, Zone: q.Options.Zone(), Mask: q.Mask, Rows: new(int64)}
	how := "csv"
	switch q.query("format") {
	case string(bookfile.NDJSON):
		f.name = name + ".ndjson"
		f.kind = "application/x-ndjson"
		style.Format = bookfile.NDJSON
		how = "ndjson"
	case string(bookfile.Excel):
		style.Format = bookfile.Excel
		how = "excel"
	}
	f.write = func(w *bufio.Writer) error {
		if !q.console.long.TryLock() {
			return errLong
		}
		defer q.console.long.Unlock()
		shown := ", masked,"
		if q.Revealed() {
			shown = ", in full,"
			q.Options.Looked(q.Name, q.Page.Title)
		}
		q.about = strings.TrimRight(how+shown+q.about, ", ")
		if err := q.keep(audit.ConsoleExport, q.Page.Title); err != nil {
			return err
		}
		err := writeRows(w, style, columns, rows)
		q.about = plural(*style.Rows, "row") + ", " + q.about
		if err != nil {
			q.about = "broken off after " + q.about
		}
		ctx := context.WithoutCancel(q.r.Context()) // the client may have gone
		wrong := q.record(ctx, audit.ConsoleExported, q.Page.Title)
		if wrong != nil {
			q.Options.Failed(q.Page.Title, wrong)
		}
		return err
	}
	return response(f.send), nil
}

// writeRows writes the rows and flushes them, so that the audit records only a file that was
// written.
func writeRows[T any](w *bufio.Writer, style bookfile.Style, columns []bookfile.Column[T], rows iter.Seq2[T, error]) error {
	if err := bookfile.Write(w, style, columns, rows); err != nil {
		return err
	}
	return w.Flush()
}

func (f *file) Write(p []byte) (int, error) {
	if !f.sent {
		f.sent, f.ends = true, now().Add(f.whole)
		f.w.Header().Set("Content-Type", f.kind)
		f.w.Header().Set("Content-Disposition", `attachment; filename="`+f.name+`"`)
	}
	f.endBefore(f.ends)
	return f.w.Write(p)
}

// endBefore gives the client its time for the next part, but not beyond the end.
func (f *file) endBefore(end time.Time) {
	_ = http.NewResponseController(f.w).SetWriteDeadline(earliest(now().Add(f.part), end)) // every connection supports it
}

func now() time.Time {
	return time.Now() //nolint:forbidigo // deadlines of a connection use the time of the machine
}

// send writes the file. A broken connection shows that the file is incomplete.
func (f *file) send(w http.ResponseWriter) error {
	f.w = w
	err := f.writeAll()
	if err != nil && f.sent {
		panic(http.ErrAbortHandler)
	}
	if err != nil { // the page of the error follows, and the time of the listener may be over
		f.endBefore(now().Add(f.part))
	}
	return err
}

// writeAll writes the file, also an empty one.
func (f *file) writeAll() error {
	if err := f.write(bufio.NewWriterSize(f, 32<<10)); err != nil {
		return err
	}
	if f.sent {
		return nil
	}
	_, err := f.Write(nil)
	return err
}

func rowsOf[T any](rows []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		slices.Values(rows)(func(row T) bool { return yield(row, nil) })
	}
}
