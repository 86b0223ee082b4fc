package money

import "bankingapi/domain/decimal"

// Amount is money: a whole number of minor units (kuruş, cents) of one
// currency. The zero value is nothing of no currency.
type Amount struct {
	minor    int64
	currency Currency
}

// New is minor units of c.
func New(minor int64, c Currency) Amount { return Amount{minor, c} }

// Minor is the amount in minor units of its currency.
func (a Amount) Minor() int64 { return a.minor }

// Currency is what the amount is counted in.
func (a Amount) Currency() Currency { return a.currency }

// Add is a + b. ok is false, and the sum worthless, when the currencies differ
// or the sum does not fit 64 bits: amounts never wrap.
func (a Amount) Add(b Amount) (sum Amount, ok bool) {
	minor := a.minor + b.minor
	wrapped := (minor < a.minor) != (b.minor < 0)
	return Amount{minor, a.currency}, a.currency == b.currency && !wrapped
}

// FromDecimal is d in c; the error is decimal.ErrPrecision when d has more
// decimals than c has, decimal.ErrRange when it does not fit.
func FromDecimal(d decimal.Decimal, c Currency) (Amount, error) {
	minor, err := d.Scaled(c.Decimals())
	return Amount{minor, c}, err
}

// String is the amount with all decimals of its currency and without its
// code: 12.50.
func (a Amount) String() string { return decimal.FormatFixed(a.minor, a.currency.Decimals()) }
