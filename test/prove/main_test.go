// Package prove_test tries to break the service, and counts what was lost.
//
// The services are the released program in processes of its own, on SQLite and
// on Postgres, unless a fault can only be made inside a process: a clock that
// is set, a disk that fails. Callers work as real ones do: they repeat what got
// no answer. Meanwhile processes are killed, connections cut, backends
// terminated, disks filled. Afterwards every request is held against what the
// store has (ledger_test.go), and the order of all requests against a model
// with porcupine (history_test.go). That these checks find bugs is proved with
// bugs: folder planted.
//
// As part of the other tests everything runs in a short form. The long form is
// asked for by the environment, as `make prove` does:
//
//	PROVE_ROUNDS  how often each kind of fault is tried (3)
//	PROVE_DUE     how many sales are due on one day (2000)
//	PROVE_IDLE    how many connections are idle (200)
//	PROVE_SEED    what the random choices begin with (the time)
//
// Lines that begin with "figure:" are results for people; go test -v shows
// them.
package prove_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/service"
	"bankingapi/test/testdb"
)

func TestMain(m *testing.M) { os.Exit(service.Main(m)) }

// setting is a number from the environment.
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

// chance is a source of random choices, which a failing test tells.
func chance(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(setting(t, "PROVE_SEED", int(time.Now().UnixNano()%1e9)))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the random choices began with PROVE_SEED=%d", seed)
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

// eventually waits until something holds, and fails the test when it does not
// within the limit. It looks often enough even where the machine stood still.
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
