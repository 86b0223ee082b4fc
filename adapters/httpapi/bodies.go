package httpapi

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"bankingapi/domain/fault"
)

// shareOfBodies is the part of Options.BodiesLimit that one subscription may have: one in four.
const shareOfBodies = 4

// bodyStep is how many bytes a body of unknown length takes at a time, or the limit of one body
// if that is smaller.
const bodyStep = 64 << 10

// errBodies is why a body is not read, or not read further.
var errBodies = errors.New("too many bytes of bodies in progress")

// bodies counts the bytes of the bodies in progress, so that callers who send slowly or never
// finish cannot use up the memory of the service. It is safe for concurrent use.
type bodies struct {
	limit int64 // of all subscriptions together; 0 means no limit

	mutex  sync.Mutex
	taken  int64
	byName map[string]int64 // of each subscription with a body in progress
}

// take counts more bytes for a subscription. It takes none and returns false if they are too many.
func (b *bodies) take(name string, bytes int64) bool {
	if b.limit == 0 {
		return true
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.taken+bytes > b.limit || b.byName[name]+bytes > b.limit/shareOfBodies {
		return false
	}
	if b.byName == nil {
		b.byName = make(map[string]int64)
	}
	b.taken += bytes
	b.byName[name] += bytes
	return true
}

// give returns what a body has taken.
func (b *bodies) give(name string, bytes int64) {
	if b.limit == 0 || bytes == 0 {
		return
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.taken -= bytes
	b.byName[name] -= bytes
	if b.byName[name] == 0 {
		delete(b.byName, name)
	}
}

// body reads the body of a request up to the limit of one body. It takes the bytes of a
// Content-Length at once, and those of a body of unknown length in steps while they arrive.
// They stay taken until the request is answered.
type body struct {
	io.LimitedReader
	bodies *bodies
	name   string // of the subscription
	step   int64
	taken  int64
	read   int64
}

// open begins to read a body. It returns errBodies if there is no room for its Content-Length.
func (b *body) open(all *bodies, name string, r *http.Request, limit int64) error {
	*b = body{LimitedReader: io.LimitedReader{R: r.Body, N: limit + 1}, bodies: all, name: name, step: min(bodyStep, limit)}
	if r.ContentLength > 0 {
		return b.take(r.ContentLength)
	}
	return nil
}

func (b *body) take(bytes int64) error {
	if !b.bodies.take(b.name, bytes) {
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
		if refused := b.take(b.step); refused != nil {
			return n, refused
		}
	}
	return n, err
}

// close gives back what the body has taken.
func (b *body) close() {
	if b.bodies != nil {
		b.bodies.give(b.name, b.taken)
	}
	*b = body{}
}

// noRoom is the answer to a request whose body is not read, or not read further.
func noRoom(r *http.Request) *problem {
	p := refusal(http.StatusServiceUnavailable, fault.Overloaded,
		"The service has too many requests in progress. This request was not read and changed nothing.")
	p.stateless = true // an earlier attempt may have succeeded
	p.unread = restOf(r)
	return p
}
