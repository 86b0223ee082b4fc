package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bankingapi/test/golden"

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
		overloads: []overload{{
			engine: "postgres", kind: "three times the connections", best: 20000, bestConnections: 256, offered: 45000, connections: 768, goodput: 18600,
			latency: 80 * time.Millisecond, refused: 52800, refusal: 12 * time.Millisecond, recovery: 50 * time.Millisecond,
			answers: "200 x 37200, 503 x 52800", used: usage{generator: 0.7, service: 0.8, database: 0.5},
		}, {
			engine: "sqlite", kind: "three times the rate", best: 10000, bestConnections: 64, offered: 30000, connections: 192, goodput: 8000, recovery: -1,
		}},
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
		add(secureName, "sale", 1, 600, 700*time.Microsecond)
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
		"report.svg": (*report).writeSVG,
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
	require.NoError(t, (&report{}).writeSVG(&b))
}

// TestSVGIsXML checks that a reader of XML accepts the picture.
func TestSVGIsXML(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, aReport().writeSVG(&b))
	for tokens := xml.NewDecoder(&b); ; {
		_, err := tokens.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]string{630.4: "630", 999.4: "999", 5649: "5.6k", 9949: "9.9k", 9951: "10k", 12_400: "12k"} {
		require.Equal(t, want, thousands(rate))
	}
}

func TestReportOfEarlierRuns(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "bench.csv")
	require.NoError(t, writeFile(name, aReport().writeCSV))
	got, err := readReports([]string{name, name})
	require.NoError(t, err)
	half := len(got.measures) / 2
	require.Equal(t, got.measures[:half], got.measures[half:])

	got.measures = got.measures[:half]
	want, again := new(bytes.Buffer), new(bytes.Buffer)
	require.NoError(t, aReport().writeCSV(want))
	require.NoError(t, got.writeCSV(again))
	require.Equal(t, want.String(), again.String())

	for _, wrong := range []string{"", "a,b\n", strings.Replace(want.String(), ",sale,", ",buy,", 1), strings.Replace(want.String(), ",700.0,", ",many,", 1)} {
		require.Error(t, new(report).readCSV(strings.NewReader(wrong)), wrong)
	}
	_, err = readReports([]string{name + "x"})
	require.Error(t, err)
}

func TestPerRequest(t *testing.T) {
	t.Parallel()
	require.Equal(t, 80*time.Microsecond, measure{records: 10_000, used: usage{service: 0.8}}.perRecord())
	require.Zero(t, measure{used: usage{service: 0.8}}.perRecord())
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
	s, err := parse([]string{"-engine=postgres", "-work=sale,overload", "-connections=1,64", "-set=commit.batch_limit=1", "-set=log.level=warn"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []string{"postgres"}, s.engines)
	require.Len(t, s.works, 1)
	require.Len(t, s.extras, 1)
	require.Equal(t, []int{1, 64}, s.connections)
	p := newProgram("bankingapi", "", s.service)
	require.Contains(t, p.env, "BANKINGAPI_COMMIT__BATCH_LIMIT=1")
	require.Contains(t, p.env, "BANKINGAPI_LOG__LEVEL=warn")

	for _, wrong := range [][]string{
		{"-engine=oracle"}, {"-work=buy"}, {"-connections=0"}, {"-connections=x"}, {"-rounds=0"}, {"-seconds=0"},
		{"-only=both"}, {"-set=nothing"}, {"stray"}, {"-book=-1"}, {"-book=5000"},
		{"-rows=5"}, {"-rows=2000000"}, {"-steady=0s"}, {"-other-binary=/no/such/file"},
	} {
		_, err := parse(wrong, io.Discard)
		require.Error(t, err, wrong)
	}
}
