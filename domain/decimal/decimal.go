// Package decimal reads numbers exactly as a caller spelled them: 65, 65.0 and
// 6.5e1 are one value, and no binary floating point comes near it.
package decimal

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Reasons why a number does not fit.
var (
	ErrSyntax    = errors.New("not a decimal number")
	ErrRange     = errors.New("number out of range")
	ErrPrecision = errors.New("number has too many decimals")
)

// Decimal is an exact decimal number, or none: the zero value is an absent
// number. Two Decimals are == when their values are equal.
//
// Up to 19 significant digits (below 2^64) are kept. What is longer fits no
// quantity of this service: it is remembered as too long, and every conversion
// of it fails.
type Decimal struct {
	coefficient uint64 // without trailing zeros, except for 0 itself
	exponent    int32
	kind        kind
}

type kind uint8

const (
	absent kind = iota
	positive
	negative
	tooBig   // beyond every integer this service keeps
	tooExact // more significant digits than this service keeps
)

// maxExponent bounds exponents long before int32 could wrap; whatever lies
// beyond is far out of every range.
const maxExponent = 1 << 20

// Int is the decimal of an integer.
func Int(n int64) Decimal {
	if n < 0 {
		return normal(negative, uint64(-(n+1))+1, 0)
	}
	return normal(positive, uint64(n), 0)
}

// Parse reads a number by the grammar of JSON (RFC 8259, section 6).
func Parse(text string) (Decimal, error) { return parse(text) }

// ParseBytes is Parse without a copy of the text.
func ParseBytes(text []byte) (Decimal, error) { return parse(text) }

func parse[T string | []byte](s T) (Decimal, error) {
	sign, i := positive, 0
	if i < len(s) && s[i] == '-' {
		sign, i = negative, 1
	}
	start := i
	i = digits(s, i)
	if i == start || (s[start] == '0' && i > start+1) {
		return Decimal{}, ErrSyntax
	}
	intEnd, fracEnd := i, i
	if i < len(s) && s[i] == '.' {
		fracEnd = digits(s, i+1)
		if fracEnd == i+1 {
			return Decimal{}, ErrSyntax
		}
		i = fracEnd
	}
	exponent := 0
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		minus := false
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			minus = s[i] == '-'
			i++
		}
		from := i
		for ; i < len(s) && isDigit(s[i]); i++ {
			exponent = min(exponent*10+int(s[i]-'0'), maxExponent)
		}
		if i == from {
			return Decimal{}, ErrSyntax
		}
		if minus {
			exponent = -exponent
		}
	}
	if i != len(s) {
		return Decimal{}, ErrSyntax
	}

	var coefficient uint64
	pending := 0 // zeros that count only if another digit follows
	for j := start; j < fracEnd; j++ {
		if j == intEnd {
			continue // the point
		}
		if j > intEnd {
			exponent--
		}
		if s[j] == '0' {
			pending++
			continue
		}
		for ; pending > 0 && coefficient != 0; pending-- {
			hi, lo := bits.Mul64(coefficient, 10)
			if hi != 0 {
				return tooLong(j < intEnd), nil
			}
			coefficient = lo
		}
		pending = 0
		hi, lo := bits.Mul64(coefficient, 10)
		sum, carry := bits.Add64(lo, uint64(s[j]-'0'), 0)
		if hi != 0 || carry != 0 {
			return tooLong(j < intEnd), nil
		}
		coefficient = sum
	}
	return normal(sign, coefficient, exponent+pending), nil
}

func digits[T string | []byte](s T, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func tooLong(inInteger bool) Decimal {
	if inInteger {
		return Decimal{kind: tooBig}
	}
	return Decimal{kind: tooExact}
}

func normal(sign kind, coefficient uint64, exponent int) Decimal {
	if coefficient == 0 {
		return Decimal{kind: positive} // -0 and 0e9 are 0
	}
	for coefficient%10 == 0 {
		coefficient /= 10
		exponent++
	}
	exponent = max(min(exponent, maxExponent), -maxExponent)
	return Decimal{coefficient: coefficient, exponent: int32(exponent), kind: sign} //nolint:gosec // bounded in the line above
}

// IsAbsent reports whether there is no number.
func (d Decimal) IsAbsent() bool { return d.kind == absent }

// IsZero reports whether the number is there and 0.
func (d Decimal) IsZero() bool { return d.kind == positive && d.coefficient == 0 }

// Scaled returns the number times 10^scale as an integer, exactly: ErrPrecision
// when it has more than scale decimals, ErrRange when the result does not fit.
// An absent number gives ErrSyntax.
func (d Decimal) Scaled(scale int) (int64, error) {
	switch d.kind {
	case absent:
		return 0, ErrSyntax
	case tooBig:
		return 0, ErrRange
	case tooExact:
		return 0, ErrPrecision
	}
	shift := int(d.exponent) + scale
	if d.coefficient == 0 {
		return 0, nil
	}
	if shift < 0 {
		return 0, ErrPrecision
	}
	n := d.coefficient
	for ; shift > 0; shift-- {
		hi, lo := bits.Mul64(n, 10)
		if hi != 0 {
			return 0, ErrRange
		}
		n = lo
	}
	if d.kind == negative {
		if n > 1<<63 {
			return 0, ErrRange
		}
		return -int64(n-1) - 1, nil //nolint:gosec // n is in 1..2^63
	}
	if n > math.MaxInt64 {
		return 0, ErrRange
	}
	return int64(n), nil //nolint:gosec // checked in the line above
}

// Format writes value / 10^scale without exponent and without trailing zeros
// after the point: Format(1250000, 6) is "1.25".
func Format(value int64, scale int) string {
	text := FormatFixed(value, scale)
	if scale == 0 {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// FormatFixed writes value / 10^scale with exactly scale decimals:
// FormatFixed(1250, 2) is "12.50".
func FormatFixed(value int64, scale int) string {
	if scale == 0 {
		return strconv.FormatInt(value, 10)
	}
	sign, magnitude := "", uint64(value) //nolint:gosec // negative values are handled below
	if value < 0 {
		sign, magnitude = "-", uint64(-(value+1))+1
	}
	text := strconv.FormatUint(magnitude, 10)
	if missing := scale + 1 - len(text); missing > 0 {
		text = strings.Repeat("0", missing) + text
	}
	point := len(text) - scale
	return sign + text[:point] + "." + text[point:]
}
