// Package prove_test injects faults into the service and counts what is lost.
//
// The services are processes of the released program, on SQLite and on
// Postgres. A service runs in the test process only if its fault can only be
// injected there: a clock that a test sets, a disk that fails. Callers behave as
// real ones do: they repeat a request that got no answer. Meanwhile processes
// are killed, connections cut, backends terminated, and disks filled. Afterwards
// every request is compared with the rows of the store (ledger_test.go), and the
// order of all requests is checked against a model with porcupine
// (history_test.go). Folder planted has programs with bugs, which these checks
// must find.
//
// By default each test runs in a short form. Environment variables select the
// long form, as `make prove` does:
//
//	PROVE_ROUNDS  how often each kind of fault is tried (3)
//	PROVE_DUE     how many sales are due on one day (2000)
//	PROVE_IDLE    how many connections are idle (200)
//	PROVE_FAILOVERS  how many kills and switch-overs of a managed cluster (0)
//	PROVE_SEED    the seed of the random choices (the time)
//
// Lines that begin with "figure:" are results for people. go test -v prints
// them.
package prove_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

func TestMain(m *testing.M) { os.Exit(service.Main(m)) }

// setting returns a number from the environment.
func setting(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

func rounds(t testing.TB) int { return setting(t, "PROVE_ROUNDS", 3) }

// chance returns a source of random choices. A failing test prints its seed.
func chance(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(setting(t, "PROVE_SEED", int(time.Now().UnixNano()%1e9)))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the seed of the random choices is PROVE_SEED=%d", seed)
		}
	})
	name := uint64(0)
	for _, c := range t.Name() {
		name = name*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(seed, name))
}

// figure logs a result for people.
func figure(t testing.TB, format string, values ...any) {
	t.Helper()
	t.Log("figure: " + strings.ReplaceAll(t.Name(), "_", " ") + ": " + fmt.Sprintf(format, values...))
}

// onEachEngine runs a test on SQLite and on Postgres.
func onEachEngine(t *testing.T, test func(t *testing.T, engine string)) {
	t.Helper()
	for _, engine := range []string{testdb.EngineSQLite, testdb.EnginePostgres} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			test(t, engine)
		})
	}
}

// eventually polls a condition and fails the test if it is still false at the
// limit. It polls at least a few times even if the machine stalls.
func eventually(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	end := time.Now().Add(limit)
	for looks := 0; !holds(); looks++ {
		if time.Now().After(end) && looks > 100 {
			require.FailNow(t, "it did not come true within "+limit.String(), what)
		}
		<-ticker.C
	}
}

// pauses measures how long this process got no time from the machine. The function
// that it returns tells the longest pause so far.
func pauses(t testing.TB) func() time.Duration {
	const tick = 10 * time.Millisecond
	var longest atomic.Int64
	go func() {
		for last := time.Now(); t.Context().Err() == nil; {
			time.Sleep(tick)
			now := time.Now()
			longest.Store(max(longest.Load(), int64(now.Sub(last)-tick)))
			last = now
		}
	}()
	return func() time.Duration { return time.Duration(longest.Load()) }
}
