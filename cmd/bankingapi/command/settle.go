package command

import (
	"fmt"

	"github.com/spf13/cobra"
)

// someFailed is the error of a command that did its work, and that found sales which
// fail. Its exit status is 3.
type someFailed int

func (n someFailed) Error() string {
	return fmt.Sprintf("%d failed: bankingapi export sales --state failed lists them", int(n))
}

func (p program) settleCommand() *cobra.Command {
	return addActor(p.command(&cobra.Command{
		Use:   "settle",
		Short: "Settle the forward-dated sales that are due now",
		Long: `Settles every forward-dated sale that is due, then exits. serve does the same automatically while
settlement.enabled is true. Any number of services may run at the same time: no sale is settled
twice.

With settlement.price of-the-day a sale waits until its fund has a price of its day. settle says how
many wait, and for which funds and days.

The exit status is 3 if an operation failed, because the bank refused one of its sales on their day.`,
		Example: "  bankingapi settle",
	}, func(c *call) error {
		app, err := c.book()
		if err != nil {
			return err
		}
		settled, err := app.Settle(c.Context())
		c.print("%d completed, %d failed\n", settled.Completed, settled.Failed)
		if err != nil {
			return err
		}
		due, err := app.CountDue(c.Context())
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
	}))
}
