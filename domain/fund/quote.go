package fund

import (
	"slices"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Quote says what would happen to one sale of an operation if it were sent now.
type Quote struct {
	// State is Completed, Recorded, or Failed with Faults. The pointers of the faults start
	// with /Parameters. It is about this sale alone: an operation is carried out only if no
	// sale is Failed.
	State  operation.State
	Faults []fault.Fault
	// Price is the current price of the fund. It is the zero value if there is none.
	Price Price
	// Proceeds are those of the sale at Price. They are the zero value if there is no Price,
	// or if they do not fit into 64 bits of minor units.
	Proceeds money.Amount
	// Estimate says that the sale is for a later day: Price and Proceeds are those of today.
	Estimate bool
}

// NewQuoteRequest checks an array of Parameters as NewRequest does. A PriceID may be absent or
// 0: Book.Quote then takes the current price of the fund.
func NewQuoteRequest(parameters []SaleFields, limit int, today day.Day) Request {
	return newRequest(parameters, limit, today, true)
}

// NewQuotedSale checks all fields as NewSale does, but the PriceID may be absent or 0. Such a
// sale can be quoted, but not sold.
func NewQuotedSale(f SaleFields) (Sale, []fault.Fault) {
	t, _, faults := check(f, true)
	return fault.Either(Sale{t}, faults)
}

// QuoteSet lists what Quote reads. No row needs to be locked.
func QuoteSet(o *Operation, today day.Day) LockSet {
	set := NewLockSet([]*Operation{o}, today)
	for i := range o.Sales {
		set.PriceDays = append(set.PriceDays, PriceDay{o.Sales[i].terms.Holding.Fund, today}) // also for a later day
	}
	set.PriceDays = sortedOnce(set.PriceDays, PriceDay.Compare)
	set.PriceIDs = slices.DeleteFunc(set.PriceIDs, func(id int64) bool { return id == 0 })
	return set
}

// Quote settles the operation as Settle does, and returns what would happen to each sale, in
// order. The book must be loaded with the QuoteSet of the operation. It cannot be used
// afterwards: nothing of it is ever stored.
func (b *Book) Quote(o *Operation, now time.Time, today day.Day) []Quote {
	quotes := make([]Quote, len(o.Sales))
	for i := range o.Sales {
		terms := &o.Sales[i].terms
		current, found := b.current[PriceDay{terms.Holding.Fund, today}]
		if !found {
			continue
		}
		if terms.PriceID == 0 {
			terms.PriceID = current.ID
			b.LoadPrice(current)
		}
		quotes[i].Price = current
		if proceeds, inRange := Proceeds(terms.Units, current.PerUnit, current.Currency); inRange {
			quotes[i].Proceeds = proceeds
		}
	}
	b.Settle([]*Operation{o}, now, today)
	bySale := o.faultsBySale()
	for i := range quotes {
		q := &quotes[i]
		q.Estimate = o.Sales[i].terms.dayOr(today).After(today)
		q.Faults = bySale[i]
		switch {
		case len(q.Faults) > 0:
			q.State = operation.Failed
		case q.Estimate:
			q.State = operation.Recorded
		default:
			q.State = operation.Completed
		}
	}
	return quotes
}
