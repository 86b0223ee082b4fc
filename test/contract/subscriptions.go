package contract

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/subscriptions"
	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
)

// SubscriptionsUnderTest is an implementation of subscriptions.Repository.
type SubscriptionsUnderTest struct {
	subscriptions.Repository
	Trouble
}

// Subscriptions is the suite of the port subscriptions.Repository.
func Subscriptions(t *testing.T, open func(t *testing.T) SubscriptionsUnderTest) {
	run := each(t, func(t *testing.T) repository { return repository{open(t), t} })
	run("every field comes back as it was", func(t *testing.T, b repository) {
		full := &subscription.Subscription{
			Name:              odd(100, "name"),
			State:             subscription.Suspended,
			Operations:        []string{"BuyFundFromCustomer"},
			RequestsPerSecond: 1<<31 - 1,
			AppKey:            odd(200, "app key"),
			Channel:           odd(200, "channel"),
			TellerName:        odd(200, "teller name"),
			PrimaryHash:       subscription.Hash{1, 0xff, 31: 2},
			SecondaryHash:     subscription.Hash{3, 0, 0xfe, 31: 4},
			ClientCertificate: strings.Repeat("0af3", 16),
		}
		bare := &subscription.Subscription{
			Name: "bare", State: subscription.Active,
			Operations: []string{"AddPushNotificationResponse", "BuyFundFromCustomer"},
		}
		b.create(full)
		b.create(bare)
		b.all(bare, full)
	})

	run("the last use only moves forward", func(t *testing.T, b repository) {
		usage, ok := b.Repository.(subscriptions.Usage)
		if !ok {
			t.Log("this implementation keeps no usage")
			return
		}
		s := named("used")
		s.Created = at(0)
		s.RequireCallerID = true
		s.PrimaryKey = subscription.KeyLife{Created: at(1), Expires: at(2), Used: at(3)}
		s.SecondaryKey = subscription.KeyLife{Created: at(4), Expires: at(5)}
		b.create(s)
		b.all(s)
		require.NoError(t, usage.KeepUses(t.Context(), []subscriptions.Use{
			{Name: "used", Primary: at(2), Secondary: at(7), WithoutCallerID: at(8)}, {Name: "unknown", Primary: at(1)},
		}))
		s.SecondaryKey.Used = at(7)
		s.WithoutCallerID = at(8)
		b.all(s)
	})

	run("all are listed in byte order", func(t *testing.T, b repository) {
		require.Empty(t, b.list())
		for _, name := range []string{"b", "ä", "B", "a", "a b", "ab", "a-b", "İ", "Z", "10", "9"} {
			b.create(named(name))
		}
		names := these(b.list(), func(s *subscription.Subscription) string { return s.Name })
		require.Equal(t, []string{"10", "9", "B", "Z", "a", "a b", "a-b", "ab", "b", "ä", "İ"}, names)
	})

	run("a name can be created once", func(t *testing.T, b repository) {
		first := named("taken")
		first.Channel = "first"
		b.create(first)
		require.ErrorIs(t, b.Create(t.Context(), named("taken")), subscriptions.ErrNameTaken)
		b.create(named("Taken"))
		b.create(named("taken "))
		b.all(named("Taken"), first, named("taken "))
	})

	run("changes are stored only through Change", func(t *testing.T, b repository) {
		b.create(named("a"))
		b.create(named("b"))
		want := &subscription.Subscription{
			Name: "a", State: subscription.Cancelled, Operations: []string{"AddPushNotificationResponse"},
			RequestsPerSecond: 7, AppKey: "k", Channel: "c", TellerName: "t",
			PrimaryHash: subscription.Hash{1}, SecondaryHash: subscription.Hash{2},
		}
		var kept *subscription.Subscription
		require.NoError(t, b.Change(t.Context(), "a", func(s *subscription.Subscription) error {
			equal(t, named("a"), s)
			*s = *want
			kept = s
			return nil
		}))
		kept.State = subscription.Active
		kept.Operations[0] = "BuyFundFromCustomer"
		want.Operations = []string{"AddPushNotificationResponse"}
		b.list()[0].Channel = "changed outside"
		b.all(want, named("b"))

		// Set everything back to zero values, which are valid.
		require.NoError(t, b.Change(t.Context(), "a", func(s *subscription.Subscription) error {
			*s = *named("a")
			return nil
		}))
		b.all(named("a"), named("b"))
	})

	run("a failed change has no effect", func(t *testing.T, b repository) {
		b.create(named("a"))
		refused := errors.New("refused")
		err := b.Change(t.Context(), "a", func(s *subscription.Subscription) error {
			s.Channel = "changed"
			return refused
		})
		require.ErrorIs(t, err, refused)
		b.all(named("a"))
	})

	run("an unknown name is not found", func(t *testing.T, b repository) {
		b.create(named("a"))
		for _, name := range []string{"", "A", "a ", "b"} {
			err := b.Change(t.Context(), name, func(*subscription.Subscription) error {
				t.Error("called for a subscription that does not exist")
				return nil
			})
			require.ErrorIs(t, err, subscriptions.ErrNotFound)
		}
	})

	run("one of twenty creates a name", func(t *testing.T, b repository) {
		errs := together(callers, func(i int) error {
			s := named("one")
			s.Channel = strconv.Itoa(i)
			return b.Create(t.Context(), s)
		})
		created := -1
		for i, err := range errs {
			if err == nil {
				require.Equal(t, -1, created, "two calls created it")
				created = i
				continue
			}
			require.ErrorIs(t, err, subscriptions.ErrNameTaken)
		}
		require.NotEqual(t, -1, created, "no call created it")
		require.Equal(t, strconv.Itoa(created), b.list()[0].Channel)
	})

	run("none of twenty concurrent changes is lost", func(t *testing.T, b repository) {
		b.create(named("a"))
		errs := together(callers, func(int) error {
			return b.Change(t.Context(), "a", func(s *subscription.Subscription) error {
				s.RequestsPerSecond++
				s.Channel += "x"
				return nil
			})
		})
		require.NoError(t, errors.Join(errs...))
		changed := b.list()[0]
		require.Equal(t, callers, changed.RequestsPerSecond)
		require.Equal(t, strings.Repeat("x", callers), changed.Channel)
	})

	run("listing fails without storage or context", func(t *testing.T, b repository) {
		fails(t, fault.Unavailable, b.Create(ended(t), named("a")))
		require.Empty(t, b.list())
		unreachable(t, b.Trouble, func(ctx context.Context) []error {
			_, err := b.All(ctx)
			return []error{err, b.Create(ctx, named("a"))}
		})
	})

	t.Run("transaction", func(t *testing.T) {
		transactions(t, func(t *testing.T) transaction {
			b := repository{open(t), t}
			b.create(named("a"))
			changed := named("a")
			changed.RequestsPerSecond = 1
			return transaction{
				Trouble: b.Trouble,
				run: func(ctx context.Context, during func()) error {
					return b.Change(ctx, "a", func(s *subscription.Subscription) error {
						s.RequestsPerSecond++
						during()
						return nil
					})
				},
				nothing: func(*testing.T) { b.all(named("a")) },
				once:    func(*testing.T) { b.all(changed) },
			}
		})
	})
}

// repository is the implementation that one test uses.
type repository struct {
	SubscriptionsUnderTest
	t *testing.T
}

func (b repository) create(s *subscription.Subscription) {
	b.t.Helper()
	require.NoError(b.t, b.Create(b.t.Context(), s))
}

func (b repository) list() []*subscription.Subscription {
	b.t.Helper()
	all, err := b.All(b.t.Context())
	require.NoError(b.t, err)
	return all
}

func (b repository) all(want ...*subscription.Subscription) {
	b.t.Helper()
	equal(b.t, want, b.list())
}

func named(name string) *subscription.Subscription {
	return &subscription.Subscription{
		Name: name, State: subscription.Active,
		Operations:  []string{"AddPushNotificationResponse", "BuyFundFromCustomer"},
		PrimaryHash: subscription.Hash{0: 9}, SecondaryHash: subscription.Hash{0: 8},
	}
}
