package backoffice

import (
	"context"
	"fmt"

	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
)

// LoadDemo loads a small demo book: two customers, two funds, lira and dollar, and a calendar
// in which the bank is closed 200 days after today. Like every import it sets holdings and
// balances, so it can be called again. Callers load it only into a book for which IsEmpty
// returns true. Each of its four imports keeps its own act if ctx carries an act.
func (o *Office) LoadDemo(ctx context.Context, today day.Day) error {
	lira, _ := money.ParseCurrency("TRY")
	dollar, _ := money.ParseCurrency("USD")
	afa := fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy"}
	gaf := fund.Fund{IMKBCode: "GAF.F1", HolderCorporationName: "Demo Portfoy"}
	since, _ := day.Parse("2024-01-01")
	holding := func(customerNo int64, of fund.Fund, units fund.Units) fund.Holding {
		return fund.Holding{Key: fund.HoldingKey{CustomerNo: customerNo, Fund: of}, Units: units * 1_000_000}
	}
	account := func(customerNo, suffix int64, c money.Currency) fund.Account {
		key := fund.AccountKey{CustomerNo: customerNo, BranchCode: 1, AccountSuffix: suffix, Currency: c}
		return fund.Account{Key: key, Balance: money.New(0, c)}
	}
	err := load(ctx, o, "prices", o.Imports.Prices,
		fund.Price{ID: 1, Fund: afa, PerUnit: 125_000_000, Currency: lira, ValidFrom: since},
		fund.Price{ID: 2, Fund: gaf, PerUnit: 250_000_000, Currency: dollar, ValidFrom: since})
	if err != nil {
		return err
	}
	err = load(ctx, o, "holdings", o.Imports.Holdings, holding(1001, afa, 1000), holding(1001, gaf, 250), holding(1002, afa, 500))
	if err != nil {
		return err
	}
	err = load(ctx, o, "accounts", o.Imports.Accounts, account(1001, 1, lira), account(1001, 2, dollar), account(1002, 1, lira))
	if err != nil {
		return err
	}
	return load(ctx, o, "calendar", o.Imports.ClosedDays, fund.ClosedDay{Day: today.Plus(200), Reason: "Demo holiday"})
}

// load imports values. They must be in the order of their keys. If ctx carries an act, the
// import keeps a copy of it with a new ID.
func load[T any](ctx context.Context, o *Office, object string, write Import[T], values ...T) error {
	id := o.Acts.NewID()
	if act, ok := audit.From(ctx); ok {
		act.ID = id
		act.Object = object
		ctx = audit.With(ctx, act)
	}
	_, err := write(ctx, LinesOf(values...), ImportOptions{ID: id})
	if err != nil {
		err = fmt.Errorf("%s: %w", object, err)
	}
	return err
}
