// Package value makes the domain's values from text, for tests. Its functions
// panic if the text is no such value.
package value

import (
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
)

// Unkeepable are texts that no storage may be asked to keep: U+0000, which Postgres cannot
// keep, and bytes that are not UTF-8, which become one character in JSON.
var Unkeepable = []string{"\x00", "a\x00b", "\xff", "a\xc3", "\xed\xa0\x80"}

// Number returns a decimal. An empty text is an absent number.
func Number(text string) decimal.Decimal {
	if text == "" {
		return decimal.Decimal{}
	}
	return must(decimal.Parse(text))
}

// Units returns a quantity of a fund.
func Units(text string) fund.Units { return must(fund.ParseUnits(Number(text))) }

// Day returns a day in YYYY-MM-DD format.
func Day(text string) day.Day { return must(day.Parse(text)) }

// Zone returns a time zone by its name.
func Zone(name string) *time.Location { return must(time.LoadLocation(name)) }

// Currency returns a currency by its code.
func Currency(code string) money.Currency {
	c, ok := money.ParseCurrency(code)
	if !ok {
		panic("no currency: " + code)
	}
	return c
}

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
