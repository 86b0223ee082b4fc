package sandbox

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// ClockHeader has the time of the bank in every answer.
const ClockHeader = "Sandbox-Clock"

// operations begin with this path. Only they have faults and are recorded.
const operations = "/BankingApiV01/"

// Middleware gives every answer the time of the bank, records the requests to
// operations, and makes them fail as they have ordered. next is the HTTP API.
func (b *Sandbox) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &recording{ResponseWriter: w, clock: b.o.Clock, zone: b.o.Zone}
		if !strings.HasPrefix(r.URL.Path, operations) {
			next.ServeHTTP(answer, r)
			return
		}
		b.serve(answer, r, next)
	})
}

func (b *Sandbox) serve(w *recording, r *http.Request, next http.Handler) {
	keys := r.Header.Values(keyHeader)
	record := &Request{
		ReceivedAt: b.o.Clock.real(), Clock: show(b.o.Clock.Now(), b.o.Zone),
		Method: r.Method, Path: mask(r.URL.Path, keys), Header: maskHeader(r.Header, keys),
	}
	begun := b.o.Clock.real()
	sent := &beginning{ReadCloser: r.Body}
	r = r.WithContext(r.Context()) // the caller keeps its own Body
	r.Body = sent
	length, waits := r.ContentLength, r.Header.Get("Expect") != ""
	defer func() {
		if length > 0 && length <= maxBody && !waits { // an answer may not need the body
			_, _ = io.CopyN(io.Discard, sent, length)
		}
		record.Milliseconds = float64(b.o.Clock.real().Sub(begun).Microseconds()) / 1000
		record.Body = mask(textual(sent.kept.Bytes()), keys)
		record.Answer.Status = w.status
		record.Answer.Header = maskHeader(w.header, keys)
		record.Answer.Body = mask(textual(w.body.Bytes()), keys)
		b.requests.add(record)
	}()

	o, err := b.orderOf(r)
	record.Fault = o.String()
	r = r.WithContext(context.WithValue(r.Context(), orderKey{}, order{o, err}))
	switch o.name {
	case slow:
		select {
		case <-time.After(o.delay):
		case <-r.Context().Done():
		}
	case cutBefore:
		panic(http.ErrAbortHandler)
	case cutAfter:
		record.Answer.Lost = true
		w.ResponseWriter = lost{http.Header{}}
		next.ServeHTTP(w, r)
		panic(http.ErrAbortHandler)
	}
	next.ServeHTTP(w, r)
}
