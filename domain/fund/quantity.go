package fund

import (
	"math/big"
	"math/bits"
	"strings"

	"bankingapi/domain/decimal"
	"bankingapi/domain/money"
)

// Units is a quantity of a fund in millionths of a unit. 1.5 units are 1,500,000.
type Units int64

// UnitDecimals is the number of decimals of a quantity.
const UnitDecimals = 6

// MaxUnits is the largest quantity of one sale or holding, and MaxUnitsText says it to people.
const (
	MaxUnits     Units = 1_000_000_000_000_000_000
	MaxUnitsText       = "10^12"
)

// ParseUnits returns d as Units. It returns the error of decimal.Decimal.Integer.
func ParseUnits(d decimal.Decimal) (Units, error) {
	n, err := d.Integer(UnitDecimals)
	return Units(n), err
}

// String returns the quantity without trailing zeros: 1.5.
func (u Units) String() string { return decimal.Format(int64(u), UnitDecimals) }

// UnitPrice is the price of one unit, in 10^-8 of the currency's major unit. 1.25
// TRY is 125,000,000.
type UnitPrice int64

// PriceDecimals is the number of decimals of a price.
const PriceDecimals = 8

// MaxUnitPrice is the largest price of one unit: 10^10.
const MaxUnitPrice UnitPrice = 1_000_000_000_000_000_000

// String returns the price without trailing zeros: 1.25.
func (p UnitPrice) String() string { return decimal.Format(int64(p), PriceDecimals) }

// Proceeds returns units x price in the currency, rounded half away from zero to
// its minor unit. ok is false if units or price is negative, or if the proceeds
// do not fit into 64 bits of minor units.
func Proceeds(units Units, price UnitPrice, c money.Currency) (proceeds money.Amount, ok bool) {
	if units < 0 || price < 0 {
		return money.Amount{}, false
	}
	// The product fits into 128 bits. The divisor removes the decimals that the
	// minor unit does not have.
	divisor := uint64(1)
	for range UnitDecimals + PriceDecimals - c.Decimals() {
		divisor *= 10
	}
	hi, lo := bits.Mul64(uint64(units), uint64(price))
	lo, carry := bits.Add64(lo, divisor/2, 0)
	hi += carry
	if hi >= divisor {
		return money.Amount{}, false
	}
	minor, _ := bits.Div64(hi, lo, divisor)
	if minor > 1<<63-1 {
		return money.Amount{}, false
	}
	return money.New(int64(minor), c), true
}

// ExactProceeds returns units × price without rounding to a currency.
func ExactProceeds(units Units, price UnitPrice) string {
	exact := new(big.Rat).Mul(big.NewRat(int64(units), 1_000_000), big.NewRat(int64(price), 100_000_000))
	return strings.TrimSuffix(strings.TrimRight(exact.FloatString(UnitDecimals+PriceDecimals), "0"), ".")
}
