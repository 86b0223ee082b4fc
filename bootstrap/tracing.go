package bootstrap

import "context"

// traceFunc starts a span and returns the function that ends it.
type traceFunc = func(ctx context.Context, name string) (context.Context, func(error))

// trace is nil without an endpoint for traces, so that nothing is called.
func (o *observer) trace() traceFunc {
	if o.tracing == nil {
		return nil
	}
	return o.tracing.Span
}
