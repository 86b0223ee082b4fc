package fund

import (
	"cmp"
	"strings"

	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/money"
)

// Fund is a fund that is held at an institution. A price belongs to a Fund.
type Fund struct{ IMKBCode, HolderCorporationName string }

// HoldingKey identifies a holding: one customer's position in a fund.
type HoldingKey struct {
	CustomerNo int64
	Fund
}

// Compare defines the order in which storage locks holdings.
func (k HoldingKey) Compare(o HoldingKey) int {
	return cmp.Or(cmp.Compare(k.CustomerNo, o.CustomerNo), k.Fund.Compare(o.Fund))
}

// Compare orders by code, then by institution.
func (f Fund) Compare(o Fund) int {
	return cmp.Or(cmp.Compare(f.IMKBCode, o.IMKBCode), cmp.Compare(f.HolderCorporationName, o.HolderCorporationName))
}

// Holding is the number of units of a fund that a customer has. It is never below zero.
type Holding struct {
	Key   HoldingKey
	Units Units
}

// AccountKey identifies an account. The currency is part of the key, as in DestinationAccount.
type AccountKey struct {
	CustomerNo    int64
	BranchCode    int64
	AccountSuffix int64
	Currency      money.Currency
}

// Compare defines the order in which storage locks accounts, after all holdings.
func (k AccountKey) Compare(o AccountKey) int {
	return cmp.Or(cmp.Compare(k.CustomerNo, o.CustomerNo), cmp.Compare(k.BranchCode, o.BranchCode),
		cmp.Compare(k.AccountSuffix, o.AccountSuffix), cmp.Compare(k.Currency.Code(), o.Currency.Code()))
}

// Account is an account to which sales are credited.
type Account struct {
	Key     AccountKey
	Balance money.Amount // in the key's currency
}

// Check returns fault.Invalid if the balance is in another currency than the account.
func (a *Account) Check() error {
	if a.Balance.Minor() != 0 && a.Balance.Currency() != a.Key.Currency {
		return fault.New(fault.Invalid, "The balance is in another currency than the account.")
	}
	return nil
}

// Price is the price of one unit of a fund. It is valid from a day on, until a newer price of
// the fund is valid. A stored price never changes, but a price of a later day may be withdrawn.
type Price struct {
	ID        int64
	Fund      Fund
	PerUnit   UnitPrice
	Currency  money.Currency
	ValidFrom day.Day
}

// PriceDay asks for the current price of a fund on a day. This is the newest price whose
// ValidFrom is not after the day. If several prices have the same ValidFrom, the price with the
// highest ID is current.
type PriceDay struct {
	Fund Fund
	Day  day.Day
}

// Compare orders by fund, then by day.
func (p PriceDay) Compare(o PriceDay) int {
	return cmp.Or(p.Fund.Compare(o.Fund), p.Day.Compare(o.Day))
}

// PriceFields is a price in the form of the bank's files. The zero value of a
// field means that the field is absent.
type PriceFields struct {
	PriceID               decimal.Decimal
	IMKBCode              string
	HolderCorporationName string
	Price                 decimal.Decimal
	CurrencyCode          string
	ValidFrom             string
}

// NewPrice checks all fields. It returns either a price or all faults, with
// pointers from the record (/PriceID).
func NewPrice(f PriceFields) (Price, []fault.Fault) {
	var c checker
	p := Price{
		ID:   c.integer("/PriceID", f.PriceID, 1, positiveInteger),
		Fund: c.keptFund(f.IMKBCode, f.HolderCorporationName),
		PerUnit: UnitPrice(c.quantity("/Price", f.Price, PriceDecimals, 1, int64(MaxUnitPrice),
			"A price of one unit: greater than 0, at most 10^10.")),
		Currency: c.currency("/CurrencyCode", f.CurrencyCode),
	}
	var err error
	if p.ValidFrom, err = day.Parse(f.ValidFrom); err != nil {
		c.Add("/ValidFrom", fault.InvalidDate, "Required: a real date in YYYY-MM-DD format, without a time.")
	}
	return fault.Either(p, c.List)
}

// HoldingFields is a holding in the form of the bank's files. The zero value of a
// field means that the field is absent.
type HoldingFields struct {
	CustomerNo            decimal.Decimal
	IMKBCode              string
	HolderCorporationName string
	Units                 decimal.Decimal
}

// NewHolding checks all fields. It returns either a holding or all faults, with
// pointers from the record (/Units).
func NewHolding(f HoldingFields) (Holding, []fault.Fault) {
	var c checker
	var h Holding
	h.Key.CustomerNo = c.integer("/CustomerNo", f.CustomerNo, 1, positiveInteger)
	h.Key.Fund = c.keptFund(f.IMKBCode, f.HolderCorporationName)
	h.Units = Units(c.quantity("/Units", f.Units, UnitDecimals, 0, int64(MaxUnits),
		"Units of the fund: 0 or greater, at most "+MaxUnitsText+"."))
	return fault.Either(h, c.List)
}

// NewAccount checks all fields. It returns either an account with its balance or
// all faults, with pointers from the record (/BranchCode).
func NewAccount(f AccountFields, balance decimal.Decimal) (Account, []fault.Fault) {
	var c checker
	a := Account{Key: c.account("", &f)}
	if balance.IsAbsent() {
		c.Add("/Balance", fault.Required, "Required: "+naturalAmount)
	}
	a.Balance = c.amount("/Balance", balance, a.Key.Currency)
	return fault.Either(a, c.List)
}

// keptFund checks the name of a fund that the book will have. A request may name any fund, and
// finds only those.
func (c *checker) keptFund(imkbCode, holder string) Fund {
	const padded = "Must not begin or end with white space or an invisible character."
	if isPadded(imkbCode) {
		c.Add("/IMKBCode", fault.InvalidFormat, padded)
		imkbCode = strings.TrimFunc(imkbCode, isInvisible)
	}
	if isPadded(holder) {
		c.Add("/HolderCorporationName", fault.InvalidFormat, padded)
	}
	return c.fund("", imkbCode, holder)
}
