// Package decimal reads decimal numbers exactly. 65, 65.0 and 6.5e1 are the same
// value. It never uses binary floating point.
package decimal

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Errors of conversions.
var (
	ErrSyntax    = errors.New("not a decimal number")
	ErrRange     = errors.New("number out of range")
	ErrPrecision = errors.New("number has too many decimals")
)

// Decimal is an exact decimal number. The zero value is an absent number. Numbers
// with the same value are ==, in whatever notation they were written.
//
// A Decimal keeps its significant digits if they are less than 2^64. A longer
// number does not fit any quantity of this service. Its digits are not kept, and
// every conversion fails. It may be == to another number that is too long.
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
	// maxExponent limits the exponent of a text. It is greater than the number of
	// digits in the longest text, so that 0.(many zeros)1e(many) is read exactly.
	maxExponent = 1 << 40
	// maxKept limits the exponent that is kept. Every conversion of a number beyond it fails.
	maxKept = 1 << 30
)

// Int returns the decimal with the value of an integer.
func Int(n int64) Decimal { return New(n, 0) }

// New returns the decimal value / 10^scale: New(1250, 2) is 12.5. It is the inverse of Integer.
func New(value int64, scale int) Decimal {
	if value < 0 {
		return normal(negative, -uint64(value), -int64(scale)) //nolint:gosec // the negation undoes the wrap, also of -2^63
	}
	return normal(positive, uint64(value), -int64(scale))
}

// ParseBytes is Parse for bytes.
func ParseBytes(text []byte) (Decimal, error) { return Parse(string(text)) }

// Parse reads a number in the notation of JSON (RFC 8259, section 6). The error is ErrSyntax.
func Parse(text string) (Decimal, error) {
	sign := positive
	number, isNegative := strings.CutPrefix(text, "-")
	if isNegative {
		sign = negative
	}
	exponent := int64(0) // of the last digit
	e := strings.IndexAny(number, "eE")
	if e >= 0 {
		// ParseInt stops at the digit that is too many, and does not see what follows.
		spelled, err := strconv.ParseInt(number[e+1:], 10, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) || !areDigits(strings.TrimLeft(number[e+1:], "+-")) {
			return Decimal{}, ErrSyntax
		}
		number, exponent = number[:e], max(min(spelled, maxExponent), -maxExponent)
	}
	whole, fraction, isFraction := strings.Cut(number, ".")
	if !areDigits(whole) || len(whole) > 1 && whole[0] == '0' || isFraction && !areDigits(fraction) {
		return Decimal{}, ErrSyntax
	}
	fraction = strings.TrimRight(fraction, "0")
	exponent -= int64(len(fraction))
	if fraction == "" {
		significant := strings.TrimRight(whole, "0")
		exponent += int64(len(whole) - len(significant))
		whole = significant
	}
	var coefficient uint64
	long := false
	for _, digits := range [...]string{whole, fraction} {
		for i := 0; i < len(digits) && !long; i++ {
			coefficient, long = append10(coefficient, digits[i]-'0')
		}
	}
	if long {
		return Decimal{exponent: keep(exponent), kind: sign, long: true}, nil
	}
	return normal(sign, coefficient, exponent), nil
}

func areDigits(s string) bool { return s != "" && strings.TrimLeft(s, "0123456789") == "" }

// append10 writes a decimal digit after those of n.
func append10(n uint64, digit byte) (_ uint64, overflow bool) {
	hi, lo := bits.Mul64(n, 10)
	sum, carry := bits.Add64(lo, uint64(digit), 0)
	return sum, hi != 0 || carry != 0
}

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

// IsZero reports whether the number is present and 0.
func (d Decimal) IsZero() bool { return d == Decimal{kind: positive} }

// IsNegative reports whether the number is present and less than 0.
func (d Decimal) IsNegative() bool { return d.kind == negative }

// Integer returns the number times 10^scale as an integer. The error is
// ErrPrecision if the number has more than scale decimals, ErrRange if the result
// does not fit into 64 bits, and ErrSyntax if the number is absent.
func (d Decimal) Integer(scale int) (int64, error) {
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
	n := d.coefficient
	overflow := d.long
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

// Format returns value / 10^scale without an exponent and without trailing zeros
// after the point: Format(1250000, 6) is "1.25".
func Format(value int64, scale int) string {
	text := FormatFixed(value, scale)
	if scale == 0 {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// FormatFixed returns value / 10^scale with exactly scale decimals:
// FormatFixed(1250, 2) is "12.50".
func FormatFixed(value int64, scale int) string {
	if scale == 0 {
		return strconv.FormatInt(value, 10)
	}
	sign := ""
	magnitude := uint64(value) //nolint:gosec // negative values are handled below
	if value < 0 {
		sign = "-"
		magnitude = -magnitude
	}
	text := strconv.FormatUint(magnitude, 10)
	text = strings.Repeat("0", max(scale+1-len(text), 0)) + text
	point := len(text) - scale
	return sign + text[:point] + "." + text[point:]
}
