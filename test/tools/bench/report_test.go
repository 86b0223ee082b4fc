package main

import (
	"bytes"
	"io"
	"testing"
	"time"

	"bankingapi/test/kit/golden"
	"bankingapi/test/kit/service"

	"github.com/stretchr/testify/require"
)

// aReport has every kind of row that a report can have.
func aReport() *report {
	r := &report{
		machine: []fact{
			{"CPU", "Example CPU"},
			{"Cores", "2"},
			{"Memory", "24.0 GiB"},
			{"Kernel", "linux 6.1"},
			{"Go", "go1.26"},
			{"Postgres server_version", "15.18"},
			{"Postgres fsync", "on"},
		},
		proofs: []string{"postgres: 37200 sales acknowledged, 37200 stored; `bankingapi verify` found nothing wrong"},
	}
	for round := 1; round <= 3; round++ {
		add := func(side string, w string, connections int, records float64, p50 time.Duration) {
			m := measure{
				engine: "postgres", side: side, work: w, connections: connections, round: round,
				records: records * float64(round), p50: p50 * time.Duration(round), p99: 3 * p50,
				used: usage{generator: 0.3},
			}
			if side != "pgbench" {
				m.used.service, m.used.database, m.memory = 0.8, 0.6, 60_000_000
			}
			r.measures = append(r.measures, m)
		}
		add(plainName, "sale", 1, 700, 650*time.Microsecond)
		add(bookName, "sale", 1, 650, 655*time.Microsecond)
		add("pgbench", "sale", 1, 500, 990*time.Microsecond)
		add(plainName, "sale", 64, 8000, 4*time.Millisecond)
		add("pgbench", "sale", 64, 2400, 13*time.Millisecond)
		add(peerName, "sale", 64, 2000, 15*time.Millisecond)
		add(otherName, "sale", 64, 6000, 5*time.Millisecond)
		add(plainName, "push", 256, 9000, 12*time.Millisecond)
		add("pgbench", "push", 256, 10000, 3*time.Millisecond)
		add(plainName, "push100", 16, 30000, time.Second)
	}
	r.add("Bytes of one operation.", []string{"engine", "stored"}, "postgres", "980")
	r.add("Bytes of one operation.", []string{"engine", "stored"}, "sqlite", "610")
	r.measures[0].failed = 3
	r.measures[1].used.foreign = 0.8
	return r
}

func TestReportAsPeopleSeeIt(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*report, io.Writer) error{
		"report.md":  (*report).writeMarkdown,
		"report.csv": (*report).writeCSV,
	} {
		var b bytes.Buffer
		require.NoError(t, write(aReport(), &b))
		golden.Equal(t, name, b.String())
	}
}

func TestEmptyReportIsStillWritten(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, (&report{}).writeMarkdown(&b))
	require.NoError(t, (&report{}).writeCSV(&b))
}

func TestPgbenchRate(t *testing.T) {
	t.Parallel()
	rate, err := pgbenchRate("number of failed transactions: 0 (0.000%)\nlatency average = 0.989 ms\ntps = 1011.204700 (without initial connection time)\n")
	require.NoError(t, err)
	require.InDelta(t, 1011.2047, rate, 0.0001)
	_, err = pgbenchRate("number of failed transactions: 7 (0.1%)\ntps = 1011.204700 (without initial connection time)\n")
	require.ErrorContains(t, err, "7 transactions failed")
	_, err = pgbenchRate("pgbench: fatal\n")
	require.Error(t, err)
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	s, err := parse([]string{"-engine=postgres", "-work=sale,chores", "-connections=1,64", "-set=commit.batch_limit=1", "-set=log.level=warn"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []string{"postgres"}, s.engines)
	require.Len(t, s.works, 1)
	require.Len(t, s.extras, 1)
	require.Equal(t, []int{1, 64}, s.connections)
	p := newProgram(nil, service.Open("postgres", "", "bankingapi"), s.service)
	require.Equal(t, "1", p.Setting("commit.batch_limit"))
	require.Equal(t, "warn", p.Setting("log.level"))

	for _, wrong := range [][]string{
		{"-engine=oracle"}, {"-work=buy"}, {"-connections=0"}, {"-connections=x"}, {"-rates=0"}, {"-rounds=0"}, {"-seconds=0"},
		{"-only=both"}, {"-set=nothing"}, {"stray"}, {"-book=-1"}, {"-book=5000"},
		{"-rows=5"}, {"-rows=2000000"}, {"-other-binary=/no/such/file"},
	} {
		_, err := parse(wrong, io.Discard)
		require.Error(t, err, wrong)
	}
}
