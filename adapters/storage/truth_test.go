package storage_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

func pushOf(id operation.ID, callerID, content string) *push.Operation {
	n, faults := push.New(push.Fields{
		ExternalApplicationCode: "LOANS", UserID: "user-7", PushID: "push-1", Platform: decimal.Int(65), SendStatus: decimal.Int(1), Content: content,
	})
	if len(faults) > 0 {
		panic(faults)
	}
	return &push.Operation{
		Envelope: operation.Envelope{ID: id, Subscription: "shop", Header: operation.Header{CallerID: callerID}, ReceivedAt: now}, Notifications: []push.Notification{n},
	}
}

func accept(ctx context.Context, s *store.Store, o *push.Operation) error {
	batch := []*push.Operation{o}
	return s.Inboxes.Update(ctx, push.Keys(batch), func(b *push.Inbox) { b.Accept(batch) })
}

// TestARepeatCommitsSomethingThatWaits: a transaction that writes nothing does
// not wait for a standby at its commit. One that found what decides an answer,
// and wrote nothing, must be followed by one that writes; all others must not,
// for it costs time. The function of Postgres that writes is replaced by one
// that counts.
func TestARepeatCommitsSomethingThatWaits(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	script(t, dsn,
		"CREATE TABLE messages (prefix text)",
		"CREATE FUNCTION public.pg_logical_emit_message(transactional boolean, prefix text, content text) RETURNS pg_lsn LANGUAGE sql AS "+
			"'INSERT INTO public.messages VALUES (prefix); SELECT pg_catalog.pg_logical_emit_message(transactional, prefix, content)'",
		"ALTER DATABASE "+database(t, dsn)+" SET search_path = public, pg_catalog")
	s := storekit.OpenPostgres(t, dsn)
	b := newBank(t, s, 1)
	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	var seen int
	waited := func() bool {
		t.Helper()
		before := seen
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM messages WHERE prefix = 'bankingapi'").Scan(&seen))
		return seen > before
	}
	waited() // what the import has left

	b.sell(operation.Completed, order(nextID(), "sale-1", sale(1, 1, 1)))
	b.sell(operation.Completed, order(nextID(), "sale-2", sale(1, 1, 1)))
	b.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1)))
	require.NoError(t, accept(t.Context(), s, pushOf(nextID(), "", "one")))
	require.NoError(t, accept(t.Context(), s, pushOf(nextID(), "push-2", "two")))
	require.False(t, waited(), "nothing was found")

	b.sell(operation.Completed, order(nextID(), "sale-1", sale(1, 1, 1)))
	require.True(t, waited(), "a CallerId of a sale")
	require.NoError(t, accept(t.Context(), s, pushOf(nextID(), "push-2", "two")))
	require.True(t, waited(), "a CallerId of a push")
	operations := func() (count int) {
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM operations").Scan(&count))
		return count
	}
	before := operations()
	require.NoError(t, accept(t.Context(), s, pushOf(nextID(), "", "one")))
	require.Equal(t, before+1, operations(), "a push whose message is stored is an operation too")
	require.False(t, waited(), "so its own commit waits")

	both := []*push.Operation{pushOf(nextID(), "", "one"), pushOf(nextID(), "", "three")}
	require.NoError(t, s.Inboxes.Update(t.Context(), push.Keys(both), func(b *push.Inbox) { b.Accept(both) }))
	require.False(t, waited(), "it wrote something, so its own commit waits")

	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	within, err := s.Within(tx)
	require.NoError(t, err)
	require.NoError(t, accept(t.Context(), within, pushOf(nextID(), "push-2", "two")))
	require.NoError(t, tx.Commit())
	require.True(t, waited(), "inside the transaction of a host")
}

// TestAnotherFile: nothing is committed into a database file that was removed or
// replaced since it was opened.
func TestAnotherFile(t *testing.T) {
	t.Parallel()
	for name, strike := range map[string]func(file string) error{
		"removed": os.Remove,
		"replaced": func(file string) error {
			return errors.Join(os.Rename(file, file+".old"), os.WriteFile(file, nil, 0o600))
		},
		"renamed, with a link in its place": func(file string) error {
			return errors.Join(os.Rename(file, file+".old"), os.Symlink(file+".old", file))
		},
		"without its log": func(file string) error {
			return os.Remove(file + "-wal")
		},
		"without the index of its log": func(file string) error { return os.Remove(file + "-shm") },
		"with another log": func(file string) error {
			return errors.Join(os.Rename(file+"-wal", file+".old"), os.WriteFile(file+"-wal", nil, 0o600))
		},
		"with an empty log": func(file string) error { return os.Truncate(file+"-wal", 0) },
		"with a log that lacks its end": func(file string) error {
			info, err := os.Stat(file + "-wal")
			return errors.Join(err, os.Truncate(file+"-wal", info.Size()-1))
		},
		"with a log of another salt": func(file string) error { return overwrite(file+"-wal", 16, "saltsalt") },
		"with less of the file":      func(file string) error { return errors.Join(checkpointed(file), os.Truncate(file, 4096)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := testdb.SQLite(t)
			s := storekit.OpenSQLite(t, file)
			b := newBank(t, s, 1)
			b.sell(operation.Completed, order(nextID(), "first", sale(1, 1, 1)))
			require.NoError(t, s.Ping(t.Context()))

			require.NoError(t, strike(file))
			for _, err := range []error{
				settle(t.Context(), s, today, order(nextID(), "second", sale(1, 1, 1))),
				settle(t.Context(), s, today, order(nextID(), "first", sale(1, 1, 1))),
				accept(t.Context(), s, pushOf(nextID(), "", "one")),
				s.Ping(t.Context()),
			} {
				require.Equal(t, fault.Unavailable, fault.KindOf(err), "%v", err)
				known, ok := errors.AsType[*fault.Error](err)
				require.True(t, ok)
				require.Contains(t, known.Detail, "removed or replaced")
			}
			require.ErrorContains(t, s.Ping(t.Context()), file)
		})
	}
}

// The name of the file may be a link, such as one to another disk. SQLite keeps the log beside the
// file itself.
func TestALinkToTheFile(t *testing.T) {
	t.Parallel()
	file := testdb.SQLite(t)
	link := filepath.Join(t.TempDir(), "book.db")
	require.NoError(t, os.Symlink(file, link))
	s := storekit.OpenSQLite(t, link)
	b := newBank(t, s, 1)
	b.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1)))
	require.NoError(t, s.Ping(t.Context()))
	require.FileExists(t, file+"-wal")
	b.holds()

	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink(testdb.SQLite(t), link))
	for _, err := range []error{settle(t.Context(), s, today, order(nextID(), "", sale(1, 1, 1))), s.Ping(t.Context())} {
		require.Equal(t, fault.Unavailable, fault.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "leads to another file")
	}
}

func checkpointed(file string) error {
	db, err := sql.Open("sqlite", file)
	if err == nil {
		_, err = db.Exec("PRAGMA wal_checkpoint(FULL)")
		err = errors.Join(err, db.Close())
	}
	return err
}

func overwrite(file string, at int64, with string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte(with), at)
		err = errors.Join(err, f.Close())
	}
	return err
}

// What other programs may do to a database in use is no damage, and neither is a backup.
func TestOthersMayCheckpointAndVacuum(t *testing.T) {
	t.Parallel()
	file := testdb.SQLite(t)
	s := storekit.OpenSQLite(t, file)
	b := newBank(t, s, 1)
	db := testdb.Open(t, testdb.EngineSQLite, file)
	for i, pragma := range []string{
		"PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA wal_checkpoint(RESTART)", "PRAGMA wal_checkpoint(PASSIVE)", "PRAGMA wal_checkpoint(FULL)",
	} {
		require.NoError(t, importHoldings(t.Context(), s, nextID(), manyHoldings(1000*(i+1), unitsAtFirst), quiet))
		if pragma == "VACUUM" {
			execute(t, db, "CREATE TABLE room AS SELECT zeroblob(1000000) AS x", "DROP TABLE room")
		}
		execute(t, db, pragma)
		require.NoError(t, s.Ping(t.Context()), pragma)
		b.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1)))
		require.NoError(t, s.Ping(t.Context()), pragma)
		require.NoError(t, s.Backup(t.Context(), filepath.Join(t.TempDir(), "copy.db")))
	}
	b.holds()
}

// SQLite finds the log by the name of the file: two names are two logs.
func TestASecondNameOfTheFile(t *testing.T) {
	t.Parallel()
	file := testdb.SQLite(t)
	s := storekit.OpenSQLite(t, file)
	b := newBank(t, s, 1)
	link := filepath.Join(t.TempDir(), "other.db")
	require.NoError(t, os.Link(file, link))
	_, err := storekit.Started(sqlite.NewEngine(storage.Options{DSN: link}))
	require.ErrorContains(t, err, "a second name")
	require.ErrorContains(t, s.Ping(t.Context()), "Remove the other name.")
	require.Equal(t, fault.Unavailable, fault.KindOf(settle(t.Context(), s, today, order(nextID(), "", sale(1, 1, 1)))))
	require.NoError(t, os.Remove(link))
	require.NoError(t, s.Ping(t.Context()))
	b.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1)))
}

func TestAFullDiskIsNotReady(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("SKIPPED: there is no /dev/full")
	}
	file := testdb.SQLite(t)
	first, err := storekit.Started(sqlite.NewEngine(storage.Options{DSN: file}))
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.NoError(t, os.Symlink("/dev/full", file+"-shm"))
	require.NoError(t, os.Symlink("/dev/full", file+"-space"))
	_, err = storekit.Started(sqlite.NewEngine(storage.Options{DSN: file}))
	require.ErrorContains(t, err, "The disk of the database is full", "SQLite calls it an I/O error")
	require.NoError(t, os.Remove(file+"-shm"))

	s := storekit.OpenSQLite(t, file)
	require.NoError(t, s.Ping(t.Context()))
	require.NoError(t, os.Symlink("/dev/full", file+"-space"))
	require.ErrorContains(t, s.Ping(t.Context()), "The disk of the database is full")
	require.NoError(t, s.Ping(t.Context()), "the probe leaves nothing behind")
	if s.FreeSpace() >= 0 {
		require.Positive(t, s.FreeSpace())
	}

	newBank(t, s, 1)
	for _, pool := range s.Pools {
		db := pool()
		if db.Stats().MaxOpenConnections == 1 {
			execute(t, db, "PRAGMA max_page_count = 1")
		}
	}
	big := order(nextID(), strings.Repeat("x", 1<<20), sale(1, 1, 1))
	require.ErrorContains(t, settle(t.Context(), s, today, big), "unavailable: The disk of the database, or of temporary files (TMPDIR), is full:")
}

// A probe adds no rows, so it would find room on a full disk.
func TestAFullDiskOfTheServerIsNotReady(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	b := newBank(t, storekit.OpenPostgres(t, dsn), 1)
	execute(t, testdb.Open(t, testdb.EnginePostgres, dsn), "CREATE FUNCTION no_room() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE 'could not extend file' USING ERRCODE = '53100'; END $$")
	slow(t, dsn, "sales", atInsert, "no_room()")
	require.NoError(t, b.Ping(t.Context()))
	err := settle(t.Context(), b.Store, today, order(nextID(), "", sale(1, 1, 1)))
	require.Equal(t, fault.Unavailable, fault.KindOf(err))
	require.ErrorContains(t, b.Ping(t.Context()), "The disk of the database server is full")
}

// TestPingAsksWhatASaleAsks: a database that answers, but where a sale cannot be
// stored, does not pass. It waits for no one who writes.
func TestPingAsksWhatASaleAsks(t *testing.T) {
	t.Parallel()
	tables := []string{"subscriptions", "prices", "holdings", "accounts", "operations", "sales", "adjustments", "notifications", "outcomes", "trail_batches"}
	storekit.Each(t, func(t *testing.T, engine string, s *store.Store) {
		s.Trail.Writer.Use(trailKeys, v7)
		require.NoError(t, s.Ping(t.Context()))
		var db *sql.DB
		for _, pool := range s.Pools {
			db = pool()
			if engine == testdb.EnginePostgres || db.Stats().MaxOpenConnections == 1 {
				break // the one that writes
			}
		}
		for _, table := range tables {
			_, err := db.ExecContext(t.Context(), "ALTER TABLE "+table+" RENAME TO gone")
			require.NoError(t, err)
			err = s.Ping(t.Context())
			require.Equal(t, fault.Unavailable, fault.KindOf(err), "without %s: %v", table, err)
			require.ErrorContains(t, err, table)
			_, err = db.ExecContext(t.Context(), "ALTER TABLE gone RENAME TO "+table)
			require.NoError(t, err)
		}
		require.NoError(t, s.Ping(t.Context()))

		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		lock := map[string]string{testdb.EngineSQLite: "BEGIN IMMEDIATE", testdb.EnginePostgres: "BEGIN; SELECT 1 FROM holdings FOR UPDATE"}
		_, err = conn.ExecContext(t.Context(), lock[engine])
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, s.Ping(ctx))
		_, err = conn.ExecContext(t.Context(), "ROLLBACK")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	})
}

// asGuest is the DSN of a new role that has these rights on all tables and owns none.
func asGuest(t *testing.T, dsn, name, rights string) string {
	t.Helper()
	role := name + "_" + database(t, dsn)
	script(t, dsn, "CREATE ROLE "+role+" LOGIN", "GRANT USAGE ON SCHEMA public TO "+role, "GRANT "+rights+" ON ALL TABLES IN SCHEMA public TO "+role)
	t.Cleanup(func() {
		db := testdb.Open(t, testdb.EnginePostgres, dsn)
		_, err := db.ExecContext(context.Background(), "DROP OWNED BY "+role)
		require.NoError(t, err)
		_, err = db.ExecContext(context.Background(), "DROP ROLE "+role)
		require.NoError(t, err)
	})
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	return "host=" + config.Host + " port=" + strconv.Itoa(int(config.Port)) + " dbname=" + config.Database + " sslmode=disable user=" + role
}

// A terminal in another encoding sends filters that only SQLite takes, and finds nothing.
func TestAFilterInAnotherEncodingIsNoErrorOfTheDatabase(t *testing.T) {
	t.Parallel()
	s := storekit.OpenPostgres(t, testdb.Postgres(t))
	_, err := backoffice.Collect(s.Backoffice.Reader.Sales(t.Context(), backoffice.Query{CallerID: "sat\xfd\xfe"}))
	require.ErrorContains(t, err, "A text is not UTF-8, so no row can have it:")
}
