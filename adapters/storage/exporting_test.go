package storage_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// Every row with all its fields is tested by the suites of the ports.

// The order is that of the bytes, whatever language the database speaks.
func TestExportOrderInTurkish(t *testing.T) {
	t.Parallel()
	holders := []string{"i", "I", "ı", "İ", "Z", "a", "A b", "Ab", "_", "\u0001", "ç", "c", "\uffff", "😀"}
	var holdings []fund.Holding
	for _, h := range holders {
		holdings = append(holdings, fund.Holding{Key: fund.HoldingKey{CustomerNo: 1, Fund: fund.Fund{IMKBCode: "A", HolderCorporationName: h}}})
	}
	slices.SortFunc(holdings, func(a, b fund.Holding) int { return a.Key.Compare(b.Key) })
	dsn := testdb.Postgres(t)
	if version, _ := strconv.Atoi(setting(t, dsn, "server_version_num")); version < 150000 {
		t.Skip("SKIPPED: before version 15, a database of Postgres has no ICU locale")
	}
	name := database(t, dsn) + "_tr"
	admin(t, dsn, "CREATE DATABASE "+name+" TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR'")
	t.Cleanup(func() { admin(t, dsn, "DROP DATABASE "+name+" WITH (FORCE)") })
	s := storekit.OpenPostgres(t, inDatabase(dsn, name))
	require.NoError(t, importHoldings(t.Context(), s, nextID(), lines(holdings...), quiet))
	require.Equal(t, holdings, all(t, s.Backoffice.Reader.Holdings(t.Context(), backoffice.Query{})))
}

// An export may take longer than any statement: its reader may be slow.
func TestExportOutlivesTheStatementTimeout(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := storekit.OpenPostgres(t, dsn)
	const n = 100_000 // more than fits any buffer on the way
	require.NoError(t, importHoldings(t.Context(), s, nextID(), manyHoldings(n, 1), quiet))
	admin(t, dsn, "ALTER DATABASE "+database(t, dsn)+" SET statement_timeout = '100ms'")
	s = storekit.OpenPostgres(t, dsn)
	rows := 0
	for _, err := range s.Backoffice.Reader.Holdings(t.Context(), backoffice.Query{}) {
		require.NoError(t, err)
		if rows == 0 {
			admin(t, dsn, "SELECT pg_sleep(0.5)")
		}
		rows++
	}
	require.Equal(t, n, rows)
	bank{s, t}.holds()
}

// A reader may stop early inside the transaction of a host, which goes on.
func TestAListThatIsLeftEarlyLeavesTheTransactionOfAHost(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := storekit.OpenPostgres(t, dsn)
	require.NoError(t, importHoldings(t.Context(), s, nextID(), manyHoldings(several, unitsAtFirst), quiet))
	tx, err := testdb.Open(t, testdb.EnginePostgres, dsn).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	within, err := s.Within(tx)
	require.NoError(t, err)
	for _, err := range within.Backoffice.Reader.Holdings(t.Context(), backoffice.Query{}) {
		require.NoError(t, err)
		break
	}
	_, err = tx.ExecContext(t.Context(), "SELECT 1")
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
}
