package contract

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// testSnapshot takes a snapshot while a transaction has sold the units, but has not committed.
func testSnapshot(t *testing.T, b books) {
	b.market(1, 1)
	all := order(1, "", sale(1, 1, 1))
	again := func() operation.State {
		o := order(2, "", sale(1, 1, 1))
		book, err := b.Snapshot(t.Context(), fund.QuoteSet(o, on(0)))
		require.NoError(t, err)
		return book.Quote(o, at(0), on(0))[0].State
	}
	require.Equal(t, operation.Completed, again())
	require.NoError(t, b.Update(t.Context(), fund.NewLockSet([]*fund.Operation{all}, on(0)), func(book *fund.Book) {
		book.Settle([]*fund.Operation{all}, at(0), on(0))
		require.Equal(t, operation.Completed, again(), "a snapshot waits for no transaction, and sees none that has not committed")
	}))
	require.Equal(t, operation.Failed, again(), "the units are sold")
}

// testQuotes compares quotes with what the sale then does, for requests of every kind.
func testQuotes(t *testing.T, b books) {
	b.market(2, 100)
	other := fund.Fund{IMKBCode: "OTH.ER", HolderCorporationName: "h"}
	dollar := currency("USD")
	b.Seed(t, Seed{
		Prices: []fund.Price{
			{ID: 2, Fund: someFund, PerUnit: 240_000_000, Currency: lira, ValidFrom: on(-2)}, // not current any longer
			{ID: 3, Fund: someFund, PerUnit: 260_000_000, Currency: lira, ValidFrom: on(1)},  // not current yet
			{ID: 4, Fund: other, PerUnit: 1, Currency: dollar, ValidFrom: on(0)},
		},
		Holdings: []fund.Holding{{Key: fund.HoldingKey{CustomerNo: 1, Fund: other}, Units: fund.MaxUnits}},
		Accounts: []fund.Account{{Key: fund.AccountKey{CustomerNo: 1, BranchCode: 7, AccountSuffix: 2, Currency: dollar}, Balance: money.New(0, dollar)}},
	})
	next := 0
	buyer, err := buyfund.New(b.Books, buyfund.Options{
		Commit: commit.Limits{Timeout: time.Minute}, Now: func() time.Time { return at(0) },
		NewID: func() operation.ID { next++; return id(next) },
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, buyer.Close(context.Background())) }()
	caller := &subscription.Subscription{Name: "shop", Operations: operation.AllNames()}

	random := rand.New(rand.NewPCG(1, 2))
	pick := func(choices ...int64) int64 { return choices[random.IntN(len(choices))] }
	record := func() fund.SaleFields {
		terms := sale(pick(1, 1, 2, 5, 40), pick(1, 1, 1, 2, 9), pick(1, 2, 2, 9))
		terms.PriceID = pick(0, 0, 1, 1, 1, 2, 3, 4, 77)
		terms.ControlTotal = pick(0, 0, 0, 250, 500)
		switch pick(0, 0, 0, 1, 2) {
		case 1:
			terms.Holding.Fund = other
			terms.Units = fund.Units(pick(1, 1_000_000_000_000))
			terms.Account = fund.AccountKey{CustomerNo: 1, BranchCode: 7, AccountSuffix: 2, Currency: dollar}
		case 2:
			terms.Account.Currency = dollar
			terms.Account.AccountSuffix = 2
		}
		fields := terms.Fields()
		if terms.PriceID == 0 && pick(0, 1) == 0 {
			fields.FundToProcess.PriceID = decimal.Decimal{} // absent
		}
		return fields
	}
	seen := make(map[string]bool) // the states and codes
	for range 150 {
		var parameters []fund.SaleFields
		selected := on(int(pick(0, 0, 0, 0, 7)))
		for range pick(1, 1, 1, 2, 3) {
			fields := record()
			if selected != on(0) {
				fields.SelectedTransactionDate = selected.String()
			}
			parameters = append(parameters, fields)
		}
		before := slices.Concat(b.sales())
		quotes, err := buyer.Quote(t.Context(), caller, operation.Header{CallerID: "any"}, parameters)
		require.NoError(t, err)
		require.Equal(t, before, slices.Concat(b.sales()), "a quote stores nothing")
		require.Len(t, quotes, len(parameters))

		state := operation.Completed
		if selected != on(0) {
			state = operation.Recorded
		}
		var faults []fault.Fault
		for i := range quotes {
			if parameters[i].FundToProcess.PriceID.IsAbsent() || parameters[i].FundToProcess.PriceID.IsZero() {
				parameters[i].FundToProcess.PriceID = decimal.Int(max(1, quotes[i].Price.ID))
			}
			require.Equal(t, selected != on(0), quotes[i].Estimate)
			if len(quotes[i].Faults) > 0 {
				require.Equal(t, operation.Failed, quotes[i].State)
			} else {
				require.Equal(t, state, quotes[i].State)
			}
			faults = append(faults, quotes[i].Faults...)
		}
		if len(faults) > 0 {
			state = operation.Failed
		}
		outcome, err := buyer.Buy(t.Context(), caller, operation.Header{}, parameters)
		require.NoError(t, err)
		require.Equal(t, state, outcome.State)
		require.Equal(t, faults, outcome.Faults, "a quote has the reasons of the sale")
		seen[state.String()] = true
		for _, f := range faults {
			seen[f.Code] = true
		}
		for _, s := range b.sales() {
			if s.ID == outcome.ID && s.State == operation.Completed {
				require.Equal(t, quotes[s.Index].Price.ID, s.PriceID)
				require.Equal(t, quotes[s.Index].Price.PerUnit, s.PerUnit)
				require.Equal(t, quotes[s.Index].Proceeds, s.Proceeds)
			}
		}
	}
	for _, each := range []string{
		operation.Completed.String(), operation.Recorded.String(), operation.Failed.String(), fault.HoldingNotFound, fault.HoldingInsufficient,
		fault.PriceNotFound, fault.PriceNotCurrent, fault.AccountNotFound, fault.CurrencyMismatch, fault.AmountMismatch, fault.ProceedsZero,
	} {
		require.True(t, seen[each], "no request was %s", each)
	}
}
