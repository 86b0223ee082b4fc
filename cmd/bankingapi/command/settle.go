package command

import (
	"cmp"
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

func (p program) settleCommand() *cobra.Command {
	var dryRun bool
	var until string
	cmd := p.command(&cobra.Command{
		Use:   "settle",
		Short: "Settle the forward-dated sales that are due now",
		Long: `Settles every forward-dated sale that is due, then exits. serve does the same automatically while
settlement.enabled is true. Any number of services may run at the same time: no sale is settled
twice.

With settlement.price of-the-day a sale waits until its fund has a price of its day. settle says how
many wait, and for which funds and days.

--dry-run says for each due sale what would happen now, and changes nothing. With --day it takes the
sales that are due on that day, at the prices that are known now.

The exit status is 3 if an operation failed, or would fail, because the bank refuses one of its sales.`,
		Example: "  bankingapi settle\n  bankingapi settle --dry-run --day 2026-12-04",
	}, func(c *call) error {
		if dryRun {
			return forecast(c, until)
		}
		if until != "" {
			return wrongUsef("--day is for --dry-run")
		}
		app, err := c.book()
		if err != nil {
			return err
		}
		settled, err := app.Settle(c.Context())
		c.print("%d completed, %d failed\n", settled.Completed, settled.Failed)
		if err != nil {
			return err
		}
		due, err := app.Buyer().CountDue(c.Context())
		if err != nil {
			return err
		}
		for _, of := range due.ForPrice {
			c.print("%d wait for a price of %s (%s), %s\n", of.Sales, of.Fund.IMKBCode, of.Fund.HolderCorporationName, of.Day)
		}
		if settled.Failed > 0 {
			return someFailed(settled.Failed)
		}
		return nil
	})
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would happen to each due sale, and change nothing")
	cmd.Flags().StringVar(&until, "day", "", "the `day` of --dry-run: take the sales that are due until then")
	return addActor(cmd)
}

// forecast prints a line for each due sale, and the numbers at the end.
func forecast(c *call, until string) error {
	app, err := c.book()
	if err != nil {
		return err
	}
	if _, err := app.Backoffice(c.Context()); err != nil {
		return err
	}
	on := app.Buyer().DueUntil()
	if until != "" {
		if on, err = day.Parse(until); err != nil {
			return wrongUsef("--day must be a day like 2026-12-04")
		}
	}
	var completed, failed, waiting int
	for s, err := range app.Buyer().Forecast(c.Context(), on) {
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
		c.print("%s %d %s %s\n", s.OperationID, s.Index, s.Terms.SelectedDay, what)
	}
	c.print("%d would complete, %d would fail, %d wait for a price\n", completed, failed, waiting)
	if failed > 0 {
		return someFailed(failed)
	}
	return nil
}
