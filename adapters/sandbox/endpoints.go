package sandbox

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/application/buyfund"
	"bankingapi/domain/fault"
)

// Endpoints returns the endpoints of the sandbox, for httpapi.Options.Routes.
func (b *Sandbox) Endpoints() map[string]func(*http.Request) (any, error) {
	return map[string]func(*http.Request) (any, error){
		"GET /_sandbox/clock": func(*http.Request) (any, error) { return map[string]string{"now": b.clock.text()}, nil },
		"PUT /_sandbox/clock": b.serveMove,
		"POST /_sandbox/reset": func(r *http.Request) (any, error) {
			err := b.Reset(r.Context())
			return map[string]string{"now": b.clock.text()}, err
		},
		"POST /_sandbox/seed": func(r *http.Request) (any, error) {
			defer b.o.CalendarChanged()
			return importSeed(r.Context(), b.o.Office, r.Body)
		},
		"GET /_sandbox/requests": func(r *http.Request) (any, error) {
			after, err := number(r, "after", newestRequests)
			return map[string]any{"requests": b.log.page(after)}, err
		},
		"GET /_sandbox/book": b.serveBook,
		"GET /_sandbox/receipt-key": func(*http.Request) (any, error) {
			return map[string]string{"key": b.o.ReceiptKey()}, nil
		},
		"GET /_sandbox/faults":    func(*http.Request) (any, error) { return b.faults.list(), nil },
		"PUT /_sandbox/faults":    b.serveFaults,
		"DELETE /_sandbox/faults": func(*http.Request) (any, error) { b.faults.reset(); return b.faults.list(), nil },
		"POST " + keysPath:        func(r *http.Request) (any, error) { return b.keys.make(r.Context()) },
		"DELETE " + keysPath:      func(r *http.Request) (any, error) { return b.keys.delete(r) },
	}
}

func (b *Sandbox) serveMove(r *http.Request) (any, error) {
	var move struct {
		Now     *string `json:"now"`
		Advance *string `json:"advance"`
	}
	if err := decode(r.Body, &move); err != nil {
		return nil, err
	}
	var moved buyfund.Settlement
	var err error
	switch {
	case (move.Now == nil) == (move.Advance == nil):
		return nil, refuse(fault.Fault{Code: fault.Required, Detail: `Send either {"now":"2026-12-01T09:00:00+03:00"} or {"advance":"24h"}.`})
	case move.Now != nil:
		to, invalid := time.Parse(time.RFC3339, *move.Now)
		if invalid != nil {
			return nil, refuse(fault.Fault{Pointer: "/now", Code: fault.InvalidFormat, Detail: "Must be a time of RFC 3339, like 2026-12-01T09:00:00+03:00."})
		}
		moved, err = b.MoveClock(r.Context(), to)
	default:
		by, invalid := time.ParseDuration(*move.Advance)
		if invalid != nil {
			return nil, refuse(fault.Fault{Pointer: "/advance", Code: fault.InvalidFormat, Detail: "Must be a duration in hours, minutes or seconds, like 24h or 1h30m."})
		}
		moved, err = b.AdvanceClock(r.Context(), by)
	}
	return map[string]any{"now": b.clock.text(), "settled": map[string]int{"completed": moved.Completed, "failed": moved.Failed}}, err
}

func (b *Sandbox) serveFaults(r *http.Request) (any, error) {
	var list []armed
	if err := decode(r.Body, &list); err != nil {
		return nil, err
	}
	err := b.faults.arm(list)
	return b.faults.list(), err
}

func (b *Sandbox) serveBook(r *http.Request) (any, error) {
	customer, err := number(r, "customer", 0)
	if err != nil {
		return nil, err
	}
	b.reading.Lock() // one at a time, because each takes memory
	defer b.reading.Unlock()
	left := maxBook
	book := make(map[string][]json.RawMessage)
	for _, kind := range []string{"prices", "holdings", "accounts", "calendar", "sales", "postings", "notifications"} {
		var rows bytes.Buffer
		if err := bookfile.Export(r.Context(), b.o.Office, kind, bookfile.NDJSON, bookfile.Query{Filter: backoffice.Query{CustomerNo: customer}}, &limited{&rows, &left}, nil); err != nil {
			return nil, err
		}
		book[kind] = []json.RawMessage{}
		for line := range bytes.Lines(rows.Bytes()) {
			book[kind] = append(book[kind], line)
		}
	}
	return book, nil
}

// maxBook limits the size of an answer with the book.
const maxBook = 4 << 20

// limited writes at most the bytes that are left.
type limited struct {
	io.Writer
	left *int
}

func (l *limited) Write(p []byte) (int, error) {
	*l.left -= len(p)
	if *l.left < 0 {
		return 0, refuse(fault.Fault{
			Code:   fault.OutOfRange,
			Detail: "The book is larger than 4 MiB. Ask for one customer with ?customer=1001, or empty it with POST /_sandbox/reset.",
		})
	}
	return l.Writer.Write(p)
}

// number reads a number from the query, which has nothing else.
func number(r *http.Request, name string, ifAbsent int64) (int64, error) {
	for given, values := range r.URL.Query() { // without its number the answer would have everything
		if given != name || len(values) > 1 {
			return 0, refuse(fault.Fault{Code: fault.InvalidFormat, Detail: "The query may have " + name + ", in small letters and once."})
		}
	}
	text := r.URL.Query().Get(name)
	if text == "" {
		return ifAbsent, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, refuse(fault.Fault{Code: fault.NotAnInteger, Detail: "The parameter " + name + " must be a number."})
	}
	return n, nil
}

func refuse(faults ...fault.Fault) error {
	return fault.New(fault.Invalid, "The request breaks a rule.", faults...)
}
