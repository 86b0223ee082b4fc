package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"bankingapi/application/buyfund"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// explain is an error for a person at a terminal: the sentence, and the cause
// where the sentence alone does not help.
func explain(err error) error {
	known, ok := errors.AsType[*fault.Error](err)
	switch {
	case !ok:
		return err
	case known.Cause != nil:
		return fmt.Errorf("%s %w", known.Detail, known.Cause)
	case len(known.Faults) == 0:
		return errors.New(known.Detail)
	}
	var text strings.Builder
	text.WriteString(known.Detail)
	for _, f := range known.Faults {
		fmt.Fprintf(&text, " %s: %s", f.Pointer, f.Detail)
	}
	return errors.New(text.String())
}

// usable returns an error if the store cannot be used. Call it before any work
// on the store.
func (a *App) usable(ctx context.Context) error { return explain(a.store.Schema.Require(ctx)) }

// Subscription is a caller of the API. Empty Operations are all of them, 0
// RequestsPerSecond no limit.
type Subscription struct {
	Name, State                 string
	Operations                  []string
	RequestsPerSecond           int
	AppKey, Channel, TellerName string
	// RequireCallerID refuses requests without a CallerId.
	RequireCallerID bool
	// Expires is when both keys stop working. It is set by CreateSubscription and
	// ChangeSubscription; the zero time means never.
	Expires time.Time

	// The fields below are what Subscriptions reports. A zero time means that it is
	// not known, or never.
	Created            time.Time
	Primary, Secondary KeyTimes
	// WithoutCallerID is when the last BuyFundFromCustomer without a CallerId
	// arrived.
	WithoutCallerID time.Time
}

// KeyTimes are when a key was created, until when it works, and when it was used
// last, to the minute.
type KeyTimes = subscription.KeyLife

// OperationNames are the operations a subscription may be limited to.
func OperationNames() []string {
	names := make([]string, len(operation.Names))
	for i, n := range operation.Names {
		names[i] = n.String()
	}
	return names
}

func (a *App) manager() *subscriptions.Manager {
	m := subscriptions.NewManager(a.store.Subscriptions, rand.Reader)
	m.Now = a.options.now
	return m
}

func (s *Subscription) fields() (subscription.Subscription, error) {
	expires := s.Expires.UTC() // stored times are UTC
	fields := subscription.Subscription{
		Name: s.Name, RequestsPerSecond: s.RequestsPerSecond, RequireCallerID: s.RequireCallerID,
		AppKey: s.AppKey, Channel: s.Channel, TellerName: s.TellerName,
		PrimaryKey: KeyTimes{Expires: expires}, SecondaryKey: KeyTimes{Expires: expires},
	}
	for _, name := range s.Operations {
		n, ok := operation.ParseName(name)
		if !ok {
			return fields, fmt.Errorf("there is no operation %q", name)
		}
		fields.Operations = append(fields.Operations, n)
	}
	return fields, nil
}

// CreateSubscription makes an active subscription and returns its two keys:
// the only time they can be seen.
func (a *App) CreateSubscription(ctx context.Context, s Subscription) (primary, secondary string, err error) {
	if err := a.usable(ctx); err != nil {
		return "", "", err
	}
	fields, err := s.fields()
	if err != nil {
		return "", "", err
	}
	first, second, err := a.manager().Create(a.act(ctx, "subscription.create", s.Name, ""), fields)
	return first.Reveal(), second.Reveal(), about(s.Name, err)
}

// ChangeSubscription changes a subscription: change receives it as it is and
// returns what it should be. Name, State and the times that are only reported
// stay as they are.
func (a *App) ChangeSubscription(ctx context.Context, name string, change func(*Subscription) error) error {
	if err := a.usable(ctx); err != nil {
		return err
	}
	ctx = a.act(ctx, "subscription.change", name, "")
	return about(name, a.manager().Change(ctx, name, func(s *subscription.Subscription) error {
		wanted := toSubscription(s)
		before := wanted.Expires
		if err := change(&wanted); err != nil {
			return err
		}
		fields, err := wanted.fields()
		if err != nil {
			return err
		}
		if !wanted.Expires.Equal(before) {
			s.PrimaryKey.Expires, s.SecondaryKey.Expires = fields.PrimaryKey.Expires, fields.SecondaryKey.Expires
		}
		return s.Revise(fields)
	}))
}

func toSubscription(s *subscription.Subscription) Subscription {
	shown := Subscription{
		Name: s.Name, State: string(s.State), RequestsPerSecond: s.RequestsPerSecond,
		AppKey: s.AppKey, Channel: s.Channel, TellerName: s.TellerName, RequireCallerID: s.RequireCallerID,
		Expires: s.PrimaryKey.Expires, Created: s.Created, Primary: s.PrimaryKey, Secondary: s.SecondaryKey, WithoutCallerID: s.WithoutCallerID,
	}
	for _, n := range s.Operations {
		shown.Operations = append(shown.Operations, n.String())
	}
	return shown
}

// Subscriptions lists all, by name.
func (a *App) Subscriptions(ctx context.Context) ([]Subscription, error) {
	if err := a.usable(ctx); err != nil {
		return nil, err
	}
	found, err := a.manager().List(ctx)
	all := make([]Subscription, len(found))
	for i, s := range found {
		all[i] = toSubscription(s)
	}
	return all, explain(err)
}

// RegenerateKey replaces the primary or secondary key and returns the new one.
func (a *App) RegenerateKey(ctx context.Context, name, slot string) (string, error) {
	if err := a.usable(ctx); err != nil {
		return "", err
	}
	key, err := a.manager().Regenerate(a.act(ctx, "subscription.regenerate", name, slot), name, subscription.Slot(slot))
	return key.Reveal(), about(name, err)
}

// SetSubscriptionState makes the subscription active, suspended or cancelled.
func (a *App) SetSubscriptionState(ctx context.Context, name, state string) error {
	if err := a.usable(ctx); err != nil {
		return err
	}
	return about(name, a.manager().SetState(a.act(ctx, "subscription.state", name, state), name, subscription.State(state)))
}

func about(name string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, subscription.ErrCancelled) || errors.Is(err, subscriptions.ErrNameTaken) {
		err = fmt.Errorf("%w (a cancelled one keeps its name: choose another)", err)
	}
	return fmt.Errorf("subscription %q: %w", name, explain(err))
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
		return Settlement{}, explain(err)
	}
	if record := a.store.Backoffice.Audit; due > 0 && record != nil {
		act := newAct(ctx, a.options, "settle", today.String(), plural(due, "due sale"))
		if err := record.Record(ctx, act); err != nil {
			return Settlement{}, explain(err)
		}
	}
	settled, err := a.buyer.SettleDue(ctx)
	return settled, explain(err)
}

// plural is "1 sale" or "2 sales".
func plural(n int64, one string) string {
	if n != 1 {
		one += "s"
	}
	return fmt.Sprintf("%d %s", n, one)
}
