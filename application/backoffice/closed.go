package backoffice

import (
	"context"
	"fmt"
	"strings"

	"bankingapi/domain/fund"
)

// ClosedWait is a closed day for which sales wait. The calendar counts when a request is
// accepted, so they settle on that day if its price is there.
type ClosedWait struct {
	fund.ClosedDay
	Sales int64
}

// ClosedWaiting returns the closed days of the calendar among these days, in their order.
func (o *Office) ClosedWaiting(ctx context.Context, days []DueDay) (all []ClosedWait, err error) {
	if len(days) == 0 {
		return nil, nil
	}
	for closed, err := range o.Reader.ClosedDays(ctx) {
		if err != nil {
			return nil, err
		}
		for _, waiting := range days {
			if waiting.Day == closed.Day {
				all = append(all, ClosedWait{closed, waiting.Sales})
			}
		}
	}
	return all, nil
}

// ClosedWarning says how many sales wait for days on which the bank is closed, after a calendar
// was imported. It is empty if no sale does.
func (o *Office) ClosedWarning(ctx context.Context) (string, error) {
	days, err := o.Lookups.DueDays(ctx, DueQuery{})
	if err != nil {
		return "", err
	}
	waits, err := o.ClosedWaiting(ctx, days)
	if err != nil || len(waits) == 0 {
		return "", err
	}
	var closed []string
	for _, of := range waits {
		closed = append(closed, fmt.Sprintf("%s (%d)", of.Day, of.Sales))
	}
	return "Sales wait for days on which the bank is closed: " + strings.Join(closed, ", ") + ". They settle on their day if its price is there. Otherwise cancel them, or import a price of that day.", nil
}
