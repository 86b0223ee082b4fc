// Package pgproxy is a network between a program and Postgres that a test can break:
// connections are cut, at a commit if the test wants that, held or refused.
package pgproxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// Proxy forwards the connections between a service and Postgres and injects
// network faults. It parses the protocol, so that it can act on a commit.
type Proxy struct {
	DSN string // of the database through the proxy

	network, address string
	listener         net.Listener
	running          sync.WaitGroup
	// BeforeCommit and AfterCommit are the numbers of writing transactions to cut next: before
	// the server gets the commit, or before the service gets the answer to it.
	BeforeCommit, AfterCommit atomic.Int32
	// Cuts is the number of transactions that were cut.
	Cuts atomic.Int32
	// Split adds a Sync after each command of a pipeline, as some middleboxes
	// do. Commands outside a transaction are then committed one by one.
	Split atomic.Bool

	links  sync.Map    // the open *links
	closed atomic.Bool // new connections are closed at once

	mu      sync.Mutex
	stalled chan struct{} // closed when the stall ends; nil if there is none
}

// link is one connection through the proxy.
type link struct {
	service, server net.Conn
	// ends tells for each Sync that the server got whether the service sent it.
	// The service must not get the answers to the others.
	ends chan bool
}

// maxEnds is larger than the number of Syncs without an answer: a batch has tens of statements.
const maxEnds = 10_000

// New returns a proxy to a database whose DSN is a URL. It ends with the test.
func New(t testing.TB, dsn string) *Proxy {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	p := new(Proxy)
	p.network, p.address = pgconn.NetworkAddress(config.Host, config.Port)
	p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u, err := url.Parse(dsn)
	require.NoError(t, err, "the proxy needs a DSN in URL form")
	query := u.Query()
	query.Del("host")
	query.Del("port")
	query.Set("sslmode", "disable")
	u.RawQuery = query.Encode()
	u.Host = p.listener.Addr().String()
	p.DSN = u.String()
	p.running.Go(p.serve)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.Flow()
		p.Refuse()
		p.running.Wait()
	})
	return p
}

func (p *Proxy) serve() {
	for {
		service, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(p.network, p.address)
		if err != nil {
			reset(service)
			continue
		}
		l := &link{service, server, make(chan bool, maxEnds)}
		p.links.Store(l, true)
		if p.closed.Load() {
			p.cut(l)
			continue
		}
		p.running.Go(func() { p.toServer(l) })
		p.running.Go(func() { p.toService(l) })
	}
}

// reset closes a connection with RST, as a crashed peer does.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func (p *Proxy) cut(l *link) {
	p.links.Delete(l)
	reset(l.service)
	reset(l.server)
}

// CutAll closes all open connections.
func (p *Proxy) CutAll() {
	p.links.Range(func(l, _ any) bool {
		p.cut(l.(*link))
		return true
	})
}

// Refuse closes all connections and every new one until Accept.
func (p *Proxy) Refuse() {
	p.closed.Store(true)
	p.CutAll()
}

// Accept lets connections through again.
func (p *Proxy) Accept() { p.closed.Store(false) }

// Stall holds all bytes in both directions until Flow, like a network that drops packets.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled == nil {
		p.stalled = make(chan struct{})
	}
}

// Flow ends a Stall.
func (p *Proxy) Flow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
}

func (p *Proxy) wait() {
	p.mu.Lock()
	stalled := p.stalled
	p.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
}

// take decrements n if it is positive, and reports whether it was.
func take(n *atomic.Int32) bool {
	for {
		left := n.Load()
		if left <= 0 {
			return false
		}
		if n.CompareAndSwap(left, left-1) {
			return true
		}
	}
}

// toServer forwards what the service sends.
func (p *Proxy) toServer(l *link) {
	defer p.cut(l)
	in := bufio.NewReaderSize(l.service, 64<<10)
	out := bufio.NewWriterSize(l.server, 64<<10)
	// The first message has no type.
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return
	}
	rest := make([]byte, binary.BigEndian.Uint32(length[:])-4)
	if _, err := io.ReadFull(in, rest); err != nil {
		return
	}
	_, _ = out.Write(length[:])
	_, _ = out.Write(rest)
	prepared := map[string]string{} // by name
	begun := false
	writes := false
	p.forward(in, out, func(kind byte, body []byte) verb {
		switch kind {
		case 'E': // 'F' (function call) and 'c' (copy) are never used
			if p.Split.Load() {
				l.ends <- false
				return passAndSync
			}
		case 'Q':
			l.ends <- true
		case 'P':
			name := text(body)
			prepared[name] = text(body[len(name)+1:])
		case 'B':
			portal := text(body)
			command := strings.ToLower(prepared[text(body[len(portal)+1:])])
			switch {
			case strings.HasPrefix(command, "begin"):
				begun = true
			case command == "rollback":
				begun = false
				writes = false
			case command == "commit":
				strike := writes && take(&p.BeforeCommit)
				begun = false
				writes = false
				return cutIf(strike)
			case strings.Contains(command, "insert into "), strings.Contains(command, "update "), strings.Contains(command, "pg_logical_emit_message("):
				writes = true
			}
		case 'S': // Sync: ends the pipeline and its transaction
			l.ends <- true
			if !begun {
				strike := writes && take(&p.BeforeCommit)
				writes = false
				return cutIf(strike)
			}
		}
		return pass
	})
}

// toService forwards what the server answers.
func (p *Proxy) toService(l *link) {
	defer p.cut(l)
	in := bufio.NewReaderSize(l.server, 64<<10)
	out := bufio.NewWriterSize(l.service, 64<<10)
	wrote := false
	first := true
	p.forward(in, out, func(kind byte, body []byte) verb {
		switch kind {
		case 'C':
			wrote = wrote || strings.HasPrefix(text(body), "INSERT ") && text(body) != "INSERT 0 0"
		case 'E':
			wrote = false
		case 'Z':
			asked := first || <-l.ends // the first one ends the login
			first = false
			if body[0] == 'I' { // the transaction has ended
				strike := wrote && take(&p.AfterCommit)
				wrote = false
				if strike {
					return cut
				}
			}
			if !asked {
				return drop
			}
		}
		return pass
	})
}

// text returns a null-terminated string of the protocol.
func text(b []byte) string {
	before, _, _ := bytes.Cut(b, []byte{0})
	return string(before)
}

// verb says what to do with a message.
type verb uint8

const (
	pass verb = iota
	// passAndSync forwards the message and a Sync.
	passAndSync
	drop
	// cut closes the connection instead of forwarding.
	cut
)

func cutIf(strike bool) verb {
	if strike {
		return cut
	}
	return pass
}

// forward copies messages until one is cut.
func (p *Proxy) forward(in *bufio.Reader, out *bufio.Writer, decide func(kind byte, body []byte) verb) {
	var head [5]byte
	var body []byte
	for {
		if in.Buffered() == 0 {
			p.wait()
			if out.Flush() != nil {
				return
			}
		}
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint32(head[1:])) - 4
		if cap(body) < n {
			body = make([]byte, n)
		}
		body = body[:n]
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		todo := decide(head[0], body)
		if todo == cut {
			p.Cuts.Add(1)
			return
		}
		if todo == drop {
			continue
		}
		_, _ = out.Write(head[:])
		_, _ = out.Write(body)
		if todo == passAndSync {
			_, _ = out.Write([]byte{'S', 0, 0, 0, 4})
		}
	}
}
