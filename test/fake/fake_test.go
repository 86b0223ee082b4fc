package fake_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/test/contract"
	"bankingapi/test/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestInboxes(t *testing.T) {
	t.Parallel()
	contract.Inboxes(t, func(*testing.T) contract.InboxesUnderTest {
		store, trouble := fake.NewStore(), new(trouble)
		return contract.InboxesUnderTest{
			Inboxes: store.Inboxes(trouble.strike),
			Notifications: func(*testing.T) (all []contract.Notification) {
				for _, n := range store.Notifications() {
					all = append(all, contract.NotificationOf(n))
				}
				return all
			},
			Trouble: trouble.makers(),
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
			Sales: func(*testing.T) (all []contract.Sale) {
				for _, s := range store.Sales() {
					all = append(all, contract.SaleOf(s))
				}
				return all
			},
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

// trouble is what a test ordered to go wrong.
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
