package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"bankingapi/adapters/storage/batch"
)

// ranges adds new page ranges to the BRIN indexes that lookups use. Until a range is in its
// index, every lookup reads its rows. Autovacuum adds ranges too, but only once a minute, and
// it remembers at most 256 of them.
type ranges struct {
	mu   sync.Mutex
	done map[int64]int64 // for the file of each index: the page after its last added range
	// unsupported: the server has no such indexes, like some servers similar to Postgres.
	unsupported bool
}

const (
	// brinIndexes finds the indexes of operations, sales and notifications, or of their partitions, to
	// which this role may add ranges.
	brinIndexes = `SELECT i.indexrelid::bigint, x.relfilenode::bigint, pg_relation_size(i.indrelid) / current_setting('block_size')::int,
 COALESCE((SELECT option_value::int FROM pg_options_to_table(x.reloptions) WHERE option_name = 'pages_per_range'), 128)
 FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am a ON a.oid = x.relam
 WHERE a.amname = 'brin' AND x.relkind = 'i' AND i.indisvalid AND pg_has_role(x.relowner, 'USAGE') AND NOT pg_is_in_recovery()
 AND i.indrelid IN (SELECT to_regclass(name)::oid FROM unnest($1::text[]) AS t(name)
  UNION SELECT p.relid::oid FROM unnest($1::text[]) AS t(name), pg_partition_tree(to_regclass(name)) p)`

	// addRanges does nothing for a range that is already in the index.
	addRanges = "SELECT COALESCE(SUM(brin_summarize_range($1::bigint::oid::regclass, page)), 0) FROM generate_series($2::bigint, $3::bigint, $4::bigint) page"

	// rangesAtOnce limits one statement to some ten milliseconds.
	rangesAtOnce = 16
	// rangesPerCall bounds how many ranges one call adds. So indexes that lack many ranges take
	// only a tenth of a processor for a while.
	rangesPerCall = 128
	// newestPages are the pages at the end that still get rows. If a range is in the index,
	// each new row in the range must update the filter of the range.
	newestPages = 128

	// A statement waits at most this long for VACUUM, which adds ranges itself.
	rangesLimits = "SELECT set_config('lock_timeout', '50ms', true), set_config('statement_timeout', '10s', true)"

	lockTimeout = "55P03"
)

// index is Index of storage.Engine.
func (r *ranges) index(ctx context.Context, db *batch.Pool, prefix string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unsupported {
		return nil
	}
	err := r.addAll(ctx, db, prefix)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		if refused.Code == lockTimeout {
			return nil // the next call tries again
		}
		r.unsupported = slices.Contains([]string{"42", "0A"}, refused.Code[:2]) // access or syntax, unsupported
	}
	return err
}

func (r *ranges) addAll(ctx context.Context, db *batch.Pool, prefix string) error {
	type index struct {
		id, file, pages, perRange int64 // file changes after TRUNCATE or REINDEX
	}
	var indexes []index
	rows, err := db.QueryContext(ctx, brinIndexes, []string{prefix + "operations", prefix + "sales", prefix + "notifications"}) //nolint:rowserrcheck // Each does it
	if err != nil {
		return err
	}
	err = batch.Each(rows, func() error {
		var x index
		err := rows.Scan(&x.id, &x.file, &x.pages, &x.perRange)
		indexes = append(indexes, x)
		return err
	})
	if err != nil {
		return err
	}
	left := int64(rangesPerCall)
	for _, x := range indexes {
		whole := max(0, x.pages-newestPages) / x.perRange * x.perRange
		for r.done[x.file] < whole && left > 0 {
			start := r.done[x.file]
			end := min(start+rangesAtOnce*x.perRange, whole)
			added, err := add(ctx, db, x.id, start, end-x.perRange, x.perRange)
			if err != nil {
				return err
			}
			r.done[x.file] = end
			left -= added
		}
	}
	return nil
}

// add adds ranges and returns how many of them were not in the index before.
func add(ctx context.Context, db *batch.Pool, index, first, last, step int64) (added int64, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to undo
	if _, err := tx.ExecContext(ctx, rangesLimits); err != nil {
		return 0, err
	}
	if err := tx.QueryRowContext(ctx, addRanges, index, first, last, step).Scan(&added); err != nil {
		return 0, err
	}
	return added, tx.Commit()
}
