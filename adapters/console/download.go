package console

import (
	"bufio"
	"context"
	"io"
	"iter"
	"net/http"
	"slices"
	"time"

	"bankingapi/application/bookfile"
)

// file is a download.
type file struct {
	name, kind string
	write      func(io.Writer) error
	now        func() time.Time
	limits
}

// limits end a download whose client stalls: it holds places, a connection and, on
// Postgres, a snapshot. part is the maximum time to take the next 32 KiB, and whole to
// take the file.
type limits struct{ part, whole time.Duration }

var downloadLimits = limits{part: 10 * time.Second, whole: 30 * time.Minute}

// download is a whole list as a file: csv, or ndjson with the columns as members. The
// values are masked as those of the page. It streams, and one download of a list
// runs at a time.
func download[T any](q *request, name string, columns []bookfile.Column[T], rows func(context.Context) iter.Seq2[T, error]) (any, error) {
	f := &file{name: name + ".csv", kind: "text/csv; charset=utf-8", now: q.Machine, limits: downloadLimits}
	format := bookfile.Spreadsheet
	if q.query("format") == "ndjson" {
		f.name, f.kind, format = name+".ndjson", "application/x-ndjson", bookfile.NDJSON
	}
	f.write = func(w io.Writer) error {
		select {
		case q.console.long <- struct{}{}:
			defer func() { <-q.console.long }()
			if err := q.look(); err != nil {
				return err
			}
			return bookfile.Write(w, format, columns, rows(q.r.Context()), q.Mask)
		default:
			return errLong
		}
	}
	return response(f.send), nil
}

// begun is an answer whose header is sent with its first bytes: until then, an error
// can be shown. ends is when it must be taken.
type begun struct {
	http.ResponseWriter
	file *file
	sent bool
	ends time.Time
}

func (b *begun) Write(p []byte) (int, error) {
	now := b.file.now()
	if !b.sent {
		b.sent, b.ends = true, now.Add(b.file.whole)
		b.Header().Set("Content-Type", b.file.kind)
		b.Header().Set("Content-Disposition", `attachment; filename="`+b.file.name+`"`)
	}
	deadline := now.Add(b.file.part)
	if deadline.After(b.ends) {
		deadline = b.ends
	}
	_ = http.NewResponseController(b.ResponseWriter).SetWriteDeadline(deadline) // every connection can
	return b.ResponseWriter.Write(p)
}

// send writes the file. After the first bytes, a broken connection says that the file
// is not whole.
func (f *file) send(w http.ResponseWriter) error {
	out := &begun{ResponseWriter: w, file: f}
	buffered := bufio.NewWriterSize(out, 32<<10)
	err := f.write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil && !out.sent { // a file without a byte
		_, err = out.Write(nil)
	}
	if err != nil && out.sent {
		panic(http.ErrAbortHandler)
	}
	return err
}

// rowsOf yields rows that are in memory.
func rowsOf[T any](rows []T) func(context.Context) iter.Seq2[T, error] {
	return func(context.Context) iter.Seq2[T, error] {
		return func(yield func(T, error) bool) {
			slices.Values(rows)(func(row T) bool { return yield(row, nil) })
		}
	}
}
