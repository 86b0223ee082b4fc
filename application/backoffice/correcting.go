package backoffice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Books settles corrections. It has Update of the port buyfund.Books.
type Books interface {
	Update(ctx context.Context, locks fund.LockSet, settle func(*fund.Book)) error
}

// Corrector corrects the book. Each correction is one transaction. It also writes the act: who did
// it and why, as audit.By has put into the context.
type Corrector struct {
	// Reader reads on the connections on which the corrections are written.
	Reader  Reader
	lookups Lookups
	books   Books
	prices  Withdrawing
	acts    audit.Acts
	zone    func() *time.Location
}

// Corrector returns the use cases that correct the book.
func (o *Office) Corrector() *Corrector {
	return &Corrector{Reader: o.Reader, lookups: o.Lookups, books: o.Books, prices: o.Withdrawing, acts: o.Acts, zone: o.Zone}
}

// Cancel cancels a recorded operation until it is settled, with all its sales. From then on a
// repeat of its CallerId gets the outcome Failed. The error is ErrNotFound, an *EndedError if the
// operation does not wait for its day, or the error of the port.
func (c *Corrector) Cancel(ctx context.Context, id operation.ID) error {
	found, err := c.lookups.Operation(ctx, id)
	if err != nil {
		return err
	}
	if ended := c.ended(&found); ended != nil {
		return ended
	}
	first := &found.Sales[0]
	cancelled := &fund.Operation{Envelope: first.Envelope, Due: true}
	for i := range found.Sales {
		cancelled.Sales = append(cancelled.Sales, fund.RestoreSale(found.Sales[i].Terms))
	}
	act := c.acts.New(ctx, audit.SalesCancel, id.String(), fmt.Sprintf("%s for %s", Plural(len(cancelled.Sales), "sale"), first.Terms.SelectedDay))
	today := day.Of(act.At, c.zone())
	err = c.correct(ctx, act, fund.NewLockSet([]*fund.Operation{cancelled}, today), func(b *fund.Book) error {
		return b.Cancel(cancelled, act.At)
	})
	if !errors.Is(err, fund.ErrNotRecorded) {
		return err
	}
	// It ended since it was read, or is being settled now.
	found, failed := c.lookups.Operation(ctx, id)
	if failed != nil {
		return failed
	}
	ended := c.ended(&found)
	if ended != nil {
		return ended
	}
	return &EndedError{How: "is being settled at this moment", Next: "see with `show operation " + id.String() + "` how it ends"}
}

// EndedError is the error of Cancel for an operation that does not wait for its day. It says how
// and when the operation ended, and what can be done. It is fund.ErrNotRecorded.
type EndedError struct{ How, Next string }

func (e *EndedError) Error() string { return "the operation " + e.How + ": " + e.Next }

// Is reports whether target is fund.ErrNotRecorded.
func (e *EndedError) Is(target error) bool { return target == fund.ErrNotRecorded }

// ended returns an *EndedError unless the operation waits for its day.
func (c *Corrector) ended(found *Operation) error {
	const nothing = "there is nothing to cancel"
	at := func(t time.Time) string { return " at " + t.In(c.zone()).Format("2006-01-02 15:04:05 MST") }
	switch {
	case found.Refusal != nil:
		return &EndedError{"was refused" + at(found.Refusal.ReceivedAt) + " and changed nothing", nothing}
	case len(found.Sales) == 0:
		return &EndedError{"has no sale", "only a sale for a later day can be cancelled"}
	}
	sale := &found.Sales[0]
	switch {
	case sale.State == operation.Recorded:
		return nil
	case found.Reversal != nil:
		return &EndedError{"was completed" + at(sale.SettledAt) + " and reversed" + at(found.Reversal.At), nothing}
	case sale.State == operation.Completed:
		return &EndedError{"was completed" + at(sale.SettledAt), "use `sales reverse " + found.ID.String() + "`"}
	case sale.Refusal == fault.Cancelled:
		return &EndedError{"was cancelled" + at(sale.SettledAt), nothing}
	}
	return &EndedError{"failed" + at(sale.SettledAt) + " and changed nothing", nothing}
}

// Reverse undoes a completed operation, once: its units return to the holdings, and its
// proceeds are taken back from the accounts. Nothing goes below zero. It returns the ID of the
// postings. The error is ErrNotFound, that of fund.Book.Reverse, or that of the port.
func (c *Corrector) Reverse(ctx context.Context, id operation.ID) (reversal operation.ID, err error) {
	found, err := c.lookups.Operation(ctx, id)
	if err != nil {
		return reversal, err
	}
	if len(found.Sales) == 0 || found.Sales[0].State != operation.Completed {
		return reversal, fund.ErrNotCompleted
	}
	act := c.acts.New(ctx, audit.SalesReverse, id.String(), Plural(len(found.Sales), "sale"))
	return act.ID, c.correct(ctx, act, fund.NewCorrectionLocks(found.Sales), func(b *fund.Book) error {
		return b.Reverse(found.Sales, act.ID, act.At)
	})
}

// ReverseAgain reverses an operation like Reverse, and records its sales again for the same day,
// as another operation of the subscription: one transaction with one act, which names both. Use
// it for an operation that was settled at a wrong price, after the right price was imported. It
// returns the IDs of the reversal and of the other operation. It returns the errors of Reverse and
// of fund.Book.RecordAgain.
func (c *Corrector) ReverseAgain(ctx context.Context, id operation.ID) (reversal, again operation.ID, err error) {
	found, err := c.lookups.Operation(ctx, id)
	if err != nil {
		return reversal, again, err
	}
	if len(found.Sales) == 0 || found.Sales[0].State != operation.Completed {
		return reversal, again, fund.ErrNotCompleted
	}
	another := found.Sales[0].Envelope
	another.ID = c.acts.NewID()
	act := c.acts.New(ctx, audit.SalesReverse, id.String(), Plural(len(found.Sales), "sale")+", again as "+another.ID.String())
	another.ReceivedAt = act.At
	return act.ID, another.ID, c.correct(ctx, act, fund.NewRepeatLocks(found.Sales), func(b *fund.Book) error {
		err := b.Reverse(found.Sales, act.ID, act.At)
		if err != nil {
			return err
		}
		return b.RecordAgain(found.Sales, another, c.zone())
	})
}

// TryReverse returns the error that Reverse, or with again ReverseAgain, would return now. It
// changes nothing.
func (c *Corrector) TryReverse(ctx context.Context, id operation.ID, again bool) error {
	found, err := c.lookups.Operation(ctx, id)
	if err != nil {
		return err
	}
	if len(found.Sales) == 0 || found.Sales[0].State != operation.Completed {
		return fund.ErrNotCompleted
	}
	var refused error
	err = c.books.Update(ctx, fund.NewRepeatLocks(found.Sales), func(b *fund.Book) {
		refused = b.Reverse(found.Sales, id, c.acts.Now())
		if refused == nil && again {
			refused = b.RecordAgain(found.Sales, found.Sales[0].Envelope, c.zone())
		}
		b.Discard()
	})
	return cmp.Or(err, refused)
}

// SettledAt lists the operations with a sale that was settled at a price and was not reversed, in
// the order in which they were received. The error is ErrNotFound if no price has the ID.
func (c *Corrector) SettledAt(ctx context.Context, priceID int64) (ids []operation.ID, err error) {
	for s, err := range c.Reader.Sales(ctx, Query{PriceID: priceID, State: operation.Completed}) {
		if err != nil {
			return nil, err
		}
		isListed := len(ids) > 0 && ids[len(ids)-1] == s.ID
		if s.ReversedAt.IsZero() && !isListed {
			ids = append(ids, s.ID)
		}
	}
	if len(ids) > 0 {
		return ids, nil
	}
	for price, err := range c.Reader.Prices(ctx, Query{}) {
		if err != nil || price.ID == priceID {
			return nil, err
		}
	}
	return nil, ErrNotFound
}

// errByNothing is the error of an adjustment that would change nothing.
var errByNothing = fault.New(fault.Invalid, "An adjustment is by more or less than 0.")

// AdjustHolding adds units to an existing holding, or takes units if by is negative. It returns
// the ID of the posting. The error is fault.Invalid if by is 0.
func (c *Corrector) AdjustHolding(ctx context.Context, key fund.HoldingKey, by fund.Units) (operation.ID, error) {
	if by == 0 {
		return operation.ID{}, errByNothing
	}
	object := fmt.Sprintf("holding %d %s %q", key.CustomerNo, key.IMKBCode, key.HolderCorporationName)
	act := c.acts.New(ctx, audit.AdjustHolding, object, "by "+by.String())
	return act.ID, c.correct(ctx, act, fund.LockSet{Holdings: []fund.HoldingKey{key}}, func(b *fund.Book) error {
		return b.Adjust(fund.UnitPosting(fund.AdjustmentPosting, act.ID, 0, key, by), act.At)
	})
}

// AdjustAccount adds an amount to the balance of an existing account, or takes it if by is
// negative. It returns the ID of the posting. The error is fault.Invalid if by is 0, or an amount of
// another currency than the account's.
func (c *Corrector) AdjustAccount(ctx context.Context, key fund.AccountKey, by money.Amount) (operation.ID, error) {
	if by.Minor() == 0 {
		return operation.ID{}, errByNothing
	}
	if by.Currency() != key.Currency {
		return operation.ID{}, fault.New(fault.Invalid, "The amount is in "+cmp.Or(by.Currency().Code(), "no currency")+", and the account in "+key.Currency.Code()+".")
	}
	object := fmt.Sprintf("account %d-%d-%d %s", key.BranchCode, key.CustomerNo, key.AccountSuffix, key.Currency.Code())
	act := c.acts.New(ctx, audit.AdjustAccount, object, "by "+by.String())
	return act.ID, c.correct(ctx, act, fund.LockSet{Accounts: []fund.AccountKey{key}}, func(b *fund.Book) error {
		return b.Adjust(fund.MoneyPosting(fund.AdjustmentPosting, act.ID, 0, key, by.Minor()), act.At)
	})
}

// correct runs one correction, with its act. A correction that fails changes nothing.
func (c *Corrector) correct(ctx context.Context, act audit.Act, locks fund.LockSet, correction func(*fund.Book) error) error {
	var refused error
	err := c.books.Update(audit.With(ctx, act), locks, func(b *fund.Book) {
		refused = correction(b)
		if refused != nil {
			b.Discard()
		}
	})
	return cmp.Or(err, refused)
}

// Withdrawing withdraws prices.
type Withdrawing interface {
	// WithdrawPrice stores what fund.Price.Withdraw returns for the price on that day, and
	// keeps the act of the context, with the old price, in the same transaction. The error is
	// ErrNotFound or the error of Withdraw. After an error nothing was changed.
	WithdrawPrice(ctx context.Context, id int64, today day.Day) error
}

// A price can be withdrawn until withdrawBefore before its day begins. So no sale of that day
// is settled at the price while it is being withdrawn.
const withdrawBefore = time.Minute

// WithdrawPrice withdraws a price of a later day, so that it never applies. Its PriceID cannot
// be used again. It returns the errors of Withdrawing.
func (c *Corrector) WithdrawPrice(ctx context.Context, id int64) error {
	ctx = c.acts.Begin(ctx, audit.PricesWithdraw, strconv.FormatInt(id, 10), "")
	return c.prices.WithdrawPrice(ctx, id, day.Of(c.acts.Now().Add(withdrawBefore), c.zone()))
}

// Plural returns a text like "1 error" or "2 errors".
func Plural[N int | int64](n N, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}
