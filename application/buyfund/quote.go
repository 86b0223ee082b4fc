package buyfund

import (
	"context"
	"slices"

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
	for attempt := 1; ; attempt++ {
		quotes, o, err := b.quote(ctx, caller, header, parameters)
		if err != nil {
			return nil, err
		}
		if !b.options.Rules.haveChanged(o) {
			return quotes, nil
		}
		if attempt == rulesAttempts {
			return nil, fund.ErrRulesChanged
		}
	}
}

// quote returns the quotes, and the operation that was decided for them.
func (b *Buyer) quote(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []fund.SaleFields) ([]fund.Quote, *fund.Operation, error) {
	rules, now := b.options.Rules.Known(), b.options.Now()
	request := fund.NewQuoteRequest(parameters, b.options.ParametersLimit, rules.Today(now))
	request.NameDay(rules.In())
	faults := slices.Concat(header.Faults(), request.Faults, request.DayFaults)
	if len(faults) > 0 {
		return nil, nil, fault.New(fault.Invalid, "The request breaks a rule.", faults...)
	}
	if _, err := caller.Complete(header); err != nil {
		return nil, nil, err
	}
	current, err := b.options.Rules.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	if current.Today(now) != request.Today { // the bank is in another time zone than before
		return b.quote(ctx, caller, header, parameters)
	}
	o := &fund.Operation{Sales: request.Sales, Today: request.Today, Zone: current.In(), Rules: current.text}
	o.Closed = current.Calendar.Refusal(request.Day(), request.Today, current.ClockAt(now))
	book, err := b.books.Snapshot(ctx, fund.QuoteSet(o, request.Today))
	if err != nil {
		return nil, nil, err
	}
	return book.Quote(o, now, request.Today), o, nil
}

// QuoteFaults returns the rules that a request breaks, as Quote would report them.
func (b *Buyer) QuoteFaults(header operation.Header, parameters []fund.SaleFields) []fault.Fault {
	header.CallerID = ""
	rules := b.options.Rules.Known()
	r := fund.NewQuoteRequest(parameters, b.options.ParametersLimit, rules.Today(b.options.Now()))
	r.NameDay(rules.In())
	return slices.Concat(header.Faults(), r.Faults, r.DayFaults)
}
