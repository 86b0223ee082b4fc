package sqlite

import "context"

// index is Index of storage.Engine. While many rows arrive, it adds at most one run for
// each source, so that most of the time is left for batches. It catches up later.
func (c *connections) index(ctx context.Context, prefix string) error {
	for i := range sources {
		s := &sources[i]
		var start, newest int64
		if err := c.reads.QueryRowContext(ctx, s.statement(progress, prefix)).Scan(&start, &newest); err != nil {
			return err
		}
		runs := 1
		if newest-c.newest[i].Swap(newest) < runRows/10 {
			runs = quietRuns
		}
		for end := start + runRows; end <= newest && runs > 0; start, end, runs = end, end+runRows, runs-1 {
			for row := start; row < end; row += stepRows {
				if err := c.write(ctx, s.statement(addEntries, prefix), end, row, row+stepRows); err != nil {
					return err
				}
			}
			if err := c.write(ctx, s.statement(addRun, prefix), end, start); err != nil {
				return err
			}
		}
	}
	return nil
}

// write runs a statement in a separate transaction.
func (c *connections) write(ctx context.Context, statement string, arguments ...any) error {
	session, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer session.Rollback()
	if _, err := session.conn.ExecContext(ctx, statement, arguments...); err != nil {
		return err
	}
	return session.Commit(ctx)
}
