// Package money keeps amounts as whole minor units of a currency.
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

// Currency is an active ISO 4217 currency that has a minor unit. The zero value
// is no currency. Compare currencies with ==.
type Currency struct{ index uint8 }

// ParseCurrency returns the currency with that code, in capital letters. ok is false for
// withdrawn codes and for codes without a minor unit (metals, testing, XXX).
func ParseCurrency(code string) (c Currency, ok bool) {
	index, ok := byCode[code]
	return Currency{index}, ok
}

// Code returns the ISO 4217 code, and an empty text for no currency.
func (c Currency) Code() string { return currencies[c.index].code }

// Decimals returns the number of digits of the minor unit: 2 for TRY, 0 for JPY.
func (c Currency) Decimals() int { return currencies[c.index].decimals }

// CodesByDecimals returns the codes of all currencies by the number of their decimals. The caller
// owns the map.
func CodesByDecimals() map[int][]string {
	codes := make(map[int][]string)
	for _, c := range currencies[1:] {
		codes[c.decimals] = append(codes[c.decimals], c.code)
	}
	return codes
}

// IsNone reports whether c is the zero value.
func (c Currency) IsNone() bool { return c.index == 0 }

var byCode = func() map[string]uint8 {
	m := make(map[string]uint8, len(currencies))
	for i, c := range currencies[1:] {
		m[c.code] = uint8(i + 1)
	}
	return m
}()

// currencies is list one of ISO 4217 as of 2026-11. XCG replaced ANG in 2025, and
// the euro replaced BGN on 2026-01-01. Index 0 is no currency.
//
// Stored rows are read by this list too. So never remove a code that a release had, and never change
// its decimals: the prices, sales and accounts in it could no longer be read. A code that ISO
// withdraws later must be refused where a request or a price names it.
var currencies = [...]struct {
	code     string
	decimals int
}{
	{},
	{"AED", 2}, {"AFN", 2}, {"ALL", 2}, {"AMD", 2}, {"AOA", 2}, {"ARS", 2}, {"AUD", 2}, {"AWG", 2},
	{"AZN", 2}, {"BAM", 2}, {"BBD", 2}, {"BDT", 2}, {"BHD", 3}, {"BIF", 0}, {"BMD", 2}, {"BND", 2},
	{"BOB", 2}, {"BOV", 2}, {"BRL", 2}, {"BSD", 2}, {"BTN", 2}, {"BWP", 2}, {"BYN", 2}, {"BZD", 2},
	{"CAD", 2}, {"CDF", 2}, {"CHE", 2}, {"CHF", 2}, {"CHW", 2}, {"CLF", 4}, {"CLP", 0}, {"CNY", 2},
	{"COP", 2}, {"COU", 2}, {"CRC", 2}, {"CUP", 2}, {"CVE", 2}, {"CZK", 2}, {"DJF", 0}, {"DKK", 2},
	{"DOP", 2}, {"DZD", 2}, {"EGP", 2}, {"ERN", 2}, {"ETB", 2}, {"EUR", 2}, {"FJD", 2}, {"FKP", 2},
	{"GBP", 2}, {"GEL", 2}, {"GHS", 2}, {"GIP", 2}, {"GMD", 2}, {"GNF", 0}, {"GTQ", 2}, {"GYD", 2},
	{"HKD", 2}, {"HNL", 2}, {"HTG", 2}, {"HUF", 2}, {"IDR", 2}, {"ILS", 2}, {"INR", 2}, {"IQD", 3},
	{"IRR", 2}, {"ISK", 0}, {"JMD", 2}, {"JOD", 3}, {"JPY", 0}, {"KES", 2}, {"KGS", 2}, {"KHR", 2},
	{"KMF", 0}, {"KPW", 2}, {"KRW", 0}, {"KWD", 3}, {"KYD", 2}, {"KZT", 2}, {"LAK", 2}, {"LBP", 2},
	{"LKR", 2}, {"LRD", 2}, {"LSL", 2}, {"LYD", 3}, {"MAD", 2}, {"MDL", 2}, {"MGA", 2}, {"MKD", 2},
	{"MMK", 2}, {"MNT", 2}, {"MOP", 2}, {"MRU", 2}, {"MUR", 2}, {"MVR", 2}, {"MWK", 2}, {"MXN", 2},
	{"MXV", 2}, {"MYR", 2}, {"MZN", 2}, {"NAD", 2}, {"NGN", 2}, {"NIO", 2}, {"NOK", 2}, {"NPR", 2},
	{"NZD", 2}, {"OMR", 3}, {"PAB", 2}, {"PEN", 2}, {"PGK", 2}, {"PHP", 2}, {"PKR", 2}, {"PLN", 2},
	{"PYG", 0}, {"QAR", 2}, {"RON", 2}, {"RSD", 2}, {"RUB", 2}, {"RWF", 0}, {"SAR", 2}, {"SBD", 2},
	{"SCR", 2}, {"SDG", 2}, {"SEK", 2}, {"SGD", 2}, {"SHP", 2}, {"SLE", 2}, {"SOS", 2}, {"SRD", 2},
	{"SSP", 2}, {"STN", 2}, {"SVC", 2}, {"SYP", 2}, {"SZL", 2}, {"THB", 2}, {"TJS", 2}, {"TMT", 2},
	{"TND", 3}, {"TOP", 2}, {"TRY", 2}, {"TTD", 2}, {"TWD", 2}, {"TZS", 2}, {"UAH", 2}, {"UGX", 0},
	{"USD", 2}, {"USN", 2}, {"UYI", 0}, {"UYU", 2}, {"UYW", 4}, {"UZS", 2}, {"VED", 2}, {"VES", 2},
	{"VND", 0}, {"VUV", 0}, {"WST", 2}, {"XAD", 2}, {"XAF", 0}, {"XCD", 2}, {"XCG", 2}, {"XOF", 0},
	{"XPF", 0}, {"YER", 2}, {"ZAR", 2}, {"ZMW", 2}, {"ZWG", 2},
}
