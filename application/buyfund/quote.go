package buyfund

import (
	"context"
	"slices"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// Quote says what Buy would do with the request now, with one fund.Quote for each record in
// order (the contract, section 11). It uses the same code as Buy, on the book as it is at one
// moment. It stores nothing, locks nothing and promises nothing: the next sale may see another
// book.
//
// A PriceID may be absent or 0: then the current price of the fund is taken. The CallerId is
// ignored. The errors are those of Buy, without fault.Conflict and fault.Indeterminate.
func (b *Buyer) Quote(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []fund.SaleFields) ([]fund.Quote, error) {
	header.CallerID = ""
	now := b.options.Now()
	request := fund.NewQuoteRequest(parameters, b.options.ParametersLimit, day.Of(now, b.options.Zone))
	faults := slices.Concat(header.Faults(), request.Faults, request.DayFaults)
	if len(faults) > 0 {
		return nil, fault.New(fault.Invalid, "The request breaks a rule.", faults...)
	}
	if _, err := caller.Complete(header); err != nil {
		return nil, err
	}
	o := &fund.Operation{Sales: request.Sales, Today: request.Today, Zone: b.options.Zone}
	if b.options.Calendar != nil {
		calendar, err := b.options.Calendar.Current(ctx)
		if err != nil {
			return nil, err
		}
		o.Closed = calendar.Refusal(request.Day(), request.Today, day.ClockOf(now, b.options.Zone))
	}
	book, err := b.books.Snapshot(ctx, fund.QuoteSet(o, request.Today))
	if err != nil {
		return nil, err
	}
	return book.Quote(o, now, request.Today), nil
}

// QuoteFaults returns the rules that a request breaks, as Quote would report them.
func (b *Buyer) QuoteFaults(header operation.Header, parameters []fund.SaleFields) []fault.Fault {
	header.CallerID = ""
	r := fund.NewQuoteRequest(parameters, b.options.ParametersLimit, day.Of(b.options.Now(), b.options.Zone))
	return slices.Concat(header.Faults(), r.Faults, r.DayFaults)
}
