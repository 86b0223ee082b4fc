package storage_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sqlite3 "modernc.org/sqlite/lib"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
	"bankingapi/test/suites/prove/disk"
)

// Each test in this file finds a planted bug that no other test of the package
// found.

// locked runs statements in a transaction of another client, and returns its
// commit.
func locked(t *testing.T, db *sql.DB, statements ...string) (commit func()) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	for _, s := range statements {
		_, err := tx.ExecContext(t.Context(), s)
		require.NoError(t, err)
	}
	return func() { require.NoError(t, tx.Commit()) }
}

// A round settles an array only if it gets the lock of its operation. Otherwise it skips the array
// and does not wait.
func TestADueOperationThatIsLocked(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	b := newBank(t, storekit.OpenPostgres(t, dsn), 2)
	tomorrow := today.Plus(1)
	b.sell(operation.Recorded, order(nextID(), "", on(tomorrow, sale(1, 1, 1)), on(tomorrow, sale(1, 2, 2))))
	due, err := b.Books.Due(t.Context(), buyfund.Due{Until: tomorrow}, nil, 10)
	require.NoError(t, err)
	require.Len(t, due, 1)

	commit := locked(t, testdb.Open(t, testdb.EnginePostgres, dsn), "SELECT 1 FROM operations WHERE due_on IS NOT NULL FOR UPDATE")
	require.NoError(t, settle(t.Context(), b.Store, tomorrow, due...))
	states := func() []operation.State {
		return keys(all(t, b.Backoffice.Reader.Sales(t.Context(), backoffice.Query{})), func(s fund.SaleEntry) operation.State { return s.State })
	}
	require.Equal(t, []operation.State{operation.Recorded, operation.Recorded}, states())
	commit()
	require.NoError(t, settle(t.Context(), b.Store, tomorrow, due...))
	require.Equal(t, []operation.State{operation.Completed, operation.Completed}, states())
	b.holds()
}

// What another client does to a row is not overwritten: rows are locked before
// they are read.
func TestRowsAreLockedBeforeTheyAreRead(t *testing.T) {
	t.Parallel()
	for row, change := range map[string]string{
		"account": "UPDATE accounts SET balance = balance + 1000 WHERE customer_no = 1",
		"holding": "UPDATE holdings SET units = units - 1000000 WHERE customer_no = 1",
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Postgres(t)
			b := newBank(t, storekit.OpenPostgres(t, dsn), 1)
			other := testdb.Open(t, testdb.EnginePostgres, dsn)
			commit := locked(t, other, change)
			settled := make(chan error)
			go func() { settled <- settle(t.Context(), b.Store, today, order(nextID(), "", sale(1, 1, 1))) }()
			require.Eventually(t, func() (waits bool) {
				const query = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')"
				require.NoError(t, other.QueryRowContext(t.Context(), query).Scan(&waits))
				return waits
			}, time.Minute, 5*time.Millisecond)
			commit()
			require.NoError(t, <-settled)
			account := all(t, b.Backoffice.Reader.Accounts(t.Context(), backoffice.Query{}))[0].Balance.Minor()
			units := all(t, b.Backoffice.Reader.Holdings(t.Context(), backoffice.Query{}))[0].Units
			if row == "account" {
				require.EqualValues(t, 1250, account)
			} else {
				require.Equal(t, unitsAtFirst-2_000_000, units)
			}
		})
	}
}

// All that verify reads is of one moment, whatever is sold meanwhile.
func TestEvidenceIsOneSnapshot(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, _ *sql.DB) {
		b := newBank(t, s, 2)
		b.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1)))
		sales, sold := 0, false
		err := s.Backoffice.Evidence.Read(t.Context(), backoffice.Witness{
			Position: func(*backoffice.Position) error {
				if !sold {
					sold = true
					b.sell(operation.Completed, order(nextID(), "", sale(1, 2, 2)))
				}
				return nil
			},
			Operation: func(o *backoffice.Operation) error {
				sales += len(o.Sales)
				return nil
			},
		})
		require.NoError(t, err)
		require.True(t, sold)
		require.Equal(t, 1, sales)
		require.EqualValues(t, 2, b.holds().Sales)
	})
}

// Two connections read what verify proves. They see the same, although sales go on:
// every sale has two postings.
func TestReadersOfTheEvidenceSeeOneState(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		b := newBank(t, s, 2)
		opened := b.holds().Postings
		stop := make(chan struct{})
		var seller sync.WaitGroup
		seller.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := settle(t.Context(), s, today, order(nextID(), "", sale(1, 1, 1), sale(1, 2, 2))); err != nil {
					t.Errorf("sale: %v", err)
					return
				}
			}
		})
		sold := int64(0)
		for proofs := 0; proofs < 10 || sold == 0; proofs++ { // until the first sale is in a proof
			proof := b.holds()
			require.Equal(t, opened+2*proof.Sales, proof.Postings)
			require.GreaterOrEqual(t, proof.Sales, sold)
			sold = proof.Sales
		}
		close(stop)
		seller.Wait()
	})
}

// A long import keeps SQLite's only writer. Verify does not wait for its end.
func TestVerifyWhileAnotherWrites(t *testing.T) {
	t.Parallel()
	file := testdb.SQLite(t)
	b := newBank(t, storekit.OpenSQLite(t, file), 2)
	err := importHoldings(t.Context(), b.Store, nextID(), manyHoldings(1, 1), func(int64) { b.holds() })
	require.NoError(t, err)
	other := testdb.Open(t, testdb.EngineSQLite, file)
	other.SetMaxOpenConns(1)
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	b.holds()
	_, err = other.ExecContext(t.Context(), "ROLLBACK")
	require.NoError(t, err)
}

// A host's function that panics panics in the goroutine of its caller, and leaves
// the connections usable.
func TestPanicsOfCallersAreTheirs(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		b := newBank(t, s, 2)
		require.PanicsWithValue(t, "holding", func() {
			_ = s.Backoffice.Evidence.Read(t.Context(), backoffice.Witness{Position: func(*backoffice.Position) error { panic("holding") }})
		})
		require.PanicsWithValue(t, "line", func() {
			_ = importHoldings(t.Context(), s, nextID(), func(func(int64, fund.Holding) error) error { panic("line") }, quiet)
		})
		require.PanicsWithValue(t, "written", func() {
			_ = importHoldings(t.Context(), s, nextID(), manyHoldings(several, 1), func(int64) { panic("written") })
		})
		require.PanicsWithValue(t, "row", func() {
			for range s.Backoffice.Reader.Holdings(t.Context(), backoffice.Query{}) {
				panic("row")
			}
		})
		require.NoError(t, importHoldings(t.Context(), s, nextID(), manyHoldings(several, 1), quiet))
		b.holds()
	})
}

// Texts in keys compare by byte, as SQLite and Go do: locks are taken in the
// order that Go sorts.
func TestKeysCompareByByte(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	storekit.OpenPostgres(t, dsn)
	rows, err := testdb.Open(t, testdb.EnginePostgres, dsn).QueryContext(t.Context(), `SELECT c.table_name || '.' || c.column_name FROM information_schema.key_column_usage k
JOIN information_schema.columns c USING (table_schema, table_name, column_name)
WHERE k.table_schema = 'public' AND c.data_type = 'text' AND c.collation_name IS DISTINCT FROM 'C'`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		t.Errorf("%s does not compare by byte", name)
	}
	require.NoError(t, rows.Err())
}

// If syncing the write-ahead log fails, the commit may still exist after a
// crash. So no caller may be told that nothing happened.
func TestACommitThatCannotBeSynced(t *testing.T) { //nolint:paralleltest // the disk is the process's
	folder := t.TempDir()
	under := disk.New(t, folder)
	engine, err := storekit.Started(sqlite.NewEngine(storage.Options{DSN: filepath.Join(folder, "book.db"), StatementTimeout: statementTimeout}))
	require.NoError(t, err)
	b := newBank(t, migrated(t, engine), 1)
	under.Decide(func(c disk.Call) disk.Result {
		if c.Op == disk.Sync {
			return disk.Result{Code: sqlite3.SQLITE_IOERR}
		}
		return disk.Result{}
	})
	err = settle(t.Context(), b.Store, today, order(nextID(), "a", sale(1, 1, 1)))
	require.Equal(t, fault.Indeterminate, fault.KindOf(err), "%v", err)
	for range 2 { // and the probe changes nothing about that
		err = b.Ping(t.Context())
		require.Equal(t, fault.Unavailable, fault.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "The database file book.db cannot be written: the disk reports an error")
	}
	under.Decide(nil)
	require.NoError(t, b.Ping(t.Context()), "it works again, without a sale")
	b.sell(operation.Completed, order(nextID(), "a", sale(1, 1, 1)))
	require.NoError(t, b.Ping(t.Context()))
}

// A program that keeps the write lock of a SQLite file stops every sale. Readiness says so once
// a sale has waited for two seconds, while it waits and after it has failed, until one can begin.
func TestALockThatAnotherProgramHoldsIsNotReady(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "book.db")
	engine, err := storekit.Started(sqlite.NewEngine(storage.Options{DSN: file, StatementTimeout: statementTimeout}))
	require.NoError(t, err)
	b := newBank(t, migrated(t, engine), 1)
	release := locked(t, testdb.Open(t, testdb.EngineSQLite, file+"?_txlock=immediate"))
	require.NoError(t, b.Ping(t.Context()), "nothing had to wait")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- settle(ctx, b.Store, today, order(nextID(), "a", sale(1, 1, 1))) }()
	require.Eventually(t, func() bool { return b.Ping(t.Context()) != nil }, time.Minute, 50*time.Millisecond)
	isLocked := func(when string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), statementTimeout/2)
		defer cancel()
		err := b.Ping(ctx)
		require.NoError(t, ctx.Err(), "%s: it waited itself", when)
		require.Equal(t, fault.Unavailable, fault.KindOf(err), "%s: %v", when, err)
		require.ErrorContains(t, err, "Another program holds the write lock of the database file book.db", when)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "that would be told as no answer")
	}
	isLocked("while a sale waits")
	require.Empty(t, failed)
	cancel()
	require.Equal(t, fault.Unavailable, fault.KindOf(<-failed))
	isLocked("after it has failed")
	release()
	require.Eventually(t, func() bool { return b.Ping(t.Context()) == nil }, time.Minute, time.Millisecond, "a transaction can begin")
	b.sell(operation.Completed, order(nextID(), "a", sale(1, 1, 1)))
	require.NoError(t, b.Ping(t.Context()))
}

// The time zone of a book may be changed while it has no operations. A first sale that was
// prepared by the rules before is not stored beside this change.
func TestTheFirstSaleWaitsForAChangeOfTheRules(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]func(fund.Terms) fund.Terms{
		"for today":       func(terms fund.Terms) fund.Terms { return terms },
		"for a later day": func(terms fund.Terms) fund.Terms { return on(today.Plus(1), terms) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := openPostgres(t, testdb.Postgres(t))
			newBank(t, s, 1)
			rules, err := backoffice.BeginRules(t.Context(), s.Backoffice.RuleBook, audit.Acts{NewID: nextID, Now: time.Now}, fund.DefaultRules())
			require.NoError(t, err)
			db := s.Pools["all"]()

			changing, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer changing.Rollback()
			_, err = changing.ExecContext(t.Context(), "SELECT value FROM properties WHERE name = 'rules' FOR UPDATE")
			require.NoError(t, err)
			var stored int
			require.NoError(t, changing.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM operations").Scan(&stored))
			require.Zero(t, stored)

			first := order(nextID(), "first", on(sale(1, 1, 1)))
			first.Rules = rules.String()
			ended := make(chan error, 1)
			go func() { ended <- settle(t.Context(), s, today, first) }()
			requireWaits(t, db, ended)
			_, err = changing.ExecContext(t.Context(), "UPDATE properties SET value = 'others' WHERE name = 'rules'")
			require.NoError(t, err)
			require.NoError(t, changing.Commit())
			require.NoError(t, <-ended)
			_, err = first.Outcome()
			require.ErrorIs(t, err, fund.ErrRulesChanged)
			require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM operations").Scan(&stored))
			require.Zero(t, stored)
		})
	}
}

// The other way round: a change of the time zone that waits for the first sale then sees it, also
// on a server whose transactions see one state by default.
func TestAChangeOfTheRulesSeesTheFirstSale(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Postgres(t)
			admin(t, dsn, "ALTER DATABASE "+database(t, dsn)+" SET default_transaction_isolation = '"+isolation+"'")
			s, _ := openPostgres(t, dsn)
			newBank(t, s, 1)
			acts := audit.Acts{NewID: nextID, Now: time.Now}
			rules, err := backoffice.BeginRules(t.Context(), s.Backoffice.RuleBook, acts, fund.DefaultRules())
			require.NoError(t, err)
			db := s.Pools["all"]()

			selling, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			require.NoError(t, err)
			defer selling.Rollback()
			within, err := s.Within(selling)
			require.NoError(t, err)
			first := order(nextID(), "first", sale(1, 1, 1))
			first.Rules = rules.String()
			require.NoError(t, settle(t.Context(), within, today, first))

			changed := make(chan error, 1)
			go func() {
				ctx := acts.Begin(t.Context(), "rules.change", "", "")
				changed <- s.Backoffice.RuleBook.ChangeRules(ctx, func(current *fund.Rules, hasOperations bool) (fund.Rules, error) {
					return current.Change(fund.RulesFields{TimeZone: "Asia/Tokyo"}, hasOperations)
				})
			}()
			requireWaits(t, db, changed)
			require.NoError(t, selling.Commit())
			require.ErrorIs(t, <-changed, fund.ErrZoneFixed)
			kept, err := s.Backoffice.RuleBook.Rules(t.Context())
			require.NoError(t, err)
			require.Equal(t, rules.String(), kept.String())
		})
	}
}

// requireWaits returns when a session waits for a lock.
func requireWaits(t *testing.T, db *sql.DB, ended <-chan error) {
	t.Helper()
	const query = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')"
	require.Eventually(t, func() bool {
		select {
		case err := <-ended:
			t.Errorf("it did not wait: %v", err)
			return true
		default:
		}
		var waits bool
		err := db.QueryRowContext(t.Context(), query).Scan(&waits)
		if err != nil {
			t.Error(err)
			return true
		}
		return waits
	}, time.Minute, 10*time.Millisecond)
	require.False(t, t.Failed())
}
