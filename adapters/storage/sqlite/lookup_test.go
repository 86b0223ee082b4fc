package sqlite

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
)

// verify looks up each row of a book of millions: it must not read all entries of a run for each.
func TestWhatLookupsMissIsLookedUp(t *testing.T) {
	t.Parallel()
	engine, err := NewEngine(store.Options{DSN: t.TempDir() + "/book.db"})
	require.NoError(t, err)
	require.NoError(t, engine.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	writes, _ := engine.Pools()
	schema, err := os.ReadFile("migrations/00001_book.sql")
	require.NoError(t, err)
	_, err = writes.DB().ExecContext(t.Context(), string(bytes.ReplaceAll(schema, []byte("{{prefix}}"), nil)))
	require.NoError(t, err)
	for i := range sources {
		rows, err := writes.DB().QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+sources[i].statement(unfoundRows, ""))
		require.NoError(t, err)
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var step string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
			plan = append(plan, step)
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
		require.Contains(t, strings.Join(plan, "\n"), "SEARCH e USING PRIMARY KEY (source=? AND last_row=? AND value=? AND operation_id=?)")
	}
}
