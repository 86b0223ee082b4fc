package storage_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// The service works with any settings of the database, because it sets everything that it relies
// on. A session without these settings reads the same rows.
func TestOddSettingsOfTheDatabase(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{
		"datestyle = 'German, DMY'", "datestyle = 'SQL, DMY'", "intervalstyle = 'iso_8601'", "timezone = 'Asia/Kathmandu'", "timezone = 'Pacific/Kiritimati'", "bytea_output = 'escape'",
		"standard_conforming_strings = off", "synchronous_commit = off", "default_transaction_isolation = 'repeatable read'",
		"default_transaction_isolation = 'serializable'", "default_transaction_deferrable = on", "plan_cache_mode = 'force_custom_plan'",
		"enable_indexscan = off", "jit_above_cost = 0", "statement_timeout = '1ms'", "statement_timeout = '1h'", "lock_timeout = '1ms'",
		"idle_in_transaction_session_timeout = '1ms'", "client_encoding = 'LATIN1'", "extra_float_digits = -15", "row_security = off",
		"backslash_quote = 'off'", "quote_all_identifiers = on", "array_nulls = off", "transform_null_equals = on",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Postgres(t)
			admin(t, dsn, "ALTER DATABASE "+database(t, dsn)+" SET "+setting)
			s := storekit.OpenPostgres(t, dsn)
			everything(t, s)
			admin(t, dsn, "ALTER DATABASE "+database(t, dsn)+" RESET ALL")
			require.Equal(t, exports(t, openAgain(t, dsn)), exports(t, s))
		})
	}
}

// A database whose encoding is not UTF8 is not made a book.
func TestADatabaseOfAnotherEncoding(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"LATIN5", "WIN1254", "EUC_JP", "SQL_ASCII"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Postgres(t)
			name := database(t, dsn) + "_" + strings.ToLower(encoding)
			admin(t, dsn, "CREATE DATABASE "+name+" ENCODING '"+encoding+"' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
			t.Cleanup(func() { admin(t, dsn, "DROP DATABASE "+name+" WITH (FORCE)") })
			s := openAgain(t, inDatabase(dsn, name))
			migrated, err := s.Schema.Up(t.Context())
			require.Empty(t, migrated)
			_, change := s.Books.DueFunds(t.Context(), today, false)
			for _, err := range []error{err, s.Schema.Require(t.Context()), s.Ping(t.Context()), change} {
				require.ErrorContains(t, err, "The database has the encoding "+encoding)
				require.Equal(t, fault.Unavailable, fault.KindOf(err))
			}
			var tables int
			observer := testdb.Open(t, testdb.EnginePostgres, inDatabase(dsn, name))
			require.NoError(t, observer.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables))
			require.Zero(t, tables)
		})
	}
}

// A host opens its connections itself. Their encoding is checked.
func TestAHostWithAnotherClientEncoding(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	newBank(t, storekit.OpenPostgres(t, dsn), 2)
	admin(t, dsn, "ALTER DATABASE "+database(t, dsn)+" SET client_encoding = 'WIN1254'")
	host := testdb.Open(t, testdb.EnginePostgres, dsn)
	engine, err := postgres.NewHostEngine(host, host, 0)
	require.NoError(t, err)
	requireNotReady(t, bind(t, engine, ""), "A connection to the database has the client_encoding WIN1254")
}

// The texts of exports, pages and /outcomes come through the database for reading.
func TestAHostThatReadsWithAnotherClientEncoding(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	newBank(t, storekit.OpenPostgres(t, dsn), 2)
	engine, err := postgres.NewHostEngine(testdb.Open(t, testdb.EnginePostgres, dsn), testdb.Open(t, testdb.EnginePostgres, dsn+"&client_encoding=WIN1254"), 0)
	require.NoError(t, err)
	requireNotReady(t, bind(t, engine, ""), "A connection to the database has the client_encoding WIN1254")
}

// exports returns everything that can be exported of a book, by its kind.
func exports(t *testing.T, s *store.Store) map[string]string {
	t.Helper()
	contents := make(map[string]string)
	office := backoffice.New(s.Backoffice, audit.Acts{}, time.UTC)
	for _, kind := range []string{"prices", "holdings", "accounts", "sales", "postings", "notifications", "operations"} {
		var content strings.Builder
		require.NoError(t, bookfile.Export(t.Context(), office, kind, "csv", bookfile.Query{}, &content, nil))
		contents[kind] = content.String()
	}
	require.Contains(t, contents["notifications"], "müşteri €")
	return contents
}

// "Not found" would be a wrong answer about an operation that cannot be read.
func TestAnOperationThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, _ *sql.DB) {
		aDay(newBank(t, s, 3))
		_, err := s.Backoffice.Lookups.Operation(t.Context(), operation.ID{99})
		require.ErrorIs(t, err, backoffice.ErrNotFound)
		require.NoError(t, storage.Exec(t.Context(), s, "ALTER TABLE operations RENAME TO elsewhere"))
		_, err = s.Backoffice.Lookups.Operation(t.Context(), operation.ID{99})
		require.Error(t, err)
		require.NotErrorIs(t, err, backoffice.ErrNotFound)
	})
}

// A refused operation does not show the answer of another one, whatever CallerId and identity its
// row has.
func TestARefusedOperationShowsNoAnswerOfAnother(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, _ *sql.DB) {
		aDay(newBank(t, s, 3))
		of := func(callerID string) idempotency.Key {
			refused, err := s.Backoffice.Lookups.Operation(t.Context(), operation.ID{4})
			require.NoError(t, err)
			require.NotNil(t, refused.Refusal)
			require.Equal(t, callerID, refused.Record.Key.CallerID)
			require.Equal(t, operation.ID{4}, refused.Record.Outcome.ID)
			require.Equal(t, operation.Failed, refused.Record.Outcome.State)
			return refused.Record.Key
		}
		of("c")
		require.NoError(t, storage.Exec(t.Context(), s, "UPDATE operations SET caller_id = 'a' WHERE caller_id = 'c'"))
		key := of("a")
		first, err := s.Backoffice.Lookups.OperationOf(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, operation.ID{1}, first.ID)

		require.NoError(t, storage.Exec(t.Context(), s, "UPDATE operations SET caller_id = '' WHERE caller_id = 'a' AND state = 2"))
		require.NoError(t, storage.Exec(t.Context(), s,
			"UPDATE operations SET caller_id = 'c', identity = (SELECT identity FROM operations ORDER BY operation_id LIMIT 1) WHERE caller_id = 'a'"))
		of("c")
		_, err = s.Backoffice.Lookups.OperationOf(t.Context(), key)
		require.ErrorIs(t, err, backoffice.ErrNotFound)
	})
}

// Administration is on disk when it returns, also on a server that does not
// wait for the disk.
func TestAdministrationWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	dsn := testdb.Cluster(t, "synchronous_commit=off", "wal_writer_delay=10s")
	observer := testdb.Open(t, testdb.EnginePostgres, dsn)
	unwritten := func() (behind bool) {
		require.NoError(t, observer.QueryRowContext(t.Context(), "SELECT pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn()").Scan(&behind))
		return behind
	}
	host := testdb.Open(t, testdb.EnginePostgres, dsn)
	engine, err := postgres.NewHostEngine(host, host, 0)
	require.NoError(t, err)
	ours, err := storekit.Started(postgres.NewEngine(storage.Options{DSN: dsn}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ours.Close()) })
	for name, engine := range map[string]storage.Engine{"our own": ours, "a host's": engine} {
		var s *store.Store
		waits := func(what string, write func() error) {
			t.Helper()
			for range 3 { // the server itself may write something at this moment
				execute(t, observer, "SELECT txid_current()") // which nothing flushes
				require.NoError(t, write())
				if !unwritten() {
					return
				}
			}
			t.Errorf("%s connection: %s is not on disk", name, what)
		}
		n := 0
		waits("a migration", func() error {
			n++
			s = bind(t, engine, fmt.Sprintf("m%d_%d_", len(name), n))
			_, err := s.Schema.Up(t.Context())
			return err
		})
		create := func() error {
			n++
			return s.Subscriptions.Create(t.Context(), &subscription.Subscription{
				Name: string(rune('a' + n)), State: subscription.Active, Operations: operation.AllNames(),
			})
		}
		waits("a new subscription", create)
		waits("a changed subscription", func() error {
			return s.Subscriptions.Change(t.Context(), string(rune('a'+n)), func(s *subscription.Subscription) error {
				s.RequestsPerSecond++
				return nil
			})
		})
		b := newBank(t, s, 1)
		waits("a sale in the transaction of a host", func() error {
			n++
			tx, err := host.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			within, err := s.Within(tx)
			require.NoError(t, err)
			bank{within, b.t}.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1)))
			return tx.Commit()
		})
		waits("an import", func() error { return importHoldings(t.Context(), s, nextID(), manyHoldings(10, 5), quiet) })
	}
}

// The proceeds of a day may be more than fits into 64 bits, as no balance can.
func TestProceedsOfADayBeyond64Bits(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		b := newBank(t, s, 2)
		b.sell(2, order(v7(), "", sale(1, 1, 1), sale(1, 2, 2)))
		require.NoError(t, storage.Exec(t.Context(), s, "UPDATE sales SET proceeds = 9223372036854775807"))
		day, err := s.Backoffice.CountReceived(t.Context(), time.UnixMilli(0), time.UnixMilli(1<<47))
		require.NoError(t, err)
		var both backoffice.Received
		both.Add(day)
		both.Add(day)
		require.Len(t, both.Sales, 1)
		for key, sum := range both.Sales {
			require.EqualValues(t, 4, sum.Sales)
			require.Equal(t, "368934881474191032.28", sum.Proceeds.In(key.Currency))
		}
	})
}

// A subscription that cannot be read, as one of a version that hashes keys otherwise, is left
// out. The others are there.
func TestASubscriptionThatCannotBeReadIsLeftOut(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		for _, name := range []string{"a", "b", "c"} {
			require.NoError(t, s.Subscriptions.Create(t.Context(), &subscription.Subscription{Name: name, State: subscription.Active, Operations: operation.AllNames()}))
		}
		require.NoError(t, storage.Exec(t.Context(), s, "UPDATE subscriptions SET primary_hash = substr(secondary_hash, 1, 20) WHERE name = 'b'"))
		all, err := s.Subscriptions.All(t.Context())
		require.ErrorContains(t, err, `"b"`)
		require.Len(t, all, 2)
		require.Equal(t, "c", all[1].Name)
	})
}

// A due sale that this program cannot read, as one in a currency that only a newer replica
// knows, stays due and does not stop the others.
func TestADueSaleOfANewerProgramStopsNoOther(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		b, tomorrow := newBank(t, s, 3), today.Plus(1)
		b.price(tomorrow)
		for customer := range 3 {
			b.sell(operation.Recorded, order(nextID(), "", on(tomorrow, sale(1, customer+1, customer+1))))
		}
		require.NoError(t, storage.Exec(t.Context(), s, "UPDATE sales SET currency_code = 'XYZ' WHERE customer_no = (SELECT MIN(customer_no) FROM sales)"))
		buyer, err := buyfund.New(s.Books, buyfund.Options{NewID: nextID, Now: func() time.Time { return tomorrow.Start(time.UTC) }})
		require.NoError(t, err)
		for _, want := range []int{2, 0} {
			settled, err := buyer.SettleDue(t.Context())
			require.ErrorContains(t, err, `this version does not know the stored currency "XYZ"`)
			require.Equal(t, buyfund.Settlement{Completed: want}, settled)
		}
		require.NoError(t, buyer.Close(t.Context()))
	})
}
