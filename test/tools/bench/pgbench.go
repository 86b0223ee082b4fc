package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed sql
var scripts embed.FS

// pgbenchClients is the most clients that pgbench runs with: a Postgres as
// installed takes 100 connections, and more clients make it slower.
const pgbenchClients = 64

// pgbench is the other side on Postgres: a C program that runs the same work,
// one transaction for each request, prepared, on tables of its own.
type pgbench struct {
	binary string
	dir    string
	dsn    string
	runs   int64
}

// openPgbench loads the same book into a database of its own.
func openPgbench(ctx context.Context, dir, dsn string) (*pgbench, error) {
	binary, err := findPgbench()
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	schema, err := scripts.ReadFile("sql/postgres.sql")
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{string(schema), "VACUUM ANALYZE"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	p := &pgbench{binary: binary, dir: filepath.Join(dir, "pgbench"), dsn: dsn, runs: time.Now().Unix()}
	return p, os.CopyFS(p.dir, scripts)
}

// findPgbench looks on the path, then where Debian keeps server binaries.
func findPgbench() (string, error) {
	if binary, err := exec.LookPath("pgbench"); err == nil {
		return binary, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if err != nil || len(found) == 0 {
		return "", errors.New("pgbench is neither on the path nor in /usr/lib/postgresql: install postgresql-contrib or postgresql-client")
	}
	return slices.Max(found), nil
}

func (p *pgbench) name() string { return "pgbench" }

func (p *pgbench) run(ctx context.Context, w work, connections int, length time.Duration) (measure, error) {
	clients := min(connections, pgbenchClients)
	p.runs++ // ids begin with the run, so no two runs collide
	log := filepath.Join(p.dir, fmt.Sprintf("log-%d", p.runs))
	// Every transaction's latency where there are few, a sample where writing
	// them all would cost the cores that are measured.
	sampling := "1"
	if clients > 1 {
		sampling = "0.05"
	}
	cmd := exec.CommandContext(ctx, p.binary, "--no-vacuum", "--protocol=prepared",
		"--client="+strconv.Itoa(clients), "--jobs="+strconv.Itoa(min(clients, 2)),
		"--time="+strconv.Itoa(max(1, int(length.Seconds()+0.5))),
		"--file="+filepath.Join(p.dir, "sql", w.script()+".sql"),
		"--define=n=0", "--define=run="+strconv.FormatInt(p.runs, 10),
		"--log", "--log-prefix="+log, "--sampling-rate="+sampling, p.dsn)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return measure{}, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	rate, err := pgbenchRate(string(out))
	if err != nil {
		return measure{}, err
	}
	latency, err := pgbenchLatency(log)
	if err != nil {
		return measure{}, err
	}
	return measure{records: rate * float64(w.records), p50: latency.quantile(0.5), p99: latency.quantile(0.99)}, nil
}

// script is the name of the other side's SQL for a work. Its plain insert of a
// push has no CallerId to keep, which makes it the harder opponent.
func (w work) script() string {
	switch w.name {
	case "push-caller":
		return "push"
	case "sale-mixed": // clean sales: the ratio to those of the service shows what the mix costs
		return "sale"
	}
	return w.name
}

var (
	tpsLine    = regexp.MustCompile(`(?m)^tps = ([0-9.]+) \(without initial connection time\)`)
	failedLine = regexp.MustCompile(`(?m)^number of failed transactions: ([0-9]+) `)
)

// pgbenchRate reads transactions per second from what pgbench prints, and
// refuses a run in which some failed.
func pgbenchRate(out string) (float64, error) {
	if failed := failedLine.FindStringSubmatch(out); failed != nil && failed[1] != "0" {
		return 0, fmt.Errorf("pgbench: %s transactions failed", failed[1])
	}
	tps := tpsLine.FindStringSubmatch(out)
	if tps == nil {
		return 0, fmt.Errorf("pgbench says no rate:\n%s", out)
	}
	return strconv.ParseFloat(tps[1], 64)
}

// pgbenchLatency reads and removes the transaction logs of one run. The third
// column is the latency in microseconds.
func pgbenchLatency(prefix string) (latencies, error) {
	logs, err := filepath.Glob(prefix + ".*")
	if err != nil {
		return nil, err
	}
	var latency latencies
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			columns := strings.Fields(line)
			if len(columns) < 3 {
				continue
			}
			us, err := strconv.Atoi(columns[2])
			if err != nil {
				return nil, fmt.Errorf("pgbench log: %q", line)
			}
			latency.record(time.Duration(us) * time.Microsecond)
		}
		if err := os.Remove(name); err != nil {
			return nil, err
		}
	}
	return latency, nil
}
