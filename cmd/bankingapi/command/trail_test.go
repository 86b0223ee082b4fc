package command

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/application/trail"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
	"bankingapi/domain/audit"
)

// A file that could not be written does not stay: keygen --keep would take it for a key.
func TestAFileThatCannotBeWrittenDoesNotStay(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "trail.key")
	file, err := newFile(name)
	require.NoError(t, err)
	require.NoError(t, file.Close()) // a full disk fails too
	require.Error(t, finish(file, "key"))
	require.NoFileExists(t, name)
}

// A signing key is never replaced: a second keygen fails, or keeps the file.
func TestKeygenKeepsAnExistingKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "trail.key")
	keygen := func(flags ...string) outcome {
		t.Helper()
		return bankingapi(t, nil, append([]string{"trail", "keygen", "bank.example/log", "--file", file}, flags...)...)
	}
	require.Zero(t, keygen("--keep").status, "it makes the first one")
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotZero(t, keygen().status)
	kept := keygen("--keep")
	require.Zero(t, kept.status, kept.err)
	require.Contains(t, kept.err, "exists and stays as it is")
	require.Empty(t, kept.out, "no public key of another key")
	second, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, first, second)
}

// A key that is no key is wrong use. It says nothing of the proof.
func TestCheckWithoutAKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "proof")
	require.NoError(t, os.WriteFile(file, []byte("no proof"), 0o600))
	require.Equal(t, outcome{2, "", "bankingapi: --key is not a verifying key of the trail: it looks like name+hash+key; see 'bankingapi trail check --help'\n"},
		bankingapi(t, nil, "trail", "check", file, "--key", "abc"))
	key := bankingapi(t, nil, "trail", "keygen", "bank.example/log", "--file", file+".key").out
	got := bankingapi(t, nil, "trail", "check", file, "--key", key)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "the proof does not hold")
}

func TestOneBatchIsSingular(t *testing.T) {
	t.Parallel()
	require.Contains(t, screen("verified", backoffice.Proof{Batches: 1, Unsealed: 1}), "Checked 1 batch of the trail, and 1 that is not in a checkpoint yet.\n")
	require.Contains(t, screen("verified", backoffice.Proof{Batches: 2}), "Checked 2 batches of the trail, and 0 that are not in a checkpoint yet.\n")
}

// Before the log begins nothing is compared with the trail, and verify says so.
func TestVerifySaysThatTheLogHasNotBegun(t *testing.T) {
	t.Parallel()
	book := "--storage.dsn=" + filepath.Join(t.TempDir(), "bank.db")
	verified := func() outcome {
		t.Helper()
		got := bankingapi(t, nil, "verify", book)
		require.Zero(t, got.status, got.err)
		return got
	}
	require.Zero(t, bankingapi(t, nil, "migrate", "up", book).status)
	require.Zero(t, bankingapi(t, nil, "subscriptions", "create", "shop", book).status)
	require.Contains(t, verified().err, "The trail was not compared: Its log has not begun.")
	require.Zero(t, bankingapi(t, nil, "trail", "checkpoint", book).status)
	require.NotContains(t, verified().err, "not compared: Its log")
}

// The audit says who began another log, and why.
func TestRekeyKeepsItsReason(t *testing.T) {
	t.Parallel()
	book := "--storage.dsn=" + filepath.Join(t.TempDir(), "bank.db")
	require.Zero(t, bankingapi(t, nil, "migrate", "up", book).status)
	require.Zero(t, bankingapi(t, nil, "subscriptions", "create", "shop", book).status)
	require.Zero(t, bankingapi(t, nil, "trail", "checkpoint", book).status)
	got := bankingapi(t, nil, "trail", "rekey", "--as", "ayse", "--reason", "the key was seen", book)
	require.Zero(t, got.status, got.err)
	require.Regexp(t, `,ayse,.*trail\.rekey,.*,the key was seen,`, bankingapi(t, nil, "export", "audit", book).out)
}

// A database may refuse the new log: a standby, or one without the right. Then the key stays that of
// the log, as the service needs it.
func TestARekeyThatTheDatabaseRefusesKeepsTheKey(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, keyFile := filepath.Join(folder, "bank.db"), filepath.Join(folder, "bank.trail.key")
	book := "--storage.dsn=" + file
	require.Zero(t, bankingapi(t, nil, "migrate", "up", book).status)
	require.Zero(t, bankingapi(t, nil, "subscriptions", "create", "shop", book).status)
	require.Zero(t, bankingapi(t, nil, "trail", "checkpoint", book).status)
	key, err := os.ReadFile(keyFile)
	require.NoError(t, err)
	execute := func(statement string) {
		t.Helper()
		db, err := sql.Open("sqlite", file)
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), statement)
		require.NoError(t, errors.Join(err, db.Close()))
	}
	execute("CREATE TRIGGER refuse BEFORE DELETE ON trail_batches BEGIN SELECT RAISE(ABORT, 'refuses it'); END")

	got := bankingapi(t, nil, "trail", "rekey", book)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "refuses it")

	now, err := os.ReadFile(keyFile)
	require.NoError(t, err)
	require.Equal(t, string(key), string(now))
	others, err := filepath.Glob(keyFile + ".*")
	require.NoError(t, err)
	require.Empty(t, others)
	execute("DROP TRIGGER refuse")
	require.Zero(t, bankingapi(t, nil, "verify", book).status)
	require.Zero(t, bankingapi(t, nil, "trail", "rekey", book).status)
	require.Zero(t, bankingapi(t, nil, "verify", book).status)
}

// commandAtClear is the end of a log during which another command commits a batch of this log.
type commandAtClear struct {
	trail.Origin
	file string
}

func (c commandAtClear) Clear(ctx context.Context, act audit.Act) error {
	db, err := sql.Open("sqlite", c.file)
	if err != nil {
		return err
	}
	defer db.Close()
	var id, entries, mac []byte
	err = db.QueryRowContext(ctx, "SELECT batch_id, entries, mac FROM trail_batches LIMIT 1").Scan(&id, &entries, &mac)
	if err != nil {
		return err
	}
	err = c.Origin.Clear(ctx, act)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "INSERT INTO trail_batches (batch_id, entries, mac) VALUES (?, ?, ?)", id, entries, mac)
	return err
}

// A command that a timer starts may know the key of the log that ends. What it writes is in no log. So
// rekey says that it must be run again.
func TestARekeyBesideAnotherCommand(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bank.db")
	book := "--storage.dsn=" + file
	require.Zero(t, bankingapi(t, nil, "migrate", "up", book).status)
	require.Zero(t, bankingapi(t, nil, "subscriptions", "create", "shop", book).status)
	require.Zero(t, bankingapi(t, nil, "trail", "checkpoint", book).status)
	beside := func(ctx context.Context, o store.Options) (*store.Store, error) {
		opened, err := sqlite.Open(ctx, o)
		if err == nil {
			opened.Trail.Origin = commandAtClear{opened.Trail.Origin, file}
		}
		return opened, err
	}
	var out, errOut strings.Builder
	p := program{nil, bootstrap.Options(parts.All(), bootstrap.WithDriver("sqlite", beside)), ""}
	require.Equal(t, 1, p.run(t.Context(), []string{"trail", "rekey", book}, strings.NewReader(""), &out, &errOut))
	require.Contains(t, errOut.String(), "another process has changed the book at the same moment: batches of the trail were left out")
	require.Contains(t, errOut.String(), "run 'trail rekey' again")
	require.Equal(t, 1, bankingapi(t, nil, "verify", book).status)
	got := bankingapi(t, nil, "trail", "rekey", book)
	require.Zero(t, got.status, got.err)
	got = bankingapi(t, nil, "verify", book)
	require.Zero(t, got.status, got.out+got.err)
}

// killedRekey is the beginning of a log at which the program is killed. The log before it has ended.
type killedRekey struct {
	trail.Origin
	isCleared *bool
	// isLate says that the new log has the rows, and only its first checkpoint is missing.
	isLate bool
}

func (k killedRekey) Clear(ctx context.Context, act audit.Act) error {
	*k.isCleared = true
	return k.Origin.Clear(ctx, act)
}

func (k killedRekey) Adopt(ctx context.Context) (int64, error) {
	if !*k.isCleared {
		return k.Origin.Adopt(ctx)
	}
	if k.isLate {
		_, err := k.Origin.Adopt(ctx)
		if err != nil {
			return 0, err
		}
	}
	return 0, errors.New("killed")
}

// A rekey may be killed when the old log has ended and the new one has not begun. The act says so at once.
// Run again, it goes on with its key, and prints the checkpoint of the log that has ended.
func TestARekeyThatWasKilledGoesOn(t *testing.T) {
	t.Parallel()
	for _, isLate := range []bool{false, true} {
		b := newOperated(t)
		last := b.must(t, "trail", "checkpoint")
		killed := func(ctx context.Context, o store.Options) (*store.Store, error) {
			opened, err := sqlite.Open(ctx, o)
			if err == nil {
				opened.Trail.Origin = killedRekey{opened.Trail.Origin, new(bool), isLate}
			}
			return opened, err
		}
		p := program{b.environment, bootstrap.Options(parts.All(), bootstrap.WithDriver("sqlite", killed)), ""}
		var out strings.Builder
		require.Equal(t, 1, p.run(t.Context(), []string{"trail", "rekey", "--reason", "the key was seen", "--as", "ayse"}, strings.NewReader(""), &out, &out))
		require.Contains(t, out.String(), "killed")

		key := strings.TrimSpace(b.must(t, "trail", "key"))
		acts := b.must(t, "export", "audit", "--action", "trail.rekey")
		require.Contains(t, acts, "the key was seen")
		require.Contains(t, acts, key)
		require.Contains(t, acts, last)

		again := b.run(t, "trail", "rekey", "other.example/log", "--reason", "once more")
		require.Zero(t, again.status, again.err)
		require.Equal(t, key+"\n", again.out, "no third key")
		require.Contains(t, again.err, "The log that ended had this checkpoint. Keep it with its public key:\n\n"+last)
		require.Equal(t, acts, b.must(t, "export", "audit", "--action", "trail.rekey"), "one log has ended")
		require.Contains(t, b.run(t, "verify").err, "The book is correct.")
		id := strings.Split(strings.Split(acts, "\n")[1], ",")[0]
		require.Contains(t, b.must(t, "trail", "prove", id), `"format":"bankingapi proof 1"`)

		next := b.run(t, "trail", "rekey")
		require.Zero(t, next.status, next.err)
		require.NotEqual(t, again.out, next.out, "the log of the key has begun, so it ends")
	}
}

// A rekey may be killed when the new key is in its file, and the log is still that of the old key.
func TestARekeyThatWasKilledEarlyPrintsTheCheckpoint(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	last := b.must(t, "trail", "checkpoint")
	keyFile := filepath.Join(b.folder, "bank.trail.key")
	require.NoError(t, os.Rename(keyFile, keyFile+".0a1b2c3d"))
	key := b.must(t, "trail", "keygen", "bank.example/new", "--file", keyFile)
	again := b.run(t, "trail", "rekey")
	require.Zero(t, again.status, again.err)
	require.Equal(t, key, again.out)
	require.Contains(t, again.err, "The log that ended had this checkpoint. Keep it with its public key:\n\n"+last)
	require.Contains(t, b.must(t, "export", "audit", "--action", "trail.rekey"), last)
	require.Contains(t, b.run(t, "verify").err, "The book is correct.")
}

// A service without its key sold beside the log. An act takes its rows into the log, and names
// them. A row that was changed is not taken.
func TestAdopt(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	b.sell(t, "before", 1001, 1, b.today)
	b.must(t, "trail", "checkpoint")
	nothing := b.run(t, "trail", "adopt", "--reason", "nothing happened")
	require.Equal(t, outcome{0, "", "Every row is in the log already: nothing was changed.\n"}, nothing)
	require.NotContains(t, b.must(t, "export", "audit"), "trail.adopt")

	outside := b.sellOutside(t)
	found := b.run(t, "verify")
	require.Equal(t, 1, found.status)
	require.Contains(t, found.out, outside+": is not in the trail")

	require.Equal(t, 2, b.run(t, "trail", "adopt").status, "it needs a reason")
	taken := b.run(t, "trail", "adopt", "--reason", "started without its key", "--as", "ayse")
	require.Equal(t, outcome{0, outside + "\n", "Took 1 row into the log. Run verify: what it still reports was changed, and not only left out.\n"}, taken)
	require.Regexp(t, `,ayse,.*,trail\.adopt,1 row,started without its key,`+outside, b.must(t, "export", "audit"))
	b.must(t, "verify")
	require.Contains(t, b.must(t, "trail", "prove", strings.TrimPrefix(outside, "operation ")), `"format":"bankingapi proof 1"`)

	db, err := sql.Open("sqlite", filepath.Join(b.folder, "bank.db"))
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "UPDATE sales SET units = units + 1 WHERE customer_no = 1001")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.Empty(t, b.must(t, "trail", "adopt", "--reason", "a changed row is not one that was left out"))
	require.Equal(t, 1, b.run(t, "verify").status)
}

// The rows of the log may be gone, or come from a backup. What the program says about them is followed
// here: then the book is correct, and sealed.
func TestTheRowsOfTheLogAreWrittenAgain(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	older := b.must(t, "trail", "checkpoint")
	b.sell(t, "before", 1001, 1, b.today)
	newest := b.must(t, "trail", "checkpoint")
	origin, _, _ := strings.Cut(newest, "\n")
	size := func(checkpoint string) string { return strings.Split(checkpoint, "\n")[1] }
	require.NotEqual(t, size(older), size(newest))
	const missing = "The book lacks a property of its log. Write the rows of the log in the table properties again"
	const wrong = "and only the rows of the log in the table properties are wrong: log_size is {size}, and log_checkpoint is"
	const begun = "the property log_begun says that the log has not begun, or is not a count: set log_begun to 1"
	for name, test := range map[string]struct{ sabotage, says string }{
		"all are gone":          {"DELETE FROM properties WHERE name LIKE 'log_%'", missing},
		"the checkpoint is":     {"DELETE FROM properties WHERE name = 'log_checkpoint'", missing},
		"the size is no number": {"UPDATE properties SET value = 'x' WHERE name = 'log_size'", "The property log_size of the book is not a count. Write the rows of the log"},
		"they are of a backup": {"UPDATE properties SET value = '" + older + "' WHERE name = 'log_checkpoint'; UPDATE properties SET value = '" +
			size(older) + "' WHERE name = 'log_size'", wrong},
		"the checkpoint is empty":   {"UPDATE properties SET value = '' WHERE name = 'log_checkpoint'", wrong},
		"the log has not begun":     {"UPDATE properties SET value = '0' WHERE name = 'log_begun'", begun},
		"the beginning is no count": {"UPDATE properties SET value = '1x' WHERE name = 'log_begun'", begun},
	} {
		content, err := os.ReadFile(filepath.Join(b.folder, "bank.trail.checkpoints"))
		require.NoError(t, err)
		kept := string(content[bytes.LastIndex(content, []byte(origin+"\n")):])
		kept = strings.TrimSuffix(kept, "\n") // the empty line between two checkpoints

		b.execute(t, test.sabotage)
		got := b.run(t, "verify")
		require.Equal(t, 1, got.status, name)
		require.Contains(t, got.out+got.err, strings.ReplaceAll(test.says, "{size}", size(kept)), name)

		b.execute(t, "INSERT INTO properties (name, value) VALUES ('log_begun', '1'), ('log_checkpoint', '"+kept+"'), ('log_size',"+
			" (SELECT MAX(position) + 1 FROM trail_batches)) ON CONFLICT (name) DO UPDATE SET value = excluded.value")
		require.Contains(t, b.run(t, "verify").err, "The book is correct.", name)
		b.sell(t, "after: "+name, 1001, 1, b.today)
		b.must(t, "trail", "checkpoint")
		require.Contains(t, b.run(t, "verify").err, "and 0 that are not in a checkpoint yet", name)
	}
}

// execute runs a statement beside the program.
func (b *operated) execute(t *testing.T, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(b.folder, "bank.db"))
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), statement)
	require.NoError(t, errors.Join(err, db.Close()))
}

// sellOutside sells as a service without its key does, so that the sale is not in the log. It returns
// the name that verify gives to the sale.
func (b *operated) sellOutside(t *testing.T) string {
	t.Helper()
	keyless := *b
	keyless.environment = append(slices.Clip(b.environment), "BANKINGAPI_TRAIL__ENABLED=false", "BANKINGAPI_STORAGE__ALLOW_UNSAFE=true")
	return "operation " + keyless.sell(t, "outside", 1002, 1, b.today).ID.String()
}

// A restored book may have a log that is shorter than its newest checkpoint, so nothing can be sealed. Then
// adopt changes nothing. It would say later that every row is in the log, and never name the rows.
func TestAdoptChangesNothingIfTheLogCannotGoOn(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	b.must(t, "trail", "checkpoint")
	backup := filepath.Join(b.folder, "backup.db")
	b.must(t, "backup", backup)
	b.sell(t, "lost", 1001, 1, b.today)
	b.must(t, "trail", "checkpoint")
	require.NoError(t, os.Rename(backup, filepath.Join(b.folder, "bank.db")))
	outside := b.sellOutside(t)

	refused := b.run(t, "trail", "adopt", "--reason", "started without its key")
	require.Equal(t, 1, refused.status)
	require.Contains(t, refused.err, "the log has become shorter")
	require.NotContains(t, b.must(t, "export", "audit"), "trail.adopt")
	checkpoints := filepath.Join(b.folder, "bank.trail.checkpoints")
	require.NoError(t, os.Rename(checkpoints, checkpoints+".kept"))
	require.Equal(t, outside+"\n", b.must(t, "trail", "adopt", "--reason", "started without its key"))
	b.must(t, "verify")
}

// takenUnsealed is a log that cannot be sealed after rows were taken into it.
type takenUnsealed struct {
	trail.Log
	trail.Origin
	isTaken *bool
}

func (u takenUnsealed) TakeIn(ctx context.Context, act func([]string) audit.Act) ([]string, error) {
	*u.isTaken = true
	return u.Origin.TakeIn(ctx, act)
}

func (u takenUnsealed) Seal(ctx context.Context, limit int, mark bool, seal trail.Seal) (trail.Round, error) {
	if *u.isTaken {
		return trail.Round{}, errors.New("the disk is full")
	}
	return u.Log.Seal(ctx, limit, mark, seal)
}

// No second run names the rows: they are in the log.
func TestAdoptNamesTheRowsThatCannotBeSealed(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	b.must(t, "trail", "checkpoint")
	outside := b.sellOutside(t)
	unsealed := func(ctx context.Context, o store.Options) (*store.Store, error) {
		opened, err := sqlite.Open(ctx, o)
		if err == nil {
			u := takenUnsealed{opened.Trail.Log, opened.Trail.Origin, new(bool)}
			opened.Trail.Log = u
			opened.Trail.Origin = u
		}
		return opened, err
	}
	p := program{b.environment, bootstrap.Options(parts.All(), bootstrap.WithDriver("sqlite", unsealed)), ""}
	var out, errOut strings.Builder
	require.Equal(t, 1, p.run(t.Context(), []string{"trail", "adopt", "--reason", "started without its key"}, strings.NewReader(""), &out, &errOut))
	require.Equal(t, outside+"\n", out.String())
	require.Contains(t, errOut.String(), "the rows were taken into the log, but are not in a checkpoint yet: the disk is full")
	b.must(t, "verify")
}
