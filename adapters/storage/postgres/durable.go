package postgres

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"bankingapi/adapters/storage"
)

// If commits wait for a standby, an answer must depend only on data that the standby has. Two
// things would break this rule:
//
//   - A transaction that writes nothing does not wait at its commit. A repeat finds the record
//     of the first attempt and writes nothing. If the commit of the first attempt was
//     interrupted on its way to the standby, the repeat would be answered although the standby
//     has no record. So a batch that found something and wrote nothing is followed by a commit
//     that writes. This commit waits for everything before it.
//   - pgx sends a cancel request when a context ends or a connection breaks. If a commit waits
//     for its standby, the cancel request makes it continue without the standby, and it becomes
//     visible only on the primary. So no cancel request is sent for a connection during the
//     commit of a batch.

// A standby does not need the message: it already has everything that it shows.
const message = "SELECT pg_logical_emit_message(true, 'bankingapi', '') WHERE NOT pg_is_in_recovery()"

// hasMessages reports whether the server can write messages to its log. Servers like Postgres
// that cannot do so are distributed: they show only what a majority has.
func (s *settings) hasMessages(ctx context.Context, q storage.Querier) (exists bool, err error) {
	if known := s.messages.Load(); known != nil {
		return *known, nil
	}
	err = q.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM pg_proc WHERE proname = 'pg_logical_emit_message')").Scan(&exists)
	if err != nil {
		return false, err
	}
	s.messages.Store(&exists)
	return exists, nil
}

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
