package fund

import (
	"cmp"

	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
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

// PriceFields is a price as the bank's files have it; the zero value of a
// field is an absent one.
type PriceFields struct {
	PriceID               decimal.Decimal
	IMKBCode              string
	HolderCorporationName string
	Price                 decimal.Decimal
	CurrencyCode          string
	ValidFrom             string
}

// NewPrice checks all fields and returns either a price or every fault, with
// pointers from the record (/PriceID).
func NewPrice(f PriceFields) (Price, []fault.Fault) {
	var c check
	p := Price{
		ID:   c.integer("/PriceID", f.PriceID, 1, positiveInteger),
		Fund: c.fund("", f.IMKBCode, f.HolderCorporationName),
		PerUnit: UnitPrice(c.quantity("/Price", f.Price, PriceDecimals, 1, int64(MaxUnitPrice),
			"A price of one unit: greater than 0, at most 10^10.")),
		Currency: c.currency("/CurrencyCode", f.CurrencyCode),
	}
	var err error
	if p.ValidFrom, err = day.Parse(f.ValidFrom); err != nil {
		c.fault("/ValidFrom", fault.InvalidDate, "Required: a day that exists as YYYY-MM-DD.")
	}
	if len(c.faults) > 0 {
		return Price{}, c.faults
	}
	return p, nil
}

// HoldingFields is a holding as the bank's files have it; the zero value of a
// field is an absent one.
type HoldingFields struct {
	CustomerNo            decimal.Decimal
	IMKBCode              string
	HolderCorporationName string
	Units                 decimal.Decimal
}

// NewHolding checks all fields and returns either a holding or every fault,
// with pointers from the record (/Units).
func NewHolding(f HoldingFields) (Holding, []fault.Fault) {
	var c check
	var h Holding
	h.Key.CustomerNo = c.integer("/CustomerNo", f.CustomerNo, 1, positiveInteger)
	h.Key.Fund = c.fund("", f.IMKBCode, f.HolderCorporationName)
	h.Units = Units(c.quantity("/Units", f.Units, UnitDecimals, 0, int64(MaxUnits),
		"Units of the fund: 0 or greater, at most 10^12."))
	if len(c.faults) > 0 {
		return Holding{}, c.faults
	}
	return h, nil
}

// NewAccount checks all fields and returns either an account with its balance
// or every fault, with pointers from the record (/BranchCode).
func NewAccount(f AccountFields, balance decimal.Decimal) (Account, []fault.Fault) {
	var c check
	a := Account{Key: c.account("", &f)}
	if balance.IsAbsent() {
		c.fault("/Balance", fault.Required, "Required: "+naturalAmount)
	}
	a.Balance = c.amount("/Balance", balance, a.Key.Currency)
	if len(c.faults) > 0 {
		return Account{}, c.faults
	}
	return a, nil
}
