package storage_test

import (
	"context"
	"io"
	"maps"
	"math"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/addpush"
	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/audit"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// wire records the traffic with Postgres: every statement and the number of
// round trips.
type wire struct {
	mu         sync.Mutex
	statements []string
	errors     []error // of batches
	trips      atomic.Int64
}

func (w *wire) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	w.add(data.SQL)
	return ctx
}
func (w *wire) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (w *wire) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (w *wire) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	w.add(data.SQL)
}
func (w *wire) TraceBatchEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	if data.Err != nil {
		w.errors = append(w.errors, data.Err)
	}
}

func (w *wire) add(statement string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.statements = append(w.statements, statement)
}

// seen are the statements so far, each once.
func (w *wire) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(w.statements)))
}

// counted counts a trip for every first write after a read.
type counted struct {
	net.Conn
	trips   *atomic.Int64
	writing atomic.Bool
}

func (c *counted) Write(b []byte) (int, error) {
	if !c.writing.Swap(true) {
		c.trips.Add(1)
	}
	return c.Conn.Write(b)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.writing.Store(false)
	return n, err
}

// texts is a dialect that keeps the SQL of its sessions.
type texts struct {
	batch.Dialect
	mu   sync.Mutex
	seen map[string]bool
}

func (d *texts) Begin(ctx context.Context) (batch.Session, error) {
	s, err := d.Dialect.Begin(ctx)
	return textsOf{s, d}, err
}

type textsOf struct {
	batch.Session
	to *texts
}

func (s textsOf) Exchange(ctx context.Context, requests ...batch.Request) error {
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	for i := range requests {
		s.to.seen[requests[i].SQL] = true
	}
	return s.Session.Exchange(ctx, requests...)
}

// A connection keeps each statement prepared. So an import at another moment must not be
// another statement.
func TestImportsAsOfAnyMomentAreTheSameStatements(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (storage.Engine, error){
		testdb.EngineSQLite: func(t *testing.T) (storage.Engine, error) {
			file := testdb.SQLite(t)
			storekit.OpenSQLite(t, file)
			return sqlite.NewEngine(storage.Options{DSN: file})
		},
		testdb.EnginePostgres: func(t *testing.T) (storage.Engine, error) {
			dsn := testdb.Postgres(t)
			storekit.OpenPostgres(t, dsn)
			return postgres.NewEngine(storage.Options{DSN: dsn})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine, err := storekit.Started(open(t))
			require.NoError(t, err)
			of := &texts{Dialect: engine.Dialect(), seen: make(map[string]bool)}
			engine = storekit.With(engine, of)
			s := bind(t, engine, "")
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			importAsOf := func(moment time.Time) {
				_, err := s.Backoffice.Imports.Holdings(t.Context(), manyHoldings(2, 10), backoffice.ImportOptions{ID: nextID(), AsOf: moment, Progress: quiet})
				require.NoError(t, err)
			}
			importAsOf(now)
			importAsOf(now) // finds positions
			first := maps.Clone(of.seen)
			importAsOf(now.Add(-time.Hour))
			require.Equal(t, first, of.seen)
		})
	}
}

// watched opens a store on one connection that is watched.
func watched(t *testing.T) (*store.Store, *wire) {
	t.Helper()
	dsn := testdb.Postgres(t)
	storekit.OpenPostgres(t, dsn)
	w := new(wire)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	config.Tracer = w
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &counted{Conn: conn, trips: &w.trips}, err
	}
	never := stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false })
	db := stdlib.OpenDB(*config, never)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1)
	engine, err := postgres.NewHostEngine(db, db, statementTimeout)
	require.NoError(t, err)
	return bind(t, engine, ""), w
}

// On Postgres a batch of sales is two round trips, one of pushes is one, or
// two when CallerIds are to be looked up.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	store, w := watched(t)
	b := newBank(t, store, 50)
	notification := func() push.Notification { // each is new: one that is stored takes one more round trip
		n, faults := push.New(push.Fields{ExternalApplicationCode: "a", UserID: "u", PushID: nextID().String(), Platform: decimal.Int(65), SendStatus: decimal.Int(1)})
		require.Empty(t, faults)
		return n
	}
	sales := func(callerID func() string) func() {
		return func() {
			var batch []*fund.Operation
			for i := range 50 {
				batch = append(batch, order(nextID(), callerID(), sale(1, 1+i, 50-i), sale(1, 1, 1)))
			}
			require.NoError(t, settle(t.Context(), b.Store, today, batch...))
		}
	}
	pushes := func(callerID func() string) func() {
		return func() {
			var batch []*push.Operation
			for range 50 {
				batch = append(batch, &push.Operation{Envelope: operation.Envelope{ID: nextID(), Subscription: "s", Header: operation.Header{CallerID: callerID()}, ReceivedAt: now}, Notifications: []push.Notification{notification()}})
			}
			require.NoError(t, store.Inboxes.Update(t.Context(), push.Keys(batch), func(b *push.Inbox) { b.Accept(batch) }))
		}
	}
	none, fresh := func() string { return "" }, func() string { return nextID().String() }
	for range 20 { // batches that are known to take two do not make the others take them
		later, again := sale(1, 1, 1), fresh()
		later.SelectedDay = today.Plus(1)
		require.NoError(t, settle(t.Context(), b.Store, today, order(nextID(), "", sale(1, 1, 1)), order(nextID(), "", later)))
		for range 2 {
			require.NoError(t, settle(t.Context(), b.Store, today, order(nextID(), again, sale(1, 1, 1))))
			pushes(func() string { return again })()
		}
	}
	for _, c := range []struct {
		name  string
		batch func()
		trips int64
	}{
		{"sales", sales(none), 1},
		{"sales with CallerIds", sales(fresh), 1},
		{"pushes", pushes(none), 1},
		{"pushes with CallerIds", pushes(fresh), 1},
	} {
		c.batch() // the first of its kind reads the prices,
		c.batch() // and the next prepares the statements of the short way
		least := int64(math.MaxInt64)
		for range 5 { // a check of what the book relies on may run between two of them, which time decides
			before := w.trips.Load()
			c.batch()
			least = min(least, w.trips.Load()-before)
		}
		require.Equal(t, c.trips, least, c.name)
	}
	b.holds()
}

// No statement uses what distributed Postgres engines, or PgBouncer in
// transaction mode, lack (the design, "Growing past one machine"). Migrations
// are not among them: they run once.
func TestStatementsArePlain(t *testing.T) {
	t.Parallel()
	store, w := watched(t)
	everything(t, store)
	statements := w.seen()
	require.Greater(t, len(statements), 25)
	lacking := regexp.MustCompile(`(?i)\b(nextval|setval|currval|pg_\w*advisory\w*|LISTEN|NOTIFY|SAVEPOINT|LOCK|TEMP|TEMPORARY|TRIGGER|TRUNCATE|DECLARE|CURSOR|COPY|PREPARE|CREATE|ALTER|DROP|DISCARD|RESET)\b`)
	set := regexp.MustCompile(`(?i)^\s*SET\s+(\w+)`)
	reads := regexp.MustCompile(`current_setting\('\w+', true\)`)
	room := regexp.MustCompile(`^ALTER TABLE \w+ SET \(fillfactor = \d+\)$`) // may fail
	for _, s := range statements {
		if room.MatchString(s) {
			continue
		}
		require.Empty(t, lacking.FindAllString(s, -1), s)
		if found := set.FindStringSubmatch(s); found != nil {
			require.Contains(t, []string{"LOCAL", "TRANSACTION"}, strings.ToUpper(found[1]), s)
		}
		require.Equal(t, strings.Count(s, "set_config("), strings.Count(reads.ReplaceAllString(s, ""), ", true)"), "only for the transaction: %s", s)
	}
}

// everything uses every use case, and everything an operator has.
func everything(t *testing.T, store *store.Store) {
	t.Helper()
	ctx := t.Context()
	b := newBank(t, store, 3)
	clock := fake.NewClock(now)
	var ids fake.IDs
	limits := commit.Limits{Batch: 100, Queue: 100, Timeout: time.Minute}

	manager := subscriptions.NewManager(store.Subscriptions, strings.NewReader(strings.Repeat("0123456789abcdef", 10)))
	key, _, err := manager.Create(ctx, subscription.Subscription{Name: "shop"})
	require.NoError(t, err)
	_, err = manager.Regenerate(ctx, "shop", subscription.Secondary)
	require.NoError(t, err)
	caller, err := subscriptions.NewDirectory(store.Subscriptions, clock.Now).Find(ctx, key.Reveal())
	require.NoError(t, err)
	require.NotNil(t, caller)

	adder, err := addpush.New(store.Inboxes, addpush.Options{ParametersLimit: 10, Commit: limits, Now: clock.Now, NewID: ids.Next})
	require.NoError(t, err)
	message := push.Fields{ExternalApplicationCode: "a", UserID: "müşteri €", PushID: "p", Platform: decimal.Int(65), SendStatus: decimal.Int(1)}
	buyer, err := buyfund.New(store.Books, buyfund.Options{ParametersLimit: 10, Commit: limits, Now: clock.Now, NewID: ids.Next})
	require.NoError(t, err)
	now := saleFields("")
	later := saleFields(today.Plus(1).String())
	for _, callerID := range []string{"", "c", "c"} {
		outcome, err := adder.Add(ctx, caller, operation.Header{CallerID: callerID}, []push.Fields{message})
		require.NoError(t, err)
		require.Equal(t, operation.Completed, outcome.State)
		outcome, err = buyer.Buy(ctx, caller, operation.Header{CallerID: callerID}, []fund.SaleFields{now, now})
		require.NoError(t, err)
		require.Equal(t, operation.Completed, outcome.State, "%v", outcome.Faults)
		if callerID != "" {
			callerID += " later"
		}
		outcome, err = buyer.Buy(ctx, caller, operation.Header{CallerID: callerID}, []fund.SaleFields{later})
		require.NoError(t, err)
		require.Equal(t, operation.Recorded, outcome.State, "%v", outcome.Faults)
	}
	b.price(today.Plus(1))
	clock.Advance(24 * time.Hour)
	settled, err := buyer.SettleDue(ctx)
	require.NoError(t, err)
	require.Equal(t, buyfund.Settlement{Completed: 2}, settled)
	require.NoError(t, buyer.Close(ctx))
	require.NoError(t, adder.Close(ctx))

	require.NoError(t, store.Schema.Require(ctx))
	for _, count := range []bool{false, true} {
		_, err = store.Books.DueFunds(ctx, today, count)
		require.NoError(t, err)
	}
	office := backoffice.New(store.Backoffice, audit.Acts{}, time.UTC)
	for _, kind := range []string{"prices", "holdings", "accounts", "sales", "postings", "notifications"} {
		require.NoError(t, bookfile.Export(ctx, office, kind, "csv", bookfile.Query{Filter: backoffice.Query{Since: clock.Now(), Until: clock.Now()}}, io.Discard, nil))
	}
	require.EqualValues(t, 6, b.holds().Sales)
}

// saleFields is a sale of one unit of customer 1's AFA.
func saleFields(on string) fund.SaleFields {
	account := accountOf(1)
	return fund.SaleFields{
		CustomerNo: decimal.Int(1), TransactionType: decimal.Int(fund.SaleTransaction), FundAmount: decimal.Int(1),
		DestinationAccount: &fund.AccountFields{
			BranchCode: decimal.Int(account.BranchCode), CustomerNo: decimal.Int(account.CustomerNo),
			AccountSuffix: decimal.Int(account.AccountSuffix), CurrencyCode: account.Currency.Code(),
		},
		FundToProcess:           &fund.FundFields{IMKBCode: afa.IMKBCode, HolderCorporationName: afa.HolderCorporationName, PriceID: decimal.Int(1)},
		SelectedTransactionDate: on,
	}
}
