package sqlite

import "context"

// index is storage.Engine's Index. While many rows come it adds at most one run of each
// source, so that most of the time is left to the batches. It catches up when they have ended.
func (b *connections) index(ctx context.Context, prefix string) error {
	for i := range sources {
		s := &sources[i]
		var from, newest int64
		if err := b.reads.QueryRowContext(ctx, s.statement(progress, prefix)).Scan(&from, &newest); err != nil {
			return err
		}
		runs := 1
		if newest-b.newest[i].Swap(newest) < runRows/10 {
			runs = quietRuns
		}
		for to := from + runRows; to <= newest && runs > 0; from, to, runs = to, to+runRows, runs-1 {
			for row := from; row < to; row += stepRows {
				if err := b.write(ctx, s.statement(addEntries, prefix), to, row, row+stepRows); err != nil {
					return err
				}
			}
			if err := b.write(ctx, s.statement(addRun, prefix), to, from); err != nil {
				return err
			}
		}
	}
	return nil
}

// write runs a statement in a transaction of its own.
func (b *connections) write(ctx context.Context, statement string, arguments ...any) error {
	session, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer session.Rollback()
	if _, err := session.conn.ExecContext(ctx, statement, arguments...); err != nil {
		return err
	}
	return session.Commit(ctx)
}
