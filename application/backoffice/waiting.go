package backoffice

import (
	"context"

	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

// WaitingSales are the recorded sales of a subscription.
type WaitingSales struct {
	Sales       int64
	First, Last day.Day // no days without a sale
}

// WaitingSalesOf counts the sales of a subscription that wait for their day. They settle also if
// the subscription is suspended or cancelled. It reads each of them.
func (o *Office) WaitingSalesOf(ctx context.Context, subscription string) (w WaitingSales, err error) {
	for s, err := range o.Reader.Sales(ctx, Query{Subscription: subscription, State: operation.Recorded}) {
		if err != nil {
			return w, err
		}
		on := s.Terms.SelectedDay
		if w.Sales == 0 || on.Before(w.First) {
			w.First = on
		}
		if w.Sales == 0 || w.Last.Before(on) {
			w.Last = on
		}
		w.Sales++
	}
	return w, nil
}
