package prove_test

import (
	"bufio"
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

// proxy stands between a service and Postgres and does to their connections
// what networks do. It reads the protocol, so that it can strike at a commit.
type proxy struct {
	// dsn is the database through the proxy.
	dsn string

	network, address string
	listener         net.Listener
	running          sync.WaitGroup
	// beforeCommit and afterCommit are how many of the next transactions that
	// write to cut: before their commit came to the server, or when it was
	// carried out and its answer is on its way back.
	beforeCommit, afterCommit atomic.Int32
	// cuts counts them.
	cuts atomic.Int32
	// translate makes the server speak another language.
	translate atomic.Bool

	mu      sync.Mutex
	links   map[*link]struct{}
	closed  bool          // new connections are cut at once
	stalled chan struct{} // closed when bytes flow; nil when nothing holds them
}

// link is one connection through the proxy.
type link struct{ service, server net.Conn }

func newProxy(t testing.TB, dsn string) *proxy {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	p := &proxy{links: map[*link]struct{}{}}
	p.network, p.address = pgconn.NetworkAddress(config.Host, config.Port)
	p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u, err := url.Parse(dsn)
	require.NoError(t, err, "the proxy takes URLs only")
	query := u.Query()
	query.Del("host")
	query.Del("port")
	query.Set("sslmode", "disable")
	u.RawQuery, u.Host = query.Encode(), p.listener.Addr().String()
	p.dsn = u.String()
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.flow()
		p.refuse()
		p.running.Wait()
	})
	return p
}

func (p *proxy) accept() {
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
		l := &link{service, server}
		p.mu.Lock()
		closed := p.closed
		if !closed {
			p.links[l] = struct{}{}
		}
		p.mu.Unlock()
		if closed {
			p.cut(l)
			continue
		}
		p.running.Go(func() { p.toServer(l) })
		p.running.Go(func() { p.toService(l) })
	}
}

// reset closes a connection the way a crashed peer does.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func (p *proxy) cut(l *link) {
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
	reset(l.service)
	reset(l.server)
}

// cutAll cuts the connections that are open.
func (p *proxy) cutAll() {
	p.mu.Lock()
	var all []*link
	for l := range p.links {
		all = append(all, l)
	}
	p.mu.Unlock()
	for _, l := range all {
		p.cut(l)
	}
}

// refuse cuts all connections, and each new one, from now on.
func (p *proxy) refuse() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cutAll()
}

// stall holds all bytes, both ways, until flow: a network that is away without
// a word.
func (p *proxy) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled == nil {
		p.stalled = make(chan struct{})
	}
}

func (p *proxy) flow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
}

func (p *proxy) wait() {
	p.mu.Lock()
	stalled := p.stalled
	p.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
}

// take takes one of n, if there is one.
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
func (p *proxy) toServer(l *link) {
	defer p.cut(l)
	in, out := bufio.NewReaderSize(l.service, 64<<10), bufio.NewWriterSize(l.server, 64<<10)
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
	begun, writes := false, false
	p.forward(in, out, func(kind byte, body []byte) bool {
		switch kind {
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
				begun, writes = false, false
			case command == "commit":
				strike := writes && take(&p.beforeCommit)
				begun, writes = false, false
				return strike
			case strings.Contains(command, "insert into "), strings.Contains(command, "update "):
				writes = true
			}
		case 'S': // the end of what is sent together, and of its transaction
			if !begun {
				strike := writes && take(&p.beforeCommit)
				writes = false
				return strike
			}
		}
		return false
	})
}

// toService forwards what the server answers.
func (p *proxy) toService(l *link) {
	defer p.cut(l)
	in, out := bufio.NewReaderSize(l.server, 64<<10), bufio.NewWriterSize(l.service, 64<<10)
	wrote := false
	p.forward(in, out, func(kind byte, body []byte) bool {
		switch kind {
		case 'C':
			wrote = wrote || strings.HasPrefix(text(body), "INSERT ") && text(body) != "INSERT 0 0"
		case 'E':
			wrote = false
			if p.translate.Load() && text(body) == "SERROR" {
				copy(body, "SOUPS!") // as long; the code and the word for programs follow
			}
		case 'Z':
			if body[0] == 'I' { // the transaction has ended
				strike := wrote && take(&p.afterCommit)
				wrote = false
				return strike
			}
		}
		return false
	})
}

// text is a string as the protocol has it.
func text(b []byte) string {
	for i := range b {
		if b[i] == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// forward copies messages until strike says that one is not to arrive.
func (p *proxy) forward(in *bufio.Reader, out *bufio.Writer, strike func(kind byte, body []byte) bool) {
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
		if strike(head[0], body) {
			p.cuts.Add(1)
			return
		}
		_, _ = out.Write(head[:])
		_, _ = out.Write(body)
	}
}
