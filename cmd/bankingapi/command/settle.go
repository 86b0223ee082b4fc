package command

import (
	"cmp"
	"errors"
	"slices"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// someFailed is the error of a command that succeeded but found sales that fail. Its exit
// status is 3.
type someFailed string

func (counted someFailed) Error() string { return "the bank refuses " + string(counted) }

// readForecast returns the day of a forecast, or no day.
func readForecast(c *call) (until day.Day, err error) {
	if c.text("day") != "" && !c.is("dry-run") {
		return until, wrongUsef("--day is for --dry-run")
	}
	return c.day("day", "2026-12-04")
}

func settle(c *call, until day.Day) error {
	if c.is("dry-run") {
		return forecast(c, until)
	}
	settled, err := c.app.Settle(c.Context())
	var due buyfund.Waits
	if err == nil {
		due, err = c.app.Buyer().CountDue(c.Context())
	}
	return endSettling(c, "settled", "operation", settled, due.ForPrice, err)
}

// forecast prints what would happen to each due sale, and then the totals.
func forecast(c *call, until day.Day) error {
	var found buyfund.Settlement
	var waiting []buyfund.DueFund
	for s, err := range c.app.Buyer().Forecast(c.Context(), cmp.Or(until, c.app.Buyer().DueUntil())) {
		if err != nil {
			return err
		}
		of := priceDay(&s)
		switch s.State {
		case operation.Completed:
			found.Completed++
		case operation.Failed:
			found.Failed++
		default:
			at := slices.IndexFunc(waiting, func(w buyfund.DueFund) bool { return w.PriceDay == of })
			if at < 0 {
				at, waiting = len(waiting), append(waiting, buyfund.DueFund{PriceDay: of})
			}
			waiting[at].Sales++
		}
		sale := waitingFund(of)
		sale["OperationId"], sale["Position"], sale["State"], sale["PriceID"] = s.ID.String(), s.Index, s.State.String(), s.PriceID
		sale["Proceeds"], sale["CurrencyCode"], sale["Refusal"] = s.Proceeds.String(), s.Terms.Account.Currency.Code(), s.Refusal
		if err := c.write("due sale", sale); err != nil {
			return err
		}
	}
	return endSettling(c, "due sales", "sale", found, waiting, nil)
}

// endSettling prints the totals. counted names what is counted: an operation fails as a whole.
func endSettling(c *call, screen, counted string, n buyfund.Settlement, forPrice []buyfund.DueFund, err error) error {
	waiting := make([]object, len(forPrice))
	for i, of := range forPrice {
		waiting[i] = waitingFund(of.PriceDay)
		waiting[i]["Sales"] = int(of.Sales)
	}
	err = errors.Join(err, c.write(screen, object{"Completed": n.Completed, "Failed": n.Failed, "Waiting": waiting}))
	if err == nil && n.Failed > 0 {
		return someFailed(backoffice.Plural(n.Failed, counted))
	}
	return err
}

// priceDay returns the price that a sale for a later day may need.
func priceDay(s *fund.SaleEntry) fund.PriceDay {
	return fund.PriceDay{Fund: s.Terms.Holding.Fund, Day: s.Terms.SelectedDay}
}

func waitingFund(of fund.PriceDay) object {
	return object{"Fund": of.Fund.IMKBCode, "Holder": of.Fund.HolderCorporationName, "Day": of.Day.String()}
}
