package bootstrap_test

import (
	"context"
	"database/sql"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	_ "modernc.org/sqlite"

	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/testdb"
)

// hostDatabase is a program that opens and closes a database of its own.
type hostDatabase struct {
	db       *sql.DB
	database store.Opener
	settings bootstrap.Settings
}

func eachEngine(t *testing.T, test func(t *testing.T, h hostDatabase)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		db, err := sql.Open("sqlite", "file:"+testdb.SQLite(t)+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		db.SetMaxOpenConns(1)
		test(t, hostDatabase{db, sqlite.Use(db, db), bootstrap.DefaultSettings()})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db, err := sql.Open("pgx", testdb.Postgres(t))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		settings := bootstrap.DefaultSettings()
		settings.Storage.Driver, settings.Storage.DSN = bootstrap.Postgres, "postgres://the-hosts-own"
		settings.Storage.Migrate, settings.Storage.AllowUnsafe = true, true // a temporary server has no fsync
		test(t, hostDatabase{db, postgres.Use(db, db), settings})
	})
}

func (h hostDatabase) open(t *testing.T, options ...bootstrap.Option) *bootstrap.App {
	t.Helper()
	h.settings.Settlement.Enabled = false
	return opened(t, h.settings, append(options, bootstrap.WithDatabase(h.database), quiet)...)
}

func (h hostDatabase) count(t *testing.T, query string) (n int) {
	t.Helper()
	require.NoError(t, h.db.QueryRow(query).Scan(&n))
	return n
}

func loadBook(t *testing.T, app *bootstrap.App) {
	t.Helper()
	for _, file := range [][2]string{
		{"prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom\n1,AFA,H,1.25,TRY,2024-01-01\n"},
		{"holdings", "CustomerNo,IMKBCode,HolderCorporationName,Units\n1001,AFA,H,100\n"},
		{"accounts", "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance\n1,1001,1,TRY,0\n"},
	} {
		_, err := bookfile.Import(t.Context(), officeOf(t, app), file[0], strings.NewReader(file[1]), bookfile.Options{})
		require.NoError(t, err)
	}
}

// newKey makes a subscription and returns its primary key.
func newKey(t *testing.T, app *bootstrap.App, wanted subscription.Subscription) string {
	t.Helper()
	manager, err := app.Manager(t.Context())
	require.NoError(t, err)
	key, _, err := manager.Create(t.Context(), wanted)
	require.NoError(t, err)
	return key.Reveal()
}

// The writes of the host and of the service are committed together or not at
// all.
func TestHostsTransaction(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, h hostDatabase) {
		ctx := t.Context()
		app := h.open(t)
		loadBook(t, app)
		_, err := h.db.Exec("CREATE TABLE orders (id INTEGER)")
		require.NoError(t, err)
		within := func(callerID string, end func(*sql.Tx) error) {
			tx, err := h.db.BeginTx(ctx, nil)
			require.NoError(t, err)
			within, err := app.Within(tx)
			require.NoError(t, err)
			_, err = tx.Exec("INSERT INTO orders VALUES (1)")
			require.NoError(t, err)
			outcome, err := within.Buyer.Buy(ctx, host, operation.Header{CallerID: callerID}, []fund.SaleFields{sale})
			require.NoError(t, err)
			require.Equal(t, operation.Completed, outcome.State, outcome.Faults)
			outcome, err = within.Adder.Add(ctx, host, operation.Header{CallerID: callerID}, []push.Fields{notification})
			require.NoError(t, err)
			require.Equal(t, operation.Completed, outcome.State)
			require.NoError(t, end(tx))
		}

		within("order-1", (*sql.Tx).Rollback)
		require.Zero(t, h.count(t, "SELECT COUNT(*) FROM orders"))
		require.Zero(t, h.count(t, "SELECT COUNT(*) FROM sales"))
		require.Zero(t, h.count(t, "SELECT COUNT(*) FROM notifications"))
		require.Zero(t, h.count(t, "SELECT COUNT(*) FROM operations"))
		require.Equal(t, 100_000_000, h.count(t, "SELECT units FROM holdings"))

		within("order-1", (*sql.Tx).Commit)
		require.Equal(t, 1, h.count(t, "SELECT COUNT(*) FROM orders"))
		require.Equal(t, 1, h.count(t, "SELECT COUNT(*) FROM sales"))
		require.Equal(t, 1, h.count(t, "SELECT COUNT(*) FROM notifications"))
		require.Equal(t, 90_000_000, h.count(t, "SELECT units FROM holdings"))
		require.Equal(t, 1250, h.count(t, "SELECT balance FROM accounts"))

		// The service knows an operation that the host committed like any
		// other.
		outcome, err := app.Buyer().Buy(ctx, host, operation.Header{CallerID: "order-1"}, []fund.SaleFields{sale})
		require.NoError(t, err)
		require.True(t, outcome.Replayed)
		proof, err := officeOf(t, app).Verify(ctx, nil, backoffice.Watch{Found: func(f backoffice.Finding) { t.Error(f.Text) }})
		require.NoError(t, err)
		require.Zero(t, proof.Findings)
	})
}

// A host can use the service inside a transaction on its only connection,
// because the service needs no other connection.
func TestHostsOnlyConnection(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, h hostDatabase) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		app := h.open(t)
		h.db.SetMaxOpenConns(1)
		tx, err := h.db.BeginTx(ctx, nil)
		require.NoError(t, err)
		within, err := app.Within(tx)
		require.NoError(t, err)
		outcome, err := within.Adder.Add(ctx, host, operation.Header{}, []push.Fields{notification})
		require.NoError(t, err)
		require.Equal(t, operation.Completed, outcome.State)
		require.NoError(t, tx.Commit())
		require.Equal(t, 1, h.count(t, "SELECT COUNT(*) FROM notifications"))
	})
}

// A database that the host opened is open after Close, and its other tables
// are untouched.
func TestCloseClosesOnlyWhatItOpened(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, h hostDatabase) {
		app := h.open(t, bootstrap.WithTablePrefix("bank_"))
		require.NoError(t, app.Ready(t.Context()))
		require.NoError(t, app.Close(t.Context()))
		require.NoError(t, app.Close(t.Context()), "twice is fine")
		require.Zero(t, h.count(t, "SELECT COUNT(*) FROM bank_sales"))
	})
}

// A service that was closed does not listen again.
func TestAClosedServiceDoesNotStart(t *testing.T) {
	t.Parallel()
	settings, options := inMemory()
	app := opened(t, settings, options)
	require.NoError(t, app.Close(t.Context()))
	require.EqualError(t, app.Start(t.Context()), "the service is stopped: open another one")
	require.Empty(t, app.URL())
	require.Empty(t, app.OpsAddress())
}

// What names the book does not name that of the settings if the host opened another.
func TestTheBookOfAHostIsNamedSo(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, h hostDatabase) {
		core, lines := observer.New(zapcore.InfoLevel)
		h.settings.HTTP.Address, h.settings.Ops.Address, h.settings.TLS.Mode = "127.0.0.1:0", "", bootstrap.TLSOff
		app := opened(t, h.settings, bootstrap.WithDatabase(h.database), bootstrap.WithLogger(zap.New(core)))
		require.NoError(t, app.Start(t.Context()))
		require.Equal(t, "database of the host", lines.FilterMessage("serving the API").All()[0].ContextMap()["storage"])
		report, err := officeOf(t, app).About(t.Context())
		require.NoError(t, err)
		require.Equal(t, "database of the host", report.Book)
	})
}

// post sends a message and returns the status.
func post(app *bootstrap.App, key string) int {
	return ask(app, http.MethodPost, "/BankingApiV01/AddPushNotificationResponse", key,
		`{"Header":{},"Parameters":[{"ExternalApplicationCode":"HOST","UserId":"u","PushId":"p","Platform":65,"SendStatus":1}]}`).Code
}

func TestUnknownDriverIsAnErrorOfTheStart(t *testing.T) {
	t.Parallel()
	_, err := bootstrap.Open(t.Context(), bootstrap.DefaultSettings(), bootstrap.WithDriver(bootstrap.Postgres, postgres.Open))
	require.EqualError(t, err, "storage.driver: must be postgres: this program has no other driver")
}
