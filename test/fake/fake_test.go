package fake_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"bankingapi/application/store"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/test/contract"
	"bankingapi/test/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestInboxes(t *testing.T) {
	t.Parallel()
	contract.Inboxes(t, func(*testing.T) contract.InboxesUnderTest {
		store, trouble := fake.NewStore(), new(trouble)
		return contract.InboxesUnderTest{
			Inboxes:       store.Inboxes(trouble.strike),
			Notifications: func(*testing.T) []push.Entry { return store.Notifications() },
			Trouble:       trouble.makers(),
		}
	})
}

func TestBooks(t *testing.T) {
	t.Parallel()
	contract.Books(t, func(*testing.T) contract.BooksUnderTest {
		store, trouble := fake.NewStore(), new(trouble)
		return contract.BooksUnderTest{
			Books: store.Books(trouble.strike),
			Seed: func(_ *testing.T, s contract.Seed) {
				store.PutPrices(s.Prices...)
				store.PutHoldings(s.Holdings...)
				store.PutAccounts(s.Accounts...)
			},
			Holdings: func(*testing.T) []fund.Holding { return store.Holdings() },
			Accounts: func(*testing.T) []fund.Account { return store.Accounts() },
			Sales:    func(*testing.T) []fund.SaleEntry { return store.Sales() },
			Postings: func(*testing.T) []fund.Posting { return store.Postings() },
			Trouble:  trouble.makers(),
		}
	})
}

func TestSubscriptions(t *testing.T) {
	t.Parallel()
	contract.Subscriptions(t, func(*testing.T) contract.SubscriptionsUnderTest {
		trouble := new(trouble)
		return contract.SubscriptionsUnderTest{
			Repository: fake.NewStore().Subscriptions(trouble.strike),
			Trouble:    trouble.makers(),
		}
	})
}

func openOffice(*testing.T) contract.OfficeUnderTest {
	store, trouble := fake.NewStore(), new(trouble)
	now := time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)
	return contract.OfficeUnderTest{
		Ports:   store.Backoffice(trouble.strike, func() time.Time { return now }),
		Books:   store.Books(nil),
		Inboxes: store.Inboxes(nil),
		Now:     now,
		Trouble: trouble.makers(),
	}
}

func TestOffice(t *testing.T) {
	t.Parallel()
	contract.Office(t, openOffice)
}

// The suite tests what a storage supports, whichever port it leaves to store.Unsupported.
func TestOfficeWithoutAPort(t *testing.T) {
	t.Parallel()
	unsupported := reflect.ValueOf(store.Unsupported().Backoffice)
	for i := range unsupported.NumField() {
		t.Run(unsupported.Type().Field(i).Name, func(t *testing.T) {
			contract.Office(t, func(t *testing.T) contract.OfficeUnderTest {
				o := openOffice(t)
				reflect.ValueOf(&o.Ports).Elem().Field(i).Set(unsupported.Field(i))
				return o
			})
		})
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	contract.Requests(t, func(*testing.T) contract.RequestsUnderTest {
		store, trouble := fake.NewStore(), new(trouble)
		return contract.RequestsUnderTest{Storage: store.Requests(trouble.strike), Reader: store.Backoffice(nil, time.Now).Reader, Trouble: trouble.makers()}
	})
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	contract.Replicas(t, func(*testing.T) contract.ReplicasUnderTest {
		trouble := new(trouble)
		return contract.ReplicasUnderTest{Replicas: fake.NewStore().Replicas(trouble.strike, time.Now), Trouble: trouble.makers()}
	})
}

func TestTrail(t *testing.T) {
	t.Parallel()
	contract.Trail(t, func(*testing.T) contract.TrailUnderTest {
		store, trouble := fake.NewStore(), new(trouble)
		return contract.TrailUnderTest{
			OfficeUnderTest: contract.OfficeUnderTest{
				Ports: store.Backoffice(nil, time.Now), Books: store.Books(trouble.strike), Inboxes: store.Inboxes(nil), Trouble: trouble.makers(),
			},
			Trail: store.Trail(trouble.strike), Subscriptions: store.Subscriptions(nil),
		}
	})
}

// trouble has the faults that a test injects.
type trouble struct {
	disconnected      error
	failing, conflict error // at the next commit
}

func (o *trouble) strike(_ context.Context, m fake.Moment) error {
	if o.disconnected != nil || m != fake.Commit {
		return o.disconnected
	}
	err := errors.Join(o.failing, o.conflict)
	o.failing, o.conflict = nil, nil
	return err
}

func (o *trouble) makers() contract.Trouble {
	failed := fault.New(fault.Unavailable, "struck")
	return contract.Trouble{
		Disconnect: func() { o.disconnected = failed },
		FailCommit: func() { o.failing = failed },
		LoseRace:   func() { o.conflict = fake.ErrConflict },
	}
}

func TestAStrikeEndsTheTransaction(t *testing.T) {
	t.Parallel()
	defect := errors.New("defect")
	for _, c := range []struct {
		moment fake.Moment
		stays  bool
	}{{fake.Begin, false}, {fake.Commit, false}, {fake.Committed, true}} {
		store := fake.NewStore()
		var seen []fake.Moment
		err := add(t, store.Inboxes(func(_ context.Context, m fake.Moment) error {
			if seen = append(seen, m); m == c.moment {
				return defect
			}
			return nil
		}), note("u"))
		require.ErrorIs(t, err, defect)
		require.Len(t, seen, int(c.moment)+1)
		require.Equal(t, c.stays, len(store.Notifications()) == 1)
		require.NoError(t, add(t, store.Inboxes(nil), note("v")), "the failed transaction kept the writer token")
	}
}

func TestATransactionThatLosesEveryRaceFails(t *testing.T) {
	t.Parallel()
	store := fake.NewStore()
	lost := 0
	err := add(t, store.Inboxes(func(_ context.Context, m fake.Moment) error {
		if m == fake.Commit {
			lost++
			return fake.ErrConflict
		}
		return nil
	}), note("u"))
	require.Equal(t, fault.Unavailable, fault.KindOf(err))
	require.Equal(t, 10, lost)
	require.Empty(t, store.Notifications())
}

// A slow transaction of one port does not affect others: they read the data
// committed before it, and write after it.
func TestATransactionWaitsForASlowOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := fake.NewStore()
		slow := store.Inboxes(func(context.Context, fake.Moment) error {
			time.Sleep(time.Second)
			return nil
		})
		begin := fake.BubbleNow()
		var done sync.WaitGroup
		done.Go(func() { require.NoError(t, add(t, slow, note("slow"))) })
		synctest.Wait()
		require.Empty(t, store.Notifications())

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := store.Inboxes(nil).Update(ctx, nil, func(*push.Inbox) { t.Error("the transaction did not wait for the slow one") })
		require.Equal(t, fault.Unavailable, fault.KindOf(err))
		require.Equal(t, time.Second, fake.BubbleNow().Sub(begin))
		require.NoError(t, add(t, store.Inboxes(nil), note("quick")))
		require.Equal(t, 3*time.Second, fake.BubbleNow().Sub(begin))
		done.Wait()
		require.Equal(t, []string{"slow", "quick"}, users(store))
	})
}

func TestTheStoreKeepsCopies(t *testing.T) {
	t.Parallel()
	store := fake.NewStore()
	o := note("u")
	tranData := []push.TranDataItem{{Code: "kept"}}
	o.Notifications[0] = push.Restore(push.Values{UserID: "u", TranData: tranData})
	require.NoError(t, add(t, store.Inboxes(nil), o))
	tranData[0].Code, o.Subscription = "changed", "changed"
	read := store.Notifications()
	read[0].Values.TranData[0].Code = "changed"
	read = store.Notifications()
	require.Equal(t, []push.TranDataItem{{Code: "kept"}}, read[0].Values.TranData)
	require.Equal(t, "s", read[0].Subscription)

	key := idempotency.Key{CallerID: "c"}
	known := idempotency.Record{Key: key, Outcome: operation.Outcome{State: operation.Failed, Faults: []fault.Fault{{Code: "kept"}}}}
	books := store.Books(nil)
	touched := fund.LockSet{Callers: []idempotency.Key{key}}
	require.NoError(t, books.Update(t.Context(), touched, func(b *fund.Book) { b.Register.Add(known) }))
	known.Outcome.Faults[0].Code = "changed"
	for range 2 {
		require.NoError(t, books.Update(t.Context(), touched, func(b *fund.Book) {
			outcome, _, _ := b.Register.Find(key, idempotency.Fingerprint{}, nil)
			require.Equal(t, "kept", outcome.Faults[0].Code)
			outcome.Faults[0].Code = "changed"
		}))
	}
}

func TestTheStoreRejectsAnInvalidBook(t *testing.T) {
	t.Parallel()
	lira, _ := money.ParseCurrency("TRY")
	of := fund.Fund{IMKBCode: "A", HolderCorporationName: "h"}
	holding := fund.HoldingKey{CustomerNo: 1, Fund: of}
	account := fund.AccountKey{CustomerNo: 1, Currency: lira}
	terms := fund.Terms{Holding: holding, Units: 1_000_000, Account: account, PriceID: 1}
	today := day.Of(time.Unix(0, 0), time.UTC)
	settled := func(id operation.ID) *fund.Operation {
		return &fund.Operation{Envelope: operation.Envelope{ID: id}, Sales: []fund.Sale{fund.RestoreSale(terms)}}
	}
	// cheat settles in a book that claims more units than stored.
	cheat := func(store *fake.Store, o *fund.Operation, units fund.Units, balance int64) error {
		return store.Books(nil).Update(t.Context(), fund.NewLockSet([]*fund.Operation{o}, today), func(b *fund.Book) {
			b.LoadHolding(fund.Holding{Key: holding, Units: units})
			b.LoadAccount(fund.Account{Key: account, Balance: money.New(balance, lira)})
			b.LoadPrice(fund.Price{ID: 1, Fund: of, PerUnit: 100_000_000, Currency: lira})
			b.LoadCurrentPrice(fund.PriceDay{Fund: of, Day: today}, fund.Price{ID: 1, Fund: of, PerUnit: 100_000_000, Currency: lira, ValidFrom: today})
			if o.Due {
				b.LoadClaim(o.ID)
			}
			b.Settle([]*fund.Operation{o}, time.Unix(0, 0), today)
		})
	}

	store := fake.NewStore()
	require.ErrorContains(t, cheat(store, settled(fake.NewID(1)), 5_000_000, -1000), "below zero")
	require.NoError(t, cheat(store, settled(fake.NewID(1)), 5_000_000, 0))
	require.ErrorContains(t, cheat(store, settled(fake.NewID(1)), 5_000_000, 0), "second time")
	due := settled(fake.NewID(1))
	due.Due = true
	due.Sales[0] = fund.RestoreSale(fund.Terms{Holding: holding, Units: 1_000_000, Account: account, SelectedDay: today})
	require.ErrorContains(t, cheat(store, due, 5_000_000, 0), "second time")
	due.ID = fake.NewID(2)
	require.ErrorContains(t, cheat(store, due, 5_000_000, 0), "second time")
	require.Len(t, store.Sales(), 1)
	require.Equal(t, []fund.Holding{{Key: holding, Units: 4_000_000}}, store.Holdings())
}

func TestClock(t *testing.T) {
	t.Parallel()
	c := fake.NewClock(time.Date(2026, time.November, 20, 15, 0, 0, 1999, time.FixedZone("", 3*60*60)))
	noon := time.Date(2026, time.November, 20, 12, 0, 0, 1000, time.UTC)
	require.Equal(t, noon, c.Now())
	c.Advance(time.Hour + 999)
	require.Equal(t, noon.Add(time.Hour), c.Now())
	c.Advance(-time.Microsecond)
	require.Equal(t, noon.Add(time.Hour-time.Microsecond), c.Now())
}

func TestIDs(t *testing.T) {
	t.Parallel()
	var ids fake.IDs
	last := operation.ID{}
	for n := range uint64(1000) {
		id := ids.Next()
		require.Equal(t, fake.NewID(n+1), id)
		require.Less(t, last.String(), id.String())
		require.Equal(t, byte('7'), id.String()[14])
		require.Equal(t, byte('8'), id.String()[19])
		last = id
	}
}

func add(t *testing.T, inboxes *fake.Inboxes, o *push.Operation) error {
	t.Helper()
	return inboxes.Update(t.Context(), nil, func(b *push.Inbox) { b.Accept([]*push.Operation{o}) })
}

func note(userID string) *push.Operation {
	return &push.Operation{Envelope: operation.Envelope{Subscription: "s"}, Notifications: []push.Notification{push.Restore(push.Values{UserID: userID})}}
}

func users(store *fake.Store) (all []string) {
	for _, n := range store.Notifications() {
		all = append(all, n.Values.UserID)
	}
	return all
}
