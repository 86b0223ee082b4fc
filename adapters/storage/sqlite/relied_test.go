package sqlite

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// queries counts those that read the tables.
type queries struct {
	*sql.DB
	flaws int
}

func (q *queries) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if query == flaws {
		q.flaws++
	}
	return q.DB.QueryRowContext(ctx, query, args...)
}

func TestTablesAreReadAgainAfterAChangeOfTheSchemaOnly(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "book.db")
	require.NoError(t, create(file))
	open := func() *sql.DB {
		db, err := sql.Open("sqlite", dsn(file, 1000))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return db
	}
	on, other := &queries{DB: open()}, open()
	run := func(statement string) {
		_, err := other.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	check := relied(`[{"Table":"holdings","Columns":["units"],"Keys":[],"Checks":[]}]`)

	run("CREATE TABLE holdings (units INTEGER)")
	for range 3 {
		require.NoError(t, check(t.Context(), on))
		run("INSERT INTO holdings VALUES (1)")
	}
	require.Equal(t, 1, on.flaws)

	run("CREATE TRIGGER swallow BEFORE INSERT ON holdings BEGIN SELECT RAISE(IGNORE); END")
	for range 2 { // what was wrong is read again, until it is mended
		require.ErrorContains(t, check(t.Context(), on), "swallow")
	}
	run("DROP TRIGGER swallow")
	require.NoError(t, check(t.Context(), on))
	require.NoError(t, check(t.Context(), on))
	require.Equal(t, 4, on.flaws)
}
