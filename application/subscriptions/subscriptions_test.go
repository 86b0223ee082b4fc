package subscriptions_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"bankingapi/application/backoffice"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCreate(t *testing.T) {
	t.Parallel()
	store := fake.NewStore().Subscriptions(nil)
	m := subscriptions.NewManager(store, counting())
	fields := subscription.Subscription{
		Name: "name", State: subscription.Cancelled, Operations: []string{"BuyFundFromCustomer"},
		RequestsPerSecond: 5, AppKey: "app", Channel: "channel", TellerName: "teller",
	}
	primary, secondary, err := m.Create(t.Context(), fields)
	require.NoError(t, err)
	require.Equal(t, "000102030405060708090a0b0c0d0e0f", primary.Reveal())
	require.Equal(t, "101112131415161718191a1b1c1d1e1f", secondary.Reveal())

	fields.State = subscription.Active
	fields.PrimaryHash, fields.SecondaryHash = primary.Hash(), secondary.Hash()
	require.Equal(t, []*subscription.Subscription{&fields}, list(t, m))

	_, _, err = m.Create(t.Context(), subscription.Subscription{Name: "another"})
	require.NoError(t, err)
	require.Equal(t, "another", list(t, m)[0].Name)
	require.Equal(t, operation.AllNames(), list(t, m)[0].Operations)
	_, _, err = m.Create(t.Context(), subscription.Subscription{Name: "name"})
	require.ErrorIs(t, err, subscriptions.ErrNameTaken)
	require.EqualError(t, err, "a subscription with this name exists (a cancelled one keeps its name: choose another)")
	require.Len(t, list(t, m), 2)
}

func TestCreateRefusesWhatIsNotValid(t *testing.T) {
	t.Parallel()
	m := subscriptions.NewManager(fake.NewStore().Subscriptions(nil), counting())
	_, _, err := m.Create(t.Context(), subscription.Subscription{RequestsPerSecond: -1})
	require.Equal(t, fault.Invalid, fault.KindOf(err))
	require.Len(t, fault.Of(err), 2)
	require.Empty(t, list(t, m))
}

func TestCreateNeedsTwoKeys(t *testing.T) {
	t.Parallel()
	for _, length := range []int64{0, 15, 16, 31} {
		store := fake.NewStore().Subscriptions(nil)
		m := subscriptions.NewManager(store, io.LimitReader(counting(), length))
		_, _, err := m.Create(t.Context(), subscription.Subscription{Name: "name"})
		require.ErrorContains(t, err, "EOF")
		require.Empty(t, list(t, m))
	}
}

func TestRegenerateReplacesOneKey(t *testing.T) {
	t.Parallel()
	m := subscriptions.NewManager(fake.NewStore().Subscriptions(nil), counting())
	primary, secondary, err := m.Create(t.Context(), subscription.Subscription{Name: "name"})
	require.NoError(t, err)

	second, err := m.Regenerate(t.Context(), "name", subscription.Secondary)
	require.NoError(t, err)
	require.NotEqual(t, secondary, second)
	require.Equal(t, primary.Hash(), list(t, m)[0].PrimaryHash)
	require.Equal(t, second.Hash(), list(t, m)[0].SecondaryHash)

	first, err := m.Regenerate(t.Context(), "name", subscription.Primary)
	require.NoError(t, err)
	require.NotEqual(t, primary, first)
	require.Equal(t, first.Hash(), list(t, m)[0].PrimaryHash)
	require.Equal(t, second.Hash(), list(t, m)[0].SecondaryHash)
}

// The storage may call back twice: the key that is shown is the one that is
// stored.
func TestRegenerateAfterALostRace(t *testing.T) {
	t.Parallel()
	store := fake.NewStore()
	_, _, err := subscriptions.NewManager(store.Subscriptions(nil), counting()).Create(t.Context(), subscription.Subscription{Name: "name"})
	require.NoError(t, err)

	conflict := fake.ErrConflict
	m := subscriptions.NewManager(store.Subscriptions(func(_ context.Context, at fake.Moment) error {
		if at != fake.Commit {
			return nil
		}
		defer func() { conflict = nil }()
		return conflict
	}), counting())
	key, err := m.Regenerate(t.Context(), "name", subscription.Primary)
	require.NoError(t, err)
	require.Equal(t, "101112131415161718191a1b1c1d1e1f", key.Reveal())
	require.Equal(t, key.Hash(), list(t, m)[0].PrimaryHash)
}

func TestRegenerateThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	store := fake.NewStore().Subscriptions(nil)
	m := subscriptions.NewManager(store, counting())
	_, _, err := m.Create(t.Context(), subscription.Subscription{Name: "name"})
	require.NoError(t, err)
	before := list(t, m)

	_, err = m.Regenerate(t.Context(), "nobody", subscription.Primary)
	require.ErrorIs(t, err, subscriptions.ErrNotFound)
	require.EqualError(t, err, "there is no subscription with this name")
	broken := errors.New("no entropy")
	_, err = subscriptions.NewManager(store, iotest.ErrReader(broken)).Regenerate(t.Context(), "name", subscription.Primary)
	require.ErrorIs(t, err, broken)
	require.NoError(t, m.Change(t.Context(), "name", nil))
	require.ErrorIs(t, m.Change(t.Context(), "nobody", nil), subscriptions.ErrNotFound)
	require.Equal(t, before, list(t, m))

	for name, change := range map[string]func(*subscription.Subscription){
		"a name":                 func(s *subscription.Subscription) { s.Name = "other" },
		"a state":                func(s *subscription.Subscription) { s.State = "weird" },
		"no key":                 func(s *subscription.Subscription) { s.PrimaryHash = subscription.Hash{} },
		"when it was made":       func(s *subscription.Subscription) { s.Created = time.Unix(1, 0) },
		"no operation":           func(s *subscription.Subscription) { s.Operations = nil },
		"what is no operation":   func(s *subscription.Subscription) { s.Operations = []string{"Nonsense!"} },
		"a rate below zero":      func(s *subscription.Subscription) { s.RequestsPerSecond = -5 },
		"a channel that is long": func(s *subscription.Subscription) { s.Channel = strings.Repeat("x", 201) },
	} {
		err = m.Change(t.Context(), "name", func(s *subscription.Subscription) error {
			change(s)
			return nil
		})
		require.Equal(t, fault.Invalid, fault.KindOf(err), name)
		require.Equal(t, before, list(t, m), name)
	}

	require.NoError(t, m.SetState(t.Context(), "name", subscription.Cancelled))
	revive := func(s *subscription.Subscription) error {
		s.State = subscription.Active
		return nil
	}
	require.ErrorIs(t, m.Change(t.Context(), "name", revive), subscription.ErrCancelled)
	_, err = m.Regenerate(t.Context(), "name", subscription.Primary)
	require.ErrorIs(t, err, subscription.ErrCancelled)
}

func TestSetState(t *testing.T) {
	t.Parallel()
	m := subscriptions.NewManager(fake.NewStore().Subscriptions(nil), counting())
	_, _, err := m.Create(t.Context(), subscription.Subscription{Name: "name"})
	require.NoError(t, err)
	for _, state := range []subscription.State{subscription.Suspended, subscription.Active, subscription.Active, subscription.Cancelled, subscription.Cancelled} {
		require.NoError(t, m.SetState(t.Context(), "name", state))
		require.Equal(t, state, list(t, m)[0].State)
	}
	require.ErrorIs(t, m.SetState(t.Context(), "name", subscription.Active), subscription.ErrCancelled)
	require.Equal(t, subscription.Cancelled, list(t, m)[0].State)
	require.ErrorIs(t, m.SetState(t.Context(), "nobody", subscription.Active), subscriptions.ErrNotFound)
}

func TestTheManagerReportsWhatTheStorageSays(t *testing.T) {
	t.Parallel()
	lost := fault.New(fault.Unavailable, "lost")
	m := subscriptions.NewManager(fake.NewStore().Subscriptions(func(context.Context, fake.Moment) error { return lost }), counting())
	_, _, err := m.Create(t.Context(), subscription.Subscription{Name: "name"})
	require.ErrorIs(t, err, lost)
	_, err = m.Regenerate(t.Context(), "name", subscription.Primary)
	require.ErrorIs(t, err, lost)
	require.ErrorIs(t, m.SetState(t.Context(), "name", subscription.Active), lost)
	_, err = m.List(t.Context())
	require.ErrorIs(t, err, lost)
}

func list(t *testing.T, m *subscriptions.Manager) []*subscription.Subscription {
	t.Helper()
	all, err := m.List(t.Context())
	require.NoError(t, err)
	return all
}

// counting is a random source for tests: 0, 1, 2 and so on.
func counting() io.Reader {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return bytes.NewReader(b)
}

func TestANewKeyIsNeverExpired(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	m := subscriptions.NewManager(fake.NewStore().Subscriptions(nil), counting())
	m.Now = func() time.Time { return now }
	expires := func(at time.Time) subscription.Subscription {
		return subscription.Subscription{Name: "name", PrimaryKey: subscription.KeyLife{Expires: at}, SecondaryKey: subscription.KeyLife{Expires: at}}
	}
	_, _, err := m.Create(t.Context(), expires(now))
	require.ErrorIs(t, err, subscription.ErrExpired)
	require.Empty(t, list(t, m))

	_, _, err = m.Create(t.Context(), expires(now.Add(time.Hour)))
	require.NoError(t, err)
	before := list(t, m)
	now = now.Add(time.Hour)
	_, err = m.Regenerate(t.Context(), "name", subscription.Primary)
	require.ErrorIs(t, err, subscription.ErrExpired)
	last := func(at time.Time) func(*subscription.Subscription) error {
		return func(s *subscription.Subscription) error { s.SecondaryKey.Expires = at; return nil }
	}
	require.ErrorIs(t, m.Change(t.Context(), "name", last(now.Add(-time.Hour))), subscription.ErrExpired)
	require.NoError(t, m.Change(t.Context(), "name", last(now)), "what has expired may stay so")
	require.Equal(t, before, list(t, m), "the expiry stays, and so does the old key")
}

// An act that changed nothing would hide the others.
func TestWhatStaysAsItWasHasNoAct(t *testing.T) {
	t.Parallel()
	store := fake.NewStore()
	m := subscriptions.NewManager(store.Subscriptions(nil), counting())
	istanbul, err := time.LoadLocation("Europe/Istanbul")
	require.NoError(t, err)
	expires := m.Now().Add(time.Hour).UTC()
	_, _, err = m.Create(t.Context(), subscription.Subscription{Name: "name", RequestsPerSecond: 5, PrimaryKey: subscription.KeyLife{Expires: expires}})
	require.NoError(t, err)
	ctx := audit.With(t.Context(), audit.Act{Action: "test"})
	acts := func() (count int) {
		for _, err := range store.Backoffice(nil, m.Now).Reader.Acts(t.Context(), backoffice.Query{}) {
			require.NoError(t, err)
			count++
		}
		return count
	}

	require.NoError(t, m.SetState(ctx, "name", subscription.Active))
	require.NoError(t, m.Change(ctx, "name", func(s *subscription.Subscription) error {
		s.RequestsPerSecond, s.PrimaryKey.Expires = 5, expires.In(istanbul)
		return nil
	}))
	require.Zero(t, acts())

	require.NoError(t, m.Change(ctx, "name", func(s *subscription.Subscription) error {
		s.Operations[0] = s.Operations[1]
		return nil
	}))
	require.NoError(t, m.SetState(ctx, "name", subscription.Suspended))
	require.Equal(t, 2, acts())
}

// The audit says what a subscription had before. Of a new one it says what is not the default.
func TestDifferencesOfASubscription(t *testing.T) {
	t.Parallel()
	full := &subscription.Subscription{
		Name: "shop", Operations: []string{"AddPushNotificationResponse"}, RequestsPerSecond: 5, RequireCallerID: true, AppKey: "app", Channel: "WEB", TellerName: "Ayşe",
	}
	full.PrimaryKey.Expires = time.Date(2026, time.December, 1, 0, 0, 0, 0, time.UTC)
	full.ClientCertificate = "ab12"
	require.Equal(t, []string{
		"rate limit 5/s", "may call AddPushNotificationResponse", "CallerId required", "last day of the keys 2026-11-30",
		"client certificate ab12", "AppKey app", "Channel WEB", "TellerName Ayşe",
	}, subscriptions.Differences(nil, full, time.UTC))
	bare := &subscription.Subscription{Name: "shop"}
	require.Empty(t, subscriptions.Differences(nil, bare, time.UTC))
	require.Empty(t, subscriptions.Differences(full, full, time.UTC))
	require.Equal(t, []string{
		"rate limit none instead of 5/s", "may call nothing instead of AddPushNotificationResponse", "CallerId optional instead of required",
		"last day of the keys never instead of 2026-11-30", "client certificate none instead of ab12", "AppKey none instead of app",
		"Channel none instead of WEB", "TellerName none instead of Ayşe",
	}, subscriptions.Differences(full, bare, time.UTC))
}
