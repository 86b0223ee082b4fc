package postgres

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"bankingapi/adapters/storage"
)

// An answer must rest only on what a standby has, if commits wait for one. Two
// things would break that:
//
//   - A transaction that writes nothing does not wait at its commit. A repeat
//     finds the record of the first attempt and writes nothing. If the commit of
//     the first one was cut short on its way to the standby, the repeat would be
//     answered although the standby has no record. So a batch that found
//     something and wrote nothing is followed by a commit that writes, which
//     waits for everything before it.
//   - pgx sends a cancel request when a context ends or a connection breaks. A
//     commit that waits for its standby takes that as the order to go on without
//     it, and becomes visible on the primary alone. So no cancel request is sent
//     for a connection during the commit of a batch.

// A standby has what it shows.
const message = "SELECT pg_logical_emit_message(true, 'bankingapi', '') WHERE NOT pg_is_in_recovery()"

// hasMessages reports whether the server has messages in its log. Servers like
// Postgres that have none are distributed: they show only what a majority has.
func (s *settings) hasMessages(ctx context.Context, on storage.Querier) (has bool, err error) {
	if known := s.messages.Load(); known != nil {
		return *known, nil
	}
	err = on.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM pg_proc WHERE proname = 'pg_logical_emit_message')").Scan(&has)
	if err == nil {
		s.messages.Store(&has)
	}
	return has, err
}

// held is the key of the *atomic.Bool that says whether a connection is in its commit,
// in the custom data of the connection.
const held = "bankingapi.committing"

// hold prevents cancel requests for the connection until the result is false. It returns nil
// for a connection that a host has opened, because only the opener can replace the dialer.
func hold(conn *pgx.Conn) *atomic.Bool {
	committing, ok := conn.PgConn().CustomData()[held].(*atomic.Bool)
	if ok {
		committing.Store(true)
	}
	return committing
}

var errHeld = errors.New("no cancel request is sent during a commit")

// guard gives a connection that is about to be made a dialer that refuses to dial during a
// commit. pgx dials once more for a cancel request, and for nothing else.
func guard(config *pgx.ConnConfig, committing *atomic.Bool) {
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if committing.Load() {
			return nil, errHeld
		}
		return dial(ctx, network, address)
	}
}
