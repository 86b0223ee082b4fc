package buyfund_test

import (
	"context"
	"fmt"
	"time"

	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
)

// A use case on ports of one's own: here those that keep everything in memory.
func ExampleNew() {
	try, _ := money.ParseCurrency("TRY")
	from, _ := day.Parse("2026-01-01")
	afa := fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy"}
	store := fake.NewStore()
	store.PutPrices(fund.Price{ID: 1, Fund: afa, PerUnit: 125_000_000, Currency: try, ValidFrom: from})
	store.PutHoldings(fund.Holding{Key: fund.HoldingKey{CustomerNo: 1001, Fund: afa}, Units: 1_000_000_000})
	store.PutAccounts(fund.Account{Key: fund.AccountKey{CustomerNo: 1001, BranchCode: 1, AccountSuffix: 1, Currency: try}, Balance: money.New(0, try)})

	clock, ids := fake.NewClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)), new(fake.IDs)
	buyer, _ := buyfund.New(store.Books(nil), buyfund.Options{
		ParametersLimit: 1000,
		Commit:          commit.Limits{Batch: 2048, Queue: 4096, Timeout: 10 * time.Second},
		Now:             clock.Now,
		NewID:           ids.Next,
	})
	ctx := context.Background()
	defer buyer.Close(ctx)

	half, _ := decimal.Parse("12.5")
	outcome, err := buyer.Buy(ctx, &subscription.Subscription{Name: "my-program"}, operation.Header{CallerID: "order-1"}, []fund.SaleFields{{
		CustomerNo:      decimal.Int(1001),
		TransactionType: decimal.Int(2),
		FundAmount:      half,
		DestinationAccount: &fund.AccountFields{
			BranchCode: decimal.Int(1), CustomerNo: decimal.Int(1001), AccountSuffix: decimal.Int(1), CurrencyCode: "TRY",
		},
		FundToProcess: &fund.FundFields{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", PriceID: decimal.Int(1)},
	}})
	fmt.Println(outcome.State, err, store.Accounts()[0].Balance)
	// Output: completed <nil> 15.63
}

// A Go program that has typed values makes sales with SaleFromTerms. The same
// rules hold as for a request over HTTP.
func ExampleBuyer_Sell() {
	try, _ := money.ParseCurrency("TRY")
	from, _ := day.Parse("2026-01-01")
	afa := fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy"}
	holding := fund.HoldingKey{CustomerNo: 1001, Fund: afa}
	account := fund.AccountKey{CustomerNo: 1001, BranchCode: 1, AccountSuffix: 1, Currency: try}
	store := fake.NewStore()
	store.PutPrices(fund.Price{ID: 1, Fund: afa, PerUnit: 125_000_000, Currency: try, ValidFrom: from})
	store.PutHoldings(fund.Holding{Key: holding, Units: 1_000_000_000})
	store.PutAccounts(fund.Account{Key: account, Balance: money.New(0, try)})

	clock, ids := fake.NewClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)), new(fake.IDs)
	buyer, _ := buyfund.New(store.Books(nil), buyfund.Options{
		ParametersLimit: 1000,
		Commit:          commit.Limits{Batch: 2048, Queue: 4096, Timeout: 10 * time.Second},
		Now:             clock.Now,
		NewID:           ids.Next,
	})
	ctx := context.Background()
	defer buyer.Close(ctx)

	sale, faults := fund.SaleFromTerms(fund.Terms{
		Holding: holding,
		Units:   12_500_000, // 12.5 units, in millionths
		Account: account,
		PriceID: 1,
	})
	if faults != nil {
		fmt.Println(faults)
		return
	}
	caller := &subscription.Subscription{Name: "my-program"}
	outcome, err := buyer.Sell(ctx, caller, operation.Header{CallerID: "order-1"}, []fund.Sale{sale})
	fmt.Println(outcome.State, err, store.Accounts()[0].Balance)
	// Output: completed <nil> 15.63
}
