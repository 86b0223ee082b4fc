package buyfund

import (
	"context"
	"slices"

	"bankingapi/application/commit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// quoting is a request for quotes in the queue of quotes.
type quoting struct {
	operation *fund.Operation
	today     day.Day

	quotes []fund.Quote
	err    error
}

func (q *quoting) weight() int   { return len(q.operation.Sales) }
func (q *quoting) owner() string { return q.operation.Subscription }

// Quote says what Buy would do with the request now, with one fund.Quote for each record in
// order (the contract, section 11). It uses the same code as Buy, on the book as it is at one
// moment. It stores nothing, locks nothing and promises nothing: the next sale may see another
// book.
//
// A PriceID may be absent or 0: then the current price of the fund is taken. The CallerId is
// ignored. The errors are those of Buy, without fault.Conflict and fault.Indeterminate.
//
// Quotes have a queue of their own, with the same limits as that of the sales. A quote costs as
// much as a sale, and so many of them at the same time would keep other partners from being served.
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
	rules := b.options.Rules.Known()
	now := b.options.Now()
	request := fund.NewQuoteRequest(parameters, b.options.ParametersLimit, rules.Rules.Today(now))
	request.NameDay(rules.Rules.In())
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
	if current.Rules.Today(now) != request.Today { // the bank is in another time zone than before
		return b.quote(ctx, caller, header, parameters)
	}
	o := &fund.Operation{
		Envelope: operation.Envelope{Subscription: caller.Name},
		Sales:    request.Sales, Today: request.Today, Zone: current.Rules.In(), Rules: current.text,
	}
	o.Closed = current.Calendar.Refusal(request.Day(), request.Today, current.Rules.ClockAt(now))
	q := &quoting{operation: o, today: request.Today}
	err = b.quotes.Do(ctx, q)
	if fault.KindOf(err) == fault.Indeterminate { // a quote has no effect that could be unknown
		return nil, nil, fault.Wrap(fault.Unavailable, err, "The quotes were not ready in time.")
	}
	if err != nil {
		return nil, nil, err
	}
	return q.quotes, o, q.err
}

// quoteBatch makes the quotes of a batch, each on a book of its own. The quotes of the next batch
// need not wait for them.
func (b *Buyer) quoteBatch(ctx context.Context, batch []*quoting) error {
	next := commit.Next(ctx)
	if next != nil {
		next()
	}
	for _, q := range batch {
		book, err := b.books.Snapshot(ctx, fund.QuoteSet(q.operation, q.today))
		if fault.KindOf(err) == fault.Unavailable {
			return err // for the whole batch: the others would wait for the same storage
		}
		q.err = err
		if err != nil {
			continue
		}
		q.quotes = book.Quote(q.operation, b.options.Now(), q.today)
	}
	return nil
}

// QuoteBusy returns an error of kind fault.Busy if Quote would refuse a request of the caller now,
// because too much waits or the queue is closed. Otherwise it returns nil.
func (b *Buyer) QuoteBusy(caller *subscription.Subscription) error {
	if caller == nil { // Quote refuses it
		return nil
	}
	return b.quotes.Busy(caller.Name)
}

// QuoteFaults returns the rules that a request breaks, as Quote would report them.
func (b *Buyer) QuoteFaults(header operation.Header, parameters []fund.SaleFields) []fault.Fault {
	header.CallerID = ""
	rules := b.options.Rules.Known()
	r := fund.NewQuoteRequest(parameters, b.options.ParametersLimit, rules.Rules.Today(b.options.Now()))
	r.NameDay(rules.Rules.In())
	return slices.Concat(header.Faults(), r.Faults, r.DayFaults)
}
