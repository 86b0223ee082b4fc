package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bankingapi/application/backoffice"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

func salesCommand(p program) *cobra.Command {
	return group(described("sales"),
		saleCommand(p, "sales cancel", func(ctx context.Context, c *backoffice.Corrector, id operation.ID) (string, error) {
			return "Cancelled.", c.Cancel(ctx, id)
		}),
		saleCommand(p, "sales reverse", func(ctx context.Context, c *backoffice.Corrector, id operation.ID) (string, error) {
			reversal, err := c.Reverse(ctx, id)
			return "Reversed by " + reversal.String() + ".", err
		}),
	)
}

func parseID(text string) (operation.ID, error) {
	id, err := operation.ParseID(text)
	if err != nil {
		return id, wrongUsef("%q is no ID of an operation", text)
	}
	return id, nil
}

func saleCommand(p program, path string, do func(context.Context, *backoffice.Corrector, operation.ID) (string, error)) *cobra.Command {
	return addReason(p.onBook(described(path), func(c *call) error {
		_, err := parseID(c.args[0])
		return err
	}, func(c *call) error {
		id, _ := parseID(c.args[0])
		done, err := do(c.Context(), c.office.Corrector, id)
		if err != nil {
			return fmt.Errorf("operation %s: %w", c.args[0], fault.Explain(err))
		}
		c.tell("%s\n", done)
		return nil
	}))
}

// adjustOptions name a holding or an account, and the difference.
type adjustOptions struct {
	branch, customer, suffix   int64
	code, holder, currency, by string
}

func adjustCommand(p program) *cobra.Command {
	var o adjustOptions
	holding := o.command(p, "adjust holding", o.holding)
	holding.Flags().StringVar(&o.code, "fund", "", "`IMKBCode` of the fund")
	holding.Flags().StringVar(&o.holder, "holder", "", "`HolderCorporationName`")
	account := o.command(p, "adjust account", o.account)
	account.Flags().Int64Var(&o.branch, "branch", 0, "`BranchCode`")
	account.Flags().Int64Var(&o.suffix, "suffix", 0, "`AccountSuffix`")
	account.Flags().StringVar(&o.currency, "currency", "", "`CurrencyCode`")
	return group(described("adjust"), needs(holding, "customer", "fund", "holder", "by"), needs(account, "branch", "customer", "suffix", "currency", "by"))
}

// command makes the command that adjusts one kind of position.
func (o *adjustOptions) command(p program, path string, do func(context.Context, *backoffice.Corrector) (operation.ID, error)) *cobra.Command {
	cmd := p.onBook(described(path), nil, func(c *call) error {
		id, err := do(c.Context(), c.office.Corrector)
		if err == nil {
			c.tell("Adjusted by %s: %s.\n", o.by, id)
		}
		return err
	})
	cmd.Flags().Int64Var(&o.customer, "customer", 0, "customer `number`")
	cmd.Flags().StringVar(&o.by, "by", "", "difference, like 12.5 or -12.5")
	return addReason(cmd)
}

func (o *adjustOptions) holding(ctx context.Context, c *backoffice.Corrector) (id operation.ID, err error) {
	h, faults := fund.NewHolding(fund.HoldingFields{CustomerNo: decimal.Int(o.customer), IMKBCode: o.code, HolderCorporationName: o.holder, Units: decimal.Int(0)})
	if len(faults) > 0 {
		return id, fmt.Errorf("%s: %s", faults[0].Pointer[1:], faults[0].Detail)
	}
	var units fund.Units
	number, err := decimal.Parse(o.by)
	if err == nil {
		units, err = fund.ParseUnits(number)
	}
	if err != nil || units == 0 {
		return id, fmt.Errorf("%q is no number of units: it must not be 0 and may have 6 decimals", o.by)
	}
	return c.AdjustHolding(ctx, h.Key, units)
}

func (o *adjustOptions) account(ctx context.Context, c *backoffice.Corrector) (id operation.ID, err error) {
	a, faults := fund.NewAccount(fund.AccountFields{
		BranchCode: decimal.Int(o.branch), CustomerNo: decimal.Int(o.customer), AccountSuffix: decimal.Int(o.suffix), CurrencyCode: o.currency,
	}, decimal.Int(0))
	if len(faults) > 0 {
		return id, fmt.Errorf("%s: %s", faults[0].Pointer[1:], faults[0].Detail)
	}
	var amount money.Amount
	number, err := decimal.Parse(o.by)
	if err == nil {
		amount, err = money.FromDecimal(number, a.Key.Currency)
	}
	if err != nil || amount.Minor() == 0 {
		return id, fmt.Errorf("%q is no amount of %s: it must not be 0 and may have %d decimals", o.by, o.currency, a.Key.Currency.Decimals())
	}
	return c.AdjustAccount(ctx, a.Key, amount)
}
