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
	totals := settled{Completed: done.Completed, Failed: done.Failed, Waiting: waitingFor(forPrice)}
	return endSettling(c, "settled", totals, totals.Failed, "operation", err)
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
	var found wouldSettle
	var funds []buyfund.DueFund
	for s, err := range c.app.Buyer().Forecast(c.cmd.Context(), cmp.Or(until, c.app.Buyer().DueUntil())) {
		if err != nil {
			return err
		}
		of := s.PriceDay()
		switch {
		case s.State == operation.Completed:
			found.CompletedSales++
			found.Completed += first(s.Index)
		case s.State == operation.Failed:
			found.FailedSales++
			found.Failed += first(s.Index)
		case s.IsPriced:
			found.others++
		default:
			at := slices.IndexFunc(funds, func(w buyfund.DueFund) bool { return w.PriceDay == of })
			if at < 0 {
				at, funds = len(funds), append(funds, buyfund.DueFund{PriceDay: of})
			}
			funds[at].Sales++
		}
		sale := dueSale{
			awaited: awaitedPrice(of), OperationID: s.ID.String(), Position: s.Index, State: s.State, SettledPriceID: s.PriceID,
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
	found.Waiting = waitingFor(funds)
	return endSettling(c, "due sales", found, found.FailedSales, "sale", nil)
}

// first returns 1 for the first sale of an operation, which is settled as a whole, and else 0.
func first(index int) int {
	if index == 0 {
		return 1
	}
	return 0
}

// endSettling prints the totals. failed is how many failed of what counted names.
func endSettling(c *call, screen string, totals any, failed int, counted string, err error) error {
	err = errors.Join(err, c.write(screen, totals))
	if err != nil {
		return err
	}
	if failed > 0 {
		return someFailed(backoffice.Plural(failed, counted))
	}
	return nil
}

func waitingFor(prices []buyfund.DueFund) []waiting {
	list := make([]waiting, len(prices))
	for i, of := range prices {
		list[i] = waiting{awaitedPrice(of.PriceDay), of.Sales}
	}
	return list
}

// awaited is a price that is not in the book yet.
type awaited struct{ IMKBCode, HolderCorporationName, Day string }

func awaitedPrice(of fund.PriceDay) awaited {
	return awaited{of.Fund.IMKBCode, of.Fund.HolderCorporationName, of.Day.String()}
}

// dueSale is what would happen to a due sale.
type dueSale struct {
	awaited
	OperationID    string `json:"OperationId"`
	Position       int
	State          operation.State
	SettledPriceID int64
	Proceeds       *json.Number
	CurrencyCode   string
	Refusal        string
	// IsPriced: it waits for the price of another sale of the operation, if it waits.
	IsPriced bool `json:"-"`
}

// settled is the result of settle.
type settled struct {
	Completed, Failed int // operations
	Waiting           []waiting
}

// wouldSettle is the result of a dry run of settle.
type wouldSettle struct {
	settled
	CompletedSales, FailedSales int

	others int64 // sales that wait for the price of another sale of their operation
}

// Sum returns how many sales wait.
func (s wouldSettle) Sum() (sales int64) {
	for _, w := range s.Waiting {
		sales += w.Sales
	}
	return sales + s.others
}

type waiting struct {
	awaited
	Sales int64
}
