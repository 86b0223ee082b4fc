package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

func (p program) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Prove the book",
		Long: `Proves that every balance and holding equals its opening plus its postings, that units and money
sum to zero, and that every completed sale has its postings. Prints what does not hold, one line
each, with exit status 1. It may run while sales go on.`,
		Example:     "  bankingapi verify",
		Args:        named(),
		Annotations: mentionSettings(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withApp(cmd, func(app *bootstrap.App) error {
				work := startProgress(cmd.ErrOrStderr(), "verifying", 0)
				defer work.stop()
				proof, err := app.Verify(cmd.Context(), bootstrap.VerifyWatch{
					Progress: work.rows.Store,
					Finding: func(finding string) {
						work.clear()
						fmt.Fprintln(cmd.OutOrStdout(), finding)
					},
				})
				if err != nil {
					return err
				}
				work.printf("Looked at %d holdings, %d accounts, %d sales and %d postings.\n",
					proof.Holdings, proof.Accounts, proof.Sales, proof.Postings)
				if proof.Findings > 0 {
					return fmt.Errorf("the book does not hold in %d places", proof.Findings)
				}
				work.printf("The book holds.\n")
				return nil
			})
		},
	}
}
