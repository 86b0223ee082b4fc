package e2e_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// door is a proxy to Postgres that a test can close.
type door struct {
	dsn string // URL through the proxy

	network, server string
	listener        net.Listener

	mu   sync.Mutex
	shut bool
	open map[net.Conn]bool
}

// newDoor returns a proxy to a database. Its URL has a password, which a server
// with trust authentication ignores.
func newDoor(t testing.TB, dsn, password string) *door {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	d := &door{open: map[net.Conn]bool{}}
	d.network, d.server = pgconn.NetworkAddress(config.Host, config.Port)
	d.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	through := url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: d.listener.Addr().String(),
		Path: "/" + config.Database, RawQuery: "sslmode=disable",
	}
	if config.Password == "" {
		through.User = url.UserPassword(config.User, password)
	}
	d.dsn = through.String()
	var guests sync.WaitGroup
	guests.Go(func() {
		for {
			guest, err := d.listener.Accept()
			if err != nil {
				return
			}
			guests.Go(func() { d.lead(guest) })
		}
	})
	t.Cleanup(func() {
		_ = d.listener.Close()
		d.close()
		guests.Wait()
	})
	return d
}

// lead connects a client with the server until one side closes.
func (d *door) lead(guest net.Conn) {
	defer guest.Close()
	server, err := net.Dial(d.network, d.server)
	if err != nil {
		return
	}
	defer server.Close()
	if !d.enter(guest) || !d.enter(server) {
		return
	}
	defer d.leave(guest, server)
	var ways sync.WaitGroup
	for _, way := range [][2]net.Conn{{guest, server}, {server, guest}} {
		ways.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = way[0].Close(), way[1].Close()
		})
	}
	ways.Wait()
}

func (d *door) enter(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[c] = true
	return !d.shut
}

func (d *door) leave(connections ...net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range connections {
		delete(d.open, c)
	}
}

// close closes all connections and refuses new ones.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = true
	for c := range d.open {
		_ = c.Close()
	}
}

// unlock accepts connections again.
func (d *door) unlock() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = false
}
