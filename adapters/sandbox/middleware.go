package sandbox

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"

	"bankingapi/application/operator"
)

// ClockHeader has the time of the bank in every answer.
const ClockHeader = "Sandbox-Clock"

const (
	// operations is the path prefix of operations.
	operations = "/BankingApiV01/"
	// quotesPath is the path of quotes, and quotesName their name in a list of armed faults.
	quotesPath = "/quotes"
	quotesName = "quotes"
)

// meetsFaults reports whether requests to the path have faults and are recorded: those to
// operations and to quotes.
func meetsFaults(path string) bool { return strings.HasPrefix(path, operations) || path == quotesPath }

// gatewayPage is the answer of a gateway that lost the answer of the service.
const gatewayPage = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"

// Handler sends each request to the world of its key, or to the sandbox itself.
func (b *Sandbox) Handler(api http.Handler) http.Handler { return b.worlds.handler(b.middleware(api)) }

// middleware adds the time of the bank to every answer of the HTTP API. It records the requests
// to operations and quotes, and applies their faults.
func (b *Sandbox) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &recording{ResponseWriter: w, now: b.clock.text}
		if !meetsFaults(r.URL.Path) {
			answer.serve(next, r)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), metKey{}, answer)) // the caller keeps its own Body
		defer b.record(answer, r)()
		answer.serve(next, r)
		if !answer.done && slices.Contains(losing, answer.met.Name()) {
			answer.met = Fault{} // the fault applies only to an operation that was done
		}
		switch answer.met.Name() {
		case cutMiddle:
			_ = http.NewResponseController(w).Flush() // sends the part of the answer that was written
			panic(http.ErrAbortHandler)
		case cutAfter:
			panic(http.ErrAbortHandler)
		}
	})
}

// record keeps the part of the body that is read. It returns the function that adds the request
// and its answer to the log.
func (b *Sandbox) record(w *recording, r *http.Request) func() {
	var keys []string // without the prefix, as a body may have them
	for _, key := range r.Header.Values(keyHeader) {
		keys = append(keys, strings.TrimPrefix(key, operator.SandboxKeyPrefix))
	}
	begun := b.o.Machine()
	record := &request{
		ReceivedAt: begun, Clock: b.clock.text(),
		Method: r.Method, Path: mask(r.URL.Path, keys), Header: maskHeader(r.Header, keys),
	}
	var sent kept
	received := &recorded{Reader: io.TeeReader(r.Body, &sent), closer: r.Body}
	if r.ContentLength <= maxBody && r.Header.Get("Expect") == "" {
		received.length = r.ContentLength
	}
	r.Body = received
	return func() {
		received.readRest()
		record.Milliseconds = float64(b.o.Machine().Sub(begun).Microseconds()) / 1000
		record.Fault = w.met.String()
		record.Body = mask(strings.ToValidUTF8(sent.String(), "\uFFFD"), keys)
		record.Answer.Status = w.status
		record.Answer.Lost = w.loses()
		record.Answer.Header = maskHeader(w.header, keys)
		record.Answer.Body = mask(strings.ToValidUTF8(w.body.String(), "\uFFFD"), keys)
		b.log.add(record)
	}
}

// recorded is the body of a request that is recorded.
type recorded struct {
	io.Reader
	closer io.Closer
	length int64 // of a body that is recorded whole, although the handler may not have read it whole
}

// readRest reads what the handler has not read.
func (r *recorded) readRest() {
	if r.length > 0 {
		_, _ = io.CopyN(io.Discard, r, r.length)
		r.length = 0
	}
}

// Close implements io.Closer. The API closes a body before it answers over HTTP/2.
func (r *recorded) Close() error {
	r.readRest()
	return r.closer.Close()
}
