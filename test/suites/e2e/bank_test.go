package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// bank is a separate store and the folder in which a test runs commands and
// services.
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

// newBank returns an empty store without a schema. Services and commands on
// SQLite create the schema themselves.
func newBank(t testing.TB, engine string) bank {
	t.Helper()
	b := service.NewBank(t, engine)
	b.Program = program(t)
	return bank{b}
}

// with returns the bank with another setting.
func (b bank) with(path, value string) bank {
	b.Set(path, value)
	return b
}

// replica returns a bank on the same store with its own settings and folder.
func (b bank) replica(t testing.TB) bank { return bank{b.Replica(t)} }

// moved puts the bank into another time zone, in which it may be another day, and returns a
// replica. No command does this once there are operations, and verify would report it: move the
// bank back first.
func (b bank) moved(t testing.TB, zone string) bank {
	t.Helper()
	place := "instr"
	if b.Engine == testdb.EnginePostgres {
		place = "strpos"
	}
	b.execute(t, "UPDATE properties SET value = 'time-zone="+zone+"' || substr(value, "+place+"(value, ' ')) WHERE name = 'rules'")
	return b.replica(t)
}

// rule changes rules of the bank, as an operator does. flags are those of rules change.
func (b bank) rule(t testing.TB, flags ...string) {
	t.Helper()
	b.Migrate(t)
	b.Must(t, append([]string{"rules", "change", "--reason", "test"}, flags...)...)
}

// column returns one column of rows.
func column(rows []service.Row, name string) []string {
	values := make([]string, len(rows))
	for i, r := range rows {
		values[i] = r[name]
	}
	return values
}

// holding returns the units of fund AFA that a customer has.
func (b bank) holding(t testing.TB, customer int) string {
	t.Helper()
	for _, r := range b.Export(t, "holdings", "--customer", fmt.Sprint(customer)) {
		if r["IMKBCode"] == "AFA" {
			return r["Units"]
		}
	}
	return "none"
}

// execute writes to the store directly, without the program.
func (b bank) execute(t testing.TB, command string) {
	t.Helper()
	db := testdb.Open(t, b.Engine, b.DSN)
	defer db.Close() // the next statement of the test may replace the file
	_, err := db.ExecContext(t.Context(), command)
	require.NoError(t, err)
}
