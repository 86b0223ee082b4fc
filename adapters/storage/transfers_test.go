package storage_test

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/domain/fund"
	"bankingapi/domain/trail"
)

// What programs before version 9 wrote in two rows of postings is read as what this
// one writes in a transfer: by exports, statements, lookups, proofs, and the trail. So
// replicas of both versions may run during an upgrade, and a migration may be undone.
func TestASaleInTwoRowsIsTheSame(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		var tree trail.Tree
		aDayInTheTrail(t, s, &tree)
		type book struct {
			postings   []fund.PostingEntry
			statements [][]fund.PostingEntry
			operations []backoffice.Operation
			proof      backoffice.Proof
		}
		read := func() (b book) {
			var found []string
			b.proof, found = trailFindings(t, s)
			require.Empty(t, found)
			b.postings = all(t, s.Backoffice.Reader.Postings(t.Context(), backoffice.Query{}))
			for customer := range int64(5) {
				b.statements = append(b.statements,
					all(t, s.Backoffice.Reader.Postings(t.Context(), backoffice.Query{CustomerNo: customer})),
					all(t, s.Backoffice.Reader.Postings(t.Context(), backoffice.Query{CustomerNo: customer, Order: backoffice.ByTime})))
			}
			for _, p := range b.postings {
				o, err := s.Backoffice.Lookups.Operation(t.Context(), p.OperationID)
				require.NoError(t, err)
				b.operations = append(b.operations, o)
			}
			return b
		}
		transfers := func() string { return statementsOf(t, db, "SELECT CAST(COUNT(*) AS text) FROM transfers")[0] }

		first := read()
		require.NotEqual(t, "0", transfers())
		require.Equal(t, "0", statementsOf(t, db, "SELECT CAST(COUNT(*) AS text) FROM postings WHERE kind = 1")[0])
		apart(func(sql string) { execute(t, db, sql) }, "unit_quantity / 1000000 % 2 = 0")
		require.NotEqual(t, "0", transfers())
		require.Equal(t, first, read(), "half of the sales in two rows")

		kept := []string{"properties", "refused_sales"} // undoing drops them, and the trail needs them
		for _, table := range kept {
			execute(t, db, "CREATE TABLE kept_"+table+" AS SELECT * FROM "+table)
		}
		db.SetMaxIdleConns(0) // undoing a migration needs the database alone
		storage.DropData(s, true)
		const inTransfers = 9 // the version that brings them
		for undone := int64(store.SchemaVersion) + 1; undone > inTransfers; {
			down, err := s.Schema.Down(t.Context())
			require.NoError(t, err)
			undone = down.Version
		}
		_, err := s.Schema.Up(t.Context())
		require.NoError(t, err)
		for _, table := range kept {
			execute(t, db, "DELETE FROM "+table, "INSERT INTO "+table+" SELECT * FROM kept_"+table)
		}
		require.NoError(t, storage.ReadKey(t.Context(), s))
		require.Equal(t, "0", transfers())
		require.Equal(t, first, read(), "all sales in two rows")

		b := bank{s, t}
		b.sell(2, order(v7(), "", sale(1, 1, 2)))
		require.Equal(t, "1", transfers())
	})
}
