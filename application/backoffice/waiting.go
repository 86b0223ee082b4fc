package backoffice

import (
	"context"

	"bankingapi/domain/day"
)

// WaitingSales are the recorded sales of a subscription.
type WaitingSales struct {
	Sales       int64
	First, Last day.Day // no days without a sale
}

// WaitingSalesOf counts the sales of a subscription that wait for their day. They settle also if
// the subscription is suspended or cancelled.
func (o *Office) WaitingSalesOf(ctx context.Context, subscription string) (w WaitingSales, err error) {
	if subscription == "" { // a DueQuery without a name selects those of all subscriptions
		return w, nil
	}
	days, err := o.Lookups.DueDays(ctx, DueQuery{Subscription: subscription})
	if err != nil || len(days) == 0 {
		return w, err
	}
	for _, of := range days {
		w.Sales += of.Sales
	}
	w.First = days[0].Day
	w.Last = days[len(days)-1].Day
	return w, nil
}
