package buyfund_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/buyfund"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// reading are books whose snapshots are held until they get a turn.
type reading struct {
	buyfund.Books
	begun chan fund.LockSet // has an element for each snapshot that has begun
	turns chan error
}

func (r reading) Snapshot(ctx context.Context, touched fund.LockSet) (*fund.Book, error) {
	r.begun <- touched
	select {
	case err := <-r.turns:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Unavailable, context.Cause(ctx), "")
	}
	return r.Books.Snapshot(ctx, touched)
}

// openReading opens a bank with such books.
func openReading(t *testing.T, options func(*buyfund.Options)) (*bank, reading) {
	t.Helper()
	r := reading{begun: make(chan fund.LockSet, 100), turns: make(chan error)}
	b := openBank(t, with{options: options, books: func(books buyfund.Books) buyfund.Books {
		r.Books = books
		return r
	}})
	return b, r
}

// quote asks for the quotes of some sales.
func (b *bank) quote(ctx context.Context, caller *subscription.Subscription, customer int64, sales int) error {
	parameters := make([]fund.SaleFields, sales)
	for i := range parameters {
		parameters[i] = sale("1", ofCustomer(customer))
	}
	quotes, err := b.Quote(ctx, caller, operation.Header{}, parameters)
	if err == nil && len(quotes) != sales {
		err = fmt.Errorf("%d quotes", len(quotes))
	}
	return err
}

// Quotes need a connection and processor time. A partner that asks for many at the same time must
// not take both from others.
func TestSubscriptionsTakeTurnsForQuotes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, r := openReading(t, func(o *buyfund.Options) { o.Commit.Batch = 3 })
		ended := make(chan error, 100)
		ask := func(caller *subscription.Subscription, customer int64) {
			go func() { ended <- b.quote(t.Context(), caller, customer, 3) }()
			synctest.Wait()
		}
		const requests = 20
		for range requests {
			ask(ours, 1001)
		}
		require.LessOrEqual(t, len(r.begun), 2, "all quotes at the same time")
		ask(&subscription.Subscription{Name: "other"}, 1002)
		before := 0
		for isOther := false; !isOther; before++ {
			set := <-r.begun
			isOther = set.Accounts[0] == account(1001) && set.Holdings[0].CustomerNo == 1002
			r.turns <- nil
		}
		require.LessOrEqual(t, before, 4)
		for range requests + 1 - before {
			<-r.begun
			r.turns <- nil
		}
		for range requests + 1 {
			require.NoError(t, <-ended)
		}
	})
}

func TestAQuoteHasNoUnknownEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := openReading(t, func(o *buyfund.Options) { o.Commit.Timeout = 3 * time.Second })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := b.quote(ctx, ours, 1001, 1)
		require.Equal(t, fault.Unavailable, fault.KindOf(err), err)
	})
}

func TestAQuoteTellsWhyTheStorageFails(t *testing.T) {
	t.Parallel()
	b, r := openReading(t, nil)
	unavailable := fault.New(fault.Unavailable, "away")
	for _, want := range []error{unavailable, errPoison} {
		ended := make(chan error)
		go func() { ended <- b.quote(t.Context(), ours, 1001, 1) }()
		<-r.begun
		r.turns <- want
		require.ErrorIs(t, <-ended, want)
	}
}

func TestQuoteBusyIsWhatQuoteWouldAnswerNow(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	require.NoError(t, b.QuoteBusy(ours))
	require.NoError(t, b.quote(t.Context(), ours, 1001, 1))
	require.NoError(t, b.Close(t.Context()))
	require.Equal(t, fault.Busy, fault.KindOf(b.QuoteBusy(ours)))
	require.Equal(t, b.quote(t.Context(), ours, 1001, 1), b.QuoteBusy(ours))
}
