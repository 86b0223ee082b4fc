package postgres

import (
	"database/sql/driver"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"bankingapi/adapters/storage/batch"
)

// All statements of a round trip are one message. Two actions must happen at a certain point of
// the message while pgx writes it. At this time pgx calls no code of ours except the encoding
// of arguments. So there are two arguments that act on the connection. Both are in this file,
// and no other argument has side effects.

// action is an argument that runs when pgx encodes it.
type action func() (driver.Value, error)

func (act action) Value() (driver.Value, error) { return act() }

// lateValues returns the values of a late row. They are computed while the server runs the
// statements before it: the first value flushes the part of the message that is already
// written. There is still only one round trip: the server answers only at the end of the
// message.
func lateValues(rows *batch.Rows, conn *pgx.Conn) []any {
	work := sync.OnceValues(func() ([]any, error) {
		if err := conn.PgConn().Frontend().Flush(); err != nil {
			return nil, err
		}
		return rows.Append(nil, 0), nil
	})
	values := make([]any, rows.Width())
	for i := range values {
		values[i] = action(func() (driver.Value, error) {
			late, err := work()
			if err != nil {
				return nil, err
			}
			return late[i], nil
		})
	}
	return values
}

// callNext makes the next batch of the queue begin when the statements in b have run. Otherwise
// it would begin when their commit is on the disk. next may be nil.
func callNext(next func(), b *pgx.Batch, conn *pgx.Conn) {
	if next == nil || b.Len() == 0 {
		return
	}
	last := b.QueuedQueries[b.Len()-1]
	done := last.Fn
	last.Fn = func(results pgx.BatchResults) error {
		err := done(results)
		if err != nil {
			return err
		}
		next()
		return nil
	}
	// The server keeps its answers until the end of the message, that is, until the commit is
	// on the disk. A Flush makes it send them earlier. The argument of this small statement
	// sends it.
	b.Queue("SELECT $1::bigint", action(func() (driver.Value, error) {
		conn.PgConn().Frontend().Send(&pgproto3.Flush{})
		return int64(0), nil
	}))
}
