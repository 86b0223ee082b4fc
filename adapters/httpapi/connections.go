package httpapi

import (
	"container/list"
	"crypto/tls"
	"log"
	"math"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// mostConnections bounds the memory of a server: a connection of HTTP/2 without requests takes
	// 50 kB.
	mostConnections = 8192
	// leastIdle is how long a connection has at least for its next request. In HTTP/2 it is idle
	// before the end of its last answer has been sent.
	leastIdle = time.Second
)

// connections bounds how many connections a server has. Too many would use up the memory, or the
// descriptors that the database and the checks of health need. For a new connection beyond the
// limit, the connection closes that has waited longest for its first request, or else the one that
// has waited longest for its next one. If there is none, the server accepts no connection until
// there is.
type connections struct {
	limit    int
	errorLog *log.Logger

	mu sync.Mutex
	// room is signalled when a connection ends, or waits for a request.
	room *sync.Cond
	open map[net.Conn]*connection
	// fresh has the connections that wait for their first request, and idle those that wait for
	// their next one, the longest wait first.
	fresh, idle *list.List
}

// connection is an open connection. A connection that waits for a request has a place in a list.
type connection struct {
	conn  net.Conn
	waits *list.List
	place *list.Element
	since time.Time
}

func newConnections(errorLog *log.Logger) *connections {
	limit := mostConnections
	if most, ok := descriptors(); ok {
		limit = min(limit, most/3)
	}
	c := &connections{limit: max(limit, 1), errorLog: errorLog, open: make(map[net.Conn]*connection), fresh: list.New(), idle: list.New()}
	c.room = sync.NewCond(&c.mu)
	return c
}

// changed is ConnState of http.Server. For a new connection, net/http calls it before it accepts
// the next one.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateNew {
		c.makeRoom()
		added := &connection{conn: conn}
		c.open[conn] = added
		added.wait(c.fresh)
		return
	}
	known, isOpen := c.open[conn]
	if !isOpen { // it had to make room
		return
	}
	known.leave()
	switch state {
	case http.StateActive:
		return
	case http.StateIdle:
		known.wait(c.idle)
	default: // it has ended
		delete(c.open, conn)
	}
	c.room.Signal()
}

func (c *connection) wait(in *list.List) {
	c.waits = in
	c.place = in.PushBack(c)
	c.since = now()
}

func (c *connection) leave() {
	if c.waits != nil {
		c.waits.Remove(c.place)
		c.waits = nil
	}
}

// makeRoom waits until there is room for one more connection.
func (c *connections) makeRoom() {
	for len(c.open) >= c.limit {
		victim, wait := c.victim()
		if victim == nil {
			c.errorLog.Printf("too many connections: all %d have a request in progress, or have just had one, so the next one waits", len(c.open))
			c.waitForRoom(wait)
			continue
		}
		c.errorLog.Printf("too many connections: there are %d, so the one that waited longest for a request was closed", len(c.open))
		victim.leave()
		delete(c.open, victim.conn)
		raw := victim.conn
		if encrypted, ok := raw.(*tls.Conn); ok {
			raw = encrypted.NetConn() // to say goodbye can take seconds
		}
		_ = raw.Close()
	}
}

// victim returns the connection that must make room, or nil and how long to wait for one. The wait
// is 0 if only the end of a request helps.
func (c *connections) victim() (victim *connection, wait time.Duration) {
	oldest := c.fresh.Front()
	if oldest != nil {
		return oldest.Value.(*connection), 0
	}
	oldest = c.idle.Front()
	if oldest == nil {
		return nil, 0
	}
	victim = oldest.Value.(*connection)
	wait = leastIdle - now().Sub(victim.since)
	if wait > 0 {
		return nil, wait
	}
	return victim, 0
}

// waitForRoom waits for a signal, and no longer than the time if it is not 0.
func (c *connections) waitForRoom(most time.Duration) {
	if most > 0 {
		timer := time.AfterFunc(most, c.signal)
		defer timer.Stop()
	}
	c.room.Wait()
}

// signal makes makeRoom look again. It takes the lock, so that it cannot come before the wait.
func (c *connections) signal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.room.Signal()
}

// end lifts the limit: a server that ends accepts no more connections, and waits for nobody.
func (c *connections) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = math.MaxInt
	c.room.Signal()
}

func now() time.Time {
	return time.Now() //nolint:forbidigo // a connection has the time of the machine
}
