package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
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
//     for a connection during its commit.

// witness commits a transaction that writes, but changes nothing: a message in
// the log that no one reads. Its commit waits for all transactions that were
// visible before it. An error leaves open whether those are durable.
func (s *settings) witness(ctx context.Context, conn *sql.Conn) error {
	if has, err := s.hasMessages(ctx, conn); err != nil || !has {
		return asCommitError(err)
	}
	return asCommitError(conn.Raw(func(raw any) error {
		c, ok := raw.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("unexpected connection %T", raw)
		}
		committed := false
		var b pgx.Batch
		b.Queue("begin isolation level read committed")
		b.Queue(durable)
		b.Queue(message)
		b.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
			committed = tag.String() == "COMMIT"
			return nil
		})
		err := c.Conn().SendBatch(ctx, &b).Close()
		if err == nil && !committed {
			return errNotCommitted
		}
		return err
	}))
}

func asCommitError(err error) error {
	if err == nil {
		return nil
	}
	return commitError{err}
}

const message = "SELECT pg_logical_emit_message(true, 'bankingapi', '')"

// hasMessages reports whether the server has messages in its log. Servers like
// Postgres that have none are distributed: they show only what a majority has.
func (s *settings) hasMessages(ctx context.Context, on interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (bool, error) {
	const yes, no = 1, 2
	state := s.messages.Load()
	if state == 0 {
		var count int
		if err := on.QueryRowContext(ctx, "SELECT COUNT(*) FROM pg_proc WHERE proname = 'pg_logical_emit_message'").Scan(&count); err != nil {
			return false, err
		}
		if state = no; count > 0 {
			state = yes
		}
		s.messages.Store(state)
	}
	return state == yes, nil
}

// committing says whether a connection is in its commit.
type committing struct{ now atomic.Bool }

func (c *committing) release() {
	if c != nil {
		c.now.Store(false)
	}
}

// holdKey is the key of a connection's *committing: in the context in which it
// is made, and in its custom data.
type holdKey struct{}

const held = "bankingapi.committing"

// hold prevents cancel requests for the connection until it is released. It
// returns nil for a connection that a host has opened, because only the opener
// can replace the dialer.
func hold(conn *sql.Conn) (c *committing) {
	_ = conn.Raw(func(raw any) error {
		if native, ok := raw.(*stdlib.Conn); ok {
			if c, ok = native.Conn().PgConn().CustomData()[held].(*committing); ok {
				c.now.Store(true)
			}
		}
		return nil
	})
	return c
}

var errHeld = errors.New("no cancel request is sent during a commit")

// guard gives a connection that is about to be made a dialer that refuses to
// dial during a commit. pgx dials once more for a cancel request, and for
// nothing else.
func guard(ctx context.Context, config *pgx.ConnConfig) {
	c, ok := ctx.Value(holdKey{}).(*committing)
	if !ok {
		return
	}
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if c.now.Load() {
			return nil, errHeld
		}
		return dial(ctx, network, address)
	}
}

// guarded lets hold find what guard has made.
func guarded(ctx context.Context, conn *pgx.Conn) {
	if c, ok := ctx.Value(holdKey{}).(*committing); ok {
		conn.PgConn().CustomData()[held] = c
	}
}
