package fund_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
)

func TestUnitsHaveSixDecimals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]fund.Units{"1.5": 1_500_000, "0.000001": 1, "1e12": fund.MaxUnits, "0": 0} {
		got, err := fund.ParseUnits(number(text))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := fund.ParseUnits(number("0.0000001"))
	require.ErrorIs(t, err, decimal.ErrPrecision)
	_, err = fund.ParseUnits(number("1e13"))
	require.ErrorIs(t, err, decimal.ErrRange)
	require.Equal(t, "1.5", fund.Units(1_500_000).String())
	require.Equal(t, "1000000000000", fund.MaxUnits.String())
}

func TestPricesHaveEightDecimals(t *testing.T) {
	t.Parallel()
	price := func(text string) (fund.Price, []fault.Fault) {
		return fund.NewPrice(fund.PriceFields{
			PriceID: number("1"), IMKBCode: "AFA", HolderCorporationName: "Holder", Price: number(text), CurrencyCode: "TRY", ValidFrom: saturday,
		})
	}
	for text, want := range map[string]fund.UnitPrice{"1.25": 125_000_000, "0.00000001": 1, "1e10": fund.MaxUnitPrice} {
		got, faults := price(text)
		require.Empty(t, faults)
		require.Equal(t, want, got.PerUnit)
	}
	for text, code := range map[string]string{"0.000000001": "too-many-decimals", "1e11": "out-of-range"} {
		_, faults := price(text)
		require.Equal(t, map[string]string{"/Price": code}, byPointer(t, faults))
	}
	require.Equal(t, "1.25", fund.UnitPrice(125_000_000).String())
	require.Equal(t, "10000000000", fund.MaxUnitPrice.String())
}

func TestProceedsAreRoundedHalfAwayFromZeroOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ units, price, currency, want string }{
		{"12.5", "1.23456789", "TRY", "15.43"},
		{"1", "0.005", "TRY", "0.01"},
		{"1", "0.00499999", "TRY", "0.00"},
		{"0.000001", "0.00000001", "TRY", "0.00"},
		{"0.000001", "4999.99999999", "TRY", "0.00"}, // one unit of the last decimal below the half
		{"0.000001", "5000", "TRY", "0.01"},
		{"0.000001", "499999.99999999", "JPY", "0"},
		{"0.000001", "500000", "JPY", "1"},
		{"1", "0.014999", "TRY", "0.01"},
		{"1", "0.015", "TRY", "0.02"},
		{"1", "0.025", "TRY", "0.03"}, // not to even
		{"0.5", "1", "JPY", "1"},
		{"0.499999", "1", "JPY", "0"},
		{"1.5", "1", "JPY", "2"},
		{"2.5", "1", "JPY", "3"},
		{"0.0005", "1", "KWD", "0.001"},
		{"0.000499", "1", "KWD", "0.000"},
		{"0.00005", "1", "CLF", "0.0001"},
		{"0.000049", "1", "CLF", "0.0000"},
		{"0", "1", "TRY", "0.00"},
		{"1", "0", "TRY", "0.00"},
		{"1000", "1.25", "TRY", "1250.00"},
		{"1000000000000", "1", "TRY", "1000000000000.00"},
		{"1000000000", "10000000000", "JPY", "out of range"},
		{"922337203", "10000000000", "JPY", "9223372030000000000"},
		{"1000000000000", "9223372.03685477", "JPY", "9223372036854770000"},
		{"1000000000000", "92233.72036854", "TRY", "92233720368540000.00"},
		{"1000000000000", "92233.72036855", "TRY", "out of range"},
		{"1000000000000", "10000000000", "CLF", "out of range"},
	} {
		proceeds, ok := fund.Proceeds(unitsOf(tt.units), priceOf(tt.price), currency(tt.currency))
		if tt.want == "out of range" {
			require.False(t, ok, tt)
			continue
		}
		require.True(t, ok, tt)
		require.Equal(t, tt.want, proceeds.String(), tt)
		require.Equal(t, currency(tt.currency), proceeds.Currency())
	}
}

func TestNothingIsPaidForLessThanNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		units fund.Units
		price fund.UnitPrice
	}{{-1, 1}, {1, -1}, {-1, -1}, {math.MinInt64, math.MinInt64}, {-1, 0}, {0, -1}} {
		proceeds, ok := fund.Proceeds(tt.units, tt.price, currency("TRY"))
		require.False(t, ok, tt)
		require.Equal(t, money.Amount{}, proceeds, tt)
	}
}

// exactProceeds is the oracle: rational numbers, rounded half away from zero.
func exactProceeds(units fund.Units, price fund.UnitPrice, c money.Currency) *big.Int {
	ten := func(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
	exact := new(big.Rat).Mul(
		new(big.Rat).SetFrac(big.NewInt(int64(units)), ten(fund.UnitDecimals)),
		new(big.Rat).SetFrac(big.NewInt(int64(price)), ten(fund.PriceDecimals)))
	exact.Mul(exact, new(big.Rat).SetInt(ten(c.Decimals())))
	exact.Add(exact, big.NewRat(1, 2)) // nothing here is below zero
	return new(big.Int).Quo(exact.Num(), exact.Denom())
}

func TestProceedsAgreeWithRationalNumbers(t *testing.T) {
	t.Parallel()
	quantities := rapid.OneOf(
		rapid.Int64Range(0, 1<<62),
		rapid.Int64Range(0, 1_000_000_000),
		rapid.Int64Range(0, 100),
		rapid.SampledFrom([]int64{0, 1, 5, 50, 500_000, 5_000_000, 1_000_000_000_000_000_000, math.MaxInt64 - 1, math.MaxInt64}),
	)
	rapid.Check(t, func(t *rapid.T) {
		units, price := fund.Units(quantities.Draw(t, "units")), fund.UnitPrice(quantities.Draw(t, "price"))
		c := currency(rapid.SampledFrom([]string{"TRY", "USD", "JPY", "KWD", "CLF"}).Draw(t, "currency"))
		want := exactProceeds(units, price, c)
		got, ok := fund.Proceeds(units, price, c)
		require.Equal(t, want.IsInt64(), ok)
		if ok {
			require.Equal(t, money.New(want.Int64(), c), got)
		}
	})
}

func TestProceedsAtTheEdgeOf64Bits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { // prices so that the proceeds are about 2^63 or 2^64 minor units
		c := currency(rapid.SampledFrom([]string{"TRY", "JPY", "KWD", "CLF"}).Draw(t, "currency"))
		units := fund.Units(rapid.Int64Range(1<<40, math.MaxInt64).Draw(t, "units"))
		edge := new(big.Int).Lsh(big.NewInt(1), rapid.SampledFrom([]uint{63, 64}).Draw(t, "bits"))
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(14-c.Decimals())), nil)
		price := new(big.Int).Mul(edge, scale)
		price.Quo(price, big.NewInt(int64(units)))
		price.Add(price, big.NewInt(rapid.Int64Range(-2, 2).Draw(t, "beside")))
		if !price.IsInt64() {
			return
		}
		want := exactProceeds(units, fund.UnitPrice(price.Int64()), c)
		got, ok := fund.Proceeds(units, fund.UnitPrice(price.Int64()), c)
		require.Equal(t, want.IsInt64(), ok)
		if ok {
			require.Equal(t, want.Int64(), got.Minor())
		}
	})
	// Exactly there: units and price of one, and as much as makes 2^63-1, and 2^63.
	jpy := currency("JPY")
	got, ok := fund.Proceeds(math.MaxInt64, 100_000_000_000_000, jpy)
	require.True(t, ok)
	require.EqualValues(t, math.MaxInt64, got.Minor())
	_, ok = fund.Proceeds(math.MaxInt64, 100_000_000_000_001, jpy)
	require.False(t, ok)
	_, ok = fund.Proceeds(math.MaxInt64, math.MaxInt64, jpy)
	require.False(t, ok)
}
