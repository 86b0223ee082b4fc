package storage_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/store"
	"bankingapi/domain/decimal"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// onEmptyDatabase runs the test on an empty database of each engine. open opens
// it with a mark, and query reads names from it.
func onEmptyDatabase(t *testing.T, test func(t *testing.T, open func(mark string) *store.Store, query func(string) []string)) {
	t.Helper()
	run := func(name, dsn string, open func(dsn string) (storage.Engine, error)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, func(mark string) *store.Store {
				engine, err := open(dsn)
				require.NoError(t, err)
				s, err := storage.Open(engine, storage.Options{Mark: mark, Now: clock.Now})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, s.Close()) })
				return s
			}, func(query string) []string {
				db := testdb.Open(t, name, dsn)
				return statementsOf(t, db, query)
			})
		})
	}
	run(testdb.EngineSQLite, testdb.SQLite(t), func(dsn string) (storage.Engine, error) {
		return storekit.Started(sqlite.NewEngine(storage.Options{DSN: dsn, StatementTimeout: statementTimeout}))
	})
	run(testdb.EnginePostgres, testdb.Postgres(t), func(dsn string) (storage.Engine, error) {
		return storekit.Started(postgres.NewEngine(storage.Options{DSN: dsn, StatementTimeout: statementTimeout}))
	})
}

func up(t *testing.T, s *store.Store) *store.Store {
	t.Helper()
	_, err := s.Schema.Up(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Schema.Require(t.Context()))
	return s
}

// requireOther requires that nothing works on a database with another mark.
func requireOther(t *testing.T, s *store.Store, found store.MarkError) {
	t.Helper()
	_, err := s.Schema.Up(t.Context())
	requireMark(t, err, found)
	requireMark(t, s.Schema.Require(t.Context()), found)
	requireMark(t, due(s), found)
}

func requireMark(t *testing.T, err error, found store.MarkError) {
	t.Helper()
	var mark store.MarkError
	require.ErrorAs(t, err, &mark)
	require.Equal(t, found, mark)
}

func TestAnEmptyDatabaseIsMarked(t *testing.T) {
	t.Parallel()
	onEmptyDatabase(t, func(t *testing.T, open func(string) *store.Store, _ func(string) []string) {
		up(t, open("sandbox"))
		requireOther(t, open(""), "sandbox")
		requireOther(t, open("training"), "sandbox")
		up(t, open("sandbox"))
	})
}

func TestAnEmptySchemaIsMarked(t *testing.T) {
	t.Parallel()
	onEmptyDatabase(t, func(t *testing.T, open func(string) *store.Store, _ func(string) []string) {
		up(t, open(""))
		up(t, open("sandbox"))
		requireOther(t, open(""), "sandbox")
	})
}

// A bank's book is never marked, whatever single thing is in it.
func TestABookIsNotMarked(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]func(t *testing.T, s *store.Store){
		"a price": func(t *testing.T, s *store.Store) { newBank(t, s, 0) },
		"a day":   func(t *testing.T, s *store.Store) { aDay(newBank(t, s, 3)) },
		"a subscription": func(t *testing.T, s *store.Store) {
			require.NoError(t, s.Subscriptions.Create(t.Context(), &subscription.Subscription{Name: "one", State: subscription.Active}))
		},
		"a message": addMessage,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEmptyDatabase(t, func(t *testing.T, open func(string) *store.Store, _ func(string) []string) {
				bank := up(t, open(""))
				fill(t, bank)
				requireOther(t, open("sandbox"), "")
				require.NoError(t, due(bank))
				up(t, open(""))
			})
		})
	}
}

// Empty leaves the subscriptions and nothing else, in every table of the schema.
func TestEmpty(t *testing.T) {
	t.Parallel()
	tables := map[string]string{
		testdb.EngineSQLite:   "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN " + notOurs,
		testdb.EnginePostgres: "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN " + notOurs,
	}
	onEmptyDatabase(t, func(t *testing.T, open func(string) *store.Store, query func(string) []string) {
		s := up(t, open("sandbox"))
		require.NoError(t, s.Subscriptions.Create(t.Context(), &subscription.Subscription{Name: "one", State: subscription.Active, Operations: operation.AllNames()}))
		aDay(newBank(t, s, 3))
		addMessage(t, s)
		require.NoError(t, s.Marker.SetNote(t.Context(), "before"))
		runs := func() []string { return nil }
		if s.Name == testdb.EngineSQLite {
			runs = func() []string { return query("SELECT 'x' FROM lookup_runs UNION ALL SELECT 'x' FROM lookup_entries") }
			query("INSERT INTO lookup_runs VALUES (1, 1) RETURNING 'x'")
			query("INSERT INTO lookup_entries VALUES (1, 1, 1, x'01') RETURNING 'x'")
			require.Len(t, runs(), 2)
		}

		require.NoError(t, s.Marker.Empty(t.Context(), "after"))

		note, err := s.Marker.Note(t.Context())
		require.NoError(t, err)
		require.Equal(t, "after", note)
		require.Empty(t, runs(), "new rows have the same rowids")
		existing := query(tables[s.Name])
		require.ElementsMatch(t, existing, append(storage.Tables(s), "properties", "replicas", "trail_batches", "trail_hashes"),
			"a reset empties every table: add it to tables in marks.go; a sandbox keeps no trail")
		var full []string
		for _, table := range existing {
			if rows := query("SELECT 'x' FROM " + table); len(rows) > 0 {
				full = append(full, table)
			}
		}
		slices.Sort(full)
		require.Equal(t, []string{"properties", "subscriptions"}, full, "a sandbox keeps no trail, and the key of messages stays")
		aDay(newBank(t, s, 3))
	})
}

func TestABookIsNotEmptied(t *testing.T) {
	t.Parallel()
	onEmptyDatabase(t, func(t *testing.T, open func(string) *store.Store, _ func(string) []string) {
		s := up(t, open(""))
		aDay(newBank(t, s, 3))
		before := bank{s, t}.holds()
		for _, mark := range []string{"", "sandbox"} {
			requireMark(t, open(mark).Marker.Empty(t.Context(), ""), "")
			requireMark(t, open(mark).Marker.SetNote(t.Context(), "x"), "")
		}
		require.Equal(t, before, bank{s, t}.holds())
	})
}

func addMessage(t *testing.T, s *store.Store) {
	t.Helper()
	n, faults := push.New(push.Fields{
		ExternalApplicationCode: "APP", UserID: "u", PushID: "p", Platform: decimal.Int(int64(push.Android)), SendStatus: decimal.Int(1),
	})
	require.Empty(t, faults)
	batch := []*push.Operation{{Envelope: operation.Envelope{ID: nextID(), Subscription: "one", ReceivedAt: clock.Now()}, Notifications: []push.Notification{n}}}
	require.NoError(t, s.Inboxes.Update(t.Context(), push.Keys(batch), func(i *push.Inbox) { i.Accept(batch) }))
}
