package command

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

// someFailed is the error of a command that did its work, and that found sales which
// fail. Its exit status is 3.
type someFailed int

func (n someFailed) Error() string {
	return fmt.Sprintf("the bank refuses %d", int(n))
}

type settleOptions struct {
	dryRun bool
	until  string
	day    day.Day
}

func settleCommand(p program) *cobra.Command {
	var o settleOptions
	cmd := p.onBook(described("settle"), func(*call) (err error) {
		if o.until != "" && !o.dryRun {
			return wrongUsef("--day is for --dry-run")
		}
		o.day, err = theDay("day", o.until)
		return err
	}, o.run)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "say what would happen to each due sale, and change nothing")
	cmd.Flags().StringVar(&o.until, "day", "", "the `day` of --dry-run: take the sales that are due until then")
	return addActor(addFormat(cmd))
}

func (o *settleOptions) run(c *call) error {
	if o.dryRun {
		return o.forecast(c)
	}
	settled, err := c.app.Settle(c.Context())
	waiting := table{name: "Waiting", columns: []string{"Sales", "Fund", "Holder", "Day"}, line: "%s wait for a price of %s (%s), %s\n"}
	if err == nil {
		due, failed := c.app.Buyer().CountDue(c.Context())
		for _, of := range due.ForPrice {
			waiting.add(of.Sales, raw(of.Fund.IMKBCode), raw(of.Fund.HolderCorporationName), of.Day)
		}
		err = failed
	}
	printed := c.writeLine(fmt.Sprintf("%d completed, %d failed", settled.Completed, settled.Failed), document{
		fields: []field{{"Completed", settled.Completed}, {"Failed", settled.Failed}}, tables: []table{waiting},
	})
	if err := errors.Join(err, printed); err != nil {
		return err
	}
	return failures(settled.Failed)
}

// failures is the error of sales that fail, if there are any.
func failures(n int) error {
	if n > 0 {
		return someFailed(n)
	}
	return nil
}

// forecast prints a line for each due sale, and the numbers at the end.
func (o *settleOptions) forecast(c *call) error {
	on := cmp.Or(o.day, c.app.Buyer().DueUntil())
	var completed, failed, waiting int
	for s, err := range c.app.Buyer().Forecast(c.Context(), on) {
		if err != nil {
			return err
		}
		var what string
		switch s.State {
		case operation.Completed:
			completed++
			what = fmt.Sprintf("would complete at PriceID %d: %s %s", s.PriceID, s.Proceeds, s.Proceeds.Currency().Code())
		case operation.Failed:
			failed++
			what = "would fail: " + cmp.Or(s.Refusal, "another sale of the operation fails")
		default:
			waiting++
			what = fmt.Sprintf("waits for a price of %s (%s)", s.Terms.Holding.IMKBCode, s.Terms.Holding.HolderCorporationName)
		}
		err := c.writeLine(fmt.Sprintf("%s %d %s %s", s.OperationID, s.Index, s.Terms.SelectedDay, what), document{fields: []field{
			{"OperationId", s.OperationID}, {"Position", s.Index}, {"Day", s.Terms.SelectedDay}, {"State", s.State}, {"PriceID", s.PriceID},
			{"Proceeds", s.Proceeds}, {"CurrencyCode", s.Terms.Account.Currency.Code()}, {"Refusal", s.Refusal},
		}})
		if err != nil {
			return err
		}
	}
	err := c.writeLine(fmt.Sprintf("%d would complete, %d would fail, %d wait for a price", completed, failed, waiting),
		document{fields: []field{{"Completed", completed}, {"Failed", failed}, {"Waiting", waiting}}})
	if err != nil {
		return err
	}
	return failures(failed)
}
