package postgres

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

	"bankingapi/domain/fault"
)

// connector opens connections with a marker until it detects a pooler.
type connector struct {
	config   *pgx.ConnConfig
	settings *settings
}

func (connector) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	if c.settings.pooled.Load() {
		return c.connect(ctx, false)
	}
	conn, err := c.connect(ctx, true)
	// Errors of access, a missing database, resources or shutdown have other causes than a
	// marker.
	native, refused := errors.AsType[*pgconn.PgError](err)
	if !refused || slices.Contains([]string{"28", "3D", "53", "57"}, native.Code[:2]) {
		return conn, err
	}
	conn, err = c.connect(ctx, false)
	if err != nil {
		return conn, err
	}
	c.settings.pooled.Store(true) // the marker caused the error
	return conn, nil
}

func (c connector) connect(ctx context.Context, marked bool) (driver.Conn, error) {
	config := c.config.Copy()
	committing := new(atomic.Bool)
	guard(config, committing)
	config.Tracer = commitTracer{}
	if marked {
		config.RuntimeParams = maps.Clone(startup)
		maps.Copy(config.RuntimeParams, c.config.RuntimeParams)
		config.RuntimeParams[marker] = rand.Text()
	}
	ping := stdlib.OptionShouldPing(func(_ context.Context, p stdlib.ShouldPingParams) bool {
		return p.IdleDuration > time.Second || hasNews(p.Conn.PgConn().Conn())
	})
	connected := stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		conn.PgConn().CustomData()[committingKey] = committing
		useArrayCodec(conn.TypeMap())
		if marked {
			return c.settings.configure(ctx, conn)
		}
		return nil
	})
	return stdlib.GetConnector(*config, ping, connected).Connect(ctx)
}

// pgx sends a cancel request when a context ends or a connection breaks. If a commit waits for its
// standby, the cancel request makes it continue without the standby, and it becomes visible only
// on the primary. So no cancel request is sent for a connection during the commit of a batch.

// committingKey is the key of an *atomic.Bool in the custom data of a connection. The value is
// true while the connection commits.
const committingKey = "bankingapi.committing"

// hold prevents cancel requests for the connection until the result is set to false. It returns
// nil for a connection that a host has opened, because only the opener can replace the dialer.
func hold(conn *pgx.Conn) *atomic.Bool {
	committing, ok := conn.PgConn().CustomData()[committingKey].(*atomic.Bool)
	if ok {
		committing.Store(true)
	}
	return committing
}

var errHeld = errors.New("no cancel request is sent during a commit")

// guard sets a dialer for a connection that is not open yet. The dialer refuses to dial during
// a commit. pgx dials again only for a cancel request.
func guard(config *pgx.ConnConfig, committing *atomic.Bool) {
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if committing.Load() {
			return nil, errHeld
		}
		return dial(ctx, network, address)
	}
}

// commitTracer prevents cancel requests for the commits of transactions that gorm and database/sql
// end. It is the tracer of our own connections. Batches call hold themselves.
type commitTracer struct{}

// heldKey is the key of the *atomic.Bool in the context of a commit.
type heldKey struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (commitTracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if data.SQL != "commit" { // what pgx sends
		return ctx
	}
	return context.WithValue(ctx, heldKey{}, hold(conn))
}

// TraceQueryEnd implements pgx.QueryTracer.
func (commitTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	committing, _ := ctx.Value(heldKey{}).(*atomic.Bool)
	if committing != nil && (data.Err == nil || isUndone(data.Err)) {
		committing.Store(false)
	}
}

// hosts dials one of several hosts, which are tried in their order. After a failover the first
// one may be a machine that does not answer: each new connection would wait for it.
type hosts struct {
	dial   pgconn.DialFunc
	silent sync.Map // when an address did not answer, by address
}

const (
	// silentFor is for how long a host that did not answer is dialed for no longer than briefly.
	silentFor = time.Minute
	briefly   = time.Second / 4
	// maxSilence is how long a connection waits for a machine that acknowledges no packet, as
	// after a failover. Linux would wait for a quarter of an hour, and so would a chore.
	maxSilence = 30 * time.Second
)

// dialOne is a pgconn.DialFunc.
func (h *hosts) dialOne(ctx context.Context, network, address string) (net.Conn, error) {
	began := time.Now() //nolint:forbidigo // measures a duration
	last, _ := h.silent.Load(address)
	since, isSilent := last.(time.Time)
	isSilent = isSilent && began.Sub(since) < silentFor
	if isSilent {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, briefly)
		defer stop()
	}
	conn, err := h.dial(ctx, network, address)
	if err != nil {
		if !isSilent && time.Since(began) >= briefly { // nobody refused it
			h.silent.Store(address, began)
		}
		return conn, err
	}
	h.silent.Delete(address)
	return conn, nil
}

// The texts of a book are UTF-8. In a database with another encoding, the server converts them
// or keeps bytes that it does not understand. A dump of it cannot be restored, or the texts of
// the restored book differ: then a repeat of a CallerId sells again.

// utf8 are the names of the encoding. An empty name is that of a server like Postgres that does
// not tell its encoding.
var utf8 = []string{"UTF8", "UNICODE", "utf8", ""}

// suits is Suits of storage.Engine.
func suits(ctx context.Context, pool gorm.ConnPool) error {
	var server, client string
	err := pool.QueryRowContext(ctx, "SELECT COALESCE(current_setting('server_encoding', true), ''), COALESCE(current_setting('client_encoding', true), '')").Scan(&server, &client)
	if err != nil {
		return err
	}
	return checkEncoding(server, client)
}

// checkConnection is suits for one connection. It asks nothing: the server reports both settings
// when a connection begins, and when they change.
func checkConnection(conn *pgx.Conn) error {
	return checkEncoding(conn.PgConn().ParameterStatus("server_encoding"), conn.PgConn().ParameterStatus("client_encoding"))
}

func checkEncoding(server, client string) error {
	switch {
	case !slices.Contains(utf8, server):
		return fault.New(fault.Unavailable, "The database has the encoding "+server+", and a book needs UTF8: its texts would change in a copy."+
			" Make a database with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0.")
	case !slices.Contains(utf8, client):
		return fault.New(fault.Unavailable, "A connection to the database has the client_encoding "+client+", and texts are UTF8."+
			" The program that opens the database must add client_encoding=UTF8.")
	}
	return nil
}
