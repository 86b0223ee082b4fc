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

// door is a way to Postgres that a test can shut.
type door struct {
	dsn string // through the door

	network, server string
	listener        net.Listener

	mu   sync.Mutex
	shut bool
	open map[net.Conn]bool
}

// newDoor is a door to a database. The URL through it has a password, which a
// server that trusts its users does not look at.
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

// lead joins a connection with the server until one side ends.
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

// close shuts the door and cuts all who are in it.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = true
	for c := range d.open {
		_ = c.Close()
	}
}

// unlock opens it again.
func (d *door) unlock() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = false
}
