package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func reported(ok bool, lines ...string) string {
	var out strings.Builder
	r := newReport(&out)
	events := make(chan event)
	go read(strings.NewReader(strings.Join(lines, "\n")), events)
	for e := range events {
		r.add(e)
	}
	r.finish(2*time.Second, ok)
	return out.String()
}

func TestSkippedTestsAreNamedWithTheirReason(t *testing.T) {
	t.Parallel()
	require.Equal(t, `ok    bank/storage                                     1.5s

Skipped:
  no Postgres to test with
    bank/storage TestA/postgres
    bank/storage TestB
    bank/storage TestC
    and 1 more
  no reason given
    bank/storage TestE

All tests passed in 2s: 1 passed, 5 skipped.
`, reported(true,
		`{"Action":"start","Package":"bank/storage"}`,
		`{"Action":"output","Package":"bank/storage","Test":"TestA/postgres","Output":"=== RUN   TestA/postgres\n"}`,
		`{"Action":"output","Package":"bank/storage","Test":"TestA/postgres","Output":"    db.go:12: SKIPPED: no Postgres to test with\n"}`,
		`{"Action":"skip","Package":"bank/storage","Test":"TestA/postgres"}`,
		`{"Action":"pass","Package":"bank/storage","Test":"TestA"}`,
		`{"Action":"output","Package":"bank/storage","Test":"TestB","Output":"    db.go:12: no Postgres to test with\n"}`,
		`{"Action":"skip","Package":"bank/storage","Test":"TestB"}`,
		`{"Action":"output","Package":"bank/storage","Test":"TestC","Output":"    db.go:12: no Postgres to test with\n"}`,
		`{"Action":"skip","Package":"bank/storage","Test":"TestC"}`,
		`{"Action":"output","Package":"bank/storage","Test":"TestD","Output":"    db.go:12: no Postgres to test with\n"}`,
		`{"Action":"skip","Package":"bank/storage","Test":"TestD"}`,
		`{"Action":"skip","Package":"bank/storage","Test":"TestE"}`,
		`{"Action":"pass","Package":"bank/storage","Elapsed":1.5}`))
}

func TestTheSlowestTestsAreNamed(t *testing.T) {
	t.Parallel()
	require.Contains(t, reported(true,
		`{"Action":"pass","Package":"bank","Test":"TestA","Elapsed":5}`,
		`{"Action":"pass","Package":"bank","Test":"TestB/part","Elapsed":70.25}`,
		`{"Action":"pass","Package":"bank","Test":"TestB","Elapsed":80}`,
		`{"Action":"pass","Package":"bank","Test":"TestC","Elapsed":1}`,
	), "\nSlowest:\n    70.2s bank TestB/part\n     5.0s bank TestA\n\n")
}

func TestWhatFailsIsShown(t *testing.T) {
	t.Parallel()
	out := reported(false,
		`{"Action":"start","Package":"bank"}`,
		`{"Action":"output","Package":"bank","Test":"TestA","Output":"    a_test.go:7: 1 is not 2\n"}`,
		`{"Action":"fail","Package":"bank","Test":"TestA"}`,
		`{"Action":"output","Package":"bank","Output":"panic: at the end\n"}`,
		`{"Action":"fail","Package":"bank","Elapsed":0.1}`,
		`{"Action":"build-output","ImportPath":"other","Output":"other.go:1: undefined: x\n"}`,
		`{"Action":"fail","Package":"other"}`)
	for _, line := range []string{"FAIL  bank TestA\n    a_test.go:7: 1 is not 2\n", "panic: at the end", "undefined: x", "FAILED after 2s: bank other\n"} {
		require.Contains(t, out, line)
	}
}

// Who reads only the end of a long log must see it too.
func TestReasonsAreAtTheEnd(t *testing.T) {
	t.Parallel()
	out := reported(false,
		`{"Action":"output","Package":"bank","Test":"TestA/part","Output":"=== RUN   TestA/part\n"}`,
		`{"Action":"output","Package":"bank","Test":"TestA/part","Output":"    a_test.go:3: a figure\n"}`,
		`{"Action":"output","Package":"bank","Test":"TestA/part","Output":"    a_test.go:7: \n"}`,
		`{"Action":"output","Package":"bank","Test":"TestA/part","Output":"        \tError Trace:\t/a_test.go:7\n"}`,
		`{"Action":"output","Package":"bank","Test":"TestA/part","Output":"        \tError:      \tNot equal\n"}`,
		`{"Action":"output","Package":"bank","Test":"TestA/part","Output":"    --- FAIL: TestA/part (0.00s)\n"}`,
		`{"Action":"fail","Package":"bank","Test":"TestA/part"}`,
		`{"Action":"output","Package":"bank","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}`,
		`{"Action":"fail","Package":"bank","Test":"TestA"}`,
		`{"Action":"output","Package":"bank","Test":"TestB","Output":"    b_test.go:7: `+strings.Repeat("x", 400)+`\n"}`,
		`{"Action":"fail","Package":"bank","Test":"TestB"}`,
		`{"Action":"fail","Package":"bank"}`)
	_, end, _ := strings.Cut(out, "\nFailed:\n")
	require.Equal(t, "  bank TestA/part\n      a_test.go:7: \n          \tError Trace:\t/a_test.go:7\n          \tError:      \tNot equal\n"+
		"  bank TestB\n      b_test.go:7: "+strings.Repeat("x", 300-len("    b_test.go:7: "))+"\n"+
		"\nFAILED after 2s: bank\n", end)
}

func TestWhatIsStillRunningIsNamed(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := newReport(&out)
	r.running()
	r.add(event{Action: "start", Package: "bank/e2e"})
	r.add(event{Action: "start", Package: "bank"})
	r.add(event{Action: "pass", Package: "bank"})
	out.Reset()
	r.running()
	require.Equal(t, "      still running: bank/e2e\n", out.String())
}
