// Package demo runs the whole API over the demo book in memory, for tests of
// what partners use: the documents, the pages, the recipes and the clients.
package demo

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi"
	"bankingapi/application/buyfund"
	"bankingapi/application/outcomes"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
	"bankingapi/test/kit/memory"
	"bankingapi/test/kit/value"
)

// Key is the only subscription key of the service.
const Key = "00112233445566778899aabbccddeeff"

// Today is the day of the examples in the documents.
var Today = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// Subscription is the caller with the Key.
func Subscription() subscription.Subscription {
	return subscription.Subscription{
		Name:       "docs",
		Operations: operation.AllNames(),
	}
}

type caller struct{ subscription subscription.Subscription }

func (c caller) Find(_ context.Context, presented string) (*subscription.Subscription, error) {
	if presented != Key {
		return nil, nil
	}
	return &c.subscription, nil
}

func (caller) Name(string) string { return "" }

// Setup changes the default service.
type Setup struct {
	Pages        map[string]http.Handler
	Subscription subscription.Subscription
	// Strike injects faults into the storage of sales. It may be nil.
	Strike fake.Strike
	// Rules are the bank's. They may be nil.
	Rules *fund.Rules
	// Stopping makes the service behave as during shutdown.
	Stopping bool
	// RequestID, unless it is empty, is the X-Request-Id of every request.
	RequestID string
}

// New returns the API with its pages, and its book. Customer 1001 has 1,000 AFA (price 1, 1.25
// TRY) and 250 GAF.F1 (price 2, 2.5 USD). Customer 1002 has 10^9 AFA and no account.
func New(t testing.TB, pages map[string]http.Handler) (http.Handler, *fake.Store) {
	t.Helper()
	return Start(t, Setup{Pages: pages, Subscription: Subscription()})
}

// Start is like New with another setup.
func Start(t testing.TB, setup Setup) (http.Handler, *fake.Store) {
	t.Helper()
	kit := memory.New(Today)
	store := kit.Store
	clock := kit.Clock
	for _, fields := range []fund.PriceFields{
		{PriceID: decimal.Int(1), IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", Price: value.Number("1.25"), CurrencyCode: "TRY", ValidFrom: "2024-01-01"},
		{PriceID: decimal.Int(2), IMKBCode: "GAF.F1", HolderCorporationName: "Demo Portfoy", Price: value.Number("2.5"), CurrencyCode: "USD", ValidFrom: "2024-01-01"},
	} {
		price, faults := fund.NewPrice(fields)
		require.Empty(t, faults)
		store.PutPrices(price)
	}
	for _, fields := range []fund.HoldingFields{
		{CustomerNo: decimal.Int(1001), IMKBCode: "AFA", Units: decimal.Int(1000)},
		{CustomerNo: decimal.Int(1001), IMKBCode: "GAF.F1", Units: decimal.Int(250)},
		{CustomerNo: decimal.Int(1002), IMKBCode: "AFA", Units: decimal.Int(1_000_000_000)},
	} {
		fields.HolderCorporationName = "Demo Portfoy"
		holding, faults := fund.NewHolding(fields)
		require.Empty(t, faults)
		store.PutHoldings(holding)
	}
	for suffix, currency := range map[int64]string{1: "TRY", 2: "USD"} {
		account, faults := fund.NewAccount(fund.AccountFields{
			BranchCode: decimal.Int(1), CustomerNo: decimal.Int(1001), AccountSuffix: decimal.Int(suffix), CurrencyCode: currency,
		}, decimal.Int(0))
		require.Empty(t, faults)
		store.PutAccounts(account)
	}
	adder := kit.Adder(t, store.Inboxes(nil), nil)
	buyer := kit.Buyer(t, store.Books(setup.Strike), func(o *buyfund.Options) {
		if setup.Rules != nil {
			o.Rules = buyfund.FixedRules(*setup.Rules, store.Backoffice(nil, clock.Now).Reader, clock.Now)
		}
	})
	if setup.Stopping {
		require.NoError(t, adder.Close(context.Background()))
		require.NoError(t, buyer.Close(context.Background()))
	}
	feed := outcomes.New(store.Books(nil))
	t.Cleanup(feed.Close)
	o := httpapi.Options{BodyLimit: 4 << 20, ParametersLimit: 1000, Pages: setup.Pages, ErrorPages: "/docs/errors/", Outcomes: feed, Quoter: buyer, Now: clock.Now}
	if setup.RequestID != "" {
		o.NewRequestID = func() string { return setup.RequestID }
	}
	handler, err := httpapi.New([]httpapi.Descriptor{httpapi.AddPush(adder), httpapi.BuyFund(buyer)}, caller{setup.Subscription}, o)
	require.NoError(t, err)
	return handler, store
}
