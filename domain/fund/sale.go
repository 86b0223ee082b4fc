package fund

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/money"
)

// SaleFields is a fund sale as a caller sends it. The zero value of a field means
// that the field is absent.
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

// Terms are the terms of a sale.
type Terms struct {
	Holding HoldingKey
	Units   Units
	Account AccountKey
	PriceID int64
	// ControlTotal is the caller's Amount in minor units of the account's
	// currency. If it is 0, the proceeds are not checked.
	ControlTotal int64
	SelectedDay  day.Day // the day that the caller chose; the zero value means the current day
}

// Fields returns the terms as a caller would send them.
func (t Terms) Fields() SaleFields {
	return SaleFields{
		CustomerNo:      decimal.Int(t.Holding.CustomerNo),
		TransactionType: decimal.Int(SaleTransaction),
		FundAmount:      decimal.New(int64(t.Units), UnitDecimals),
		DestinationAccount: &AccountFields{
			BranchCode:    decimal.Int(t.Account.BranchCode),
			CustomerNo:    decimal.Int(t.Account.CustomerNo),
			AccountSuffix: decimal.Int(t.Account.AccountSuffix),
			CurrencyCode:  t.Account.Currency.Code(),
		},
		FundToProcess: &FundFields{
			IMKBCode:              t.Holding.IMKBCode,
			HolderCorporationName: t.Holding.HolderCorporationName,
			PriceID:               decimal.Int(t.PriceID),
		},
		Amount:                  decimal.New(t.ControlTotal, t.Account.Currency.Decimals()),
		SelectedTransactionDate: t.SelectedDay.String(),
	}
}

// Sale is a customer's fund sale. It follows every rule of the contract, section 5, that can be
// checked without the book and without a clock.
type Sale struct{ terms Terms }

// Terms returns the terms of the sale.
func (s Sale) Terms() Terms { return s.terms }

// RestoreSale returns a stored sale. It does not check today's rules, so that old sales can
// always be read.
func RestoreSale(t Terms) Sale { return Sale{t} }

// SaleTransaction is the TransactionType of a customer's fund sale.
const SaleTransaction = 2

const (
	positiveInteger = "An integer greater than 0, at most 2^63-1."
	naturalInteger  = "An integer, 0 or greater, at most 2^63-1."
	naturalAmount   = "0 or greater, at most 2^63-1 minor units."
)

// NewSale checks all fields. It returns either a sale or all faults, with
// pointers from the record (/FundAmount).
func NewSale(f SaleFields) (Sale, []fault.Fault) {
	t, _, faults := check(f, false)
	return fault.Either(Sale{t}, faults)
}

// SaleFromTerms checks the same rules for a Go program that has typed values. It
// returns either a sale or all faults, with the pointers of NewSale.
func SaleFromTerms(t Terms) (Sale, []fault.Fault) { return NewSale(t.Fields()) }

// check reads all fields. hasDay is true if SelectedTransactionDate has no fault of its own.
// If the sale is only to be quoted, its PriceID may be absent or 0.
func check(f SaleFields, quoted bool) (t Terms, hasDay bool, faults []fault.Fault) {
	var c checker
	t.Holding.CustomerNo = c.integer("/CustomerNo", f.CustomerNo, 1, positiveInteger)
	switch {
	case f.TransactionType.IsAbsent():
		c.Add("/TransactionType", fault.Required, "Required: 2 for a customer's fund sale.")
	case f.TransactionType != decimal.Int(SaleTransaction):
		c.Add("/TransactionType", fault.NotAllowed, "Must be 2 for a customer's fund sale.")
	}
	t.Units = Units(c.quantity("/FundAmount", f.FundAmount, UnitDecimals, 1, int64(MaxUnits), "Units of the fund: greater than 0, at most "+MaxUnitsText+"."))
	a := f.DestinationAccount
	if a == nil {
		c.Add("/DestinationAccount", fault.Required, "Required.")
	} else {
		t.Account = c.account("/DestinationAccount", a)
	}
	p := f.FundToProcess
	if p == nil {
		c.Add("/FundToProcess", fault.Required, "Required.")
	} else {
		t.Holding.Fund = c.fund("/FundToProcess", p.IMKBCode, p.HolderCorporationName)
		switch {
		case !quoted:
			t.PriceID = c.integer("/FundToProcess/PriceID", p.PriceID, 1, positiveInteger)
		case !p.PriceID.IsAbsent():
			t.PriceID = c.integer("/FundToProcess/PriceID", p.PriceID, 0, naturalInteger)
		}
	}
	t.ControlTotal = c.amount("/Amount", f.Amount, t.Account.Currency).Minor()
	t.SelectedDay, hasDay = c.Date("/SelectedTransactionDate", f.SelectedTransactionDate)
	return t, hasDay, c.List
}

// checker collects the faults of one record.
type checker struct{ fault.List }

func (c *checker) integer(pointer string, d decimal.Decimal, least int64, rule string) int64 {
	return c.quantity(pointer, d, 0, least, math.MaxInt64, rule)
}

// quantity returns d times 10^decimals as an integer.
func (c *checker) quantity(pointer string, d decimal.Decimal, decimals int, least, most int64, rule string) int64 {
	n, err := d.Integer(decimals)
	switch {
	case d.IsAbsent():
		c.Add(pointer, fault.Required, "Required: "+rule)
	case errors.Is(err, decimal.ErrPrecision) && decimals == 0:
		c.Add(pointer, fault.NotAnInteger, rule)
	case errors.Is(err, decimal.ErrPrecision):
		c.Add(pointer, fault.TooManyDecimals, "At most "+strconv.Itoa(decimals)+" decimals.")
	case err != nil, n < least, n > most:
		c.Add(pointer, fault.OutOfRange, rule)
	}
	return n
}

func (c *checker) account(under string, a *AccountFields) AccountKey {
	key := AccountKey{
		BranchCode:    c.integer(under+"/BranchCode", a.BranchCode, 0, naturalInteger),
		CustomerNo:    c.integer(under+"/CustomerNo", a.CustomerNo, 1, positiveInteger),
		AccountSuffix: c.integer(under+"/AccountSuffix", a.AccountSuffix, 0, naturalInteger),
	}
	key.Currency = c.currency(under+"/CurrencyCode", a.CurrencyCode)
	return key
}

func (c *checker) currency(pointer, code string) money.Currency {
	currency, ok := money.ParseCurrency(code)
	switch {
	case code == "":
		c.Add(pointer, fault.Required, "Required: an active ISO 4217 code.")
	case !ok:
		c.Add(pointer, fault.InvalidCurrency, "Must be an active ISO 4217 code in capital letters."+meantCurrency(strings.ToUpper(code)))
	}
	return currency
}

// meantCurrency asks whether the caller meant another code: TRY for TL or YTL, or the code in
// capital letters.
func meantCurrency(code string) string {
	if code == "TL" || code == "YTL" {
		code = "TRY"
	}
	if _, ok := money.ParseCurrency(code); !ok {
		return ""
	}
	return " Did you mean " + code + "?"
}

func (c *checker) fund(under, imkbCode, holder string) Fund {
	const code = "1 to 12 capital letters or digits, optionally followed by a point and 1 or 2 more."
	switch {
	case imkbCode == "":
		c.Add(under+"/IMKBCode", fault.Required, "Required: "+code)
	case !isIMKBCode(imkbCode):
		c.Add(under+"/IMKBCode", fault.InvalidFormat, code)
	}
	return Fund{imkbCode, c.RequiredText(under+"/HolderCorporationName", holder, maxHolder)}
}

const maxHolder = 200

// amount returns d as money and checks that it is not negative. An absent d is 0. If currency
// is not set, the currency has its own fault. Then amount reports only faults that d has in
// every currency.
func (c *checker) amount(pointer string, d decimal.Decimal, currency money.Currency) money.Amount {
	amount, err := money.FromDecimal(d, currency)
	switch {
	case errors.Is(err, decimal.ErrPrecision) && !currency.IsNone():
		c.Add(pointer, fault.TooManyDecimals, "Must not have more decimals than the currency.")
	case errors.Is(err, decimal.ErrRange), d.IsNegative():
		c.Add(pointer, fault.OutOfRange, naturalAmount)
	}
	return amount
}

// isIMKBCode matches [A-Z0-9]{1,12}(\.[A-Z0-9]{1,2})?
func isIMKBCode(s string) bool {
	body, series, hasSeries := strings.Cut(s, ".")
	return isCode(body, 12) && (!hasSeries || isCode(series, 2))
}

func isCode(s string, most int) bool {
	return 1 <= len(s) && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
}
