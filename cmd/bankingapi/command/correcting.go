package command

import (
	"context"
	"fmt"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// addActor adds the flag --as to a command that changes something, and puts who
// runs it into the context.
func addActor(cmd *cobra.Command) *cobra.Command {
	name := cmd.Flags().String("as", "", "your `NAME`, for the audit (default: the system user)")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		actor := whoRuns(*name)
		if reason := cmd.Flag("reason"); reason != nil {
			if actor.Reason = reason.Value.String(); actor.Reason == "" {
				return wrongUsef("--reason is missing: say why, for the audit")
			}
		}
		cmd.SetContext(audit.By(cmd.Context(), actor))
		return run(cmd, args)
	}
	return cmd
}

// whoRuns is the person at the terminal. An empty name stands for the system user.
func whoRuns(name string) audit.Who {
	actor := audit.Who{Actor: name, SystemUser: systemUser()}
	actor.Origin, _ = os.Hostname()
	if name == "" {
		actor.Actor = actor.SystemUser
	}
	return actor
}

func systemUser() string {
	if current, err := user.Current(); err == nil {
		return current.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid()) // a container without /etc/passwd
}

func (p program) salesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sales COMMAND",
		Short: "Cancel or reverse a sale",
		Long: `Corrects one operation of BuyFundFromCustomer, with all its sales. ID is the Operation-Id of its
answer: 'bankingapi export sales' and 'bankingapi show' have it. Every correction is kept with its
reason and who made it: see 'bankingapi export audit'.`,
		Example: `  bankingapi sales cancel 019b1c2d-0000-7000-8000-000000000001 --reason "the customer called"
  bankingapi sales reverse 019b1c2d-0000-7000-8000-000000000001 --reason "sold by mistake" --as ayse`,
		Args:        cobra.ArbitraryArgs,
		Annotations: mentionSettings(),
		RunE:        chooseCommand,
	}
	cmd.AddCommand(
		p.saleCommand("cancel ID", "Cancel a recorded sale before its day", `Cancels an operation that is recorded for a later day. Its sales end as failed, with the code
cancelled. A repeat of its CallerId is answered so. From its day on it can only be reversed.`,
			func(ctx context.Context, c *backoffice.Corrector, id operation.ID) (string, error) {
				return "Cancelled.", c.Cancel(ctx, id)
			}),
		p.saleCommand("reverse ID", "Undo a completed sale, once", `Returns the units of a completed operation to its holdings and takes its proceeds back from its
accounts, with postings of kind reversal. It is refused if an account has less than the proceeds:
nothing goes below zero. The sales stay completed.`,
			func(ctx context.Context, c *backoffice.Corrector, id operation.ID) (string, error) {
				reversal, err := c.Reverse(ctx, id)
				return "Reversed by " + reversal.String() + ".", err
			}),
	)
	return cmd
}

// withCorrector opens the book to correct it.
func (p program) withCorrector(cmd *cobra.Command, do func(*backoffice.Corrector) error) error {
	return p.withOffice(cmd, func(office *backoffice.Office) error {
		return do(office.Corrector)
	})
}

func parseID(text string) (operation.ID, error) {
	id, err := operation.ParseID(text)
	if err != nil {
		return id, fmt.Errorf("%q is no ID of an operation", text)
	}
	return id, nil
}

func (p program) saleCommand(use, short, long string, do func(context.Context, *backoffice.Corrector, operation.ID) (string, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long,
		Example:     "  bankingapi sales " + use[:len(use)-len("ID")] + `019b1c2d-0000-7000-8000-000000000001 --reason "complaint 17"`,
		Args:        named("ID"),
		Annotations: mentionSettings(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withCorrector(cmd, func(c *backoffice.Corrector) error {
				id, err := parseID(args[0])
				if err != nil {
					return err
				}
				done, err := do(cmd.Context(), c, id)
				if err != nil {
					return fmt.Errorf("operation %s: %w", args[0], fault.Explain(err))
				}
				fmt.Fprintln(cmd.ErrOrStderr(), done)
				return nil
			})
		},
	}
	cmd.Flags().String("reason", "", "why, in your `words`: required")
	return addActor(cmd)
}

func (p program) adjustCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "adjust COMMAND",
		Short: "Correct a holding or an account by a difference",
		Long: `Adds to a holding or an account that exists, or takes from it if the number begins with a minus.
Sales may continue: a difference never undoes them. Nothing goes below zero.`,
		Example: `  bankingapi adjust holding --customer 1001 --fund AFA --holder "Demo Portfoy" --by -1.5 --reason "counted twice"
  bankingapi adjust account --branch 1 --customer 1001 --suffix 1 --currency TRY --by 12.50 --reason "fee returned"`,
		Args:        cobra.ArbitraryArgs,
		Annotations: mentionSettings(),
		RunE:        chooseCommand,
	}
	var branch, customer, suffix int64
	var code, holder, currency, by string
	adjust := func(use, short, example string, required []string, do func(context.Context, *backoffice.Corrector) (operation.ID, error)) *cobra.Command {
		sub := &cobra.Command{
			Use: use, Short: short, Example: example, Args: named(), Annotations: mentionSettings(),
			RunE: func(cmd *cobra.Command, _ []string) error {
				for _, name := range append(required, "by") {
					if !cmd.Flags().Changed(name) {
						return wrongUsef("--%s is missing", name)
					}
				}
				return p.withCorrector(cmd, func(c *backoffice.Corrector) error {
					id, err := do(cmd.Context(), c)
					if err != nil {
						return err
					}
					fmt.Fprintf(cmd.ErrOrStderr(), "Adjusted by %s: %s.\n", by, id)
					return nil
				})
			},
		}
		sub.Flags().Int64Var(&customer, "customer", 0, "customer `number`")
		sub.Flags().StringVar(&by, "by", "", "difference, like 12.5 or -12.5")
		sub.Flags().String("reason", "", "why, in your `words`: required")
		return addActor(sub)
	}
	holding := adjust("holding", "Correct the units of a holding", `  bankingapi adjust holding --customer 1001 --fund AFA --holder "Demo Portfoy" --by -1.5 --reason "counted twice"`,
		[]string{"customer", "fund", "holder"},
		func(ctx context.Context, c *backoffice.Corrector) (id operation.ID, err error) {
			h, faults := fund.NewHolding(fund.HoldingFields{CustomerNo: decimal.Int(customer), IMKBCode: code, HolderCorporationName: holder, Units: decimal.Int(0)})
			if len(faults) > 0 {
				return id, fmt.Errorf("%s: %s", faults[0].Pointer[1:], faults[0].Detail)
			}
			number, err := decimal.Parse(by)
			if err != nil {
				return id, fmt.Errorf("%q is no number of units", by)
			}
			units, err := fund.ParseUnits(number)
			if err != nil || units == 0 {
				return id, fmt.Errorf("%q is no number of units: it must not be 0 and may have 6 decimals", by)
			}
			return c.AdjustHolding(ctx, h.Key, units)
		})
	holding.Flags().StringVar(&code, "fund", "", "`IMKBCode` of the fund")
	holding.Flags().StringVar(&holder, "holder", "", "`HolderCorporationName`")
	account := adjust("account", "Correct the balance of an account", `  bankingapi adjust account --branch 1 --customer 1001 --suffix 1 --currency TRY --by 12.50 --reason "fee returned"`,
		[]string{"branch", "customer", "suffix", "currency"},
		func(ctx context.Context, c *backoffice.Corrector) (id operation.ID, err error) {
			a, faults := fund.NewAccount(fund.AccountFields{
				BranchCode: decimal.Int(branch), CustomerNo: decimal.Int(customer), AccountSuffix: decimal.Int(suffix), CurrencyCode: currency,
			}, decimal.Int(0))
			if len(faults) > 0 {
				return id, fmt.Errorf("%s: %s", faults[0].Pointer[1:], faults[0].Detail)
			}
			number, err := decimal.Parse(by)
			if err != nil {
				return id, fmt.Errorf("%q is no amount", by)
			}
			amount, err := money.FromDecimal(number, a.Key.Currency)
			if err != nil || amount.Minor() == 0 {
				return id, fmt.Errorf("%q is no amount of %s: it must not be 0 and may have %d decimals", by, currency, a.Key.Currency.Decimals())
			}
			return c.AdjustAccount(ctx, a.Key, amount)
		})
	account.Flags().Int64Var(&branch, "branch", 0, "`BranchCode`")
	account.Flags().Int64Var(&suffix, "suffix", 0, "`AccountSuffix`")
	account.Flags().StringVar(&currency, "currency", "", "`CurrencyCode`")
	cmd.AddCommand(holding, account)
	return cmd
}
