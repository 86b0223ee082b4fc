package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

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
	schema, err := scripts.ReadFile("sql/tables.sql")
	if err != nil {
		return nil, err
	}
	if err := execute(ctx, "pgx", dsn, string(schema), "VACUUM ANALYZE"); err != nil {
		return nil, err
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

func (p *pgbench) pids() []int { return nil }

func (p *pgbench) run(ctx context.Context, w work, connections int, length time.Duration) (*tally, error) {
	clients := min(connections, pgbenchClients)
	p.runs++ // ids begin with the run, so no two runs collide
	cmd := exec.CommandContext(ctx, p.binary, "--no-vacuum", "--protocol=prepared",
		"--client="+strconv.Itoa(clients), "--jobs="+strconv.Itoa(min(clients, 2)),
		"--time="+strconv.Itoa(max(1, int(length.Seconds()+0.5))),
		"--file="+filepath.Join(p.dir, "sql", w.Script+".sql"),
		"--define=n=0", "--define=run="+strconv.FormatInt(p.runs, 10), "--define=hot="+strconv.FormatBool(w.Sellers == hotSellers), p.dsn)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	rate, err := pgbenchRate(string(out))
	if err != nil {
		return nil, err
	}
	return &tally{Records: rate * float64(w.Records)}, nil
}

var (
	tpsLine    = regexp.MustCompile(`(?m)^tps = ([0-9.]+) \(without initial connection time\)`)
	failedLine = regexp.MustCompile(`(?m)^number of failed transactions: ([0-9]+) `)
)

// pgbenchRate reads transactions per second from what pgbench prints, and
// refuses a run in which some failed.
func pgbenchRate(out string) (float64, error) {
	failed := failedLine.FindStringSubmatch(out)
	if failed != nil && failed[1] != "0" {
		return 0, fmt.Errorf("pgbench: %s transactions failed", failed[1])
	}
	tps := tpsLine.FindStringSubmatch(out)
	if tps == nil {
		return 0, fmt.Errorf("pgbench says no rate:\n%s", out)
	}
	return strconv.ParseFloat(tps[1], 64)
}
