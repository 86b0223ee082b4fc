package fund

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/money"
)

// SaleFields is a fund sale as a caller sends it; the zero value of a field is
// an absent one.
type SaleFields struct {
	CustomerNo              decimal.Decimal
	TransactionType         decimal.Decimal
	FundAmount              decimal.Decimal
	DestinationAccount      *AccountFields
	FundToProcess           *FundFields
	Amount                  decimal.Decimal
	SelectedTransactionDate string
}

// AccountFields is a DestinationAccount as a caller sends it.
type AccountFields struct {
	BranchCode    decimal.Decimal
	CustomerNo    decimal.Decimal
	AccountSuffix decimal.Decimal
	CurrencyCode  string
}

// FundFields is a FundToProcess as a caller sends it.
type FundFields struct {
	IMKBCode              string
	HolderCorporationName string
	PriceID               decimal.Decimal
}

// Terms is what a sale says.
type Terms struct {
	Holding HoldingKey
	Units   Units
	Account AccountKey
	PriceID int64
	// ControlTotal is the caller's Amount in minor units of the account's
	// currency; 0 asks for no check.
	ControlTotal int64
	// SelectedDay is the day the caller chose; none means the current day.
	SelectedDay day.Day
}

// Sale is a customer's fund sale that keeps every rule of the contract,
// section 5, which one can check without the book and without a clock.
type Sale struct {
	terms Terms
	// dayUnknown: the sale has faults, its day among them (NewSale).
	dayUnknown bool
}

// Terms is what the sale says.
func (s Sale) Terms() Terms { return s.terms }

// RestoreSale makes a sale of what storage kept. It does not judge by today's
// rules, so that history always loads.
func RestoreSale(t Terms) Sale { return Sale{terms: t} }

// SaleTransaction is TransactionType of a customer's fund sale.
const SaleTransaction = 2

const (
	positiveInteger = "An integer greater than 0."
	naturalInteger  = "An integer, 0 or greater."
	naturalAmount   = "0 or greater, at most 2^63-1 minor units."
)

// NewSale checks all fields and returns either a sale or every fault, with
// pointers from the record (/FundAmount). The sale beside faults has nothing
// but its day, for DayFaults to judge.
func NewSale(f SaleFields) (Sale, []fault.Fault) {
	var c check
	var t Terms
	t.Holding.CustomerNo = c.integer("/CustomerNo", f.CustomerNo, 1, positiveInteger)
	switch {
	case f.TransactionType.IsAbsent():
		c.fault("/TransactionType", fault.Required, "Required: 2 for a customer's fund sale.")
	case f.TransactionType != decimal.Int(SaleTransaction):
		c.fault("/TransactionType", fault.NotAllowed, "2 for a customer's fund sale.")
	}
	t.Units = c.units("/FundAmount", f.FundAmount)
	if a := f.DestinationAccount; a == nil {
		c.fault("/DestinationAccount", fault.Required, "Required.")
	} else {
		t.Account = c.account("/DestinationAccount", a)
	}
	if p := f.FundToProcess; p == nil {
		c.fault("/FundToProcess", fault.Required, "Required.")
	} else {
		t.Holding.Fund = c.fund("/FundToProcess", p.IMKBCode, p.HolderCorporationName)
		t.PriceID = c.integer("/FundToProcess/PriceID", p.PriceID, 1, positiveInteger)
	}
	t.ControlTotal = c.amount("/Amount", f.Amount, t.Account.Currency).Minor()
	dayUnknown := false
	if f.SelectedTransactionDate != "" {
		var err error
		if t.SelectedDay, err = day.Parse(f.SelectedTransactionDate); err != nil {
			c.fault("/SelectedTransactionDate", fault.InvalidDate, "Empty, or a day that exists as YYYY-MM-DD.")
			dayUnknown = true
		}
	}
	if len(c.faults) > 0 {
		return Sale{Terms{SelectedDay: t.SelectedDay}, dayUnknown}, c.faults
	}
	return Sale{terms: t}, nil
}

// check collects the faults of one record.
type check struct{ faults []fault.Fault }

func (c *check) fault(pointer, code, detail string) {
	c.faults = append(c.faults, fault.Fault{Pointer: pointer, Code: code, Detail: detail})
}

func (c *check) integer(pointer string, d decimal.Decimal, least int64, rule string) int64 {
	n, err := d.Scaled(0)
	switch {
	case d.IsAbsent():
		c.fault(pointer, fault.Required, "Required: "+rule)
	case errors.Is(err, decimal.ErrPrecision):
		c.fault(pointer, fault.NotAnInteger, rule)
	case err != nil, n < least:
		c.fault(pointer, fault.OutOfRange, rule)
	}
	return n
}

func (c *check) units(pointer string, d decimal.Decimal) Units {
	const rule = "Units of the fund: greater than 0, at most 10^12."
	return Units(c.quantity(pointer, d, UnitDecimals, 1, int64(MaxUnits), rule))
}

// quantity is d with that many decimals, as a whole number of the last one.
func (c *check) quantity(pointer string, d decimal.Decimal, decimals int, least, most int64, rule string) int64 {
	n, err := d.Scaled(decimals)
	switch {
	case d.IsAbsent():
		c.fault(pointer, fault.Required, "Required: "+rule)
	case errors.Is(err, decimal.ErrPrecision):
		c.fault(pointer, fault.TooManyDecimals, "At most "+strconv.Itoa(decimals)+" decimals.")
	case err != nil, n < least, n > most:
		c.fault(pointer, fault.OutOfRange, rule)
	}
	return n
}

func (c *check) account(under string, a *AccountFields) AccountKey {
	key := AccountKey{
		BranchCode:    c.integer(under+"/BranchCode", a.BranchCode, 0, naturalInteger),
		CustomerNo:    c.integer(under+"/CustomerNo", a.CustomerNo, 1, positiveInteger),
		AccountSuffix: c.integer(under+"/AccountSuffix", a.AccountSuffix, 0, naturalInteger),
	}
	key.Currency = c.currency(under+"/CurrencyCode", a.CurrencyCode)
	return key
}

func (c *check) currency(pointer, code string) money.Currency {
	currency, ok := money.ParseCurrency(code)
	switch {
	case code == "":
		c.fault(pointer, fault.Required, "Required: an active ISO 4217 code.")
	case !ok:
		c.fault(pointer, fault.InvalidCurrency, "An active ISO 4217 code, in capitals.")
	}
	return currency
}

func (c *check) fund(under, imkbCode, holder string) Fund {
	const code = "1 to 12 capitals or digits, optionally a point and a series of one or two of them."
	switch {
	case imkbCode == "":
		c.fault(under+"/IMKBCode", fault.Required, "Required: "+code)
	case !isIMKBCode(imkbCode):
		c.fault(under+"/IMKBCode", fault.InvalidFormat, code)
	}
	switch {
	case holder == "":
		c.fault(under+"/HolderCorporationName", fault.Required, "Required: 1 to 200 characters.")
	case utf8.RuneCountInString(holder) > maxHolder:
		c.fault(under+"/HolderCorporationName", fault.TooLong, "At most 200 characters.")
	}
	return Fund{imkbCode, holder}
}

const maxHolder = 200

// amount is d as money that is not negative; an absent d is 0. Without a
// currency, whose own fault is reported already, d has only the faults that it
// has in every currency.
func (c *check) amount(pointer string, d decimal.Decimal, currency money.Currency) money.Amount {
	amount, err := money.FromDecimal(d, currency)
	switch {
	case errors.Is(err, decimal.ErrPrecision) && !currency.IsNone():
		c.fault(pointer, fault.TooManyDecimals, "Not more decimals than the currency's minor unit has.")
	case errors.Is(err, decimal.ErrRange), d.IsNegative():
		c.fault(pointer, fault.OutOfRange, naturalAmount)
	}
	return amount
}

// isIMKBCode matches [A-Z0-9]{1,12}(\.[A-Z0-9]{1,2})?
func isIMKBCode(s string) bool {
	body := 0
	for body < len(s) && isCodeCharacter(s[body]) {
		body++
	}
	if body < 1 || body > 12 {
		return false
	}
	series := s[body:]
	if series == "" {
		return true
	}
	if series[0] != '.' || len(series) < 2 || len(series) > 3 {
		return false
	}
	return isCodeCharacter(series[1]) && isCodeCharacter(series[len(series)-1])
}

func isCodeCharacter(c byte) bool { return 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }
