package bootstrap

import (
	"context"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/telemetry"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

// What follows makes spans around the parts of a request's journey: the use
// case, the round trips of its batch, and their statements. Without an endpoint for
// traces none of it is in the way.

// traceEngine makes a span of every round trip to the database, named by its
// statements.
func (o *observer) traceEngine(e *storage.Engine) *storage.Engine {
	if o.tracing == nil {
		return e
	}
	traced := *e
	traced.Begin = func(ctx context.Context) (storage.Session, error) {
		session, err := e.Begin(ctx)
		return tracedSession{session, o.tracing}, err
	}
	return &traced
}

type tracedSession struct {
	storage.Session
	tracing *telemetry.Tracing
}

func (s tracedSession) Exchange(ctx context.Context, requests ...storage.Request) error {
	ctx, end := s.tracing.Span(ctx, "exchange")
	err := s.within(ctx, requests, s.Session.Exchange)
	end(err)
	return err
}

func (s tracedSession) Commit(ctx context.Context, requests ...storage.Request) error {
	ctx, end := s.tracing.Span(ctx, "commit")
	err := s.within(ctx, requests, s.Session.Commit)
	end(err)
	return err
}

// within also makes a span of each statement: they travel together, so they
// have one time.
func (s tracedSession) within(ctx context.Context, requests []storage.Request, send func(context.Context, ...storage.Request) error) error {
	ends := make([]func(error), len(requests))
	for i := range requests {
		_, ends[i] = s.tracing.Span(ctx, requests[i].Name)
	}
	err := send(ctx, requests...)
	for _, end := range ends {
		end(err)
	}
	return err
}

// traceAdder and traceBuyer make a span of every call of a use case.
func (o *observer) traceAdder(a httpapi.Adder) httpapi.Adder {
	if o.tracing == nil {
		return a
	}
	return tracedAdder{a, o.tracing}
}

func (o *observer) traceBuyer(b httpapi.Buyer) httpapi.Buyer {
	if o.tracing == nil {
		return b
	}
	return tracedBuyer{b, o.tracing}
}

type tracedAdder struct {
	httpapi.Adder
	tracing *telemetry.Tracing
}

func (a tracedAdder) Add(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []push.Fields) (operation.Outcome, error) {
	ctx, end := a.tracing.Span(ctx, "add notifications")
	outcome, err := a.Adder.Add(ctx, caller, header, parameters)
	end(err)
	return outcome, err
}

type tracedBuyer struct {
	httpapi.Buyer
	tracing *telemetry.Tracing
}

func (b tracedBuyer) Buy(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []fund.SaleFields) (operation.Outcome, error) {
	ctx, end := b.tracing.Span(ctx, "buy fund")
	outcome, err := b.Buyer.Buy(ctx, caller, header, parameters)
	end(err)
	return outcome, err
}
