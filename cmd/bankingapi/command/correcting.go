package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

func parseID(text string) (operation.ID, error) {
	id, err := operation.ParseID(text)
	if err != nil {
		return id, wrongUsef("%q is no ID of an operation", text)
	}
	return id, nil
}

// saleCorrection corrects the operation that the argument names, and says what it did.
type saleCorrection func(context.Context, *backoffice.Corrector, operation.ID) (string, error)

func (f saleCorrection) check(c *call) error {
	_, err := parseID(c.args[0])
	return err
}

func (f saleCorrection) run(c *call) error {
	id, _ := parseID(c.args[0])
	done, err := f(c.Context(), c.office.Corrector, id)
	if err != nil {
		return fmt.Errorf("operation %s: %w", c.args[0], fault.Explain(err))
	}
	c.tell("%s\n", done)
	return nil
}

func cancelSale(ctx context.Context, c *backoffice.Corrector, id operation.ID) (string, error) {
	return "Cancelled.", c.Cancel(ctx, id)
}

func reverseSale(ctx context.Context, c *backoffice.Corrector, id operation.ID) (string, error) {
	reversal, err := c.Reverse(ctx, id)
	return "Reversed by " + reversal.String() + ".", err
}

// adjustHoldingOptions name a holding, and the difference.
type adjustHoldingOptions struct {
	customer         int64
	code, holder, by string
}

func (o *adjustHoldingOptions) flags() flags {
	return flags{"customer": &o.customer, "fund": &o.code, "holder": &o.holder, "by": &o.by}
}

func (o *adjustHoldingOptions) run(c *call) error {
	h, faults := fund.NewHolding(fund.HoldingFields{CustomerNo: decimal.Int(o.customer), IMKBCode: o.code, HolderCorporationName: o.holder, Units: decimal.Int(0)})
	return c.adjust(faults, o.by, func(by decimal.Decimal) (id operation.ID, err error) {
		units, err := fund.ParseUnits(by)
		if err != nil || units == 0 {
			return id, fmt.Errorf("%q is no number of units: it must not be 0 and may have 6 decimals", o.by)
		}
		return c.office.Corrector.AdjustHolding(c.Context(), h.Key, units)
	})
}

// adjustAccountOptions name an account, and the difference.
type adjustAccountOptions struct {
	branch, customer, suffix int64
	currency, by             string
}

func (o *adjustAccountOptions) flags() flags {
	return flags{"branch": &o.branch, "customer": &o.customer, "suffix": &o.suffix, "currency": &o.currency, "by": &o.by}
}

func (o *adjustAccountOptions) run(c *call) error {
	a, faults := fund.NewAccount(fund.AccountFields{
		BranchCode: decimal.Int(o.branch), CustomerNo: decimal.Int(o.customer), AccountSuffix: decimal.Int(o.suffix), CurrencyCode: o.currency,
	}, decimal.Int(0))
	return c.adjust(faults, o.by, func(by decimal.Decimal) (id operation.ID, err error) {
		amount, err := money.FromDecimal(by, a.Key.Currency)
		if err != nil || amount.Minor() == 0 {
			return id, fmt.Errorf("%q is no amount of %s: it must not be 0 and may have %d decimals", o.by, o.currency, a.Key.Currency.Decimals())
		}
		return c.office.Corrector.AdjustAccount(c.Context(), a.Key, amount)
	})
}

// adjust changes a position without faults by a difference. A text that is no number is 0,
// which change refuses.
func (c *call) adjust(faults []fault.Fault, text string, change func(by decimal.Decimal) (operation.ID, error)) error {
	if len(faults) > 0 {
		return fmt.Errorf("%s: %s", faults[0].Pointer[1:], faults[0].Detail)
	}
	by, err := decimal.Parse(text)
	if err != nil {
		by = decimal.Int(0)
	}
	id, err := change(by)
	if err == nil {
		c.tell("Adjusted by %s: %s.\n", text, id)
	}
	return err
}

func checkPriceID(c *call) error {
	if id, err := strconv.ParseInt(c.args[0], 10, 64); err != nil || id < 1 {
		return wrongUsef("%q is no PriceID", c.args[0])
	}
	return nil
}

func withdrawPrice(c *call) error {
	id, _ := strconv.ParseInt(c.args[0], 10, 64)
	if err := c.office.WithdrawPrice(c.Context(), id); err != nil {
		return fmt.Errorf("price %d: %w", id, fault.Explain(err))
	}
	c.tell("Withdrawn.\n")
	return nil
}

func checkErase(c *call) error {
	if (c.text("user") == "") == (c.text("before") == "") {
		return wrongUsef("either --user or --before is needed")
	}
	_, err := theDay("before", c.text("before"), "2025-01-01")
	return err
}

func erase(c *call) (err error) {
	bar := startProgress(c.ErrOrStderr(), "erasing", 0)
	var erased int64
	if user := c.text("user"); user != "" {
		erased, err = c.office.EraseUser(c.Context(), user, bar.rows.Store)
	} else {
		before, _ := day.Parse(c.text("before"))
		erased, err = c.office.EraseBefore(c.Context(), before, bar.rows.Store)
	}
	bar.stop()
	if errors.Is(err, backoffice.ErrNotPast) {
		return wrongUsef("--before: %v", err)
	}
	c.tell("Erased: %s.\n", counted(erased, "message"))
	return fault.Explain(err)
}
