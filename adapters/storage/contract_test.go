package storage_test

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/domain/fund"
	"bankingapi/domain/push"
	"bankingapi/test/contract"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
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
	suite := func(t *testing.T, open opener) {
		contract.Books(t, func(t *testing.T) contract.BooksUnderTest {
			return booksUnderTest(open(t))
		})
	}
	onEachEngine(t, suite)
	onSerializable(t, suite)
}

func TestSubscriptions(t *testing.T) {
	t.Parallel()
	suite := func(t *testing.T, open opener) {
		contract.Subscriptions(t, func(t *testing.T) contract.SubscriptionsUnderTest {
			store, trouble := open(t)
			return contract.SubscriptionsUnderTest{Repository: store.Subscriptions, Trouble: trouble}
		})
	}
	onEachEngine(t, suite)
	onSerializable(t, suite)
}

// TestOffice guards against this defect: on Postgres 16 and later the schema could not be made:
// system_user, a column of the audit, is a keyword there.
func TestOffice(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		contract.Office(t, func(t *testing.T) contract.OfficeUnderTest {
			store, trouble := open(t)
			return contract.OfficeUnderTest{
				Ports: store.Backoffice, Books: store.Books, Inboxes: store.Inboxes, Now: importedAt, Trouble: trouble,
			}
		})
	})
}

func TestRequests(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		contract.Requests(t, func(t *testing.T) contract.RequestsUnderTest {
			store, trouble := open(t)
			return contract.RequestsUnderTest{Storage: store.Requests, Reader: store.Backoffice.Reader, Trouble: trouble}
		})
	})
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		contract.Replicas(t, func(t *testing.T) contract.ReplicasUnderTest {
			store, trouble := open(t)
			return contract.ReplicasUnderTest{Replicas: store.Replicas, Trouble: trouble}
		})
	})
}

func TestTrail(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		contract.Trail(t, func(t *testing.T) contract.TrailUnderTest {
			store, trouble := open(t)
			return contract.TrailUnderTest{
				OfficeUnderTest: contract.OfficeUnderTest{
					Ports: store.Backoffice, Books: store.Books, Inboxes: store.Inboxes, Now: importedAt, Trouble: trouble,
				},
				Trail: *store.Trail, Subscriptions: store.Subscriptions,
			}
		})
	})
}

// importedAt is the time of all imports of these tests.
var importedAt = time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)

func inboxesUnderTest(store *store.Store, trouble contract.Trouble) contract.InboxesUnderTest {
	return contract.InboxesUnderTest{
		Inboxes: store.Inboxes,
		Notifications: func(t *testing.T) []push.Entry {
			return all(t, store.Backoffice.Reader.Notifications(t.Context(), backoffice.Query{}))
		},
		Trouble: trouble,
	}
}

func booksUnderTest(store *store.Store, trouble contract.Trouble) contract.BooksUnderTest {
	return contract.BooksUnderTest{
		Books: store.Books,
		Seed:  func(t *testing.T, s contract.Seed) { seed(t, store, s) },
		Holdings: func(t *testing.T) []fund.Holding {
			return all(t, store.Backoffice.Reader.Holdings(t.Context(), backoffice.Query{}))
		},
		Accounts: func(t *testing.T) []fund.Account {
			return all(t, store.Backoffice.Reader.Accounts(t.Context(), backoffice.Query{}))
		},
		Sales: func(t *testing.T) []fund.SaleEntry {
			return all(t, store.Backoffice.Reader.Sales(t.Context(), backoffice.Query{}))
		},
		Postings: func(t *testing.T) []fund.Posting {
			var found []fund.Posting
			for _, p := range all(t, store.Backoffice.Reader.Postings(t.Context(), backoffice.Query{})) {
				found = append(found, p.Posting)
			}
			return found
		},
		Trouble: trouble,
	}
}

// seed imports, as an operator would.
func seed(t testing.TB, store *store.Store, s contract.Seed) {
	t.Helper()
	s = contract.Seed{Prices: slices.Clone(s.Prices), Holdings: slices.Clone(s.Holdings), Accounts: slices.Clone(s.Accounts)}
	slices.SortFunc(s.Prices, func(a, b fund.Price) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Holdings, func(a, b fund.Holding) int { return a.Key.Compare(b.Key) })
	slices.SortFunc(s.Accounts, func(a, b fund.Account) int { return a.Key.Compare(b.Key) })
	require.NoError(t, importPrices(t.Context(), store, lines(s.Prices...), quiet))
	require.NoError(t, importHoldings(t.Context(), store, nextID(), lines(s.Holdings...), quiet))
	require.NoError(t, importAccounts(t.Context(), store, nextID(), lines(s.Accounts...), quiet))
}

// longForm says that the suites also run behind every proxy and on partitions. They
// repeat what runs on the engines themselves.
func longForm() bool { return os.Getenv("PROVE_SUITES") != "" }

// opener opens an empty store, with ways to make it trouble.
type opener func(t *testing.T) (*store.Store, contract.Trouble)

func onEachEngine(t *testing.T, test func(t *testing.T, open opener)) {
	for name, open := range map[string]opener{
		"sqlite":   openSQLite,
		"postgres": func(t *testing.T) (*store.Store, contract.Trouble) { return openPostgres(t, testdb.Postgres(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

// onSerializable is for ports whose callers wait for each other, on a database in which each
// transaction is serializable unless it says otherwise.
func onSerializable(t *testing.T, test func(t *testing.T, open opener)) {
	t.Run("postgres serializable", func(t *testing.T) {
		t.Parallel()
		test(t, func(t *testing.T) (*store.Store, contract.Trouble) {
			return openPostgres(t, serializable(testdb.Postgres(t)))
		})
	})
}

func serializable(dsn string) string {
	return with(dsn, "default_transaction_isolation", "serializable")
}

func openSQLite(t *testing.T) (*store.Store, contract.Trouble) {
	file := filepath.Join(t.TempDir(), "book.db")
	storekit.WriteBook(t, file)
	engine, err := storekit.Started(sqlite.NewEngine(storage.Options{DSN: file, StatementTimeout: statementTimeout}))
	require.NoError(t, err)
	var upset troublemaker
	engine = upset.into(engine)
	store := migrated(t, engine)
	return store, contract.Trouble{
		Disconnect: func() { require.NoError(t, store.Close()) },
		FailCommit: func() {
			upset.next(func(s batch.Session) error {
				s.Rollback()
				return driver.ErrBadConn
			})
		},
		LoseRace: func() {
			upset.next(func(s batch.Session) error {
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

func openPostgres(t *testing.T, dsn string) (*store.Store, contract.Trouble) {
	engine, err := storekit.Started(postgres.NewEngine(storage.Options{DSN: dsn, StatementTimeout: statementTimeout}))
	require.NoError(t, err)
	var upset troublemaker
	engine = upset.into(engine)
	store := migrated(t, engine)
	return store, contract.Trouble{
		Disconnect: func() { lockOut(t, dsn) },
		FailCommit: func() {
			upset.next(func(batch.Session) error {
				terminate(t, dsn)
				for range postgresConnections { // all but the one of this session
					_ = store.Ping(context.Background())
				}
				return nil // the commit itself shall find out
			})
		},
		LoseRace: func() {
			upset.next(func(s batch.Session) error {
				const race = "DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '40001'; END $$"
				return s.Exchange(context.Background(), batch.Request{Name: "lose a race", SQL: race})
			})
		},
	}
}

// bind returns the ports of an engine.
func bind(t testing.TB, engine storage.Engine, prefix string) *store.Store {
	t.Helper()
	ports, err := storage.Open(engine, storage.Options{TablePrefix: prefix, Now: clock.Now})
	require.NoError(t, err)
	return ports
}

func migrated(t testing.TB, engine storage.Engine) *store.Store {
	t.Helper()
	store, err := storage.Open(engine, storage.Options{Now: func() time.Time { return importedAt }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	_, err = store.Schema.Up(t.Context())
	require.NoError(t, err)
	return store
}

// troublemaker stands between a store and its engine, and makes one commit
// fail.
type troublemaker struct {
	at atomic.Pointer[func(batch.Session) error]
}

func (m *troublemaker) into(engine storage.Engine) storage.Engine {
	return storekit.With(engine, upsetDialect{engine.Dialect(), m})
}

type upsetDialect struct {
	batch.Dialect
	by *troublemaker
}

func (d upsetDialect) Begin(ctx context.Context) (batch.Session, error) {
	session, err := d.Dialect.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return upset{session, d.by}, nil
}

// next calls strike before the next commit, which fails if strike does.
func (m *troublemaker) next(strike func(batch.Session) error) { m.at.Store(&strike) }

type upset struct {
	batch.Session
	by *troublemaker
}

func (s upset) Commit(ctx context.Context, requests ...batch.Request) error {
	if strike := s.by.at.Swap(nil); strike != nil {
		if err := (*strike)(s.Session); err != nil {
			return err
		}
	}
	return s.Session.Commit(ctx, requests...)
}
