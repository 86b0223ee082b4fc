package command

import "github.com/spf13/cobra"

func (p program) settleCommand() *cobra.Command {
	return addActor(p.command(&cobra.Command{
		Use:   "settle",
		Short: "Settle the forward-dated sales that are due now",
		Long: `Settles every forward-dated sale that is due, then exits. serve does the same automatically while
settlement.enabled is true. Any number of services may run at the same time: no sale is settled
twice.`,
		Example: "  bankingapi settle",
	}, func(c *call) error {
		app, err := c.book()
		if err != nil {
			return err
		}
		settled, err := app.Settle(c.Context())
		c.print("%d completed, %d failed\n", settled.Completed, settled.Failed)
		return err
	}))
}
