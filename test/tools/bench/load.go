package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	replayed      = []byte("\r\nIdempotent-Replayed: true\r\n")
)

// A load is one run of the load generator: HTTP/1.1 on persistent connections, one request at a
// time on each. Generator, service and database share the same cores, so it does little work:
// it sends prepared bytes and reads only status, length and body of a response.
//
// If its work has a rate, requests arrive as in a Poisson process, whether or not
// the service keeps up. The latency of a request then counts from the moment at
// which it was due, so a slow answer delays no later request unnoticed.
type load struct {
	addresses   []string // connections use them in turn
	key         string
	work        work
	connections int
	length      time.Duration
	waits       bool // a connection waits for a second after a 503, as Retry-After asks for
}

// A tally counts responses.
type tally struct {
	completed int // operations acknowledged within the run
	late      int // acknowledged after the end of the run
	missed    int // due within the run, but never sent: no connection was free
	rowless   int // those of both that store no row: refused operations and repeats
	statuses  map[int]int
	broken    int    // requests without a response, whose outcome is unknown
	example   string // a response that was not a completed operation
	latency   latencies
}

// failed returns the number of responses that were not a completed operation.
func (t *tally) failed() int {
	n := t.broken - t.completed - t.late
	for _, count := range t.statuses {
		n += count
	}
	return n
}

func (t *tally) merge(other *tally) {
	t.completed += other.completed
	t.late += other.late
	t.missed += other.missed
	t.rowless += other.rowless
	t.broken += other.broken
	for status, n := range other.statuses {
		t.statuses[status] += n
	}
	if t.example == "" {
		t.example = other.example
	}
	t.latency.merge(other.latency)
}

func newTally() *tally { return &tally{statuses: map[int]int{}} }

// run opens all connections, starts them together and returns when each has the
// response to its last request.
func (l load) run(ctx context.Context) (*tally, error) {
	clients := make([]*client, 0, l.connections)
	defer func() {
		for _, c := range clients {
			_ = c.conn.Close()
		}
	}()
	for i := range l.connections {
		c, err := l.client(ctx, i)
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}

	// Use at most one core: service and database need the rest, and more threads would only
	// wake up more often. A thread that waits for the next arrival uses none.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1 + min(1, l.work.rate)))
	start := time.Now()
	var due chan time.Time
	var running sync.WaitGroup
	if l.work.rate > 0 {
		due = make(chan time.Time, 2*l.work.rate*int(l.length/time.Second+1))
		running.Go(func() { l.arrive(ctx, start, due) })
	}
	for _, c := range clients {
		c.due = due
		running.Go(func() { c.run(ctx, start) })
	}
	running.Wait()
	total := newTally()
	for _, c := range clients {
		total.merge(c.tally)
	}
	return total, ctx.Err()
}

// client opens a connection.
func (l load) client(ctx context.Context, i int) (*client, error) {
	c := &client{load: l, address: l.addresses[i%len(l.addresses)], buffer: make([]byte, 8<<10), tally: newTally()}
	if err := c.dial(ctx); err != nil {
		return nil, err
	}
	seed := uint64(time.Now().UnixNano())
	c.request = l.work.request(c.address, l.key, rand.New(rand.NewPCG(seed, uint64(i))), &idSource{now: time.Now, connection: uint64(i)})
	return c, nil
}

// one sends one request and returns the ID of its operation.
func (l load) one(ctx context.Context) (id string, err error) {
	c, err := l.client(ctx, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.conn.Close() }()
	status, body, _, err := c.exchange(c.request.next())
	if err != nil {
		return "", err
	}
	_, after, found := bytes.Cut(c.answer, operationID)
	if !found || !bytes.Equal(body, completedBody) {
		return "", fmt.Errorf("%d %s", status, body)
	}
	line, _, _ := bytes.Cut(after, []byte("\r"))
	return string(line), nil
}

// arrive sends the times at which requests are due, when they have come.
func (l load) arrive(ctx context.Context, start time.Time, due chan<- time.Time) {
	defer close(due)
	runtime.LockOSThread() // sleeping blocks it
	defer runtime.UnlockOSThread()
	r := rand.New(rand.NewPCG(uint64(start.UnixNano()), 0))
	stop := start.Add(l.length)
	for at := start; ctx.Err() == nil; {
		at = at.Add(time.Duration(r.ExpFloat64() / float64(l.work.rate) * float64(time.Second)))
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
	address string
	due     <-chan time.Time // nil if the work has no rate
	conn    net.Conn
	request *request
	buffer  []byte
	answer  []byte // the last response, in the buffer
	tally   *tally
}

func (c *client) dial(ctx context.Context) error {
	dialer := net.Dialer{Timeout: answerLimit}
	conn, err := dialer.DialContext(ctx, "tcp", c.address)
	if err != nil {
		return err
	}
	c.conn = conn
	// Use one deadline for the whole run, because setting it for each request costs a timer.
	return conn.SetDeadline(time.Now().Add(c.length + answerLimit))
}

func (c *client) run(ctx context.Context, start time.Time) {
	stop := start.Add(c.length)
	for begun := time.Now(); ctx.Err() == nil; {
		if c.due != nil {
			var more bool
			if begun, more = <-c.due; !more {
				return
			}
			if now := time.Now(); now.After(stop) { // the service is far behind
				c.tally.missed++
				c.tally.latency.record(now.Sub(begun))
				continue
			}
		} else if !begun.Before(stop) {
			return
		}
		status, body, closing, err := c.exchange(c.request.next())
		done := time.Now()
		c.count(status, body, err, done.Sub(begun), done.Sub(start))
		if c.waits && status == http.StatusServiceUnavailable {
			pause(ctx, time.Second)
			done = time.Now()
		}
		begun = done
		if err == nil && !closing {
			continue
		}
		_ = c.conn.Close()
		if c.dial(ctx) != nil {
			return
		}
	}
}

func (c *client) count(status int, body []byte, err error, took, since time.Duration) {
	t := c.tally
	if err != nil {
		t.broken++
		if t.example == "" {
			t.example = err.Error()
		}
		return
	}
	t.statuses[status]++
	switch {
	case status == 200 && c.decided(body):
		if bytes.HasPrefix(body, refusedStart) || bytes.Contains(c.answer, replayed) {
			t.rowless++
		}
		if since > c.length {
			t.late++
		} else {
			t.completed++
		}
		if since <= c.length || c.due != nil { // with a rate, the slowest answers count too
			t.latency.record(took)
		}
	default:
		if t.example == "" {
			t.example = fmt.Sprintf("%d %s", status, body)
		}
	}
}

// decided reports whether the body is a response that counts.
func (c *client) decided(body []byte) bool {
	switch {
	case bytes.Equal(body, completedBody):
		return true
	case bytes.Equal(body, recordedBody):
		return c.work.mixed
	case bytes.HasPrefix(body, refusedStart):
		return c.work.mixed || c.work.refused > 0
	}
	return false
}

var (
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
	closeHeader   = []byte("\r\nConnection: close\r\n")
	operationID   = []byte("\r\nOperation-Id: ")
)

// exchange sends one request and reads its response. The body is valid until the next call.
func (c *client) exchange(request []byte) (status int, body []byte, closing bool, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return 0, nil, false, err
	}
	have := 0
	for {
		n, err := c.conn.Read(c.buffer[have:])
		have += n
		c.answer = c.buffer[:have]
		if status, body, closing, whole, bad := parseAnswer(c.answer); whole || bad != nil {
			return status, body, closing, bad
		}
		if err != nil {
			return 0, nil, false, err
		}
		if have == len(c.buffer) {
			return 0, nil, false, errors.New("an answer longer than the buffer")
		}
	}
}

// parseAnswer parses the parts of a response that a load generator needs. whole reports whether
// the response is complete. Responses must have a Content-Length, as those of Go's server do.
func parseAnswer(b []byte) (status int, body []byte, closing, whole bool, err error) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return 0, nil, false, false, nil
	}
	head := b[:end+2]
	if len(head) < 12 || string(head[:9]) != "HTTP/1.1 " {
		return 0, nil, false, false, errors.New("not an HTTP/1.1 answer")
	}
	if status, err = strconv.Atoi(string(head[9:12])); err != nil {
		return 0, nil, false, false, errors.New("an answer without a status")
	}
	_, after, found := bytes.Cut(head, contentLength)
	if !found {
		return 0, nil, false, false, errors.New("an answer without Content-Length")
	}
	length := 0
	for _, digit := range after[:bytes.IndexByte(after, '\r')] {
		length = length*10 + int(digit-'0')
	}
	body = b[end+4:]
	if len(body) < length {
		return 0, nil, false, false, nil
	}
	if len(body) > length {
		return 0, nil, false, false, errors.New("an answer longer than its Content-Length")
	}
	return status, body, bytes.Contains(head, closeHeader), true, nil
}

// String lists the answers by status: "200 x 5012, 503 x 17, none x 2".
func (t *tally) String() string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(t.statuses)) {
		parts = append(parts, fmt.Sprintf("%d x %d", status, t.statuses[status]))
	}
	if t.broken > 0 {
		parts = append(parts, fmt.Sprintf("none x %d", t.broken))
	}
	return strings.Join(parts, ", ")
}
