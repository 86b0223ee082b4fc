//go:build unix

package prove_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// TestTheFileIsGone removes or replaces the SQLite file of a running service.
// Later writes would go to a file without a name and be lost with the process,
// so the service must not acknowledge them: requests are answered 503, the
// service is not ready, and the log says why.
func TestTheFileIsGone(t *testing.T) {
	t.Parallel()
	for name, strike := range map[string]struct {
		do, undo func(t *testing.T, file string)
	}{
		"the whole folder removed": {do: func(t *testing.T, file string) {
			require.NoError(t, os.RemoveAll(filepath.Dir(file)))
		}},
		"a restore renamed over it": {do: func(t *testing.T, file string) {
			copyFile(t, file+".backup", file+".restore")
			require.NoError(t, os.Rename(file+".restore", file))
		}},
		"moved away and back": {
			do:   func(t *testing.T, file string) { require.NoError(t, os.Rename(file, file+".away")) },
			undo: func(t *testing.T, file string) { require.NoError(t, os.Rename(file+".away", file)) },
		},
		"its write-ahead log removed": {do: func(t *testing.T, file string) {
			require.NoError(t, os.Remove(file+"-wal"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deploy(t, testdb.EngineSQLite, 1, 1, nil)
			one := d.replicas[0]
			require.Equal(t, completed, d.sell(t, 0).verdict)
			require.NoError(t, d.db.Close()) // the test keeps no file open
			backup(t, d.bank)
			require.Equal(t, completed, d.sell(t, 1).verdict)

			strike.do(t, d.bank.DSN)
			for i := range 5 {
				require.Equal(t, noEffect, d.sell(t, 2+i).verdict, "a sale that would be lost is not acknowledged")
				got, _ := d.store(t)
				require.Equal(t, noEffect, got.verdict)
				require.Contains(t, []verdict{noEffect, unknown}, d.sell(t, 0).verdict, "a repeat is not acknowledged either")
			}
			eventually(t, service.Patience, "the service is not ready because of its file", func() bool {
				status, text := one.process.Get(t, "/readyz")
				return status == http.StatusServiceUnavailable && strings.Contains(text, "database file")
			})
			one.process.Await(t, one.process.Err, `database file`)

			if strike.undo != nil {
				strike.undo(t, d.bank.DSN)
				d.awaitWell(t)
				eventually(t, service.Patience, "the service is ready again", one.process.IsReady)
				for i := range 5 {
					require.Equal(t, result{verdict: completed}, d.sell(t, 2+i))
				}
				d.bank.Verify(t)
			}
		})
	}
}

// TestKilledAfterTheFileWasReplaced replaces the file or removes its log under
// load, and then kills the process. Everything acknowledged after that is in
// the file at the configured path.
func TestKilledAfterTheFileWasReplaced(t *testing.T) {
	t.Parallel()
	for name, strike := range map[string]func(t *testing.T, file string){
		"log removed": func(t *testing.T, file string) { require.NoError(t, os.Remove(file+"-wal")) },
		"restored": func(t *testing.T, file string) {
			require.NoError(t, os.Remove(file+"-wal"))
			require.NoError(t, os.Remove(file+"-shm"))
			copyFile(t, file+".backup", file+".restore")
			require.NoError(t, os.Rename(file+".restore", file))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deploy(t, testdb.EngineSQLite, 1, 1, nil)
			require.NoError(t, d.db.Close())
			backup(t, d.bank)
			for range 20 {
				got, _ := d.store(t)
				require.Equal(t, completed, got.verdict)
			}
			strike(t, d.bank.DSN)
			var acknowledged []int
			for range 50 {
				if got, record := d.store(t); got.verdict == completed {
					acknowledged = append(acknowledged, record)
				}
			}
			d.replicas[0].process.Kill(t)
			d.db = openStore(t, d.bank)
			found := map[int]bool{}
			for _, record := range d.mustList(t, 0) {
				found[record] = true
			}
			for _, record := range acknowledged {
				require.True(t, found[record], "acknowledged, but lost: %d of %d", record, len(acknowledged))
			}
		})
	}
}

// backup writes a copy of the file of a running service next to it.
func backup(t testing.TB, b *service.Bank) {
	t.Helper()
	db := openStore(t, b)
	_, err := db.ExecContext(t.Context(), "VACUUM INTO '"+b.DSN+".backup'")
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, content, 0o600))
}
