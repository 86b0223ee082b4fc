// Package memory has both use cases over one store in memory, with a clock that tests set. Package
// bank opens the whole service.
package memory

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/addpush"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/test/fake"
)

// Bank is a store with the clock and the IDs of its use cases.
type Bank struct {
	Store *fake.Store
	Clock *fake.Clock
	IDs   *fake.IDs
}

// New returns a bank without a book.
func New(now time.Time) *Bank {
	return &Bank{Store: fake.NewStore(), Clock: fake.NewClock(now), IDs: new(fake.IDs)}
}

// limits are those of queues that no test fills by chance.
var limits = commit.Limits{Batch: 100, Queue: 100, Timeout: time.Minute}

// Buyer returns a use case on books, which are those of the store or lead to them. change may be nil.
// The test closes it.
func (b *Bank) Buyer(t testing.TB, books buyfund.Books, change func(*buyfund.Options)) *buyfund.Buyer {
	t.Helper()
	o := buyfund.Options{Commit: limits, Now: b.Clock.Now, NewID: b.IDs.Next}
	if change != nil {
		change(&o)
	}
	buyer, err := buyfund.New(books, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, buyer.Close(context.Background())) })
	return buyer
}

// Adder returns a use case on inboxes. change may be nil. The test closes it.
func (b *Bank) Adder(t testing.TB, inboxes addpush.Inboxes, change func(*addpush.Options)) *addpush.Adder {
	t.Helper()
	o := addpush.Options{Commit: limits, Now: b.Clock.Now, NewID: b.IDs.Next}
	if change != nil {
		change(&o)
	}
	adder, err := addpush.New(inboxes, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, adder.Close(context.Background())) })
	return adder
}
