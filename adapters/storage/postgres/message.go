package postgres

import (
	"database/sql/driver"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"bankingapi/adapters/storage/batch"
)

// All statements of a round trip are one message, and two things must happen at a
// certain place of it while pgx writes it. The only code of ours that pgx calls then is
// that of arguments. So there are two arguments that act on the connection. Both are
// in this file, and no other argument does anything.

// action is an argument that acts when pgx comes to it.
type action func() (driver.Value, error)

func (act action) Value() (driver.Value, error) { return act() }

// lateValues are the values of a late row. They are worked out while the server runs the
// statements before it: the first one sends what the message has so far. There is still one
// round trip, because only the end of the message makes the server answer.
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
			all, err := work()
			if err != nil {
				return nil, err
			}
			return all[i], nil
		})
	}
	return values
}

// callNext makes the queue's next batch begin when the statements in b have run,
// and not only when their commit is on the disk. next may be nil.
func callNext(next func(), b *pgx.Batch, conn *pgx.Conn) {
	if next == nil || b.Len() == 0 {
		return
	}
	last := b.QueuedQueries[b.Len()-1]
	done := last.Fn
	last.Fn = func(results pgx.BatchResults) error {
		err := done(results)
		if err == nil {
			next()
		}
		return err
	}
	// The server keeps its answers until the end of the message, that is until the commit is on
	// the disk, unless a Flush comes before. A small statement has it as its argument.
	b.Queue("SELECT $1::bigint", action(func() (driver.Value, error) {
		conn.PgConn().Frontend().Send(&pgproto3.Flush{})
		return int64(0), nil
	}))
}
