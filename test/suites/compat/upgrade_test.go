package compat_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// nextVersion is a program like this one with one more migration on each engine, built once.
var nextVersion = sync.OnceValues(func() (program string, err error) {
	folder, err := os.MkdirTemp("", "bankingapi-next-")
	if err != nil {
		return "", err
	}
	next := store.SchemaVersion + 1
	script := `set -e
git -C ../../.. ls-files -z --cached --others --exclude-standard ':!test/suites/compat/testdata' | (cd ../../.. && xargs -0 sh -c 'for f; do test ! -f "$f" || echo "$f"; done' sh) | tar -C ../../.. -T - -c | tar -x -C "$0"
cd "$0"
for engine in sqlite postgres; do
  printf -- '-- +goose Up\nALTER TABLE {{prefix}}subscriptions ADD COLUMN language text NOT NULL DEFAULT %s;\n' "''" > "adapters/storage/$engine/migrations/$1_next.sql"
done
sed -i.bak "s/^const SchemaVersion = .*/const SchemaVersion = $2/" application/store/store.go
CGO_ENABLED=0 go build -trimpath -o next ./cmd/bankingapi`
	number := strings.Repeat("0", 5-len(strconv.Itoa(next))) + strconv.Itoa(next)
	out, err := exec.Command("sh", "-c", script, folder, number, strconv.Itoa(next)).CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return filepath.Join(folder, "next"), nil
})

// An upgrade to a version with one more migration: the running service goes on while the schema
// changes, the next one takes over, and the way back is the backup of before.
func TestUpgradeAndTheWayBack(t *testing.T) {
	t.Parallel()
	if exec.CommandContext(t.Context(), "git", "rev-parse").Run() != nil {
		t.Skip("SKIPPED: not a git checkout, so which files belong to the next version is not known")
	}
	next, err := nextVersion()
	require.NoError(t, err, next)
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(next)) })
	for _, engine := range []string{testdb.EngineSQLite, testdb.EnginePostgres} {
		t.Run(engine, func(t *testing.T) {
			b := newBank(t, engine)
			b.Must(t, "trail", "keygen", "bank.example/log", "--file", b.Setting("trail.key_file"))
			b.Migrate(t)
			key := b.Subscribe(t, "partner")
			pushed := func(p *service.Process, id string) {
				t.Helper()
				answer := send(t, p, key, exchange{Path: push, Body: `{"Header":{"CallerId":"` + id + `"},"Parameters":[` +
					`{"ExternalApplicationCode":"APP","UserId":"u","PushId":"` + id + `","Platform":65,"SendStatus":1}]}`})
				require.JSONEq(t, `{"Data":{"State":2}}`, answer.Answer)
			}
			old := b.Serve(t)
			pushed(old, "before")
			checkpoint := b.Must(t, "trail", "checkpoint")
			backup := filepath.Join(t.TempDir(), "backup.db")
			var dumped []byte
			if engine == testdb.EngineSQLite {
				b.Must(t, "backup", backup)
			} else {
				if !hasDump() {
					t.Skip("SKIPPED: no pg_dump on this machine, or no TEST_POSTGRES_DSN; run: apt-get install postgresql, then set TEST_POSTGRES_DSN")
				}
				dumped = dump(t, b)
			}

			upgraded := b.Replica(t)
			upgraded.Program = next
			upgraded.Must(t, "migrate", "up")
			pushed(old, "meanwhile")
			require.True(t, old.IsReady(), "the version before works on the schema of the next")
			taken := upgraded.Serve(t)
			pushed(taken, "by the next")
			old.Stop(t)
			pushed(taken, "before") // a repeat
			taken.Stop(t)
			upgraded.Must(t, "verify", "--against", put(t, checkpoint))

			refused := b.Run(t, "verify")
			require.NotZero(t, refused.Status)
			require.Contains(t, refused.Err, "too new")

			if engine == testdb.EngineSQLite {
				b.Must(t, "restore", backup, "--replace", "--against", put(t, checkpoint))
			} else {
				b.On(testdb.Postgres(t))
				restoreDump(t, b.DSN, dumped)
				b = b.Replica(t) // without the checkpoints of the upgraded book
			}
			b.Must(t, "verify", "--against", put(t, checkpoint))
			back := b.Serve(t)
			pushed(back, "before")
			pushed(back, "meanwhile")
			back.Stop(t)
			require.Len(t, b.Export(t, "notifications"), 2)
		})
	}
}
