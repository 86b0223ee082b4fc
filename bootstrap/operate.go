package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/storage"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// Migration is one version of the schema. Applied is zero for one that the
// database does not have.
type Migration struct {
	Version int64
	Name    string
	Applied time.Time
}

// Schema is what the database has, and what this program wants.
type Schema struct {
	Version, Wanted int64
	Migrations      []Migration // all that this program knows, ascending
}

// SchemaVersion is the version of the schema that this program needs.
func SchemaVersion() int64 { return storage.SchemaVersion() }

// OpenAPI is the API's contract as an OpenAPI 3.1 document, in JSON.
func OpenAPI() []byte { return openapi.Document() }

// MigrateUp brings the schema to SchemaVersion and returns what it applied.
func MigrateUp(ctx context.Context, settings Settings, all ...Option) (applied []Migration, err error) {
	err = withStore(settings, all, func(s *storage.Store) error {
		done, err := s.MigrateUp(ctx)
		applied = migrations(done)
		return explain(err)
	})
	return applied, err
}

// MigrateDown takes the newest version away, with what is kept in its tables.
func MigrateDown(ctx context.Context, settings Settings, all ...Option) (undone Migration, err error) {
	err = withStore(settings, all, func(s *storage.Store) error {
		done, err := s.MigrateDown(ctx)
		undone = migrations([]storage.Migration{done})[0]
		return explain(err)
	})
	return undone, err
}

// SchemaStatus reads the state of the schema.
func SchemaStatus(ctx context.Context, settings Settings, all ...Option) (schema Schema, err error) {
	err = withStore(settings, all, func(s *storage.Store) error {
		known, err := s.Migrations(ctx)
		schema.Migrations = migrations(known)
		schema.Wanted = SchemaVersion()
		if err == nil {
			schema.Version, err = s.Version(ctx)
		}
		return explain(err)
	})
	return schema, err
}

func migrations(from []storage.Migration) []Migration {
	all := make([]Migration, len(from))
	for i, m := range from {
		all[i] = Migration{m.Version, m.Name, m.AppliedAt}
	}
	return all
}

func withStore(settings Settings, all []Option, do func(*storage.Store) error) error {
	if err := settings.Validate(); err != nil {
		return err
	}
	o := collect(all)
	engine, err := newEngine(settings, o)
	if err != nil {
		return err
	}
	store := storage.New(engine, o.tablePrefix, o.now)
	return errors.Join(do(store), store.Close())
}

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

// usable is what every work on the store begins with.
func (a *App) usable(ctx context.Context) error { return explain(a.store.RequireSchema(ctx)) }

// Subscription is a caller of the API. Empty Operations are all of them, 0
// RequestsPerSecond no limit.
type Subscription struct {
	Name, State                 string
	Operations                  []string
	RequestsPerSecond           int
	AppKey, Channel, TellerName string
}

// OperationNames are the operations a subscription may be limited to.
func OperationNames() []string {
	names := make([]string, len(operation.Names))
	for i, n := range operation.Names {
		names[i] = n.String()
	}
	return names
}

func (a *App) manager() *subscriptions.Manager {
	return subscriptions.NewManager(a.store, rand.Reader)
}

// CreateSubscription makes an active subscription and returns its two keys:
// the only time they can be seen.
func (a *App) CreateSubscription(ctx context.Context, s Subscription) (primary, secondary string, err error) {
	if err := a.usable(ctx); err != nil {
		return "", "", err
	}
	fields := subscription.Subscription{
		Name: s.Name, RequestsPerSecond: s.RequestsPerSecond,
		AppKey: s.AppKey, Channel: s.Channel, TellerName: s.TellerName,
	}
	for _, name := range s.Operations {
		n, ok := operation.ParseName(name)
		if !ok {
			return "", "", fmt.Errorf("there is no operation %q", name)
		}
		fields.Operations = append(fields.Operations, n)
	}
	first, second, err := a.manager().Create(ctx, fields)
	return first.Reveal(), second.Reveal(), about(s.Name, err)
}

// Subscriptions lists all, by name.
func (a *App) Subscriptions(ctx context.Context) ([]Subscription, error) {
	if err := a.usable(ctx); err != nil {
		return nil, err
	}
	found, err := a.manager().List(ctx)
	all := make([]Subscription, len(found))
	for i, s := range found {
		all[i] = Subscription{
			Name: s.Name, State: string(s.State), RequestsPerSecond: s.RequestsPerSecond,
			AppKey: s.AppKey, Channel: s.Channel, TellerName: s.TellerName,
		}
		for _, n := range s.Operations {
			all[i].Operations = append(all[i].Operations, n.String())
		}
	}
	return all, explain(err)
}

// RegenerateKey replaces the primary or secondary key and returns the new one.
func (a *App) RegenerateKey(ctx context.Context, name, slot string) (string, error) {
	if err := a.usable(ctx); err != nil {
		return "", err
	}
	key, err := a.manager().Regenerate(ctx, name, subscription.Slot(slot))
	return key.Reveal(), about(name, err)
}

// SetSubscriptionState makes the subscription active, suspended or cancelled.
func (a *App) SetSubscriptionState(ctx context.Context, name, state string) error {
	if err := a.usable(ctx); err != nil {
		return err
	}
	return about(name, a.manager().SetState(ctx, name, subscription.State(state)))
}

func about(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("subscription %q: %w", name, explain(err))
}

// Settlement counts what one round of Settle settled.
type Settlement struct{ Completed, Failed int }

// Settle settles the sales that are due now: one round of what the service
// does by itself.
func (a *App) Settle(ctx context.Context) (Settlement, error) {
	if err := a.usable(ctx); err != nil {
		return Settlement{}, err
	}
	settled, err := a.buyer.SettleDue(ctx)
	return Settlement(settled), explain(err)
}
