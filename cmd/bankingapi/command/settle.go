package command

import (
	"cmp"
	"encoding/json"
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

type settleCommand struct{ until day.Day }

func (o *settleCommand) flags(f *flags) {
	f.as()
	f.json()
	f.dryRun("say what would happen to each due sale, and change nothing")
	f.set.Var(&dayValue{&o.until, "2026-12-04"}, "day", "the `day` of --dry-run: take the sales that are due until then")
}

func (o *settleCommand) check(c *call) error {
	if !o.until.IsNone() && !c.dryRun {
		return wrongUsef("--day is for --dry-run")
	}
	return nil
}

func (o *settleCommand) run(c *call) error {
	if c.dryRun {
		return forecast(c, o.until)
	}
	done, forPrice, err := settleDue(c)
	return endSettling(c, "settled", "operation", settled{Completed: done.Completed, Failed: done.Failed}, forPrice, err)
}

// settleDue settles what is due, and counts the sales that still wait for a price.
func settleDue(c *call) (done buyfund.Settlement, forPrice []buyfund.DueFund, err error) {
	done, err = c.app.Settle(c.cmd.Context())
	if err != nil {
		return done, nil, err
	}
	due, err := c.app.Buyer().CountDue(c.cmd.Context())
	return done, due.ForPrice, err
}

// forecast prints what would happen to each due sale, and then the totals.
func forecast(c *call, until day.Day) error {
	var found buyfund.Settlement
	var funds []buyfund.DueFund
	var others int64
	for s, err := range c.app.Buyer().Forecast(c.cmd.Context(), cmp.Or(until, c.app.Buyer().DueUntil())) {
		if err != nil {
			return err
		}
		of := s.PriceDay()
		switch {
		case s.State == operation.Completed:
			found.Completed++
		case s.State == operation.Failed:
			found.Failed++
		case s.IsPriced:
			others++
		default:
			at := slices.IndexFunc(funds, func(w buyfund.DueFund) bool { return w.PriceDay == of })
			if at < 0 {
				at, funds = len(funds), append(funds, buyfund.DueFund{PriceDay: of})
			}
			funds[at].Sales++
		}
		sale := dueSale{
			awaited: awaitedPrice(of), OperationID: s.ID.String(), Position: s.Index, State: s.State, PriceID: s.PriceID,
			CurrencyCode: s.Terms.Account.Currency.Code(), Refusal: s.Refusal,
			IsPriced: s.IsPriced,
		}
		if s.State == operation.Completed {
			sale.Proceeds = decimalNumber(s.Proceeds.String())
		}
		if err := c.write("due sale", sale); err != nil {
			return err
		}
	}
	return endSettling(c, "due sales", "sale", settled{Completed: found.Completed, Failed: found.Failed, others: others}, funds, nil)
}

// endSettling prints the totals. counted names what is counted: an operation fails as a whole.
func endSettling(c *call, screen, counted string, totals settled, forPrice []buyfund.DueFund, err error) error {
	totals.Waiting = make([]waiting, len(forPrice))
	for i, of := range forPrice {
		totals.Waiting[i] = waiting{awaitedPrice(of.PriceDay), of.Sales}
	}
	err = errors.Join(err, c.write(screen, totals))
	if err != nil {
		return err
	}
	if totals.Failed > 0 {
		return someFailed(backoffice.Plural(totals.Failed, counted))
	}
	return nil
}

// awaited is a price that is not in the book yet.
type awaited struct{ IMKBCode, HolderCorporationName, Day string }

func awaitedPrice(of fund.PriceDay) awaited {
	return awaited{of.Fund.IMKBCode, of.Fund.HolderCorporationName, of.Day.String()}
}

// dueSale is what would happen to a due sale.
type dueSale struct {
	awaited
	OperationID  string `json:"OperationId"`
	Position     int
	State        operation.State
	PriceID      int64
	Proceeds     *json.Number
	CurrencyCode string
	Refusal      string
	// IsPriced: it waits for the price of another sale of the operation, if it waits.
	IsPriced bool `json:"-"`
}

// settled is the result of settle, or of its dry run.
type settled struct {
	Completed, Failed int
	Waiting           []waiting
	others            int64 // sales that wait for the price of another sale of their operation
}

// Sum returns how many sales wait.
func (s settled) Sum() (sales int64) {
	for _, w := range s.Waiting {
		sales += w.Sales
	}
	return sales + s.others
}

type waiting struct {
	awaited
	Sales int64
}
