package storage_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
	"bankingapi/domain/push"
)

// The rows and arrays of a batch of 32 cost a bounded number of allocations,
// most of them one for each column and not for each value. Times depend on the
// machine; these numbers do not. If a change raises them, measure BenchmarkUpdate
// before raising them here.
func TestAllocationsOfABatch(t *testing.T) {
	const size = 32
	engine, err := postgres.NewEngine(storage.Options{DSN: "postgres://nobody@127.0.0.1:1/nothing"})
	require.NoError(t, err)
	defer engine.Close()
	sales, notifications := storage.HotPath(engine.Dialect())

	var orders []*fund.Operation
	book := fund.NewBook(size)
	price := fund.Price{ID: 1, Fund: afa, PerUnit: priceOfAFA, Currency: lira, ValidFrom: today}
	book.LoadPrice(price)
	book.LoadCurrentPrice(fund.PriceDay{Fund: afa, Day: today}, price)
	for i := range size {
		book.LoadHolding(fund.Holding{Key: holdingOf(i), Units: unitsAtFirst})
		book.LoadAccount(fund.Account{Key: accountOf(i), Balance: money.New(0, lira)})
		orders = append(orders, order(nextID(), nextID().String(), sale(1, i, i)))
	}
	book.Settle(orders, now, today)
	require.True(t, book.CompletedAll())

	var pushes []*push.Operation
	for range size {
		n, faults := push.New(push.Fields{ExternalApplicationCode: "a", UserID: nextID().String(), PushID: "p", Platform: decimal.Int(65), SendStatus: decimal.Int(1), SendDate: "2026-11-20"})
		require.Empty(t, faults)
		pushes = append(pushes, &push.Operation{
			Envelope: operation.Envelope{ID: nextID(), Subscription: "s", Header: operation.Header{CallerID: nextID().String()}, ReceivedAt: time.Now()}, Notifications: []push.Notification{n},
		})
	}
	var inbox push.Inbox
	inbox.Accept(pushes)

	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { sales(book) }), 95.0)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { require.NoError(t, notifications(&inbox)) }), 75.0)

	// The leaves of a batch share one buffer: what is left are the entries.
	changes := book.Changes()
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { proof.OfBook(&changes, &book.Register) }), 10.0)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { proof.OfInbox(trailKeys, inbox.Accepted()) }), 10.0)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { new(push.Inbox).Accept(pushes) }), 70.0)

}
