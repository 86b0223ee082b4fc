package backoffice

import (
	"cmp"
	"slices"

	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// FundSum sums the sales of a fund in a currency.
type FundSum struct {
	IMKBCode                string
	Currency                money.Currency
	Sales, Waited, Reversed int64
	// Units can be more than the units of all holdings: recorded sales do not block theirs.
	Units, Proceeds, Returned Sum
}

// FundSums are sums in the order of their funds and currencies.
type FundSums []FundSum

// Of returns the sum of a fund and a currency. It adds the sum if there is none.
func (s *FundSums) Of(imkbCode string, currency money.Currency) *FundSum {
	of := FundSum{IMKBCode: imkbCode, Currency: currency}
	at, is := slices.BinarySearchFunc(*s, of, func(x, y FundSum) int {
		return cmp.Or(cmp.Compare(x.IMKBCode, y.IMKBCode), cmp.Compare(x.Currency.Code(), y.Currency.Code()))
	})
	if !is {
		*s = slices.Insert(*s, at, of)
	}
	return &(*s)[at]
}

// Currencies returns the sums of all funds by currency.
func (s FundSums) Currencies() (all FundSums) {
	for _, of := range s {
		sum := all.Of("", of.Currency)
		sum.Sales += of.Sales
		sum.Waited += of.Waited
		sum.Reversed += of.Reversed
		sum.Units = sum.Units.Plus(of.Units)
		sum.Proceeds = sum.Proceeds.Plus(of.Proceeds)
		sum.Returned = sum.Returned.Plus(of.Returned)
	}
	return all
}

// Closed returns the sums of the completed sales, without Units. Sales that were reversed later are
// beside the others.
func (r Received) Closed() (all FundSums) {
	for key, sum := range r.Sales {
		if key.State != operation.Completed {
			continue
		}
		of := all.Of(key.IMKBCode, key.Currency)
		if key.Reversed {
			of.Reversed += sum.Sales
			of.Returned = of.Returned.Plus(sum.Proceeds)
			continue
		}
		of.Sales += sum.Sales
		of.Proceeds = of.Proceeds.Plus(sum.Proceeds)
		if key.Waited {
			of.Waited += sum.Sales
		}
	}
	return all
}
