//go:build unix

package storage_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/application/store"
	"bankingapi/test/contract"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// Everything works through PgBouncer in transaction mode, where no two
// transactions of a connection need to meet the same server.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	through := testdb.PgBouncer(t, dsn)
	open := func(t *testing.T) (*store.Store, contract.Trouble) {
		store := storekit.OpenPostgres(t, inDatabase(through, database(t, testdb.Postgres(t))))
		return store, contract.Trouble{}
	}
	if longForm() {
		contract.Books(t, func(t *testing.T) contract.BooksUnderTest { return booksUnderTest(open(t)) })
		contract.Inboxes(t, func(t *testing.T) contract.InboxesUnderTest { return inboxesUnderTest(open(t)) })
		contract.Subscriptions(t, func(t *testing.T) contract.SubscriptionsUnderTest {
			store, _ := open(t)
			return contract.SubscriptionsUnderTest{Repository: store.Subscriptions}
		})
	}
	t.Run("everything", func(t *testing.T) {
		t.Parallel()
		own := testdb.Postgres(t)
		ports := storekit.OpenPostgres(t, inDatabase(through, database(t, own)))
		everything(t, ports)
		require.NoError(t, importHoldings(t.Context(), ports, nextID(), manyHoldings(several, 1), quiet))
	})
}

// Everything works through what a bank may put between the service and Postgres.
// The long form adds the suite of the books.
func TestOtherProxies(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, string) string{
		"PgBouncer in session mode": func(t testing.TB, dsn string) string {
			return testdb.PgBouncer(t, dsn, "pool_mode = session", "server_reset_query = DISCARD ALL", "default_pool_size = 60")
		},
		"HAProxy": testdb.HAProxy,
		"pgpool":  testdb.Pgpool,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			through := start(t, testdb.Postgres(t))
			open := func(t *testing.T) *store.Store {
				return storekit.OpenPostgres(t, inDatabase(through, database(t, testdb.Postgres(t))))
			}
			everything(t, open(t))
			if longForm() {
				contract.Books(t, func(t *testing.T) contract.BooksUnderTest { return booksUnderTest(open(t), contract.Trouble{}) })
			}
		})
	}
}

// A URL of several hosts finds the one that can be written to, at the start and
// after a fail-over.
func TestFailOver(t *testing.T) {
	t.Parallel()
	one, two := testdb.Cluster(t), testdb.Cluster(t)
	readOnly := func(dsn, value string) {
		admin(t, dsn, "ALTER SYSTEM SET default_transaction_read_only = '"+value+"'")
		admin(t, dsn, "SELECT pg_reload_conf()")
		require.Eventually(t, func() bool { return setting(t, dsn, "default_transaction_read_only") == value }, time.Minute, 10*time.Millisecond)
	}
	both, err := url.Parse(one)
	require.NoError(t, err)
	query := both.Query()
	query.Set("host", strings.Join([]string{socket(t, one), socket(t, two)}, ","))
	query.Set("target_session_attrs", "read-write")
	both.RawQuery = query.Encode()

	// The same book on both, as replication would have it.
	sold := func(dsn string) int64 { return bank{storekit.OpenPostgres(t, dsn), t}.holds().Sales }
	for _, dsn := range []string{one, two} {
		newBank(t, storekit.OpenPostgres(t, dsn), 1)
	}
	readOnly(one, "on")
	engine, err := storekit.Started(postgres.NewEngine(storage.Options{DSN: both.String(), StatementTimeout: statementTimeout}))
	require.NoError(t, err)
	store := bind(t, engine, "")
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	sellAgain(t, store, "at first")
	require.EqualValues(t, 1, sold(two))

	readOnly(one, "off")
	readOnly(two, "on")
	terminate(t, two)
	sellAgain(t, store, "the old primary was restarted")
	require.EqualValues(t, 1, sold(one))

	readOnly(two, "off")
	readOnly(one, "on") // its connections stay open
	sellAgain(t, store, "the old primary was demoted")
	require.EqualValues(t, 2, sold(two))
}

// sellAgain sells until it succeeds: each connection may fail once, and nothing
// may happen then.
func sellAgain(t *testing.T, store *store.Store, caller string) {
	t.Helper()
	var errs []error
	for range postgresConnections + 1 {
		err := settle(t.Context(), store, today, order(nextID(), caller, sale(1, 1, 1)))
		if err == nil {
			return
		}
		errs = append(errs, err)
	}
	require.NoError(t, errors.Join(errs...))
}

func socket(t *testing.T, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	return config.Host
}
