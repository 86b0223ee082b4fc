package decimal_test

import (
	"encoding/json"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/decimal"
)

func parse(t require.TestingT, text string) decimal.Decimal {
	d, err := decimal.Parse(text)
	require.NoError(t, err, text)
	return d
}

func TestEverySpellingOfAValueIsOneNumber(t *testing.T) {
	t.Parallel()
	for _, spellings := range [][]string{
		{"65", "65.0", "65.000", "6.5e1", "6.5E+01", "650e-1", "0.65e2", "65e0", "65e-0", "0.000065e6"},
		{"0", "-0", "0.0", "-0.000", "0e9", "0e-99999999999999999999", "-0.0E+7"},
		{"-1.5", "-1.50", "-15e-1", "-0.15E1"},
		{"1000", "1e3", "1.0e3", "10E+2", "1000.0", "100000e-2"},
		{"9223372036854775807", "9223372036854775807.0", "9.223372036854775807e18"},
		{"1e99", "10e98", "0.1e100", "1E0099"},
		{"1e-7", "0.0000001", "0.1e-6"},
	} {
		first := parse(t, spellings[0])
		for _, text := range spellings {
			require.Equal(t, first, parse(t, text), text)
			fromBytes, err := decimal.ParseBytes([]byte(text))
			require.NoError(t, err, text)
			require.Equal(t, first, fromBytes, text)
		}
	}
}

func TestDifferentValuesAreDifferentNumbers(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"1", "-1"}, {"1", "10"}, {"0", "1e-99"}, {"1.1", "1.10000000000000001"}, {"65", "65.0000000001"},
		{"18446744073709551615", "18446744073709551614"},
		{"1", "1.00000000000000000000000000001"}, {"1e-30", "-1e-30"},
	} {
		require.NotEqual(t, parse(t, pair[0]), parse(t, pair[1]), pair)
	}
}

func TestOnlyTheGrammarOfJSONIsANumber(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "-", "+", "+1", ".5", "1.", "-.5", "1.e3", "01", "-01", "00", "00.5", "1e", "1e+", "1e-", "e1", "1e1.5",
		"1_000", "1,5", " 1", "1 ", "1\n", "0x10", "1f", "NaN", "Infinity", "-Infinity", "null", `"1"`, "--1", "1-",
		"1e--1", "1e+-1", "1.2.3", "١", "\uff11", "1\x00", "1e5e5", "1/2", "1:", "1./",
	} {
		d, err := decimal.Parse(text)
		require.ErrorIs(t, err, decimal.ErrSyntax, text)
		require.True(t, d.IsAbsent(), text)
		_, err = decimal.ParseBytes([]byte(text))
		require.ErrorIs(t, err, decimal.ErrSyntax, text)
	}
}

func TestNoNumberIsAbsentAndFitsNothing(t *testing.T) {
	t.Parallel()
	var none decimal.Decimal
	require.True(t, none.IsAbsent())
	require.False(t, none.IsZero())
	require.False(t, none.IsNegative())
	n, err := none.Integer(0)
	require.ErrorIs(t, err, decimal.ErrSyntax)
	require.Zero(t, n)
	require.False(t, parse(t, "0").IsAbsent())
}

func TestSignAndZero(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text           string
		zero, negative bool
	}{
		{"0", true, false}, {"-0", true, false}, {"-0.00e5", true, false},
		{"1", false, false}, {"-1", false, true}, {"1e-99", false, false}, {"-1e-99", false, true},
		{"123456789012345678901234567890", false, false}, {"-123456789012345678901234567890", false, true},
	} {
		require.Equal(t, tt.zero, parse(t, tt.text).IsZero(), tt.text)
		require.Equal(t, tt.negative, parse(t, tt.text).IsNegative(), tt.text)
	}
}

func TestScaled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		scale int
		want  int64
		err   error
	}{
		{"65", 0, 65, nil},
		{"-65.000", 0, -65, nil},
		{"1.5", 6, 1_500_000, nil},
		{"0.000001", 6, 1, nil},
		{"0.0000001", 6, 0, decimal.ErrPrecision},
		{"1.5", 0, 0, decimal.ErrPrecision},
		{"150", -1, 15, nil},
		{"15", -1, 0, decimal.ErrPrecision},
		{"9223372036854775807", 0, math.MaxInt64, nil},
		{"9223372036854775808", 0, 0, decimal.ErrRange},
		{"-9223372036854775808", 0, math.MinInt64, nil},
		{"-9223372036854775809", 0, 0, decimal.ErrRange},
		{"922337203685477580.7", 1, math.MaxInt64, nil},
		{"18446744073709551615", 0, 0, decimal.ErrRange},
		{"18446744073709551616", 0, 0, decimal.ErrRange},
		{"-18446744073709551616", 0, 0, decimal.ErrRange},
		{"1e18", 0, 1_000_000_000_000_000_000, nil},
		{"1e19", 0, 0, decimal.ErrRange},
		{"-1e20", 0, 0, decimal.ErrRange},
		{"0", 18, 0, nil},
		{"0e99999999999999999999", 0, 0, nil},
		{"0.0", 0, 0, nil},
		{"0", -1, 0, nil},

		// Too long to be kept, and still told apart by their value: an integer
		// is out of range, however it is spelled, and no fraction is.
		{"20000000000000000001", 0, 0, decimal.ErrRange},
		{"2.0000000000000000001e19", 0, 0, decimal.ErrRange},
		{"2.0000000000000000001e18", 0, 0, decimal.ErrPrecision},
		{"20000000000000000001e-30", 6, 0, decimal.ErrPrecision},
		{"123456789012345678901234567890.5", 0, 0, decimal.ErrPrecision},
		{"12345678901234567890123456789.05", 1, 0, decimal.ErrPrecision},
		{"12345678901234567890123456789.5", 1, 0, decimal.ErrRange},
		{"184467440737095516161", 0, 0, decimal.ErrRange},  // 10 x 2^64 + 1
		{"1844674407370955161701", 0, 0, decimal.ErrRange}, // 100 x (2^64 + 1) + 1
		{"184467440737095516161e-1", 0, 0, decimal.ErrPrecision},
		{"0.1000000000000000000000000000001", 6, 0, decimal.ErrPrecision},
		{"0.1000000000000000000000000000000", 6, 100_000, nil},
	} {
		got, err := parse(t, tt.text).Integer(tt.scale)
		require.ErrorIs(t, err, tt.err, "%s scaled by %d", tt.text, tt.scale)
		require.Equal(t, tt.want, got, "%s scaled by %d", tt.text, tt.scale)
	}
}

func TestNumbersAsLongAsABodyAreReadInOnePass(t *testing.T) {
	t.Parallel()
	const long = 3 << 20 // more than any body that is let in by default
	zeros, nines := strings.Repeat("0", long), strings.Repeat("9", long)
	for _, tt := range []struct {
		name, text string
		want       int64
		err        error
	}{
		{"huge exponent", "1e" + nines, 0, decimal.ErrRange},
		{"huge negative exponent", "1e-" + nines, 0, decimal.ErrPrecision},
		{"exponent beyond 32 bits", "1e4294967296", 0, decimal.ErrRange},
		{"exponent beyond 64 bits", "1e18446744073709551616", 0, decimal.ErrRange},
		{"negative exponent beyond 64 bits", "1e-18446744073709551616", 0, decimal.ErrPrecision},
		{"exponent of zeros", "7e" + zeros + "1", 70, nil},
		{"many digits", nines, 0, decimal.ErrRange},
		{"many decimals", "0." + nines, 0, decimal.ErrPrecision},
		{"zeros after the point", "7." + zeros, 7, nil},
		{"zeros before the last decimal", "0." + zeros + "7", 0, decimal.ErrPrecision},
		{"zeros undone by the exponent", "0." + zeros + "7e" + strconv.Itoa(long+1), 7, nil},
		{"an exponent undone by zeros", "7" + zeros + "e-" + strconv.Itoa(long), 7, nil},
		{"zero with a huge exponent", "0e" + nines, 0, nil},
	} {
		got, err := parse(t, tt.text).Integer(0)
		require.ErrorIs(t, err, tt.err, tt.name)
		require.Equal(t, tt.want, got, tt.name)
	}
}

// Not in parallel: it counts allocations.
func TestReadingNumbersTakesNoMemory(t *testing.T) {
	text := []byte("-1234567.890123e-2")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := decimal.ParseBytes(text); err != nil {
			panic(err)
		}
	}))
}

// exactly is the oracle for Integer: value times 10^scale in rational numbers.
func exactly(value *big.Rat, scale int) (int64, error) {
	ten := big.NewRat(10, 1)
	scaled := new(big.Rat).Set(value)
	for range scale {
		scaled.Mul(scaled, ten)
	}
	switch {
	case !scaled.IsInt():
		return 0, decimal.ErrPrecision
	case !scaled.Num().IsInt64():
		return 0, decimal.ErrRange
	}
	return scaled.Num().Int64(), nil
}

func requireExact(t require.TestingT, text string) {
	value, ok := new(big.Rat).SetString(text)
	require.True(t, ok, text)
	d := parse(t, text)
	require.Equal(t, value.Sign() == 0, d.IsZero(), text)
	require.Equal(t, value.Sign() < 0, d.IsNegative(), text)
	for scale := range 9 {
		want, wantErr := exactly(value, scale)
		got, err := d.Integer(scale)
		require.ErrorIs(t, err, wantErr, "%s scaled by %d", text, scale)
		require.Equal(t, want, got, "%s scaled by %d", text, scale)
	}
}

func TestScaledAgreesWithRationalNumbers(t *testing.T) {
	t.Parallel()
	texts := rapid.OneOf(
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?`),
		rapid.StringMatching(`-?9[0-9]{17,18}(\.0{1,3})?`),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,12})\.[0-9]{0,6}0{0,30}1?0`),
		rapid.Custom(func(t *rapid.T) string { // around 2^63 and 2^64
			edge := new(big.Int).Lsh(big.NewInt(1), rapid.SampledFrom([]uint{63, 64}).Draw(t, "bits"))
			edge.Add(edge, big.NewInt(rapid.Int64Range(-3, 3).Draw(t, "beside")))
			sign := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign")
			exponent := rapid.IntRange(-8, 2).Draw(t, "exponent")
			return sign + edge.String() + "e" + strconv.Itoa(exponent)
		}),
	)
	rapid.Check(t, func(t *rapid.T) { requireExact(t, texts.Draw(t, "text")) })
}

// spell draws one of the many spellings of coefficient times 10^exponent.
func spell(t *rapid.T, label string, coefficient int64, exponent int) string {
	sign, digits := "", strconv.FormatInt(coefficient, 10)
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	zeros := rapid.IntRange(0, 25).Draw(t, label+" zeros")
	digits += strings.Repeat("0", zeros)
	exponent -= zeros
	point := rapid.IntRange(0, len(digits)).Draw(t, label+" point")
	whole, fraction := digits[:point], digits[point:]
	exponent += len(fraction)
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	text := sign + whole
	if fraction != "" {
		text += "." + fraction
	}
	if exponent == 0 && rapid.Bool().Draw(t, label+" plain") {
		return text
	}
	text += rapid.SampledFrom([]string{"e", "E"}).Draw(t, label+" e")
	switch {
	case exponent < 0:
		text += "-"
		exponent = -exponent
	case rapid.Bool().Draw(t, label+" plus"):
		text += "+"
	}
	return text + strings.Repeat("0", rapid.IntRange(0, 3).Draw(t, label+" padding")) + strconv.Itoa(exponent)
}

func TestHowANumberIsSpelledDoesNotCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		coefficient := rapid.Int64().Draw(t, "coefficient")
		exponent := rapid.IntRange(-40, 40).Draw(t, "exponent")
		one, other := spell(t, "one", coefficient, exponent), spell(t, "other", coefficient, exponent)
		require.Equal(t, parse(t, one), parse(t, other), "%s and %s", one, other)
	})
}

func TestIntegersAreThemselves(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{0, 1, -1, 10, 79, math.MaxInt64, math.MinInt64, math.MinInt64 + 1} {
		require.Equal(t, parse(t, strconv.FormatInt(n, 10)), decimal.Int(n), n)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		require.Equal(t, parse(t, strconv.FormatInt(n, 10)), decimal.Int(n))
		got, err := decimal.Int(n).Integer(0)
		require.NoError(t, err)
		require.Equal(t, n, got)
	})
}

func TestNewIsTheInverseOfScaled(t *testing.T) {
	t.Parallel()
	require.Equal(t, parse(t, "12.5"), decimal.New(1250, 2))
	require.Equal(t, parse(t, "-0.000001"), decimal.New(-1, 6))
	require.Equal(t, decimal.Int(0), decimal.New(0, 8))
	rapid.Check(t, func(t *rapid.T) {
		n, scale := rapid.Int64().Draw(t, "n"), rapid.IntRange(0, 8).Draw(t, "scale")
		got, err := decimal.New(n, scale).Integer(scale)
		require.NoError(t, err)
		require.Equal(t, n, got)
	})
}

func TestFormat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value        int64
		scale        int
		short, fixed string
	}{
		{0, 0, "0", "0"},
		{0, 2, "0", "0.00"},
		{5, 2, "0.05", "0.05"},
		{-5, 2, "-0.05", "-0.05"},
		{50, 2, "0.5", "0.50"},
		{1250, 2, "12.5", "12.50"},
		{-1200, 2, "-12", "-12.00"},
		{1000, 0, "1000", "1000"},
		{-1000, 0, "-1000", "-1000"},
		{1_250_000, 6, "1.25", "1.250000"},
		{100_000_000, 6, "100", "100.000000"},
		{math.MaxInt64, 8, "92233720368.54775807", "92233720368.54775807"},
		{math.MinInt64, 8, "-92233720368.54775808", "-92233720368.54775808"},
		{math.MinInt64, 0, "-9223372036854775808", "-9223372036854775808"},
		{7, 18, "0.000000000000000007", "0.000000000000000007"},
	} {
		require.Equal(t, tt.short, decimal.Format(tt.value, tt.scale))
		require.Equal(t, tt.fixed, decimal.FormatFixed(tt.value, tt.scale))
	}
}

func TestWhatIsFormattedIsReadBackAsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value, scale := rapid.Int64().Draw(t, "value"), rapid.IntRange(0, 8).Draw(t, "scale")
		short, fixed := decimal.Format(value, scale), decimal.FormatFixed(value, scale)
		for _, text := range []string{short, fixed} {
			back, err := parse(t, text).Integer(scale)
			require.NoError(t, err, text)
			require.Equal(t, value, back, text)
		}
		_, fraction, _ := strings.Cut(fixed, ".")
		require.Len(t, fraction, scale)
		_, fraction, hasPoint := strings.Cut(short, ".")
		require.Equal(t, hasPoint, fraction != "")
		require.False(t, strings.HasSuffix(fraction, "0"))
	})
}

var number = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?0*([0-9]+))?$`)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"65", "65.0", "6.5e1", "-0", "1e999999999999", "0.000001", "9223372036854775807", "-9223372036854775808",
		"18446744073709551616", "123456789012345678901234567890.5", "01", "1.", "+1", "1e", " 1", "2.0000000000000000001e19",
		"1e99999999999999999999x", "1e+-5",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := decimal.Parse(text)
		fromBytes, errBytes := decimal.ParseBytes([]byte(text))
		require.Equal(t, d, fromBytes)
		require.Equal(t, err, errBytes)

		match := number.FindStringSubmatch(text)
		require.Equal(t, match != nil, json.Valid([]byte(text)) && strings.Trim(text, "-0123456789.eE+") == "")
		if match == nil {
			require.ErrorIs(t, err, decimal.ErrSyntax)
			return
		}
		require.NoError(t, err)
		if len(match[1]) <= 3 { // greater ones would keep the oracle busy
			requireExact(t, text)
		}
	})
}
