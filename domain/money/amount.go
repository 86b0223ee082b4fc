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

// Add returns a + b. ok is false if the currencies differ or the sum does not fit
// into 64 bits. Then the sum must not be used.
func (a Amount) Add(b Amount) (sum Amount, ok bool) {
	minor := a.minor + b.minor
	wrapped := (minor < a.minor) != (b.minor < 0)
	return Amount{minor, a.currency}, a.currency == b.currency && !wrapped
}

// FromDecimal returns d as an amount in c. The error is decimal.ErrPrecision if d
// has more decimals than c, and decimal.ErrRange if it does not fit into 64 bits.
func FromDecimal(d decimal.Decimal, c Currency) (Amount, error) {
	minor, err := d.Integer(c.Decimals())
	return Amount{minor, c}, err
}

// String returns the amount with all decimals of its currency, without the code: 12.50.
func (a Amount) String() string { return decimal.FormatFixed(a.minor, a.currency.Decimals()) }
