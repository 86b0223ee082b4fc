package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
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

type cancelCommand struct{ id operation.ID }

func (*cancelCommand) flags(f *flags) { f.neededReason() }

func (o *cancelCommand) check(c *call) (err error) {
	o.id, err = parseID(c.args[0])
	return err
}

func (o *cancelCommand) run(c *call) error {
	return c.done(about(c.office.Corrector().Cancel(c.cmd.Context(), o.id), "operation "+c.args[0]), "Cancelled.\n")
}

type reverseCommand struct {
	priceID   optional[int64]
	waitAgain bool

	id operation.ID // unless priceID is given
}

func (o *reverseCommand) flags(f *flags) {
	f.json()
	f.as()
	f.set.StringVar(&f.call.reason, "reason", "", "why, in your `words`: required, except with --dry-run")
	f.set.Var(number(&o.priceID), "price-id", "reverse every operation with a sale that was settled at the price with this `PriceID`")
	f.set.BoolVar(&o.waitAgain, "wait-again", false, "record the sales again for their day, so that they settle at its right price")
	f.dryRun("say what would be reversed, and change nothing")
}

func (o *reverseCommand) check(c *call) (err error) {
	switch {
	case o.priceID.isGiven == (len(c.args) > 0):
		return wrongUsef("either an ID or --price-id is needed")
	case o.priceID.isGiven && o.priceID.value < 1:
		return wrongUsef("--price-id must be greater than 0")
	case !c.dryRun && c.reason == "":
		return errNoReason
	case !o.priceID.isGiven:
		o.id, err = parseID(c.args[0])
	}
	return err
}

// reversed says what became of an operation.
type reversed struct {
	OperationID string `json:"OperationId"`
	ReversalID  string `json:"ReversalId"`         // empty unless it was reversed
	WaitingID   string `json:"WaitingOperationId"` // the operation that has its sales now, if they wait again; otherwise empty
	Problem     string // why it is not reversed
	DryRun      bool
}

func (o *reverseCommand) run(c *call) error {
	if !o.priceID.isGiven {
		done, err := o.reverse(c, o.id)
		if err != nil {
			return about(err, "operation "+c.args[0])
		}
		if c.format == "json" {
			return c.write("reversed", done)
		}
		c.cmd.PrintErrf("%s", screen("one reversed", done))
		return nil
	}
	ids, err := c.office.Corrector().SettledAt(c.cmd.Context(), o.priceID.value)
	if err != nil {
		return about(err, fmt.Sprintf("price %d", o.priceID.value))
	}
	count := 0
	for _, id := range ids {
		done, err := o.reverse(c, id)
		if c.cmd.Context().Err() != nil {
			return err
		}
		if err != nil {
			done.Problem = fault.Explain(err).Error()
		} else {
			count++
		}
		if err := c.write("reversed", done); err != nil {
			return err
		}
	}
	verb := "reversed"
	if c.dryRun {
		verb = "would be reversed"
	}
	c.cmd.PrintErrf("%d of %s with a sale at PriceID %d %s.\n", count, backoffice.Plural(len(ids), "operation"), o.priceID.value, verb)
	if count < len(ids) {
		return fmt.Errorf("%s not reversed: see the reasons above", isOrAre(len(ids)-count))
	}
	return nil
}

func isOrAre(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

// reverse reverses one operation, or with --dry-run tries it.
func (o *reverseCommand) reverse(c *call, id operation.ID) (done reversed, err error) {
	done = reversed{OperationID: id.String(), DryRun: c.dryRun}
	var reversal, again operation.ID
	switch {
	case c.dryRun:
		err = c.office.Corrector().TryReverse(c.cmd.Context(), id, o.waitAgain)
		c.lookRefused(err, "operation", id.String())
		return done, err
	case o.waitAgain:
		reversal, again, err = c.office.Corrector().ReverseAgain(c.cmd.Context(), id)
	default:
		reversal, err = c.office.Corrector().Reverse(c.cmd.Context(), id)
	}
	if err != nil {
		c.lookRefused(err, "operation", id.String())
		return done, err
	}
	done.ReversalID = reversal.String()
	if again != (operation.ID{}) {
		done.WaitingID = again.String()
	}
	return done, nil
}

// lookRefused records in the audit that the error of a correction shows what a customer has.
func (c *call) lookRefused(err error, object, details string) {
	if _, ok := errors.AsType[*fund.BelowZeroError](err); ok {
		c.look(audit.CommandShow, object, details)
	}
}

// about puts the subject of an error before its text for people.
func about(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, fault.Explain(err))
}

// adjustFlags are the flags of both adjust commands.
type adjustFlags struct {
	customer optional[int64]
	by       string
}

func (o *adjustFlags) bind(f *flags) {
	f.neededReason()
	f.set.Var(number(&o.customer), "customer", "customer `number`")
	f.set.StringVar(&o.by, "by", "", "difference, like 12.5 or -12.5")
	f.need("by", "customer")
}

type adjustHoldingCommand struct {
	adjustFlags
	fund, holder string
}

func (o *adjustHoldingCommand) flags(f *flags) {
	o.bind(f)
	f.set.StringVar(&o.fund, "fund", "", "`IMKBCode` of the fund")
	f.set.StringVar(&o.holder, "holder", "", "`HolderCorporationName`")
	f.need("fund", "holder")
}

func (o *adjustHoldingCommand) run(c *call) error {
	h, faults := fund.NewHolding(fund.HoldingFields{
		CustomerNo: decimal.Int(o.customer.value), IMKBCode: o.fund, HolderCorporationName: o.holder, Units: decimal.Int(0),
	})
	return o.adjust(c, faults, func(by decimal.Decimal) (id operation.ID, err error) {
		units, err := fund.ParseUnits(by)
		if err != nil || units == 0 {
			return id, wrongUsef("%q is no number of units: it must not be 0, and may have %d decimals and be at most %s", o.by, fund.UnitDecimals, fund.MaxUnitsText)
		}
		return c.office.Corrector().AdjustHolding(c.cmd.Context(), h.Key, units)
	})
}

type adjustAccountCommand struct {
	adjustFlags
	branch, suffix optional[int64]
	currency       string
}

func (o *adjustAccountCommand) flags(f *flags) {
	o.bind(f)
	f.set.Var(number(&o.branch), "branch", "`BranchCode`")
	f.set.Var(number(&o.suffix), "suffix", "`AccountSuffix`")
	f.set.StringVar(&o.currency, "currency", "", "`CurrencyCode`")
	f.need("branch", "suffix", "currency")
}

func (o *adjustAccountCommand) run(c *call) error {
	a, faults := fund.NewAccount(fund.AccountFields{
		BranchCode: decimal.Int(o.branch.value), CustomerNo: decimal.Int(o.customer.value),
		AccountSuffix: decimal.Int(o.suffix.value), CurrencyCode: o.currency,
	}, decimal.Int(0))
	return o.adjust(c, faults, func(by decimal.Decimal) (id operation.ID, err error) {
		amount, err := money.FromDecimal(by, a.Key.Currency)
		if err != nil || amount.Minor() == 0 {
			return id, wrongUsef("%q is no amount of %s: it must not be 0, and may have %d decimals and at most 2^63-1 minor units", o.by, o.currency, a.Key.Currency.Decimals())
		}
		return c.office.Corrector().AdjustAccount(c.cmd.Context(), a.Key, amount)
	})
}

// adjust changes a position without faults by the difference of --by. A text that is not a
// number counts as absent, and change refuses it.
func (o *adjustFlags) adjust(c *call, faults []fault.Fault, change func(by decimal.Decimal) (operation.ID, error)) error {
	if len(faults) > 0 {
		return wrongUsef("%s: %s", faults[0].Pointer[1:], faults[0].Detail)
	}
	if strings.ContainsAny(o.by, "eE") { // as a spreadsheet shortens a long number
		return wrongUsef("%q has an exponent: write all digits", o.by)
	}
	if strings.Contains(o.by, ",") { // as in the files of a Turkish spreadsheet
		return wrongUsef("%q has a comma: write a point before the decimals and nothing between thousands, like 1250.75", o.by)
	}
	by, _ := decimal.Parse(o.by)
	id, err := change(by)
	c.lookRefused(err, "customer", strconv.FormatInt(o.customer.value, 10))
	if errors.Is(err, fund.ErrNoHolding) || errors.Is(err, fund.ErrNoAccount) {
		return fmt.Errorf("%w: 'bankingapi show customer %d' lists what the customer has", err, o.customer.value)
	}
	return c.done(err, "Adjusted by %s: %s.\n", o.by, id)
}

type withdrawCommand struct{ id int64 }

func (*withdrawCommand) flags(f *flags) { f.neededReason() }

func (o *withdrawCommand) check(c *call) (err error) {
	o.id, err = strconv.ParseInt(c.args[0], 10, 64)
	if err != nil || o.id < 1 {
		return wrongUsef("%q is no PriceID", c.args[0])
	}
	return nil
}

func (o *withdrawCommand) run(c *call) error {
	return c.done(about(c.office.Corrector().WithdrawPrice(c.cmd.Context(), o.id), fmt.Sprintf("price %d", o.id)), "Withdrawn.\n")
}

type eraseCommand struct {
	user   string
	before day.Day
}

func (o *eraseCommand) flags(f *flags) {
	f.neededReason()
	f.set.StringVar(&o.user, "user", "", "erase the messages of this `UserId`")
	f.set.Var(&dayValue{&o.before, "2025-01-01"}, "before", "erase messages received before this `day` (YYYY-MM-DD)")
}

func (o *eraseCommand) check(*call) error {
	if (o.user == "") == o.before.IsNone() {
		return wrongUsef("either --user or --before is needed")
	}
	return nil
}

func (o *eraseCommand) run(c *call) (err error) {
	bar := startProgress(c.cmd.ErrOrStderr(), "erasing", 0)
	var erased int64
	if o.user != "" {
		erased, err = c.office.Eraser().EraseUser(c.cmd.Context(), o.user, bar.rows.Store)
	} else {
		erased, err = c.office.Eraser().EraseBefore(c.cmd.Context(), o.before, bar.rows.Store)
	}
	bar.stop()
	if errors.Is(err, backoffice.ErrNotPast) {
		return wrongUsef("--before: %v", err)
	}
	c.cmd.PrintErrf("Erased: %s.\n", backoffice.Plural(erased, "message"))
	return err
}
