package command

import (
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

func readID(c *call) (operation.ID, error) { return parseID(c.args[0]) }

func cancelSale(c *call, id operation.ID) error {
	return c.done(about(c.office.Cancel(c.Context(), id), "operation "+c.args[0]), "Cancelled.\n")
}

func reverseSale(c *call, id operation.ID) error {
	reversal, err := c.office.Reverse(c.Context(), id)
	return c.done(about(err, "operation "+c.args[0]), "Reversed by %s.\n", reversal)
}

// about puts the subject of an error before its text for people.
func about(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, fault.Explain(err))
}

func adjustHolding(c *call) error {
	h, faults := fund.NewHolding(fund.HoldingFields{
		CustomerNo: decimal.Int(c.number("customer")), IMKBCode: c.text("fund"), HolderCorporationName: c.text("holder"), Units: decimal.Int(0),
	})
	return adjust(c, faults, func(by decimal.Decimal) (id operation.ID, err error) {
		units, err := fund.ParseUnits(by)
		if err != nil || units == 0 {
			return id, wrongUsef("%q is no number of units: it must not be 0 and may have 6 decimals", c.text("by"))
		}
		return c.office.AdjustHolding(c.Context(), h.Key, units)
	})
}

func adjustAccount(c *call) error {
	a, faults := fund.NewAccount(fund.AccountFields{
		BranchCode: decimal.Int(c.number("branch")), CustomerNo: decimal.Int(c.number("customer")),
		AccountSuffix: decimal.Int(c.number("suffix")), CurrencyCode: c.text("currency"),
	}, decimal.Int(0))
	return adjust(c, faults, func(by decimal.Decimal) (id operation.ID, err error) {
		amount, err := money.FromDecimal(by, a.Key.Currency)
		if err != nil || amount.Minor() == 0 {
			return id, wrongUsef("%q is no amount of %s: it must not be 0 and may have %d decimals", c.text("by"), c.text("currency"), a.Key.Currency.Decimals())
		}
		return c.office.AdjustAccount(c.Context(), a.Key, amount)
	})
}

// adjust changes a position without faults by the difference of --by. A text that is not a
// number counts as absent, and change refuses it.
func adjust(c *call, faults []fault.Fault, change func(by decimal.Decimal) (operation.ID, error)) error {
	if len(faults) > 0 {
		return wrongUsef("%s: %s", faults[0].Pointer[1:], faults[0].Detail)
	}
	by, _ := decimal.Parse(c.text("by"))
	id, err := change(by)
	return c.done(err, "Adjusted by %s: %s.\n", c.text("by"), id)
}

func readPriceID(c *call) (int64, error) {
	id, err := strconv.ParseInt(c.args[0], 10, 64)
	if err != nil || id < 1 {
		return 0, wrongUsef("%q is no PriceID", c.args[0])
	}
	return id, nil
}

func withdrawPrice(c *call, id int64) error {
	return c.done(about(c.office.WithdrawPrice(c.Context(), id), fmt.Sprintf("price %d", id)), "Withdrawn.\n")
}

// readErased returns the day before which messages are erased, or no day.
func readErased(c *call) (before day.Day, err error) {
	if (c.text("user") == "") == (c.text("before") == "") {
		return before, wrongUsef("either --user or --before is needed")
	}
	return c.day("before", "2025-01-01")
}

func erase(c *call, before day.Day) (err error) {
	bar := startProgress(c.ErrOrStderr(), "erasing", 0)
	var erased int64
	if user := c.text("user"); user != "" {
		erased, err = c.office.EraseUser(c.Context(), user, bar.rows.Store)
	} else {
		erased, err = c.office.EraseBefore(c.Context(), before, bar.rows.Store)
	}
	bar.stop()
	if errors.Is(err, backoffice.ErrNotPast) {
		return wrongUsef("--before: %v", err)
	}
	c.PrintErrf("Erased: %s.\n", backoffice.Plural(erased, "message"))
	return err
}
