package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"os"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Actor is who administers, and why. Every act of administration is kept with
// it, and exported as audit.
type Actor = audit.Who

// By returns a context whose acts of administration are those of the actor.
func By(ctx context.Context, actor Actor) context.Context { return audit.By(ctx, actor) }

// act puts an act into the context: the storage writes it in the transaction
// that carries it out.
func (a *App) act(ctx context.Context, action, object, details string) context.Context {
	return audit.With(ctx, newAct(ctx, a.options, action, object, details))
}

func newAct(ctx context.Context, o *options, action, object, details string) audit.Act {
	return audit.Act{ID: o.newID(), At: o.bank()(), Who: audit.Actor(ctx), Action: action, Object: object, Details: details}
}

// byService returns a context whose acts are those of the service itself, unless
// it names somebody else.
func byService(ctx context.Context) context.Context {
	if audit.Actor(ctx) != (audit.Who{}) {
		return ctx
	}
	host, _ := os.Hostname()
	return audit.By(ctx, audit.Who{Actor: "bankingapi", Origin: host})
}

func (a *App) corrector() (*backoffice.Corrector, error) {
	c := a.Backoffice().Corrector(a.options.bank(), a.zone)
	if c == nil {
		return nil, errors.New("this storage cannot correct the book")
	}
	return c, nil
}

// correct runs a correction on the operation with that ID.
func (a *App) correct(ctx context.Context, id string, correction func(*backoffice.Corrector, operation.ID) error) error {
	if err := a.usable(ctx); err != nil {
		return err
	}
	parsed, err := operation.ParseID(id)
	if err != nil {
		return fmt.Errorf("%q is no ID of an operation", id)
	}
	c, err := a.corrector()
	if err != nil {
		return err
	}
	if err := correction(c, parsed); err != nil {
		return fmt.Errorf("operation %s: %w", id, explain(err))
	}
	return nil
}

// CancelSales cancels a recorded operation before its day, with all its sales.
func (a *App) CancelSales(ctx context.Context, id string) error {
	return a.correct(ctx, id, func(c *backoffice.Corrector, id operation.ID) error { return c.Cancel(ctx, id) })
}

// ReverseSales undoes a completed operation, once, and returns the ID of the
// reversal.
func (a *App) ReverseSales(ctx context.Context, id string) (reversal string, err error) {
	err = a.correct(ctx, id, func(c *backoffice.Corrector, id operation.ID) error {
		made, err := c.Reverse(ctx, id)
		reversal = made.String()
		return err
	})
	return reversal, err
}

// AdjustHolding adds units to a holding, or takes them if the number begins with
// a minus. It returns the ID of the adjustment.
func (a *App) AdjustHolding(ctx context.Context, customer int64, code, holder, by string) (string, error) {
	if err := a.usable(ctx); err != nil {
		return "", err
	}
	h, faults := fund.NewHolding(fund.HoldingFields{CustomerNo: decimal.Int(customer), IMKBCode: code, HolderCorporationName: holder, Units: decimal.Int(0)})
	if len(faults) > 0 {
		return "", fmt.Errorf("%s: %s", faults[0].Pointer[1:], faults[0].Detail)
	}
	number, err := decimal.Parse(by)
	if err != nil {
		return "", fmt.Errorf("%q is no number of units", by)
	}
	units, err := fund.ParseUnits(number)
	if err != nil || units == 0 {
		return "", fmt.Errorf("%q is no number of units: it must not be 0 and may have 6 decimals", by)
	}
	c, err := a.corrector()
	if err != nil {
		return "", err
	}
	id, err := c.AdjustHolding(ctx, h.Key, units)
	return id.String(), explain(err)
}

// AdjustAccount adds an amount to the balance of an account, or takes it if the
// number begins with a minus. It returns the ID of the adjustment.
func (a *App) AdjustAccount(ctx context.Context, branch, customer, suffix int64, currency, by string) (string, error) {
	if err := a.usable(ctx); err != nil {
		return "", err
	}
	account, faults := fund.NewAccount(fund.AccountFields{
		BranchCode: decimal.Int(branch), CustomerNo: decimal.Int(customer), AccountSuffix: decimal.Int(suffix), CurrencyCode: currency,
	}, decimal.Int(0))
	if len(faults) > 0 {
		return "", fmt.Errorf("%s: %s", faults[0].Pointer[1:], faults[0].Detail)
	}
	number, err := decimal.Parse(by)
	if err != nil {
		return "", fmt.Errorf("%q is no amount", by)
	}
	amount, err := money.FromDecimal(number, account.Key.Currency)
	if err != nil || amount.Minor() == 0 {
		return "", fmt.Errorf("%q is no amount of %s: it must not be 0 and may have %d decimals", by, currency, account.Key.Currency.Decimals())
	}
	c, err := a.corrector()
	if err != nil {
		return "", err
	}
	id, err := c.AdjustAccount(ctx, account.Key, amount)
	return id.String(), explain(err)
}

// ImportOptions change an Import: see backoffice.ImportOptions.
type ImportOptions = backoffice.ImportOptions

// WithImport returns a context whose Import has the options.
func WithImport(ctx context.Context, o ImportOptions) context.Context {
	return backoffice.WithImport(ctx, o)
}
