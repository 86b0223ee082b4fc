package backoffice

import (
	"context"
	"fmt"
	"time"

	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Books is where corrections are settled. It is the port of the same name of
// the use case BuyFundFromCustomer.
type Books interface {
	Update(ctx context.Context, locks fund.LockSet, settle func(*fund.Book)) error
}

// Corrector corrects the book: it cancels, reverses and adjusts. Each correction
// is one transaction, in which the act is written too: who did it and why, as
// audit.By has put into the context. Make one with NewCorrector.
type Corrector struct {
	books   Books
	lookups Lookups
	newID   func() operation.ID
	now     func() time.Time
	zone    *time.Location
	// OfTheDay lets a sale be cancelled while it waits for a price of its day. It is
	// that of buyfund.Options.
	OfTheDay bool
}

// NewCorrector returns a Corrector. newID makes the IDs of acts, zone is the
// bank's time zone.
func NewCorrector(books Books, lookups Lookups, newID func() operation.ID, now func() time.Time, zone *time.Location) *Corrector {
	return &Corrector{books: books, lookups: lookups, newID: newID, now: now, zone: zone}
}

// Cancel cancels a recorded operation before its day, or while it waits for a price
// (OfTheDay), with all its sales. A
// repeat of its CallerId is answered Failed from then on. The error is
// ErrNotFound, one of package fund that says why, or that of the port.
func (c *Corrector) Cancel(ctx context.Context, id operation.ID) error {
	found, err := c.lookups.Operation(ctx, id)
	if err != nil {
		return err
	}
	if len(found.Sales) == 0 {
		return fund.ErrNotRecorded
	}
	if found.Sales[0].State != operation.Recorded {
		return fund.ErrNotRecorded
	}
	first := &found.Sales[0]
	o := &fund.Operation{ID: id, Subscription: first.Subscription, Header: first.Header, ReceivedAt: first.ReceivedAt, Due: true, OfTheDay: c.OfTheDay}
	for i := range found.Sales {
		o.Sales = append(o.Sales, fund.RestoreSale(found.Sales[i].Terms))
	}
	now := c.now()
	today := day.Of(now, c.zone)
	ctx = c.act(ctx, c.newID(), now, "sales.cancel", id.String(), fmt.Sprintf("%s for %s", plural(len(o.Sales), "sale"), first.Terms.SelectedDay))
	return c.correct(ctx, fund.NewLockSet([]*fund.Operation{o}, today), func(b *fund.Book) error { return b.Cancel(o, now, today) })
}

// Reverse undoes a completed operation, once: its units return to the holdings,
// and its proceeds are taken back from the accounts. Nothing goes below zero.
// It returns the ID under which the postings are found. The errors are those of
// Cancel.
func (c *Corrector) Reverse(ctx context.Context, id operation.ID) (reversal operation.ID, err error) {
	found, err := c.lookups.Operation(ctx, id)
	if err != nil {
		return reversal, err
	}
	if len(found.Sales) == 0 || found.Sales[0].State != operation.Completed {
		return reversal, fund.ErrNotCompleted
	}
	reversal, now := c.newID(), c.now()
	ctx = c.act(ctx, reversal, now, "sales.reverse", id.String(), plural(len(found.Sales), "sale"))
	return reversal, c.correct(ctx, fund.NewCorrectionLocks(found.Sales), func(b *fund.Book) error {
		return b.Reverse(found.Sales, reversal, now)
	})
}

// AdjustHolding adds units to a holding that exists, or takes them if by is
// negative. It returns the ID under which the posting is found.
func (c *Corrector) AdjustHolding(ctx context.Context, key fund.HoldingKey, by fund.Units) (operation.ID, error) {
	id, now := c.newID(), c.now()
	object := fmt.Sprintf("holding %d %s %q", key.CustomerNo, key.IMKBCode, key.HolderCorporationName)
	ctx = c.act(ctx, id, now, "adjust.holding", object, "by "+by.String())
	return id, c.correct(ctx, fund.LockSet{Holdings: []fund.HoldingKey{key}}, func(b *fund.Book) error {
		return b.AdjustHolding(key, by, id, now)
	})
}

// AdjustAccount adds an amount to the balance of an account that exists, or
// takes it if by is negative. It returns the ID under which the posting is found.
func (c *Corrector) AdjustAccount(ctx context.Context, key fund.AccountKey, by money.Amount) (operation.ID, error) {
	id, now := c.newID(), c.now()
	object := fmt.Sprintf("account %d-%d-%d %s", key.BranchCode, key.CustomerNo, key.AccountSuffix, key.Currency.Code())
	ctx = c.act(ctx, id, now, "adjust.account", object, "by "+by.String())
	return id, c.correct(ctx, fund.LockSet{Accounts: []fund.AccountKey{key}}, func(b *fund.Book) error {
		return b.AdjustAccount(key, by.Minor(), id, now)
	})
}

// act puts the act into the context.
func (c *Corrector) act(ctx context.Context, id operation.ID, at time.Time, action, object, details string) context.Context {
	return audit.With(ctx, audit.Act{ID: id, At: at, Who: audit.Actor(ctx), Action: action, Object: object, Details: details})
}

// correct runs one correction. One that fails leaves nothing.
func (c *Corrector) correct(ctx context.Context, locks fund.LockSet, correction func(*fund.Book) error) error {
	var refused error
	err := c.books.Update(ctx, locks, func(b *fund.Book) {
		if refused = correction(b); refused != nil {
			b.Discard()
		}
	})
	if err != nil {
		return err
	}
	return refused
}

func plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}
