package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// answerLimit is the maximum time for one response, so that a hanging service
// ends a run instead of blocking it.
const answerLimit = 30 * time.Second

// completedBody is the response of a completed operation. In mixed work, responses of recorded
// and refused operations count too, because they were decided.
var (
	completedBody = []byte(`{"Data":{"State":2}}`)
	recordedBody  = []byte(`{"Data":{"State":1}}`)
	refusedStart  = []byte(`{"Data":{"State":8}`)
)

// A load is one run of the load generator: HTTP/1.1 on persistent connections, one request at a
// time on each. Generator, service and database share the same cores, so it does little work:
// it reads only what it needs of a response.
//
// If its work has a rate, requests arrive as in a Poisson process, whether or not
// the service keeps up. The latency of a request then counts from the moment at
// which it was due, so a slow answer delays no later request unnoticed.
type load struct {
	Addresses   []string // connections use them in turn
	Keys        []string // of subscriptions, likewise
	Work        work
	Connections int
	Length      time.Duration
	Polite      bool // a connection waits for a second after a 503, as Retry-After asks for
}

// A tally counts responses.
type tally struct {
	Completed int // operations acknowledged within the run
	Late      int // acknowledged after the end of the run
	Missed    int // due within the run, but never sent: no connection was free
	Rowless   int // those of both that store no row: refused operations and repeats
	Statuses  map[int]int
	Broken    int    // requests without a response, whose outcome is unknown
	Example   string // a response that was not a completed operation
	Latency   []time.Duration
	Records   float64 // stored per second
}

// failed returns the number of responses that were not a completed operation.
func (t *tally) failed() (n int) {
	for _, count := range t.Statuses {
		n += count
	}
	return max(0, n+t.Broken-t.Completed-t.Late) // other sides than the service tell no statuses
}

func (t *tally) merge(other *tally) {
	t.Completed += other.Completed
	t.Late += other.Late
	t.Missed += other.Missed
	t.Rowless += other.Rowless
	t.Broken += other.Broken
	for status, n := range other.Statuses {
		t.answered(status, n)
	}
	if t.Example == "" {
		t.Example = other.Example
	}
	t.Latency = append(t.Latency, other.Latency...)
}

func (t *tally) answered(status, n int) {
	if t.Statuses == nil {
		t.Statuses = map[int]int{}
	}
	t.Statuses[status] += n
}

// all is the number of requests.
func (t *tally) all() int { return t.Completed + t.Late + t.Missed + t.failed() }

// String lists the answers by status: "200 x 5012, 503 x 17, none x 2".
func (t *tally) String() string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(t.Statuses)) {
		parts = append(parts, fmt.Sprintf("%d x %d", status, t.Statuses[status]))
	}
	return strings.Join(append(parts, fmt.Sprintf("none x %d", t.Broken)), ", ")
}

// run opens all connections, starts them together and returns when each has the
// response to its last request.
func (l load) run(ctx context.Context) (*tally, error) {
	var clients []*client
	defer func() {
		for _, c := range clients {
			_ = c.conn.Close()
		}
	}()
	for i := range l.Connections {
		c, err := l.client(ctx, i)
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}

	// Use at most one core: service and database need the rest, and more threads would only
	// wake up more often. A thread that waits for the next arrival uses none.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1 + min(1, l.Work.Rate)))
	start := time.Now()
	var due chan time.Time
	var running sync.WaitGroup
	if l.Work.Rate > 0 {
		due = make(chan time.Time, 2*l.Work.Rate*int(l.Length/time.Second+1))
		running.Go(func() { l.arrive(ctx, start, due) })
	}
	for _, c := range clients {
		c.due = due
		running.Go(func() { c.run(ctx, start) })
	}
	running.Wait()
	total := &tally{}
	for _, c := range clients {
		total.merge(&c.tally)
	}
	total.Records = float64(total.Completed*l.Work.Records) / l.Length.Seconds()
	return total, ctx.Err()
}

// arrive sends the times at which requests are due, when they have come.
func (l load) arrive(ctx context.Context, start time.Time, due chan<- time.Time) {
	defer close(due)
	runtime.LockOSThread() // sleeping blocks it
	defer runtime.UnlockOSThread()
	r := rand.New(rand.NewPCG(uint64(start.UnixNano()), 0))
	stop := start.Add(l.Length)
	for at := start; ctx.Err() == nil; {
		at = at.Add(time.Duration(r.ExpFloat64() / float64(l.Work.Rate) * float64(time.Second)))
		if at.After(stop) {
			return
		}
		sleepUntil(at)
		due <- at
	}
}

// client is one connection.
type client struct {
	load
	requests requests
	due      <-chan time.Time // nil if the work has no rate
	conn     net.Conn
	reader   *bufio.Reader
	tally    tally
}

// client opens a connection.
func (l load) client(ctx context.Context, i int) (*client, error) {
	address := l.Addresses[i%len(l.Addresses)]
	c := &client{load: l, reader: bufio.NewReader(nil), requests: requests{
		work: l.Work, ids: ids{now: time.Now, connection: uint64(i)}, host: address, key: l.Keys[i%len(l.Keys)],
		random: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(i))),
	}}
	return c, c.dial(ctx)
}

func (c *client) dial(ctx context.Context) error {
	dialer := net.Dialer{Timeout: answerLimit}
	conn, err := dialer.DialContext(ctx, "tcp", c.requests.host)
	if err != nil {
		return err
	}
	c.conn = conn
	c.reader.Reset(conn)
	// Use one deadline for the whole run, because setting it for each request costs a timer.
	return conn.SetDeadline(time.Now().Add(c.Length + answerLimit))
}

func (c *client) run(ctx context.Context, start time.Time) {
	stop := start.Add(c.Length)
	for begun := time.Now(); ctx.Err() == nil; {
		if c.due != nil {
			var more bool
			begun, more = <-c.due
			if !more {
				return
			}
			now := time.Now()
			if now.After(stop) { // the service is far behind
				c.tally.Missed++
				c.tally.Latency = append(c.tally.Latency, now.Sub(begun))
				continue
			}
		} else if !begun.Before(stop) {
			return
		}
		a, err := c.exchange()
		done := time.Now()
		c.count(a, err, done.Sub(begun), done.Sub(start))
		if c.Polite && a.status == http.StatusServiceUnavailable {
			pause(ctx, time.Second)
			done = time.Now()
		}
		begun = done
		if err == nil && !a.closing {
			continue
		}
		_ = c.conn.Close()
		if c.dial(ctx) != nil {
			return
		}
	}
}

func (c *client) count(a answer, err error, took, since time.Duration) {
	t := &c.tally
	if err != nil {
		t.Broken++
		t.Example = err.Error()
		return
	}
	t.answered(a.status, 1)
	refused := bytes.HasPrefix(a.body, refusedStart)
	decided := c.Work.Waits > 0 || bytes.Equal(a.body, completedBody) || c.Work.Mixed && bytes.Equal(a.body, recordedBody) || (c.Work.Mixed || c.Work.Refused > 0) && refused
	if a.status != http.StatusOK || !decided {
		t.Example = fmt.Sprintf("%d %s", a.status, a.body)
		return
	}
	if refused || a.replayed {
		t.Rowless++
	}
	if since > c.Length {
		t.Late++
	} else {
		t.Completed++
	}
	if since <= c.Length || c.due != nil { // with a rate, the slowest answers count too
		t.Latency = append(t.Latency, took)
	}
}

// exchange sends the next request and reads its response.
func (c *client) exchange() (answer, error) {
	if _, err := c.conn.Write(c.requests.next()); err != nil {
		return answer{}, err
	}
	return readAnswer(c.reader)
}

// An answer has the parts of a response that a load generator needs.
type answer struct {
	status            int
	body              []byte // valid until the next one is read
	closing, replayed bool
	operation         [36]byte // its Operation-Id
}

// readAnswer needs a Content-Length, as the responses of Go's server have for short bodies.
func readAnswer(r *bufio.Reader) (a answer, err error) {
	length := -1
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return a, err
		}
		line = bytes.TrimSuffix(line, []byte("\r\n"))
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case a.status == 0:
			if len(line) < 12 || string(line[:9]) != "HTTP/1.1 " {
				return a, fmt.Errorf("not an HTTP/1.1 answer: %q", line)
			}
			a.status, err = strconv.Atoi(string(line[9:12]))
		case string(name) == "Content-Length":
			length, err = strconv.Atoi(string(value))
		case string(name) == "Connection":
			a.closing = string(value) == "close"
		case string(name) == "Idempotent-Replayed":
			a.replayed = string(value) == "true"
		case string(name) == "Operation-Id":
			copy(a.operation[:], value)
		}
		if err != nil {
			return a, err
		}
	}
	if length < 0 {
		return a, errors.New("an answer without Content-Length")
	}
	if a.body, err = r.Peek(length); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	_, _ = r.Discard(len(a.body)) // the bytes remain where they are until the next read
	return a, err
}

// pause waits, or returns when the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
