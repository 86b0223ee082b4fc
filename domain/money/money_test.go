package money_test

import (
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/decimal"
	"bankingapi/domain/money"
)

func currency(t require.TestingT, code string) money.Currency {
	c, ok := money.ParseCurrency(code)
	require.True(t, ok, code)
	return c
}

func amount(t require.TestingT, text, code string) (money.Amount, error) {
	d, err := decimal.Parse(text)
	require.NoError(t, err)
	return money.FromDecimal(d, currency(t, code))
}

// everyCode tries all 26^3 codes: whatever the list accepts.
func everyCode() (codes []string) {
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			for c := 'A'; c <= 'Z'; c++ {
				if code := string([]rune{a, b, c}); isCurrency(code) {
					codes = append(codes, code)
				}
			}
		}
	}
	return codes
}

func isCurrency(code string) bool {
	_, ok := money.ParseCurrency(code)
	return ok
}

// active is list one of ISO 4217 without the codes that have no minor unit,
// as published in 2026.
const active = `
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD
CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP
GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR
KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN
MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD
SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX
USD USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XCD XCG XOF XPF YER ZAR ZMW ZWG`

func TestTheActiveCurrenciesAndNoOthers(t *testing.T) {
	t.Parallel()
	codes := everyCode()
	require.Equal(t, strings.Fields(active), codes)
	require.Len(t, codes, 165)
	for _, code := range codes {
		c := currency(t, code)
		require.Equal(t, code, c.Code())
		require.False(t, c.IsNone(), code)
		again := currency(t, code)
		require.Equal(t, c, again)
	}
}

func TestMinorUnits(t *testing.T) {
	t.Parallel()
	unlike2 := map[int][]string{
		0: strings.Fields("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"),
		3: strings.Fields("BHD IQD JOD KWD LYD OMR TND"),
		4: strings.Fields("CLF UYW"),
	}
	for _, code := range everyCode() {
		want := 2
		for decimals, codes := range unlike2 {
			if slices.Contains(codes, code) {
				want = decimals
			}
		}
		require.Equal(t, want, currency(t, code).Decimals(), code)
	}
}

func TestWhatIsNotAnActiveCurrencyIsRefused(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"", "try", "Try", "TRY ", " TRY", "TR", "TRYY", "TRL", "TRİ", "₺", "949", "QQQ",
		"DEM", "HRK", "BGN", "ANG", "CUC", "SLL", "ZWL", "VEF", "BYR", "MRO", "STD", "LTL", "VEB", // withdrawn
		"XAU", "XAG", "XPD", "XPT", "XDR", "XSU", "XUA", "XBA", "XBB", "XBC", "XBD", "XTS", "XXX", // no minor unit
	} {
		c, ok := money.ParseCurrency(code)
		require.False(t, ok, code)
		require.True(t, c.IsNone(), code)
	}
}

func TestNoCurrency(t *testing.T) {
	t.Parallel()
	var none money.Currency
	require.True(t, none.IsNone())
	require.Empty(t, none.Code())
	require.Zero(t, none.Decimals())
}

func TestFromDecimal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, currency string
		minor          int64
		err            error
	}{
		{"12.5", "TRY", 1250, nil},
		{"12.50", "TRY", 1250, nil},
		{"1.25e1", "TRY", 1250, nil},
		{"-0.01", "TRY", -1, nil},
		{"12.505", "TRY", 0, decimal.ErrPrecision},
		{"12", "JPY", 12, nil},
		{"12.0", "JPY", 12, nil},
		{"12.5", "JPY", 0, decimal.ErrPrecision},
		{"1.234", "KWD", 1234, nil},
		{"1.2345", "KWD", 0, decimal.ErrPrecision},
		{"1.2345", "CLF", 12345, nil},
		{"92233720368547758.07", "TRY", math.MaxInt64, nil},
		{"92233720368547758.08", "TRY", 0, decimal.ErrRange},
		{"9223372036854775807", "JPY", math.MaxInt64, nil},
		{"9223372036854775808", "JPY", 0, decimal.ErrRange},
	} {
		got, err := amount(t, tt.text, tt.currency)
		require.ErrorIs(t, err, tt.err, tt.text)
		require.Equal(t, money.New(tt.minor, currency(t, tt.currency)), got, tt.text)
		require.Equal(t, tt.minor, got.Minor(), tt.text)
		require.Equal(t, tt.currency, got.Currency().Code(), tt.text)
	}
	_, err := money.FromDecimal(decimal.Decimal{}, currency(t, "TRY"))
	require.ErrorIs(t, err, decimal.ErrSyntax)
}

func TestAmountsShowAllDecimalsOfTheirCurrency(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		minor          int64
		currency, want string
	}{
		{1250, "TRY", "12.50"},
		{0, "TRY", "0.00"},
		{-1, "TRY", "-0.01"},
		{1250, "JPY", "1250"},
		{1250, "KWD", "1.250"},
		{1250, "CLF", "0.1250"},
		{math.MaxInt64, "TRY", "92233720368547758.07"},
	} {
		require.Equal(t, tt.want, money.New(tt.minor, currency(t, tt.currency)).String())
	}
	require.Equal(t, "0", money.Amount{}.String())
}

func TestAnAmountIsReadBackFromItsText(t *testing.T) {
	t.Parallel()
	codes := strings.Fields(active)
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom(codes).Draw(t, "currency")
		a := money.New(rapid.Int64().Draw(t, "minor"), currency(t, code))
		back, err := amount(t, a.String(), code)
		require.NoError(t, err)
		require.Equal(t, a, back)
		pattern := `^-?[0-9]+$`
		if n := a.Currency().Decimals(); n > 0 {
			pattern = `^-?[0-9]+\.` + strings.Repeat("[0-9]", n) + `$`
		}
		require.Regexp(t, regexp.MustCompile(pattern), a.String())
	})
}

func TestAdd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b, sum int64
		ok        bool
	}{
		{0, 0, 0, true},
		{1, 0, 1, true},
		{0, -1, -1, true},
		{1250, 1, 1251, true},
		{1, -1, 0, true},
		{math.MaxInt64, 0, math.MaxInt64, true},
		{math.MaxInt64 - 1, 1, math.MaxInt64, true},
		{math.MaxInt64, 1, 0, false},
		{1, math.MaxInt64, 0, false},
		{math.MaxInt64, math.MaxInt64, 0, false},
		{math.MinInt64, 0, math.MinInt64, true},
		{math.MinInt64, -1, 0, false},
		{math.MinInt64, math.MinInt64, 0, false},
		{math.MinInt64, math.MaxInt64, -1, true},
		{math.MaxInt64, math.MinInt64, -1, true},
	} {
		lira := currency(t, "TRY")
		sum, ok := money.New(tt.a, lira).Add(money.New(tt.b, lira))
		require.Equal(t, tt.ok, ok, tt)
		if ok {
			require.Equal(t, money.New(tt.sum, lira), sum, tt)
		}
	}
}

func TestMoneyOfTwoCurrenciesHasNoSum(t *testing.T) {
	t.Parallel()
	_, ok := money.New(1, currency(t, "TRY")).Add(money.New(1, currency(t, "USD")))
	require.False(t, ok)
	_, ok = money.New(1, currency(t, "TRY")).Add(money.Amount{})
	require.False(t, ok)
}

func TestSumsNeverWrap(t *testing.T) {
	t.Parallel()
	minors := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64, math.MaxInt64 / 2, math.MinInt64 / 2}))
	rapid.Check(t, func(t *rapid.T) {
		lira := currency(t, "TRY")
		a, b := minors.Draw(t, "a"), minors.Draw(t, "b")
		want := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		sum, ok := money.New(a, lira).Add(money.New(b, lira))
		require.Equal(t, want.IsInt64(), ok)
		if ok {
			require.Equal(t, want.Int64(), sum.Minor())
			require.Equal(t, lira, sum.Currency())
		}
	})
}
