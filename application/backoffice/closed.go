package backoffice

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

// ClosedWait is a closed day for which sales wait. The calendar and the closed days of the week
// count when a request is accepted, so they settle on that day if its price is there.
type ClosedWait struct {
	ClosedDay fund.ClosedDay
	Sales     int64
}

// ClosedWaiting returns those of these days on which the bank is closed, by its calendar or
// because it always is on that day of the week.
func (o *Office) ClosedWaiting(ctx context.Context, days []DueDay) (all []ClosedWait, err error) {
	if len(days) == 0 {
		return nil, nil
	}
	rules, err := o.RuleBook.Rules(ctx)
	if err != nil && !errors.Is(err, ErrNoRules) {
		return nil, err
	}
	closed := make(map[day.Day]fund.ClosedDay)
	for of, err := range o.Reader.ClosedDays(ctx) {
		if err != nil {
			return nil, err
		}
		closed[of.Day] = of
	}
	for _, waiting := range days {
		of, isClosed := closed[waiting.Day]
		weekday := waiting.Day.Weekday()
		if !isClosed && rules.Weekdays[weekday] {
			of = fund.ClosedDay{Day: waiting.Day, Reason: "every " + weekday.String()}
			isClosed = true
		}
		if isClosed {
			all = append(all, ClosedWait{of, waiting.Sales})
		}
	}
	return all, nil
}

// ClosedWarning says how many sales wait for days on which the bank is closed, after a calendar
// was imported or the rules were changed. It is empty if no sale does.
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
		closed = append(closed, fmt.Sprintf("%s (%d)", of.ClosedDay.Day, of.Sales))
	}
	return "Sales wait for days on which the bank is closed: " + strings.Join(closed, ", ") + ". They settle on their day if its price is there. Otherwise cancel them, or import a price of that day.", nil
}
