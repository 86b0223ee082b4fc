package e2e_test

import (
	"database/sql"
	"fmt"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"bankingapi/test/service"
	"bankingapi/test/testdb"
)

// bank is a store of its own, and the folder in which the commands and the
// services of a test are started.
type bank struct{ *service.Bank }

// onEachEngine runs a test on SQLite and on Postgres, in parallel, with an
// empty store that has its schema.
func onEachEngine(t *testing.T, test func(t *testing.T, b bank)) {
	t.Helper()
	for _, engine := range []string{testdb.EngineSQLite, testdb.EnginePostgres} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, engine)
			b.Migrate(t)
			test(t, b)
		})
	}
}

// newBank is an empty store whose schema is not there yet; services and
// commands on SQLite make it themselves.
func newBank(t testing.TB, engine string) bank {
	t.Helper()
	b := service.NewBank(t, engine)
	b.Program = program(t)
	return bank{b}
}

// with is the bank with another setting.
func (b bank) with(path, value string) bank {
	b.Set(path, value)
	return b
}

// replica is a bank on the same store with settings and a folder of its own.
func (b bank) replica(t testing.TB) bank { return bank{b.Replica(t)} }

// column is one column of rows.
func column(rows []service.Row, name string) []string {
	values := make([]string, len(rows))
	for i, r := range rows {
		values[i] = r[name]
	}
	return values
}

// holding is what a customer has of the demo's fund AFA.
func (b bank) holding(t testing.TB, customer int) string {
	t.Helper()
	for _, r := range b.Export(t, "holdings", "--customer", fmt.Sprint(customer)) {
		if r["IMKBCode"] == "AFA" {
			return r["Units"]
		}
	}
	return "none"
}

// stored is what the store has of all loads: CallerIds of completed sales, and
// PushIds.
func (b bank) stored(t testing.TB) []string {
	t.Helper()
	all := column(b.Export(t, "sales", "--state", "completed"), "CallerId")
	return append(all, column(b.Export(t, "notifications"), "PushId")...)
}

// execute writes into the store past the program.
func (b bank) execute(t testing.TB, command string) {
	t.Helper()
	driver := map[string]string{testdb.EngineSQLite: "sqlite", testdb.EnginePostgres: "pgx"}[b.Engine]
	db, err := sql.Open(driver, b.DSN)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), command)
	require.NoError(t, err)
}
