package postgres

import (
	"context"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
)

// If commits wait for a standby, an answer must depend only on data that the standby has. A
// transaction that writes nothing does not wait at its commit. A repeat finds the record of the
// first attempt and writes nothing. If the commit of the first attempt was interrupted on its way
// to the standby, the repeat would be answered although the standby has no record. So a batch that
// found something and wrote nothing is followed by a commit that writes. This commit waits for
// everything before it.

// witness commits a transaction that writes, but changes nothing: it writes a message to the
// log that no one reads. Its commit waits for all transactions that were visible before it.
// After an error it is unknown whether those transactions are durable.
func (s *session) witness(ctx context.Context) error {
	has, err := s.settings.hasMessages(ctx, s.conn)
	if err != nil || !has {
		return asInterrupted(err)
	}
	w := session{conn: s.conn, native: s.native, settings: s.settings, begins: durable}
	return asInterrupted(w.send(ctx, []batch.Request{{SQL: message}}, true))
}

// A standby does not need the message: it already has everything that it shows.
const message = "SELECT pg_logical_emit_message(true, 'bankingapi', '') WHERE NOT pg_is_in_recovery()"

// hasMessages reports whether the server can write messages to its log. Servers like Postgres
// that cannot do so are distributed: they show only what a majority has.
func (s *settings) hasMessages(ctx context.Context, q storage.Querier) (exists bool, err error) {
	known := s.messages.Load()
	if known != nil {
		return *known, nil
	}
	err = q.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM pg_proc WHERE proname = 'pg_logical_emit_message')").Scan(&exists)
	if err != nil {
		return false, err
	}
	s.messages.Store(&exists)
	return exists, nil
}
