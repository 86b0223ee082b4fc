package fund

import (
	"slices"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Forecast is a recorded sale as it would end if its day were today and the book stayed as it is.
type Forecast struct {
	// SaleEntry is Completed or Failed. It is Recorded if it would wait for the price of its day,
	// or for any price: then PriceID, PerUnit and Proceeds are those of the newest price, if there
	// is one.
	SaleEntry
	// Has is what the holding has before the sale.
	Has Units
	// IsPriced reports whether its fund has the price of its day. If the sale would wait all the same,
	// another sale of its operation has none.
	IsPriced bool
}

// IsEstimate reports whether the price of the sale's day is missing, and another one was used.
func (f *Forecast) IsEstimate() bool {
	return f.State == operation.Recorded && f.PriceID != 0 && !f.IsPriced
}

// Forecast settles due operations in their order as Settle does, and returns what would happen
// to each sale. A sale that lacks only the price of its day is tried with the newest one: it may
// fail for another reason, and it takes its units from the sales after it. The book must be
// loaded with the LockSet of the operations. It cannot be used afterwards: nothing of it is ever
// stored.
func (b *Book) Forecast(operations []*Operation, now time.Time, today day.Day) (all []Forecast) {
	for _, o := range operations {
		all = append(all, b.forecast(o, now, today)...)
	}
	return all
}

func (b *Book) forecast(o *Operation, now time.Time, today day.Day) []Forecast {
	all := make([]Forecast, len(o.Sales))
	for i := range o.Sales {
		held := b.holdings[o.Sales[i].terms.Holding]
		if held != nil {
			all[i].Has = held.now
		}
		all[i].IsPriced = b.isPriced(o.Sales[i])
	}
	waits := lacksPrice(b, o)
	first := len(b.changes.Settled)
	b.carryOut(o, now, today)
	hasNoPrice := isOnly(o.outcome.Faults, fault.PriceNotFound)
	for i := range all {
		s := b.changes.Settled[first+i]
		s.SettledAt = time.Time{}
		if s.State == operation.Completed && waits || hasNoPrice {
			s.State = operation.Recorded
			s.Refusal = ""
		}
		all[i].SaleEntry = s
	}
	return all
}

// isOnly reports whether all faults, at least one, have that code.
func isOnly(faults []fault.Fault, code string) bool {
	return len(faults) > 0 && !slices.ContainsFunc(faults, func(f fault.Fault) bool { return f.Code != code })
}
