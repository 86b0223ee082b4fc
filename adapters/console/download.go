package console

import (
	"bufio"
	"io"
	"iter"
	"net/http"
	"slices"
	"time"

	"bankingapi/application/bookfile"
)

// file is a download. Until its first bytes are sent, an error can be shown.
type file struct {
	name, kind string
	write      func(io.Writer) error
	now        func() time.Time
	limits

	w    http.ResponseWriter
	sent bool
	ends time.Time // when it must be taken
}

// limits end a download whose client stalls: it holds places, a connection and, on
// Postgres, a snapshot. part is the maximum time to take the next 32 KiB, and whole to
// take the file.
type limits struct{ part, whole time.Duration }

var downloadLimits = limits{part: 10 * time.Second, whole: 30 * time.Minute}

// download is a whole list as a file: csv, excel, or ndjson with the columns as members. The
// values are masked as those of the page. It streams, one at a time for a session. Rows must
// have the context of the HTTP request, which may take longer than a page.
func download[T any](q *request, name string, columns []bookfile.Column[T], rows iter.Seq2[T, error]) (any, error) {
	f := &file{name: name + ".csv", kind: "text/csv; charset=utf-8", now: q.Machine, limits: downloadLimits}
	format := bookfile.Spreadsheet
	switch q.query("format") {
	case string(bookfile.NDJSON):
		f.name, f.kind, format = name+".ndjson", "application/x-ndjson", bookfile.NDJSON
	case string(bookfile.Excel):
		format = bookfile.Excel
	}
	f.write = func(w io.Writer) error {
		if _, other := q.console.downloading.LoadOrStore(q.session.ID, true); other {
			return errLong
		}
		defer q.console.downloading.Delete(q.session.ID)
		if err := q.look(); err != nil {
			return err
		}
		return bookfile.Write(w, bookfile.Style{Format: format, Zone: q.Zone, Mask: q.Mask}, columns, rows)
	}
	return response(f.send), nil
}

func (f *file) Write(p []byte) (int, error) {
	now := f.now()
	if !f.sent {
		f.sent, f.ends = true, now.Add(f.whole)
		f.w.Header().Set("Content-Type", f.kind)
		f.w.Header().Set("Content-Disposition", `attachment; filename="`+f.name+`"`)
	}
	_ = http.NewResponseController(f.w).SetWriteDeadline(earliest(now.Add(f.part), f.ends)) // every connection can
	return f.w.Write(p)
}

// send writes the file. A broken connection says that it is not whole.
func (f *file) send(w http.ResponseWriter) error {
	f.w = w
	buffered := bufio.NewWriterSize(f, 32<<10)
	err := f.write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil && !f.sent { // a file without a byte
		_, err = f.Write(nil)
	}
	if err != nil && f.sent {
		panic(http.ErrAbortHandler)
	}
	return err
}

func rowsOf[T any](rows []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		slices.Values(rows)(func(row T) bool { return yield(row, nil) })
	}
}
