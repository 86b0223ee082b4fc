package storage_test

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/domain/fund"
	"bankingapi/domain/push"
	"bankingapi/test/contract"
	"bankingapi/test/testdb"
)

// The suites of the ports, on every engine.

func TestInboxes(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		contract.Inboxes(t, func(t *testing.T) contract.InboxesUnderTest {
			return inboxesUnderTest(open(t))
		})
	})
}

func TestBooks(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		contract.Books(t, func(t *testing.T) contract.BooksUnderTest {
			return booksUnderTest(open(t))
		})
	})
}

func TestSubscriptions(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		contract.Subscriptions(t, func(t *testing.T) contract.SubscriptionsUnderTest {
			store, trouble := open(t)
			trouble.FailCommit, trouble.LoseRace = nil, nil // gorm begins its transactions, not a Session
			return contract.SubscriptionsUnderTest{Repository: store, Trouble: trouble}
		})
	})
}

func inboxesUnderTest(store *storage.Store, trouble contract.Trouble) contract.InboxesUnderTest {
	return contract.InboxesUnderTest{
		Inboxes: store.Inboxes(),
		Notifications: func(t *testing.T) []push.Entry {
			return all(t, store.ExportNotifications(t.Context(), storage.Filter{}))
		},
		Trouble: trouble,
	}
}

func booksUnderTest(store *storage.Store, trouble contract.Trouble) contract.BooksUnderTest {
	return contract.BooksUnderTest{
		Books: store,
		Seed:  func(t *testing.T, s contract.Seed) { seed(t, store, s) },
		Holdings: func(t *testing.T) []fund.Holding {
			return all(t, store.ExportHoldings(t.Context(), storage.Filter{}))
		},
		Accounts: func(t *testing.T) []fund.Account {
			return all(t, store.ExportAccounts(t.Context(), storage.Filter{}))
		},
		Sales: func(t *testing.T) []fund.SaleEntry {
			return all(t, store.ExportSales(t.Context(), storage.Filter{}))
		},
		Postings: func(t *testing.T) []fund.Posting {
			var found []fund.Posting
			for _, p := range all(t, store.ExportPostings(t.Context(), storage.Filter{})) {
				found = append(found, p.Posting)
			}
			return found
		},
		Trouble: trouble,
	}
}

// seed imports, as an operator would.
func seed(t testing.TB, store *storage.Store, s contract.Seed) {
	t.Helper()
	s = contract.Seed{Prices: slices.Clone(s.Prices), Holdings: slices.Clone(s.Holdings), Accounts: slices.Clone(s.Accounts)}
	slices.SortFunc(s.Prices, func(a, b fund.Price) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Holdings, func(a, b fund.Holding) int { return a.Key.Compare(b.Key) })
	slices.SortFunc(s.Accounts, func(a, b fund.Account) int { return a.Key.Compare(b.Key) })
	require.NoError(t, store.ImportPrices(t.Context(), lines(s.Prices...), quiet))
	require.NoError(t, store.ImportHoldings(t.Context(), nextID(), lines(s.Holdings...), quiet))
	require.NoError(t, store.ImportAccounts(t.Context(), nextID(), lines(s.Accounts...), quiet))
}

// opener opens an empty store, with ways to make it trouble.
type opener func(t *testing.T) (*storage.Store, contract.Trouble)

func onEachEngine(t *testing.T, test func(t *testing.T, open opener)) {
	for name, open := range map[string]opener{
		"sqlite":   openSQLite,
		"postgres": func(t *testing.T) (*storage.Store, contract.Trouble) { return openPostgres(t, testdb.Postgres(t)) },
		"postgres serializable": func(t *testing.T) (*storage.Store, contract.Trouble) {
			return openPostgres(t, serializable(testdb.Postgres(t)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

func serializable(dsn string) string {
	return with(dsn, "default_transaction_isolation", "serializable")
}

func openSQLite(t *testing.T) (*storage.Store, contract.Trouble) {
	file := filepath.Join(t.TempDir(), "book.db")
	engine, err := sqlite.Open(t.Context(), storage.Options{DSN: file, StatementTimeout: statementTimeout})
	require.NoError(t, err)
	var upset troublemaker
	upset.into(engine)
	store := migrated(t, engine)
	return store, contract.Trouble{
		Disconnect: func() { require.NoError(t, store.Close()) },
		FailCommit: func() {
			upset.next(func(s storage.Session) error {
				s.Rollback()
				return driver.ErrBadConn
			})
		},
		LoseRace: func() {
			upset.next(func(s storage.Session) error {
				// What the loser of a race would get, from the engine itself.
				db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(0)")
				require.NoError(t, err)
				defer db.Close()
				_, err = db.ExecContext(context.Background(), "BEGIN IMMEDIATE")
				require.Error(t, err)
				return err
			})
		},
	}
}

func openPostgres(t *testing.T, dsn string) (*storage.Store, contract.Trouble) {
	engine, err := postgres.Open(t.Context(), storage.Options{DSN: dsn, StatementTimeout: statementTimeout})
	require.NoError(t, err)
	var upset troublemaker
	upset.into(engine)
	store := migrated(t, engine)
	return store, contract.Trouble{
		Disconnect: func() { lockOut(t, dsn) },
		FailCommit: func() {
			upset.next(func(storage.Session) error {
				terminate(t, dsn)
				for range postgresConnections { // all but the one of this session
					_ = store.Ping(context.Background())
				}
				return nil // the commit itself shall find out
			})
		},
		LoseRace: func() {
			upset.next(func(s storage.Session) error {
				const race = "DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '40001'; END $$"
				return s.Exchange(context.Background(), storage.Request{Name: "lose a race", SQL: race, Rows: new(storage.Rows)})
			})
		},
	}
}

func migrated(t testing.TB, engine *storage.Engine) *storage.Store {
	t.Helper()
	store := storage.New(engine, "", clock.Now)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	_, err := store.MigrateUp(t.Context())
	require.NoError(t, err)
	return store
}

// troublemaker stands between a store and its engine, and makes one commit
// fail.
type troublemaker struct {
	at atomic.Pointer[func(storage.Session) error]
}

func (m *troublemaker) into(engine *storage.Engine) {
	begin := engine.Begin
	engine.Begin = func(ctx context.Context) (storage.Session, error) {
		session, err := begin(ctx)
		if err != nil {
			return nil, err
		}
		return upset{session, m}, nil
	}
}

// next calls strike before the next commit, which fails if strike does.
func (m *troublemaker) next(strike func(storage.Session) error) { m.at.Store(&strike) }

type upset struct {
	storage.Session
	by *troublemaker
}

func (s upset) Commit(ctx context.Context, requests ...storage.Request) error {
	if strike := s.by.at.Swap(nil); strike != nil {
		if err := (*strike)(s.Session); err != nil {
			return err
		}
	}
	return s.Session.Commit(ctx, requests...)
}
