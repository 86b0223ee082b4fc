package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

func (p program) settleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "settle",
		Short: "Settle the forward-dated sales that are due now",
		Long: `Settles every forward-dated sale that is due, then exits. serve does the same automatically while
settlement.enabled is true. Any number of services may run at the same time: no sale is settled
twice.`,
		Example:     "  bankingapi settle",
		Args:        named(),
		Annotations: mentionSettings(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withApp(cmd, func(app *bootstrap.App) error {
				settled, err := app.Settle(cmd.Context())
				fmt.Fprintf(cmd.OutOrStdout(), "%d completed, %d failed\n", settled.Completed, settled.Failed)
				return err
			})
		},
	}
}
