// Package subscriptions manages the subscriptions of callers and finds them by their keys.
package subscriptions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// Repository keeps subscriptions by name. A caller may keep and change the values that it
// passes and receives, because the repository has copies. If the storage cannot be reached or
// ctx ends before the commit, every method returns fault.Unavailable, and nothing was written.
// If the commit was sent and not confirmed, the error is fault.Indeterminate.
type Repository interface {
	// All lists every subscription, also cancelled ones, in the byte order of their names. It
	// leaves out those that cannot be read, and returns the error with the others.
	All(ctx context.Context) ([]*subscription.Subscription, error)
	// Create adds a subscription. The error is ErrNameTaken if the name exists.
	Create(ctx context.Context, s *subscription.Subscription) error
	// Change loads and locks the subscription, calls change and writes the result. If change
	// returns an error, Change writes nothing and returns that error. The error is ErrNotFound
	// for an unknown name. Change may call change several times. If change panics, nothing is
	// written and Change panics with the same value.
	Change(ctx context.Context, name string, change func(*subscription.Subscription) error) error
}

// Usage stores when subscriptions were used.
type Usage interface {
	// KeepUses sets the times of subscriptions to the given times if these are later. It
	// ignores names that do not exist.
	KeepUses(ctx context.Context, uses []Use) error
}

// Use says when a subscription was used. A zero time means that it was not used.
type Use struct {
	Name               string
	Primary, Secondary time.Time // when the keys were last presented
	WithoutCallerID    time.Time // when the last BuyFundFromCustomer without a CallerId arrived
}

// Manager creates and changes subscriptions.
type Manager struct {
	repository Repository
	random     io.Reader
	// Now returns the current time in UTC, truncated to microseconds, for the dates of
	// subscriptions and keys. NewManager sets a function that gives them no dates.
	Now func() time.Time
	// Acts makes the act of each change, unless its context already carries an act. If Acts is
	// nil, changes have no acts.
	Acts           *audit.Acts
	Zone           func() *time.Location // the time zone of the bank, for the last day of keys; NewManager sets UTC
	HostOperations []string              // the names of the operations of the host program
	KeyMade        func()                // called after a new key was stored; NewManager sets a function that does nothing
}

// Operations returns the names of the operations that a subscription may be granted.
func (m *Manager) Operations() []string { return append(operation.AllNames(), m.HostOperations...) }

// CheckOperations returns an error of kind fault.Invalid if a name is not in Operations.
func (m *Manager) CheckOperations(names ...string) error {
	known := m.Operations()
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fault.New(fault.Invalid, fmt.Sprintf("There is no operation %q: it is %s.", name, strings.Join(known, " or ")))
		}
	}
	return nil
}

func (m *Manager) begin(ctx context.Context, action, name, details string) context.Context {
	if _, carried := audit.From(ctx); carried || m.Acts == nil {
		return ctx
	}
	return m.Acts.Begin(ctx, action, name, details)
}

// NewManager returns a Manager that makes keys from random, which must be a
// cryptographic source.
func NewManager(repository Repository, random io.Reader) *Manager {
	return &Manager{repository: repository, random: random, Now: func() (never time.Time) { return never }, Zone: func() *time.Location { return time.UTC }, KeyMade: func() {}}
}

// Create makes an active subscription and returns its two keys. If fields have no operations,
// the subscription is granted all Operations. The keys cannot be read later. The error is
// fault.Invalid, subscription.ErrExpired, ErrNameTaken or an error of the storage.
func (m *Manager) Create(ctx context.Context, fields subscription.Subscription) (primary, secondary subscription.Key, err error) {
	if len(fields.Operations) == 0 {
		fields.Operations = m.Operations()
	}
	s, err := subscription.New(fields)
	if err != nil {
		return primary, secondary, err
	}
	primary, err1 := m.regenerate(s, subscription.Primary)
	secondary, err2 := m.regenerate(s, subscription.Secondary)
	if err := cmp.Or(err1, err2); err != nil {
		return primary, secondary, err
	}
	s.Created = m.Now()
	details := strings.Join(Differences(nil, s, m.Zone()), "; ")
	return primary, secondary, m.keyMade(m.repository.Create(m.begin(ctx, audit.SubscriptionsCreate, s.Name, details), s))
}

// keyMade calls KeyMade unless the key was not stored.
func (m *Manager) keyMade(err error) error {
	if err != nil {
		return err
	}
	m.KeyMade()
	return nil
}

// errUnchanged makes a repository write nothing, because the subscription is as it was.
var errUnchanged = errors.New("the subscription is as it was")

// reviseIn changes a subscription of the repository, or writes nothing and no act if it stays as it
// was.
func (m *Manager) reviseIn(ctx context.Context, name string, change func(*subscription.Subscription) error) error {
	err := m.repository.Change(ctx, name, func(s *subscription.Subscription) error {
		before := *s
		before.Operations = slices.Clone(s.Operations)
		err := change(s)
		if err != nil {
			return err
		}
		if isSame(before, *s) {
			return errUnchanged
		}
		return nil
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

func isSame(a, b subscription.Subscription) bool {
	for _, s := range []*subscription.Subscription{&a, &b} { // the same moment may be in two zones
		s.PrimaryKey.Expires, s.SecondaryKey.Expires = s.PrimaryKey.Expires.UTC(), s.SecondaryKey.Expires.UTC()
	}
	return reflect.DeepEqual(a, b)
}

// Change changes a subscription in place, and says in its act what it changed. If change leaves it as
// it was, or is nil, there is no act. The error is the error of change, that of
// subscription.CheckChange, subscription.ErrExpired if change makes the keys expire in the past,
// ErrNotFound or an error of the storage. The change reaches every
// replica within five seconds.
func (m *Manager) Change(ctx context.Context, name string, change func(*subscription.Subscription) error) error {
	ctx = m.begin(ctx, audit.SubscriptionsChange, name, "")
	return m.reviseIn(ctx, name, func(s *subscription.Subscription) error {
		before := *s
		if change == nil {
			return nil
		}
		before.Operations = slices.Clone(s.Operations)
		err := change(s)
		if err != nil {
			return err
		}
		err = s.CheckChange(&before)
		if err != nil {
			return err
		}
		for _, life := range [][2]subscription.KeyLife{{before.PrimaryKey, s.PrimaryKey}, {before.SecondaryKey, s.SecondaryKey}} {
			if !life[1].Expires.Equal(life[0].Expires) && life[1].IsExpired(m.Now()) {
				return subscription.ErrExpired
			}
		}
		audit.Describe(ctx, strings.Join(Differences(&before, s, m.Zone()), "; "))
		return nil
	})
}

// Differences returns a sentence for each difference between two versions of a subscription. If
// before is nil, it describes what is not the default. The last day of the keys is a day in the
// zone.
func Differences(before, after *subscription.Subscription, zone *time.Location) (all []string) {
	from := cmp.Or(before, new(subscription.Subscription))
	limit := func(s *subscription.Subscription) string {
		if s.RequestsPerSecond == 0 {
			return ""
		}
		return strconv.Itoa(s.RequestsPerSecond) + "/s"
	}
	last := func(s *subscription.Subscription) string {
		if s.PrimaryKey.Expires.IsZero() {
			return ""
		}
		return day.Of(s.PrimaryKey.Expires.Add(-time.Nanosecond), zone).String()
	}
	callerID := map[bool]string{true: "required"}
	for _, each := range []struct{ name, from, to, none string }{
		{"rate limit", limit(from), limit(after), "none"},
		{"may call", strings.Join(from.Operations, ", "), strings.Join(after.Operations, ", "), "nothing"},
		{"CallerId", callerID[from.RequireCallerID], callerID[after.RequireCallerID], "optional"},
		{"last day of the keys", last(from), last(after), "never"},
		{"client certificate", from.ClientCertificate, after.ClientCertificate, "none"},
		{"AppKey", from.AppKey, after.AppKey, "none"},
		{"Channel", from.Channel, after.Channel, "none"},
		{"TellerName", from.TellerName, after.TellerName, "none"},
	} {
		switch {
		case each.from == each.to:
		case before == nil:
			all = append(all, each.name+" "+each.to)
		default:
			all = append(all, each.name+" "+cmp.Or(each.to, each.none)+" instead of "+cmp.Or(each.from, each.none))
		}
	}
	return all
}

// Regenerate replaces one key and returns the new key, which cannot be read later. The old key
// stops working on every replica within five seconds. The error is the error of
// subscription.Subscription.Regenerate, ErrNotFound or an error of the storage.
func (m *Manager) Regenerate(ctx context.Context, name string, slot subscription.Slot) (key subscription.Key, err error) {
	ctx = m.begin(ctx, audit.SubscriptionsRegenerate, name, string(slot))
	err = m.repository.Change(ctx, name, func(s *subscription.Subscription) error {
		key, err = m.regenerate(s, slot)
		return err
	})
	return key, m.keyMade(err)
}

func (m *Manager) regenerate(s *subscription.Subscription, slot subscription.Slot) (subscription.Key, error) {
	key, err := subscription.NewKey(m.random)
	if err != nil {
		return key, err
	}
	return key, s.Regenerate(slot, key, m.Now())
}

// stateActions are the actions of acts that set a state.
var stateActions = map[subscription.State]string{
	subscription.Active:    audit.SubscriptionsActivate,
	subscription.Suspended: audit.SubscriptionsSuspend,
	subscription.Cancelled: audit.SubscriptionsCancel,
}

// SetState suspends, activates or cancels a subscription. If it has that state, nothing is written.
// The error is subscription.ErrCancelled if the subscription is already cancelled. The change reaches
// every replica within five seconds.
func (m *Manager) SetState(ctx context.Context, name string, state subscription.State) error {
	ctx = m.begin(ctx, stateActions[state], name, "")
	return m.reviseIn(ctx, name, func(s *subscription.Subscription) error { return s.Become(state) })
}

// List returns every subscription by name.
func (m *Manager) List(ctx context.Context) ([]*subscription.Subscription, error) {
	return m.repository.All(ctx)
}

// Errors of a Repository.
var (
	ErrNameTaken = errors.New("a subscription with this name exists (a cancelled one keeps its name: choose another)")
	ErrNotFound  = errors.New("there is no subscription with this name")
)
