package fund

import (
	"cmp"

	"bankingapi/domain/day"
	"bankingapi/domain/money"
)

// Fund is a fund as a certain institution holds it: what prices are of.
type Fund struct{ IMKBCode, HolderCorporationName string }

// HoldingKey names a holding: one customer's position in a fund.
type HoldingKey struct {
	CustomerNo int64
	Fund
}

// Compare is the order in which storage locks holdings.
func (k HoldingKey) Compare(o HoldingKey) int {
	return cmp.Or(cmp.Compare(k.CustomerNo, o.CustomerNo), k.Fund.compare(o.Fund))
}

func (f Fund) compare(o Fund) int {
	return cmp.Or(cmp.Compare(f.IMKBCode, o.IMKBCode), cmp.Compare(f.HolderCorporationName, o.HolderCorporationName))
}

// Holding is how much of a fund a customer has; never below zero.
type Holding struct {
	Key   HoldingKey
	Units Units
}

// AccountKey names an account. The currency is part of the name, as it is in
// DestinationAccount.
type AccountKey struct {
	CustomerNo    int64
	BranchCode    int64
	AccountSuffix int64
	Currency      money.Currency
}

// Compare is the order in which storage locks accounts, after all holdings.
func (k AccountKey) Compare(o AccountKey) int {
	return cmp.Or(cmp.Compare(k.CustomerNo, o.CustomerNo), cmp.Compare(k.BranchCode, o.BranchCode),
		cmp.Compare(k.AccountSuffix, o.AccountSuffix), cmp.Compare(k.Currency.Code(), o.Currency.Code()))
}

// Account is an account sales are credited to.
type Account struct {
	Key     AccountKey
	Balance money.Amount // in the key's currency
}

// Price is what one unit of a fund costs from a day on, until a newer price of
// the fund begins. It never changes once it is there.
type Price struct {
	ID        int64
	Fund      Fund
	PerUnit   UnitPrice
	Currency  money.Currency
	ValidFrom day.Day
}

// PriceDay asks for the current price of a fund on a day: the newest whose
// ValidFrom is not after the day, of several from one day that with the
// highest ID.
type PriceDay struct {
	Fund Fund
	Day  day.Day
}

func (p PriceDay) compare(o PriceDay) int {
	return cmp.Or(p.Fund.compare(o.Fund), p.Day.Compare(o.Day))
}
