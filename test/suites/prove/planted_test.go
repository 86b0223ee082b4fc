package prove_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// TestPlantedBugsAreFound checks that the linearizability check finds bugs, and
// finds none in the same program without them. It injects no faults.
func TestPlantedBugsAreFound(t *testing.T) {
	t.Parallel()
	const (
		sqlite   = testdb.EngineSQLite
		postgres = testdb.EnginePostgres
	)
	for name, planted := range map[string]struct {
		bug, engine string
		replicas    int
		found       bool
	}{
		"no bug":                            {"none", postgres, 2, false},
		"a double sale on SQLite":           {"double-sale", sqlite, 1, true},
		"a double sale on Postgres":         {"double-sale", postgres, 2, true},
		"a lost credit on SQLite":           {"lost-credit", sqlite, 1, true},
		"a lost credit on Postgres":         {"lost-credit", postgres, 2, true},
		"a lost push":                       {"lost-push", sqlite, 1, true},
		"an answer before the commit":       {"early-answer", sqlite, 1, true},
		"reading without a lock (Postgres)": {"no-lock", postgres, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := service.Build(t, "bankingapi/test/suites/prove/planted", "planted")
			// Which requests overlap is random, so one history may not show the
			// bug.
			for n := range 20 {
				ok, hasRun := true, false
				t.Run(strconv.Itoa(n), func(t *testing.T) { // its deployment ends with it
					h := oneHistory(t, chance(t), planted.engine, planted.replicas, 0, func(b *service.Bank) {
						b.Program = program
						b.Environment = append(b.Environment, "PLANTED="+planted.bug)
					})
					ok, _ = h.isLinearizable(t)
					hasRun = true
				})
				if !hasRun || ok != planted.found || t.Failed() { // without Postgres it is skipped
					return
				}
				if !planted.found {
					break
				}
			}
			require.Fail(t, "the check did not find the bug")
		})
	}
}
