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
// number. Numbers of equal value are ==, however they were spelled.
//
// Significant digits are kept while they are below 2^64. A longer number fits
// no quantity of this service: its digits are forgotten, every conversion of it
// fails, and it may be == to another that is too long, but to none that is not.
type Decimal struct {
	coefficient uint64 // without trailing zeros; 0 when long
	exponent    int32  // of the last significant digit
	kind        kind
	long        bool // more digits than coefficient can hold
}

type kind uint8

const (
	absent   kind = iota
	positive      // 0 too
	negative
)

const (
	// maxExponent bounds a spelled exponent. It is more than the longest text
	// has digits, so that 0.(many zeros)1e(many) is read exactly.
	maxExponent = 1 << 40
	// maxKept bounds the exponent that is kept. No conversion takes a number
	// beyond it.
	maxKept = 1 << 30
)

// Int is the decimal of an integer.
func Int(n int64) Decimal {
	if n < 0 {
		return normal(negative, -uint64(n), 0) //nolint:gosec // the negation undoes the wrap, also of -2^63
	}
	return normal(positive, uint64(n), 0)
}

// Parse reads a number by the grammar of JSON (RFC 8259, section 6).
func Parse(text string) (Decimal, error) { return parse(text) }

// ParseBytes is Parse without a copy of the text.
func ParseBytes(text []byte) (Decimal, error) { return parse(text) }

func parse[T string | []byte](s T) (Decimal, error) {
	sign, start := positive, 0
	if len(s) > 0 && s[0] == '-' {
		sign, start = negative, 1
	}
	end, exponent, ok := scan(s, start)
	if !ok {
		return Decimal{}, ErrSyntax
	}
	var coefficient uint64
	long := false
	pending := int64(0) // zeros that count only if another digit follows
	for _, c := range []byte(s[start:end]) {
		switch c {
		case '.':
			continue
		case '0':
			pending++
			continue
		}
		for ; pending > 0 && coefficient != 0 && !long; pending-- {
			coefficient, long = append10(coefficient, 0)
		}
		pending = 0
		if !long {
			coefficient, long = append10(coefficient, c-'0')
		}
	}
	exponent += pending
	if long {
		return Decimal{exponent: keep(exponent), kind: sign, long: true}, nil
	}
	return normal(sign, coefficient, exponent), nil
}

// scan checks the grammar of an unsigned number from start to the end of s. The
// number's digits, with or without a point, end at end; taken as an integer,
// they are to be multiplied by 10^exponent.
func scan[T string | []byte](s T, start int) (end int, exponent int64, ok bool) {
	end = digits(s, start)
	if end == start || (s[start] == '0' && end > start+1) {
		return 0, 0, false
	}
	if end < len(s) && s[end] == '.' {
		fraction := end + 1
		end = digits(s, fraction)
		if end == fraction {
			return 0, 0, false
		}
		exponent = int64(fraction - end)
	}
	i := end
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		sign := int64(1)
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			if s[i] == '-' {
				sign = -1
			}
			i++
		}
		from, spelled := i, int64(0)
		for ; i < len(s) && isDigit(s[i]); i++ {
			spelled = min(spelled*10+int64(s[i]-'0'), maxExponent)
		}
		if i == from {
			return 0, 0, false
		}
		exponent += sign * spelled
	}
	return end, exponent, i == len(s)
}

// append10 writes a decimal digit after those of n.
func append10(n uint64, digit byte) (_ uint64, overflow bool) {
	hi, lo := bits.Mul64(n, 10)
	sum, carry := bits.Add64(lo, uint64(digit), 0)
	return sum, hi != 0 || carry != 0
}

func digits[T string | []byte](s T, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func normal(sign kind, coefficient uint64, exponent int64) Decimal {
	if coefficient == 0 {
		return Decimal{kind: positive} // -0 and 0e9 are 0
	}
	for coefficient%10 == 0 {
		coefficient /= 10
		exponent++
	}
	return Decimal{coefficient: coefficient, exponent: keep(exponent), kind: sign}
}

func keep(exponent int64) int32 {
	return int32(max(min(exponent, maxKept), -maxKept))
}

// IsAbsent reports whether there is no number.
func (d Decimal) IsAbsent() bool { return d.kind == absent }

// IsZero reports whether the number is there and 0.
func (d Decimal) IsZero() bool { return d == Decimal{kind: positive} }

// IsNegative reports whether the number is there and below 0.
func (d Decimal) IsNegative() bool { return d.kind == negative }

// Scaled returns the number times 10^scale as an integer, exactly: ErrPrecision
// when it has more than scale decimals, ErrRange when the result does not fit.
// An absent number gives ErrSyntax.
func (d Decimal) Scaled(scale int) (int64, error) {
	if d.IsAbsent() {
		return 0, ErrSyntax
	}
	if d.IsZero() {
		return 0, nil
	}
	shift := int(d.exponent) + scale
	if shift < 0 {
		return 0, ErrPrecision
	}
	n, overflow := d.coefficient, d.long
	for ; shift > 0 && !overflow; shift-- {
		n, overflow = append10(n, 0)
	}
	limit := uint64(math.MaxInt64)
	if d.kind == negative {
		limit++
	}
	if overflow || n > limit {
		return 0, ErrRange
	}
	if d.kind == negative {
		return -int64(n), nil //nolint:gosec // n is at most 2^63, which wraps to itself
	}
	return int64(n), nil //nolint:gosec // n is at most 2^63-1
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
		sign, magnitude = "-", -magnitude
	}
	text := strconv.FormatUint(magnitude, 10)
	text = strings.Repeat("0", max(scale+1-len(text), 0)) + text
	point := len(text) - scale
	return sign + text[:point] + "." + text[point:]
}
