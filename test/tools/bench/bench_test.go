package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// playsService makes the test binary stand in for the service's.
const playsService = "BENCH_TEST_PLAYS_SERVICE"

func TestMain(m *testing.M) {
	if isPeer() {
		return
	}
	if os.Getenv(playsService) == "" {
		os.Exit(service.Main(m))
	}
	if err := playService(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// playService knows the commands that bench uses. It stores no more than how
// many rows there are, in its working directory, when it stops.
func playService(args []string) error {
	switch args[0] {
	case "migrate", "import", "verify":
		return nil
	case "subscriptions":
		fmt.Println(strings.Repeat("a", 32) + "\n" + strings.Repeat("b", 32))
		return nil
	case "export":
		rows, err := os.ReadFile(args[1])
		if err != nil {
			return err
		}
		fmt.Print("header\n" + strings.Repeat("row\n", len(rows)))
		return nil
	case "serve":
		return playServe()
	}
	return fmt.Errorf("unknown command %q", args[0])
}

func playServe() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var sales, notifications atomic.Int64
	store := func(rows *atomic.Int64) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.Header.Get("Ocp-Apim-Subscription-Key") != strings.Repeat("a", 32) {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			rows.Add(int64(bytes.Count(body, []byte(`"CustomerNo":`))/2 + bytes.Count(body, []byte(`"PushId":`))))
			_, _ = w.Write(completedBody)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("POST /BankingApiV01/BuyFundFromCustomer", store(&sales))
	mux.Handle("POST /BankingApiV01/AddPushNotificationResponse", store(&notifications))
	api := &http.Server{Handler: mux}
	ops := &http.Server{Handler: http.NotFoundHandler()}
	listener, err := net.Listen("tcp", os.Getenv("BANKINGAPI_HTTP__ADDRESS"))
	if err != nil {
		return err
	}
	opsListener, err := net.Listen("tcp", os.Getenv("BANKINGAPI_OPS__ADDRESS"))
	if err != nil {
		return err
	}
	ops.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	go func() { _ = ops.Serve(opsListener) }()
	fmt.Println("Listening on http://" + listener.Addr().String())
	go func() {
		_ = api.Serve(listener)
	}()
	<-ctx.Done()
	if err := api.Shutdown(context.Background()); err != nil {
		return err
	}
	return addRows(map[string]int64{"sales": sales.Load(), "notifications": notifications.Load()})
}

// addRows appends one byte for each row to the files that export reads.
func addRows(rows map[string]int64) error {
	for name, n := range rows {
		file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if _, err := file.Write(make([]byte, n)); err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return nil
}

// measureWith runs the benchmark with this binary as the service.
func measureWith(t *testing.T, s settings, dir, binary string, report, progress io.Writer) error {
	return guard(t.TempDir(), func(r *runner) error { return measureAll(t.Context(), r, s, dir, binary, report, progress) })
}

// TestBenchFromStartToReport runs everything but the service itself.
func TestBenchFromStartToReport(t *testing.T) {
	t.Setenv(playsService, "1")
	out := t.TempDir()
	s, err := parse([]string{"-engine=sqlite", "-work=sale,push100,rate", "-rates=50", "-connections=1,4", "-seconds=0.5", "-rounds=2", "-out=" + out}, io.Discard)
	require.NoError(t, err)
	s.patience = 0
	binary, err := os.Executable()
	require.NoError(t, err)

	var report, progress bytes.Buffer
	require.NoError(t, measureWith(t, s, t.TempDir(), binary, &report, &progress), progress.String())
	require.Contains(t, report.String(), "| sqlite | sale, random among 10,000 customers | 4 | bankingapi |")
	require.Contains(t, report.String(), "| sqlite | push, 100 records a request | 1 | bankingapi |")
	require.Contains(t, report.String(), "| sqlite | sale, random among 10,000 customers | 50 | bankingapi |")
	require.Contains(t, report.String(), "found nothing wrong")
	require.NotContains(t, report.String(), "Not completed")

	file, err := os.Open(filepath.Join(out, "bench.csv"))
	require.NoError(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+2*2*2*2, "works, connections, rounds, sides")
	require.FileExists(t, filepath.Join(out, "bench.md"))
}

// TestChoresOfTheService runs the chores with the service itself, and with
// itself as the other version.
func TestChoresOfTheService(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short; run: make check")
	}
	t.Parallel()
	binary := service.Build(t, "bankingapi/cmd/bankingapi")
	args := []string{"-engine=sqlite", "-work=chores", "-rows=10000", "-rounds=1", "-other-binary=" + binary, "-wait=0s"}
	s, err := parse(args, io.Discard)
	require.NoError(t, err)
	var report, progress bytes.Buffer
	require.NoError(t, measureWith(t, s, t.TempDir(), binary, &report, &progress), progress.String())
	for _, row := range []string{
		"| sqlite | import 10000 holdings | bankingapi |", "| sqlite | verify 10000 sales | other version |", "| sqlite | settle 1000 due sales | bankingapi |",
	} {
		require.Contains(t, report.String(), row)
	}
}

// TestBytesAndRefusalsOfTheService checks that a sale and a push take more than their
// content and less than some pages, and that refused sales are counted.
func TestBytesAndRefusalsOfTheService(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short; run: make check")
	}
	t.Parallel()
	binary := service.Build(t, "bankingapi/cmd/bankingapi")
	s, err := parse([]string{"-engine=sqlite", "-work=bytes,refusals", "-rounds=1", "-records=3000", "-seconds=0.5", "-only=service", "-wait=0s"}, io.Discard)
	require.NoError(t, err)
	var report, progress bytes.Buffer
	require.NoError(t, measureWith(t, s, t.TempDir(), binary, &report, &progress), progress.String())
	for _, w := range []work{plainSale, plainPush} {
		require.Regexp(t, `\| sqlite \| bankingapi \| `+w.title+` \| [0-9]{4,5} \| [1-9][0-9]{2,3} \| not measured \|`, report.String())
	}
	require.Contains(t, report.String(), "sqlite, bankingapi, bytes of push: ")
	for _, share := range refusedShares {
		require.Regexp(t, fmt.Sprintf(`\| sqlite \| bankingapi \| %d %% \| [1-9][0-9]+ \| [0-9.]+ \|`, share), report.String())
	}
}

// TestReplicasOfTheService runs one and three of the service on a Postgres whose commits
// wait for a standby.
func TestReplicasOfTheService(t *testing.T) {
	t.Parallel()
	if _, err := findPgbench(); err != nil {
		t.Skipf("SKIPPED: %v; run: apt-get install postgresql-contrib", err)
	}
	primary, _ := testdb.Pair(t)
	binary := service.Build(t, "bankingapi/cmd/bankingapi")
	args := []string{"-engine=postgres", "-work=replicas", "-rates=50", "-seconds=2", "-rounds=1", "-only=service", "-wait=0s",
		"-postgres=" + primary, "-set=storage.allow_unsafe=true"}
	s, err := parse(args, io.Discard)
	require.NoError(t, err)
	var report, progress bytes.Buffer
	require.NoError(t, measureWith(t, s, t.TempDir(), binary, &report, &progress), progress.String())
	rows := regexp.MustCompile(`\| postgres \| sale, .* \| 50 \| (one replica|three replicas) \| .* \| 0 \| 0 \| [1-9][0-9]* \|`)
	require.Len(t, rows.FindAllString(report.String(), -1), 4, "no error, no deadlock, some due sales\n%s", &report)
	require.Contains(t, report.String(), "postgres, replicas: ")
	require.Contains(t, report.String(), "Postgres synchronous_standby_names: standby")
}

// TestNeighboursOfTheService checks that every neighbour is there, and that what they and the
// victim sent is stored.
func TestNeighboursOfTheService(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short; run: make check")
	}
	t.Parallel()
	binary := service.Build(t, "bankingapi/cmd/bankingapi")
	s, err := parse([]string{"-engine=sqlite", "-work=neighbours", "-seconds=1", "-rounds=1", "-only=service", "-wait=0s"}, io.Discard)
	require.NoError(t, err)
	var report, progress bytes.Buffer
	require.NoError(t, measureWith(t, s, t.TempDir(), binary, &report, &progress), progress.String())
	for _, beside := range neighbours {
		require.Contains(t, report.String(), "| sqlite | "+beside.title+" | "+beside.victim.title+" |")
	}
	require.Regexp(t, `\| 22[0-9]{2} of 22[0-9]{2} \|`, report.String(), "all waited")
	require.Contains(t, report.String(), "sqlite, neighbours: ")
}

// TestBenchMissesNoRow gives the service a row that was not acknowledged.
func TestBenchMissesNoRow(t *testing.T) {
	t.Setenv(playsService, "1")
	s, err := parse([]string{"-engine=sqlite", "-work=sale", "-connections=1", "-seconds=0.5", "-rounds=1", "-only=service"}, io.Discard)
	require.NoError(t, err)
	s.patience = 0
	binary, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sqlite", plainName), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sqlite", plainName, "sales"), []byte("x"), 0o600))

	err = measureWith(t, s, dir, binary, io.Discard, io.Discard)
	require.ErrorContains(t, err, "acknowledged")
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

func TestSQLiteLoopKeepsTheBook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	loop, err := openSQLiteLoop(t.Context(), dir)
	require.NoError(t, err)
	for _, w := range allWorks {
		m, err := loop.run(t.Context(), w, 1, shortRun/4)
		require.NoError(t, err, w.name)
		require.Positive(t, m.records, w.name)
	}
	require.NoError(t, loop.close())

	db, err := sql.Open("sqlite", filepath.Join(dir, "loop.db"))
	require.NoError(t, err)
	defer db.Close()
	for _, equal := range bookHolds {
		var holds bool
		require.NoError(t, db.QueryRow(equal).Scan(&holds), equal)
		require.True(t, holds, equal)
	}
}

func TestPgbenchKeepsTheBook(t *testing.T) {
	t.Parallel()
	if _, err := findPgbench(); err != nil {
		t.Skipf("SKIPPED: %v; run: apt-get install postgresql-contrib", err)
	}
	dsn := testdb.Postgres(t)
	other, err := openPgbench(t.Context(), t.TempDir(), dsn)
	require.NoError(t, err)
	for _, w := range allWorks {
		m, err := other.run(t.Context(), w, 2, time.Second)
		require.NoError(t, err, w.name)
		require.Positive(t, m.records, w.name)
	}
	m, err := other.run(t.Context(), allWorks[0], 1, time.Second) // one client logs all latencies, two only a few
	require.NoError(t, err)
	require.Positive(t, m.p50)
	requireBook(t, dsn)
}

func requireBook(t *testing.T, dsn string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	for _, equal := range bookHolds {
		var holds bool
		require.NoError(t, conn.QueryRow(t.Context(), equal).Scan(&holds), equal)
		require.True(t, holds, equal)
	}
	require.NoError(t, conn.Close(t.Context()))
}

func TestPeersKeepTheBook(t *testing.T) {
	t.Parallel()
	if _, err := findPgbench(); err != nil {
		t.Skipf("SKIPPED: %v; run: apt-get install postgresql-contrib", err)
	}
	for _, title := range []string{peerName, pipelinedName} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Postgres(t)
			_, err := openPgbench(t.Context(), t.TempDir(), dsn)
			require.NoError(t, err)
			p, err := startPeer(t.Context(), dsn, title)
			require.NoError(t, err)
			for _, w := range allWorks[:4] {
				for stored := 0.0; stored <= 100; { // on a slow machine in several runs
					m, err := p.run(t.Context(), w, 4, shortRun/4)
					require.NoError(t, err, w.name)
					require.Zero(t, m.failed, w.name)
					stored += m.records * (shortRun / 4).Seconds()
				}
			}
			require.NoError(t, p.stop())
			requireBook(t, dsn)
		})
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
