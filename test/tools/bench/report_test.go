package main

import (
	"bytes"
	"io"
	"testing"
	"time"

	"bankingapi/test/kit/golden"

	"github.com/stretchr/testify/require"
)

// aSide is a side in a report.
type aSide struct {
	side
	title string
}

func (s aSide) name() string { return s.title }

// aReport has every kind of row that a report can have.
func aReport() *report {
	r := &report{
		machine: []fact{{"CPU", "Example CPU"}, {"Cores", "2"}},
		proofs:  []string{"postgres: 37200 sales acknowledged, 37200 stored; `bankingapi verify` found nothing wrong"},
	}
	var trials []*trial
	for _, row := range []struct {
		side        string
		connections int
		records     float64
		p50         time.Duration
	}{
		{plainName, 1, 700, 650 * time.Microsecond}, {bookName, 1, 650, 655 * time.Microsecond}, {"pgbench", 1, 500, 0},
		{plainName, 64, 8000, 4 * time.Millisecond}, {peerName, 64, 2000, 15 * time.Millisecond}, {otherName, 64, 6000, 5 * time.Millisecond},
	} {
		o := &trial{work: plainSale, side: aSide{title: row.side}, connections: row.connections}
		for round := 1; round <= 3; round++ {
			o.measures = append(o.measures, measure{
				engine: "postgres", side: row.side, work: plainSale.Title, connections: row.connections, round: round,
				records: row.records * float64(round), p50: row.p50 * time.Duration(round), p99: 3 * row.p50,
				used: usage{generator: 0.3, service: 0.8, database: 0.6}, memory: 60_000_000,
			})
		}
		r.measures = append(r.measures, o.measures...)
		trials = append(trials, o)
	}
	r.compare("postgres", trials)
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
	require.Equal(t, map[string]string{"commit.batch_limit": "1", "log.level": "warn"}, s.service)

	for _, wrong := range [][]string{
		{"-engine=oracle"}, {"-work=buy"}, {"-connections=0"}, {"-connections=x"}, {"-rates=0"}, {"-rounds=0"}, {"-seconds=0"},
		{"-set=nothing"}, {"stray"}, {"-book=-1"}, {"-book=5000"},
		{"-rows=5"}, {"-rows=15000"}, {"-rows=1500000"}, {"-other-binary=/no/such/file"},
	} {
		_, err := parse(wrong, io.Discard)
		require.Error(t, err, wrong)
	}
}
