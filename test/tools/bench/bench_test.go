package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

func TestMain(m *testing.M) {
	if isPeer() || isPartner() {
		return
	}
	os.Exit(service.Main(m))
}

// benchReport runs the benchmark with the service itself, and returns the report and the folder of its files.
func benchReport(t *testing.T, args ...string) (report, out string) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short; run: make check")
	}
	t.Parallel()
	binary, out := service.Build(t, "bankingapi/cmd/bankingapi"), t.TempDir()
	s, err := parse(append(args, "-wait=0s", "-out="+out, "-other-binary="+binary), io.Discard)
	require.NoError(t, err)
	var text, progress bytes.Buffer
	require.NoError(t, measureAll(t.Context(), t.TempDir(), s, binary, &text, &progress), &progress)
	return text.String(), out
}

func TestRatesAreInTheReport(t *testing.T) {
	report, out := benchReport(t, "-engine=sqlite", "-work=sale,push100,rate", "-rates=50", "-connections=1", "-seconds=0.2", "-rounds=2", "-book=100000")
	for _, row := range []string{
		"| sale, random among 10,000 customers | 1 | bankingapi |", "| push, 100 records a request | 1 | bare Go loop |",
		"| sale, random among 10,000 customers | 50 | other version |", "| sale, random among 10,000 customers | 1 | bankingapi, big book |",
	} {
		require.Contains(t, report, "| sqlite "+row)
	}
	require.Contains(t, report, "found nothing wrong")
	require.NotContains(t, report, "Not completed")

	file, err := os.Open(filepath.Join(out, "bench.csv"))
	require.NoError(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+2*2*4+2*2*3, "works, rounds, sides; and those at a rate, of the service")
	require.FileExists(t, filepath.Join(out, "bench.md"))
}

func TestExtrasAreInTheReport(t *testing.T) {
	report, _ := benchReport(t, "-engine=sqlite", "-work=chores,bytes,refusals,neighbours", "-rows=10000", "-records=3000", "-rounds=1", "-seconds=0.3")
	for _, row := range []string{
		"import 10000 holdings | bankingapi |", "verify 10000 sales | other version |", "settle 1000 due sales | bankingapi |",
		"bankingapi | 10000 | start | [0-9.]+ |", "bankingapi | 10000 | Due, with its forecast | [0-9.]+ |", "other version | 10000 | its customer | [0-9.]+ |",
		"bankingapi | " + plainSale.Title + " | [0-9]{4,5} | [1-9][0-9]{2,3} | not measured |", // more than its content, less than some pages
		"bankingapi | " + plainPush.Title + " | [0-9]{4,5} | [1-9][0-9]{2,3} | not measured |",
	} {
		require.Regexp(t, strings.ReplaceAll("| sqlite | "+row, "|", `\|`), report)
	}
	for _, share := range refusedShares {
		require.Regexp(t, fmt.Sprintf(`\| sqlite \| bankingapi \| %d %% \| [1-9][0-9]+ \| [0-9.]+ \|`, share), report)
	}
	for _, beside := range neighbours {
		require.Contains(t, report, "| sqlite | "+beside.title+" | "+beside.victim.Title+" |")
	}
	require.Regexp(t, `\| 22[0-9]{2} of 22[0-9]{2} \|`, report, "all waited")
	require.Contains(t, report, "sqlite, neighbours: ")
	require.Contains(t, report, "sqlite, bankingapi, bytes of push: ")
}

// TestReplicasAreInTheReport runs one and three of the service on a Postgres whose commits
// wait for a standby.
func TestReplicasAreInTheReport(t *testing.T) {
	needPgbench(t)
	primary, _ := testdb.Pair(t)
	report, _ := benchReport(t, "-engine=postgres", "-work=replicas", "-rates=50", "-seconds=2", "-rounds=1", "-alone",
		"-postgres="+primary, "-set=storage.allow_unsafe=true")
	rows := regexp.MustCompile(`\| postgres \| sale, .* \| 50 \| (one replica|three replicas) \| .* \| 0 \| 0 \| [1-9][0-9]* \|`)
	require.Len(t, rows.FindAllString(report, -1), 4, "no error, no deadlock, some due sales\n%s", report)
	require.Contains(t, report, "postgres, replicas: ")
	require.Contains(t, report, "Postgres synchronous_standby_names: standby")
}

func needPgbench(t *testing.T) {
	t.Helper()
	if _, err := findPgbench(); err != nil {
		t.Skipf("SKIPPED: %v; run: apt-get install postgresql-contrib", err)
	}
}

func TestARowTooManyOrTooFewIsFound(t *testing.T) {
	t.Parallel()
	r := rows{before: 100, acknowledged: 10, unknown: 2}
	for stored, right := range map[int]bool{109: false, 110: true, 112: true, 113: false} {
		require.Equal(t, right, r.check(stored) == nil, stored)
	}
}

// bookHolds is true of a book in which every transaction did its whole work;
// the other side must, or the ratios would mean nothing.
var bookHolds = []string{
	`SELECT (SELECT sum(units) FROM holdings) - 10000 * 100000000000000 = (SELECT -sum(units) FROM sales)`,
	`SELECT (SELECT count(*) FROM sales) = (SELECT count(*) FROM operations WHERE operation = 2)`,
	`SELECT (SELECT count(*) FROM notifications n WHERE NOT EXISTS (SELECT 1 FROM operations o WHERE o.operation_id = n.operation_id)) = 0`,
	`SELECT (SELECT sum(proceeds) FROM sales) = (SELECT sum(balance) FROM accounts)`,
	`SELECT (SELECT count(*) FROM notifications) > 100`,
}

func requireBook(t *testing.T, driver, dsn string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	defer db.Close()
	for _, equal := range bookHolds {
		var holds bool
		require.NoError(t, db.QueryRowContext(t.Context(), equal).Scan(&holds), equal)
		require.True(t, holds, equal)
	}
}

func TestSQLiteLoopKeepsTheBook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	loop, err := openSQLiteLoop(t.Context(), dir)
	require.NoError(t, err)
	for _, w := range allWorks {
		m, err := loop.run(t.Context(), w, 1, shortRun/4)
		require.NoError(t, err, w.Name)
		require.Positive(t, m.Records, w.Name)
	}
	require.NoError(t, loop.close())
	requireBook(t, "sqlite", filepath.Join(dir, "loop.db"))
}

func TestPgbenchKeepsTheBook(t *testing.T) {
	t.Parallel()
	needPgbench(t)
	dsn := testdb.Postgres(t)
	other, err := openPgbench(t.Context(), t.TempDir(), dsn)
	require.NoError(t, err)
	for _, w := range allWorks {
		m, err := other.run(t.Context(), w, 2, time.Second)
		require.NoError(t, err, w.Name)
		require.Positive(t, m.Records, w.Name)
	}
	requireBook(t, "pgx", dsn)
}

func TestPeersKeepTheBook(t *testing.T) {
	t.Parallel()
	needPgbench(t)
	for _, title := range []string{peerName, pipelinedName} {
		dsn := testdb.Postgres(t)
		_, err := openPgbench(t.Context(), t.TempDir(), dsn)
		require.NoError(t, err)
		p, err := startPeer(t, dsn, title)
		require.NoError(t, err)
		for _, w := range allWorks[:4] {
			for stored := 0; stored <= 100; { // on a slow machine in several runs
				m, err := p.run(t.Context(), w, 4, shortRun/4)
				require.NoError(t, err, w.Name)
				require.Zero(t, m.failed(), m.Example)
				stored += m.Completed
			}
		}
		require.NoError(t, p.process.Process.Kill())
		requireBook(t, "pgx", dsn)
	}
}

// TestInterruptedBenchDropsItsDatabases cancels a statement, which closes the
// connection.
func TestInterruptedBenchDropsItsDatabases(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	c, err := openCluster(t.Context(), dsn)
	require.NoError(t, err)
	_, err = c.create(t.Context(), "interrupted")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = c.admin.Exec(ctx, "SELECT pg_sleep(10)")
	require.Error(t, err)
	require.True(t, c.admin.IsClosed())
	require.NoError(t, c.close())

	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	var left int
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_database WHERE datname = $1", c.created[0]).Scan(&left))
	require.Zero(t, left)
	require.NoError(t, conn.Close(t.Context()))
}
