package storage_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/test/testdb"
)

// Every row with all its fields is tested by the suites of the ports.

func TestExportFilters(t *testing.T) {
	t.Parallel()
	onEachBank(t, 3, func(t *testing.T, b bank, _ func(string)) {
		ctx := t.Context()
		aDay(b)
		require.Equal(t, []fund.HoldingKey{holdingOf(2)}, keys(all(t, b.ExportHoldings(ctx, storage.Filter{CustomerNo: 2})), func(h fund.Holding) fund.HoldingKey { return h.Key }))
		require.Equal(t, []fund.AccountKey{accountOf(2)}, keys(all(t, b.ExportAccounts(ctx, storage.Filter{CustomerNo: 2})), func(a fund.Account) fund.AccountKey { return a.Key }))
		sales := func(f storage.Filter) []string {
			return keys(all(t, b.ExportSales(ctx, f)), func(s fund.SaleEntry) string {
				return strconv.FormatInt(s.Terms.Holding.CustomerNo, 10) + "/" + s.OperationID.String()[:2] + "/" + strconv.Itoa(s.Position)
			})
		}
		everything := []string{"1/01/0", "1/02/0", "2/02/1", "1/02/2", "3/03/0", "1/05/0", "2/06/0", "1/06/1"}
		require.Equal(t, everything, sales(storage.Filter{}))
		require.Equal(t, []string{"2/02/1", "2/06/0"}, sales(storage.Filter{CustomerNo: 2}))
		require.Equal(t, []string{"1/05/0"}, sales(storage.Filter{State: operation.Recorded}))
		require.Equal(t, []string{"2/06/0", "1/06/1"}, sales(storage.Filter{State: operation.Failed}))
		require.Equal(t, []string{"2/02/1"}, sales(storage.Filter{State: operation.Completed, CustomerNo: 2}))
		require.Equal(t, everything, sales(storage.Filter{Since: now, Until: now.Add(time.Nanosecond)}))
		require.Empty(t, sales(storage.Filter{Since: now.Add(time.Nanosecond)}))
		require.Empty(t, sales(storage.Filter{Until: now.In(time.FixedZone("", 3*60*60))}))

		postings := func(f storage.Filter) int { return len(all(t, b.ExportPostings(ctx, f))) }
		require.Equal(t, 13, postings(storage.Filter{}))
		require.Equal(t, 10, postings(storage.Filter{Since: now, Until: now.Add(time.Microsecond)}), "the openings are of the clock")
		require.Equal(t, 8, postings(storage.Filter{CustomerNo: 1}))
	})
}

func keys[T, K any](rows []T, of func(T) K) (found []K) {
	for _, r := range rows {
		found = append(found, of(r))
	}
	return found
}

// Prices begin at 00:00 of their day, in the bank's zone.
func TestExportPricesByTime(t *testing.T) {
	t.Parallel()
	istanbul, err := time.LoadLocation("Europe/Istanbul")
	require.NoError(t, err)
	testdb.Each(t, func(t *testing.T, _ string, s *storage.Store) {
		var prices []fund.Price
		for i := range 3 {
			prices = append(prices, fund.Price{ID: int64(i + 1), Fund: afa, PerUnit: 1, Currency: lira, ValidFrom: today.Plus(i)})
		}
		require.NoError(t, s.ImportPrices(t.Context(), lines(prices...), quiet))
		begin := today.Plus(1).Start(istanbul)
		for _, c := range []struct {
			since, until time.Time
			want         []fund.Price
		}{
			{time.Time{}, time.Time{}, prices},
			{begin, time.Time{}, prices[1:]},
			{begin.Add(1), time.Time{}, prices[2:]},
			{time.Time{}, begin, prices[:1]},
			{time.Time{}, begin.Add(1), prices[:2]},
			{begin, begin.Add(24 * time.Hour), prices[1:2]},
			{begin, begin, nil},
		} {
			got := all(t, s.ExportPrices(t.Context(), storage.Filter{Since: c.since, Until: c.until, Zone: istanbul}))
			require.Equal(t, c.want, got, "%v", c)
		}
	})
}

func TestExportNotificationsOfUser(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, _ string, s *storage.Store) {
		var notifications []push.Notification
		for _, user := range []string{"ü", "u", "U", "v'"} {
			n, faults := push.New(push.Fields{ExternalApplicationCode: "a", UserID: user, PushID: "p", Platform: decimal.Int(65), SendStatus: decimal.Int(1)})
			require.Empty(t, faults)
			notifications = append(notifications, n)
		}
		batch := []*push.Operation{{ID: operation.ID{1}, Subscription: "s", ReceivedAt: now, Notifications: notifications}}
		require.NoError(t, s.Inboxes().Update(t.Context(), nil, func(b *push.Inbox) { b.Accept(batch) }))
		users := func(f storage.Filter) []string {
			return keys(all(t, s.ExportNotifications(t.Context(), f)), func(n push.Entry) string { return n.Record.UserID })
		}
		require.Equal(t, []string{"U", "u", "v'", "ü"}, users(storage.Filter{}))
		require.Equal(t, []string{"u"}, users(storage.Filter{UserID: "u"}))
		require.Equal(t, []string{"v'"}, users(storage.Filter{UserID: "v'", Since: now}))
		require.Empty(t, users(storage.Filter{UserID: "u", Until: now}))
	})
}

// The order is that of the bytes, whatever language the database speaks.
func TestExportOrder(t *testing.T) {
	t.Parallel()
	holders := []string{"i", "I", "ı", "İ", "Z", "a", "A b", "Ab", "_", "\u0001", "ç", "c", "\uffff", "😀"}
	var holdings []fund.Holding
	for _, h := range holders {
		holdings = append(holdings, fund.Holding{Key: fund.HoldingKey{CustomerNo: 1, Fund: fund.Fund{IMKBCode: "A", HolderCorporationName: h}}})
	}
	slices.SortFunc(holdings, func(a, b fund.Holding) int { return a.Key.Compare(b.Key) })
	check := func(t *testing.T, s *storage.Store) {
		require.NoError(t, s.ImportHoldings(t.Context(), nextID(), lines(holdings...), quiet))
		require.Equal(t, holdings, all(t, s.ExportHoldings(t.Context(), storage.Filter{})))
	}
	testdb.Each(t, func(t *testing.T, _ string, s *storage.Store) { check(t, s) })
	t.Run("postgres in Turkish", func(t *testing.T) {
		t.Parallel()
		dsn := testdb.Postgres(t)
		name := database(t, dsn) + "_tr"
		admin(t, dsn, "CREATE DATABASE "+name+" TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR'")
		t.Cleanup(func() { admin(t, dsn, "DROP DATABASE "+name+" WITH (FORCE)") })
		check(t, testdb.OpenPostgres(t, inDatabase(dsn, name)))
	})
}

// Whoever stops reading gives the connection back at once.
func TestExportStops(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, _ string, s *storage.Store) {
		require.NoError(t, s.ImportHoldings(t.Context(), nextID(), manyHoldings(20_000, 1), quiet))
		for range 2 * postgresConnections {
			for h, err := range s.ExportHoldings(t.Context(), storage.Filter{}) {
				require.NoError(t, err)
				require.Equal(t, holdingOf(1), h.Key)
				break
			}
		}
		require.NoError(t, s.Ping(t.Context()))

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var failure error
		read := 0
		for _, err := range s.ExportHoldings(ctx, storage.Filter{}) {
			if err != nil {
				require.NoError(t, failure, "an error is the last row")
				failure = err
			}
			if read++; read == 10 {
				cancel()
			}
		}
		require.Error(t, failure)
		require.Equal(t, fault.Unavailable, fault.KindOf(failure), "%v", failure)
	})
}

// An export may take longer than any statement: its reader may be slow.
func TestExportOutlivesTheStatementTimeout(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := testdb.OpenPostgres(t, dsn)
	const n = 100_000 // more than fits any buffer on the way
	require.NoError(t, s.ImportHoldings(t.Context(), nextID(), manyHoldings(n, 1), quiet))
	admin(t, dsn, "ALTER DATABASE "+database(t, dsn)+" SET statement_timeout = '100ms'")
	s = testdb.OpenPostgres(t, dsn)
	rows := 0
	for _, err := range s.ExportHoldings(t.Context(), storage.Filter{}) {
		require.NoError(t, err)
		if rows == 0 {
			admin(t, dsn, "SELECT pg_sleep(0.5)")
		}
		rows++
	}
	require.Equal(t, n, rows)
	bank{s, t}.holds()
}

func TestDueSales(t *testing.T) {
	t.Parallel()
	onEachBank(t, 3, func(t *testing.T, b bank, _ func(string)) {
		count, oldest, err := b.DueSales(t.Context(), today)
		require.NoError(t, err)
		require.Zero(t, count)
		require.True(t, oldest.IsNone())
		for i := range 3 {
			later := today.Plus(i + 1)
			b.sell(operation.Recorded, order(nextID(), "", on(later, sale(1, 1, 1)), on(later, sale(1, 2, 2))))
		}
		count, oldest, err = b.DueSales(t.Context(), today.Plus(2))
		require.NoError(t, err)
		require.EqualValues(t, 4, count)
		require.Equal(t, today.Plus(1), oldest)
	})
}
