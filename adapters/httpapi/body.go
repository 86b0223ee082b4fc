package httpapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"bankingapi/domain/fault"
)

// checkMedia checks that the body is JSON in UTF-8 without a content coding
// (the contract, section 1.2).
func checkMedia(h http.Header) *problem {
	if !isJSON(h["Content-Type"]) {
		return bare(http.StatusUnsupportedMediaType, fault.UnsupportedMediaType,
			"Content-Type must be application/json, with charset utf-8 or without one, or absent.").with("Accept", "application/json")
	}
	encodings := h["Content-Encoding"]
	if len(encodings) > 0 && !isIdentity(encodings) {
		return bare(http.StatusUnsupportedMediaType, fault.UnsupportedContentEncoding,
			"The body must have no Content-Encoding but identity.").with("Accept-Encoding", "identity")
	}
	return nil
}

func isJSON(types []string) bool {
	switch {
	case len(types) == 0:
		return true
	case len(types) > 1:
		return false
	case types[0] == "application/json" || types[0] == "":
		return true
	}
	mediaType, parameters, err := mime.ParseMediaType(types[0])
	if err != nil || mediaType != "application/json" {
		return false
	}
	charset, given := parameters["charset"]
	return len(parameters) == 0 || given && len(parameters) == 1 && strings.EqualFold(charset, "utf-8")
}

// isIdentity reports whether every content coding is identity, which is none.
func isIdentity(encodings []string) bool {
	for coding := range strings.SplitSeq(strings.Join(encodings, ","), ",") {
		coding = strings.TrimSpace(coding)
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return false
		}
	}
	return true
}

// receive reads the body into a buffer that grows with the bytes that arrive: a
// Content-Length is only a promise.
func (a *api) receive(x *exchange, r *http.Request, into *bytes.Buffer) *problem {
	if r.ContentLength > a.BodyLimit {
		return x.tooLarge(r, a.BodyLimit)
	}
	refused := a.openBody(x, r)
	if refused != nil {
		return refused
	}
	var err error
	x.BytesIn, err = into.ReadFrom(r.Body)
	ofHost, isLess := errors.AsType[*http.MaxBytesError](err)
	switch {
	case errors.Is(err, errBodies):
		return x.noRoom(r)
	case isLess:
		return x.tooLarge(r, ofHost.Limit)
	case err != nil && isGone(r, err):
		x.abandon(err)
	case err != nil:
		p := refusal(http.StatusBadRequest, fault.InvalidJSON, "The body does not end where HTTP says it ends.")
		p.stateless = true // the whole body may be that of an earlier attempt
		return p
	case x.BytesIn > a.BodyLimit:
		return x.tooLarge(r, a.BodyLimit)
	}
	return nil
}

// openBody makes the body of a request count from now on, unless it does already.
func (a *api) openBody(x *exchange, r *http.Request) *problem {
	if x.body.bodies != nil {
		return nil
	}
	if err := x.body.open(a.Bodies, x.Subscription, r, a.BodyLimit); err != nil {
		return x.noRoom(r)
	}
	r.Body = &x.body
	return nil
}

// drainLimit is how much of a body that is refused is read and dropped after the
// answer, so that a caller who sends everything before it reads sees the answer.
const drainLimit = 16 << 20

func (x *exchange) tooLarge(r *http.Request, limit int64) *problem {
	p := bare(http.StatusRequestEntityTooLarge, fault.BodyTooLarge, "The body must have at most "+strconv.FormatInt(limit, 10)+" bytes.")
	p.unread = x.restOf(r)
	return p
}

// restOf returns the body whose rest is read after the answer, or nil if nothing is read. A
// caller that waits for "100 Continue" has sent nothing yet, and one that has far more to send
// is cut. HTTP/2 ends the stream, not the connection.
func (x *exchange) restOf(r *http.Request) io.Reader {
	if r.Header["Expect"] != nil || r.ContentLength > drainLimit || r.ProtoMajor != 1 {
		return nil
	}
	if x.body.whole != nil {
		return x.body.whole
	}
	return r.Body
}

// sendBeforeBody answers at once, before it reads the rest of the body.
func (x *exchange) sendBeforeBody(status int, answer []byte, body io.Reader) {
	controller := http.NewResponseController(x)
	_ = controller.EnableFullDuplex() // otherwise net/http reads the body before it sends the answer
	x.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	x.send(status, problemType, answer)
	if controller.Flush() == nil {
		_, _ = io.CopyN(io.Discard, body, drainLimit) // it was answered: an error changes nothing
	}
}

// isGone reports whether the caller has left or was too slow.
func isGone(r *http.Request, err error) bool {
	var network net.Error // a timeout too
	return r.Context().Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network)
}

// shareOfAll is the part of a bound that one subscription may have: one in four.
const shareOfAll = 4

// mostRequests is how many requests of HTTP/2 may be in progress on all connections together. Each
// takes about 10 kB, and up to 90 kB with many headers, also while it waits for a caller that does not
// read its answer. In HTTP/1.1 a connection has one request, so the limit of connections bounds these.
const mostRequests = 8 << 10

// bodyStep is how many bytes a body of unknown length takes at a time, or the limit of one body
// if that is smaller.
const bodyStep = 64 << 10

// errBodies is why a body is not read, or not read further.
var errBodies = errors.New("too many bytes of bodies in progress")

// errRequests is why a request is cut without an answer.
var errRequests = errors.New("too many requests of HTTP/2 in progress")

// Bodies counts the requests of HTTP/2 in progress and the bytes of their bodies, so that callers
// who send or read slowly, or never finish, cannot use up the memory of the service. It is safe for
// concurrent use.
type Bodies struct{ bytes, requests bound }

// NewBodies returns a bound for the bodies of all subscriptions together. One subscription may have
// a quarter of it. 0 means no limit.
func NewBodies(limit int64) *Bodies {
	return &Bodies{bytes: bound{limit: limit}, requests: bound{limit: mostRequests}}
}

// bound counts what all subscriptions have taken, and each of them.
type bound struct {
	limit int64 // of all subscriptions together; 0 means no limit

	mutex  sync.Mutex
	taken  int64
	byName map[string]int64 // of each subscription that has taken something
}

// take counts more for a subscription. It takes nothing and returns false if that is too much.
func (b *bound) take(name string, more int64) bool {
	if b.limit == 0 {
		return true
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.taken+more > b.limit || b.byName[name]+more > b.limit/shareOfAll {
		return false
	}
	if b.byName == nil {
		b.byName = make(map[string]int64)
	}
	b.taken += more
	b.byName[name] += more
	return true
}

// give returns what a request has taken.
func (b *bound) give(name string, taken int64) {
	if b.limit == 0 || taken == 0 {
		return
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.taken -= taken
	b.byName[name] -= taken
	if b.byName[name] == 0 {
		delete(b.byName, name)
	}
}

// body reads the body of a request up to the limit of one body. It takes the bytes of a
// Content-Length at once, and those of a body of unknown length in steps while they arrive.
// They stay taken until the request is answered.
type body struct {
	io.LimitedReader
	whole  io.ReadCloser // without a limit
	bodies *Bodies
	name   string // of the subscription
	step   int64
	taken  int64
	read   int64
}

// open begins to read a body. It returns errBodies if there is no room for its Content-Length.
func (b *body) open(all *Bodies, name string, r *http.Request, limit int64) error {
	*b = body{
		LimitedReader: io.LimitedReader{R: r.Body, N: limit + 1}, whole: r.Body,
		bodies: all, name: name, step: min(bodyStep, limit),
	}
	if r.ContentLength > 0 {
		return b.take(min(r.ContentLength, limit)) // of a larger one no more is read
	}
	return nil
}

// Close implements io.Closer.
func (b *body) Close() error { return b.whole.Close() }

func (b *body) take(bytes int64) error {
	if !b.bodies.bytes.take(b.name, bytes) {
		return errBodies
	}
	b.taken += bytes
	return nil
}

// Read implements io.Reader. Its error is errBodies if there is no room for the next step.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.LimitedReader.Read(into)
	b.read += int64(n)
	for b.read > b.taken {
		refused := b.take(b.step)
		if refused != nil {
			return n, refused
		}
	}
	return n, err
}

// end gives back what the body has taken.
func (b *body) end() {
	if b.bodies != nil {
		b.bodies.bytes.give(b.name, b.taken)
	}
	*b = body{}
}

// noRoom is the answer to a request whose body is not read, or not read further.
func (x *exchange) noRoom(r *http.Request) *problem {
	p := refusal(http.StatusServiceUnavailable, fault.Overloaded,
		"The service has too many requests in progress. This request changed nothing.")
	p.stateless = true // an earlier attempt may have succeeded
	p.unread = x.restOf(r)
	return p
}

// largeBody is the size in bytes from which a body is decoded in turn. To decode a smaller one
// takes less than a millisecond.
const largeBody = 32 << 10

// decodedAtOnce is how many large bodies of a subscription are decoded at the same time. To decode a
// thousand records takes some milliseconds of processor time. If a subscription did that on many
// connections at the same time, each step of the requests of others would wait for all of them.
const decodedAtOnce = 1
