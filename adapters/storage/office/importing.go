package office

import (
	"context"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/fault"
	"bankingapi/domain/proof"
)

// imports implements backoffice.Imports.
type imports struct {
	db      *tables.Database
	journal journal.Journal
}

// transact is Transact. A dry run needs its own transaction: a host would commit its changes.
func (i imports) transact(ctx context.Context, o backoffice.ImportOptions, work func(batch.Session) error) error {
	if o.DryRun && i.db.DB.IsInside() {
		return fault.New(fault.Invalid, "A dry run is not possible in a transaction of a host, which would keep what it writes.")
	}
	return i.db.Transact(ctx, work)
}

// commit ends an import and writes the act. After a dry run, everything is rolled back.
func (i imports) commit(ctx context.Context, session batch.Session, o backoffice.ImportOptions, imported backoffice.Imported, adjusted *proof.Sum, last ...batch.Request) error {
	if o.DryRun {
		return nil
	}
	acts := i.journal.ActWrites(ctx, journal.Changes{ID: o.ID, Adjusted: adjusted}, imported.String())
	return session.Commit(ctx, append(acts, last...)...)
}

// numbered is a line of a file.
type numbered[T any] struct {
	line  int64
	value T
}

// inChunks passes the lines to write in chunks, in a transaction that may take long. It reads
// the next chunk while write runs.
func inChunks[T any](ctx context.Context, d *tables.Database, session batch.Session, lines backoffice.Lines[T], done func(int64), write func(context.Context, []numbered[T]) error) error {
	for _, statement := range d.DB.Prepare(batch.Import) {
		err := session.Exchange(ctx, batch.Request{Name: "prepare the import", SQL: statement})
		if err != nil {
			return err
		}
	}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	c := cutter[T]{parts: make(chan []numbered[T], 1)}
	wait := tables.Aside(func() error { return c.cut(reading, lines) })
	total := int64(0)
	for part := range c.parts {
		err := write(ctx, part)
		if err != nil {
			cancel()
			_ = wait() // wait until the reader has stopped
			return err
		}
		total += int64(len(part))
		done(total)
	}
	return wait()
}

// cutter cuts lines into parts.
type cutter[T any] struct {
	parts chan []numbered[T]
	part  []numbered[T]
}

// cut sends all lines, and closes the channel of the parts.
func (c *cutter[T]) cut(ctx context.Context, lines backoffice.Lines[T]) error {
	defer close(c.parts)
	err := lines(func(line int64, value T) error { return c.add(ctx, numbered[T]{line, value}) })
	if err != nil || len(c.part) == 0 {
		return err
	}
	return c.send(ctx)
}

func (c *cutter[T]) add(ctx context.Context, line numbered[T]) error {
	c.part = append(c.part, line)
	if len(c.part) < tables.Chunk {
		return nil
	}
	return c.send(ctx)
}

func (c *cutter[T]) send(ctx context.Context) error {
	select {
	case c.parts <- c.part:
		c.part = make([]numbered[T], 0, tables.Chunk)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
