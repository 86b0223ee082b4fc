package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
)

// Refusal says how to get a refusal: the demo sale with other values. AtOnce or
// OnItsDay is empty if a sale cannot have the refusal then.
type Refusal struct {
	Code string
	// AtOnce has a sale for now refused.
	AtOnce []Value
	// OnItsDay has a sale for a later day refused on that day.
	OnItsDay []Value
}

// Value is a member of a sale, by its path in the record, and its JSON value.
type Value struct{ Path, JSON string }

// Refusals lists the refusals that need values or a book of the sandbox's own.
// Any other code has a request on its page.
func Refusals() []Refusal {
	nothing := []Value{{"CustomerNo", strconv.Itoa(nobody)}}
	little := []Value{{"CustomerNo", strconv.Itoa(poor)}}
	small := ofFund("SBXSMALL", 9006)
	big := append(ofFund("SBXBIG", 9003), Value{"FundAmount", "1000000000000"})
	full := []Value{{"DestinationAccount.CustomerNo", strconv.Itoa(rich)}}
	return []Refusal{
		{fault.HoldingNotFound, nothing, nothing},
		{fault.HoldingInsufficient, little, little},
		{fault.PriceNotFound, []Value{{"FundToProcess.PriceID", "9999"}}, ofFund("SBXNEW", 9007)},
		{fault.PriceNotCurrent, ofFund("SBXOLD", 9001), nil},
		{fault.AccountNotFound, []Value{{"DestinationAccount.CustomerNo", strconv.Itoa(nobody)}}, nil},
		{
			fault.CurrencyMismatch,
			[]Value{{"DestinationAccount.AccountSuffix", "2"}, {"DestinationAccount.CurrencyCode", `"USD"`}},
			ofFund("SBXUSD", 9004),
		},
		{fault.AmountMismatch, []Value{{"Amount", "1"}}, nil},
		{fault.ProceedsZero, small, small},
		{fault.ProceedsOutOfRange, big, big},
		{fault.BalanceOutOfRange, full, full},
		{fault.Cancelled, nil, []Value{{"CustomerNo", strconv.Itoa(cancelled)}}},
	}
}

// ofFund is a sale of a reserved fund at that price.
func ofFund(imkb string, priceID int) []Value {
	return []Value{{"FundToProcess.IMKBCode", `"` + imkb + `"`}, {"FundToProcess.PriceID", strconv.Itoa(priceID)}}
}

// RefusalTable has Refusals in Markdown, for the documentation: a row for each
// code, with the values of the demo sale to change at once and on a later day.
func RefusalTable() string {
	cell := func(values []Value) string {
		var texts []string
		for _, v := range values {
			texts = append(texts, "`"+v.Path+"` "+strings.Trim(v.JSON, `"`))
		}
		return cmp.Or(strings.Join(texts, ", "), "not possible")
	}
	var rows strings.Builder
	for _, r := range Refusals() {
		fmt.Fprintf(&rows, "| [`%[1]s`](errors/%[1]s) | %s | %s |\n", r.Code, cell(r.AtOnce), cell(r.OnItsDay))
	}
	return rows.String()
}

// The reserved customers.
const (
	nobody = 9101 // has nothing
	poor   = 9102 // holds one unit of AFA
	rich   = 9103 // has an account that is full
	// The bank cancels the recorded sales of this customer when the clock moves.
	cancelled = 9104
	seller    = 1001 // the customer of the demo sale
)

// load loads the book of the sandbox into an empty book: the demo book, and what
// Refusals and Orders need. today is the day of the bank.
func load(ctx context.Context, to *backoffice.Importer, today day.Day) error {
	if err := to.LoadDemo(ctx, today); err != nil {
		return err
	}
	lira, _ := money.ParseCurrency("TRY")
	dollar, _ := money.ParseCurrency("USD")
	of := func(imkb string) fund.Fund { return fund.Fund{IMKBCode: imkb, HolderCorporationName: "Demo Portfoy"} }
	first, err := day.Parse("2024-01-01")
	if err != nil {
		return err
	}
	never, err := day.Parse("9999-01-01")
	if err != nil {
		return err
	}
	const one = fund.UnitPrice(100_000_000)
	prices := []fund.Price{
		{ID: 9001, Fund: of("SBXOLD"), PerUnit: one, Currency: lira, ValidFrom: first},
		{ID: 9002, Fund: of("SBXOLD"), PerUnit: 2 * one, Currency: lira, ValidFrom: first.Plus(1)},
		{ID: 9003, Fund: of("SBXBIG"), PerUnit: 10_000_000_000 * one, Currency: lira, ValidFrom: first},
		{ID: 9004, Fund: of("SBXUSD"), PerUnit: one, Currency: lira, ValidFrom: first},
		{ID: 9005, Fund: of("SBXUSD"), PerUnit: one, Currency: dollar, ValidFrom: today.Plus(1)},
		{ID: 9006, Fund: of("SBXSMALL"), PerUnit: 1, Currency: lira, ValidFrom: first},
		{ID: 9007, Fund: of("SBXNEW"), PerUnit: one, Currency: lira, ValidFrom: never},
	}
	const unit = fund.Units(1_000_000)
	holding := func(customerNo int64, imkb string, units fund.Units) fund.Holding {
		return fund.Holding{Key: fund.HoldingKey{CustomerNo: customerNo, Fund: of(imkb)}, Units: units}
	}
	var holdings []fund.Holding
	for _, imkb := range []string{"SBXBIG", "SBXNEW", "SBXOLD", "SBXSMALL", "SBXUSD"} {
		holdings = append(holdings, holding(seller, imkb, 1_000_000_000_000*unit))
	}
	holdings = append(holdings, holding(poor, "AFA", unit), holding(cancelled, "AFA", 1_000_000*unit))
	for _, order := range Orders() {
		holdings = append(holdings, holding(order.CustomerNo, "AFA", 1_000_000*unit))
	}
	full := fund.Account{
		Key:     fund.AccountKey{CustomerNo: rich, BranchCode: 1, AccountSuffix: 1, Currency: lira},
		Balance: money.New(math.MaxInt64, lira),
	}
	if _, err := to.Prices(ctx, lines(prices), nil); err != nil {
		return fmt.Errorf("prices: %w", err)
	}
	if _, err := to.Holdings(ctx, lines(holdings), nil); err != nil {
		return fmt.Errorf("holdings: %w", err)
	}
	if _, err := to.Accounts(ctx, lines([]fund.Account{full}), nil); err != nil {
		return fmt.Errorf("accounts: %w", err)
	}
	return nil
}

// lines is the content of a file with these values, in the order of their keys.
func lines[T any](values []T) backoffice.Lines[T] {
	return func(yield func(int64, T) error) error {
		for i, v := range values {
			if err := yield(int64(i+1), v); err != nil {
				return err
			}
		}
		return nil
	}
}
