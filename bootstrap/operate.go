package bootstrap

import (
	"context"
	"errors"
	"fmt"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
)

// usable returns an error if the store cannot be used. Call it before any work
// on the store.
func (a *App) usable(ctx context.Context) error { return fault.Explain(a.store.Schema.Require(ctx)) }

// Backoffice returns the use cases of people: import, lookups, corrections,
// verify, and the streams that exports read. It fails if the schema of the
// storage does not fit.
func (a *App) Backoffice(ctx context.Context) (*backoffice.Office, error) {
	return a.office, a.usable(ctx)
}

// Manager returns the use cases that create and change subscriptions. It fails if
// the schema of the storage does not fit.
func (a *App) Manager(ctx context.Context) (*subscriptions.Manager, error) {
	return a.manager, a.usable(ctx)
}

// Backup writes a consistent copy of the data to a new file, while the service
// runs. Not every storage can do this.
func (a *App) Backup(ctx context.Context, file string) error {
	if err := a.usable(ctx); err != nil {
		return err
	}
	if a.store.Backup == nil {
		return errors.New("this storage is backed up with its own tools: for Postgres use pg_dump, or a base backup with WAL archiving")
	}
	return a.store.Backup(ctx, file)
}

// Subscription is a caller of the API. Empty Operations are all of them, 0
// RequestsPerSecond no limit. Manager knows everything about a subscription.
type Subscription struct {
	Name, State                 string
	Operations                  []string
	RequestsPerSecond           int
	AppKey, Channel, TellerName string
}

// OperationNames are the operations of the bank. Manager.Operations has those of
// the host too.
func OperationNames() []string { return new(subscriptions.Manager).Operations() }

// CreateSubscription makes an active subscription and returns its two keys:
// the only time they can be seen.
func (a *App) CreateSubscription(ctx context.Context, s Subscription) (primary, secondary string, err error) {
	if err := a.usable(ctx); err != nil {
		return "", "", err
	}
	for _, name := range s.Operations {
		if a.manager.CheckOperations(name) != nil {
			return "", "", fmt.Errorf("there is no operation %q", name)
		}
	}
	fields := subscription.Subscription{
		Name: s.Name, RequestsPerSecond: s.RequestsPerSecond, AppKey: s.AppKey, Channel: s.Channel, TellerName: s.TellerName,
	}
	fields.Grant(s.Operations...)
	first, second, err := a.manager.Create(ctx, fields)
	return first.Reveal(), second.Reveal(), about(s.Name, err)
}

// Subscriptions lists all, by name.
func (a *App) Subscriptions(ctx context.Context) (all []Subscription, err error) {
	if err := a.usable(ctx); err != nil {
		return nil, err
	}
	found, err := a.manager.List(ctx)
	for _, s := range found {
		all = append(all, Subscription{
			Name: s.Name, State: string(s.State), Operations: s.Granted(), RequestsPerSecond: s.RequestsPerSecond,
			AppKey: s.AppKey, Channel: s.Channel, TellerName: s.TellerName,
		})
	}
	return all, fault.Explain(err)
}

// RegenerateKey replaces the primary or secondary key and returns the new one.
func (a *App) RegenerateKey(ctx context.Context, name, slot string) (string, error) {
	if err := a.usable(ctx); err != nil {
		return "", err
	}
	key, err := a.manager.Regenerate(ctx, name, subscription.Slot(slot))
	return key.Reveal(), about(name, err)
}

// SetSubscriptionState makes the subscription active, suspended or cancelled.
func (a *App) SetSubscriptionState(ctx context.Context, name, state string) error {
	if err := a.usable(ctx); err != nil {
		return err
	}
	return about(name, a.manager.SetState(ctx, name, subscription.State(state)))
}

func about(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("subscription %q: %w", name, fault.Explain(err))
}

// Settlement counts what one round of Settle settled.
type Settlement = buyfund.Settlement

// Settle settles the sales that are due now: one round of what the service
// does by itself. If sales are due, the act is kept before they are settled: they
// share transactions with new requests, so that it has its own.
func (a *App) Settle(ctx context.Context) (Settlement, error) {
	if err := a.usable(ctx); err != nil {
		return Settlement{}, err
	}
	today := day.Of(a.options.bank()(), a.zone)
	due, _, err := a.store.CountDue(ctx, today)
	if err != nil {
		return Settlement{}, fault.Explain(err)
	}
	if record := a.store.Backoffice.Audit; due > 0 && record != nil {
		act := a.options.acts().New(ctx, "settle", today.String(), plural(due, "due sale"))
		if err := record.Record(ctx, act); err != nil {
			return Settlement{}, fault.Explain(err)
		}
	}
	settled, err := a.buyer.SettleDue(ctx)
	return settled, fault.Explain(err)
}

// plural is "1 sale" or "2 sales".
func plural(n int64, one string) string {
	if n != 1 {
		one += "s"
	}
	return fmt.Sprintf("%d %s", n, one)
}
