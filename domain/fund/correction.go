package fund

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// The reasons why a correction is refused. A refused correction changes nothing.
var (
	ErrNotRecorded  = errors.New("the operation does not wait for its day")
	ErrNotCompleted = errors.New("only a completed operation can be reversed")
	ErrReversed     = errors.New("the operation is reversed already")
	ErrNoHolding    = errors.New("the holding does not exist")
	ErrNoAccount    = errors.New("the account does not exist")
	ErrOutOfRange   = errors.New("the quantity would become too large")
	ErrPriceCounts  = errors.New("the price counts from its day on: only a price of a later day can be withdrawn")
	ErrWithdrawn    = errors.New("the price is withdrawn already")
	ErrNoDay        = errors.New("the sale took place at once, so it has no day for which it could wait again")
	ErrPriceHolds   = errors.New("it would be settled at the same price again: import the right price first, with the same ValidFrom and a higher PriceID")
)

// BelowZeroError is the error of a correction that would take more than the position has.
type BelowZeroError struct {
	// Of is "holding" or "account". Has is its quantity. Taken is the quantity that the
	// correction would take from it.
	Of, Has, Taken string
}

func (e *BelowZeroError) Error() string {
	return fmt.Sprintf("the %s has %s, and the correction would take %s: nothing goes below zero", e.Of, e.Has, e.Taken)
}

// Reversal undoes a completed operation.
type Reversal struct {
	OperationID operation.ID
	ID          operation.ID // the ID of the reversal and of its postings
	At          time.Time
}

// NewCorrectionLocks lists what a correction of these sales reads or changes: their holdings
// and accounts, and the reversal of their operation.
func NewCorrectionLocks(sales []SaleEntry) LockSet {
	var t LockSet
	for i := range sales {
		terms := &sales[i].Terms
		t.Holdings = append(t.Holdings, terms.Holding)
		t.Accounts = append(t.Accounts, terms.Account)
	}
	if len(sales) > 0 {
		t.Reversed = []operation.ID{sales[0].ID}
	}
	t.Holdings = sortedOnce(t.Holdings, HoldingKey.Compare)
	t.Accounts = sortedOnce(t.Accounts, AccountKey.Compare)
	return t
}

// Withdraw returns a price of a later day as withdrawn, so that it never applies: its ValidFrom
// becomes day.Last. The error is ErrPriceCounts or ErrWithdrawn.
func (p Price) Withdraw(today day.Day) (Price, error) {
	if p.IsWithdrawn() {
		return p, ErrWithdrawn
	}
	if !p.ValidFrom.After(today) {
		return p, ErrPriceCounts
	}
	p.ValidFrom = day.Last
	return p, nil
}

// IsWithdrawn reports whether the price is withdrawn and never applies.
func (p Price) IsWithdrawn() bool { return p.ValidFrom == day.Last }

// LoadReversal tells the book that an operation is already reversed.
func (b *Book) LoadReversal(id operation.ID) { b.reversed = append(b.reversed, id) }

// Cancel ends a recorded operation that is not settled yet. The operation becomes Failed, and a
// repeat of its CallerId gets this outcome. The error is ErrNotRecorded if the operation is not
// recorded or another transaction is settling it. Cancel and other corrections replace Settle.
func (b *Book) Cancel(o *Operation, now time.Time) error {
	if !b.claimed[o.ID] {
		return ErrNotRecorded
	}
	delete(b.claimed, o.ID)
	o.outcome = operation.Outcome{ID: o.ID, State: operation.Failed}
	for i := range o.Sales {
		s := o.entry(i, operation.Failed)
		s.Refusal = fault.Cancelled
		s.SettledAt = now
		b.changes.Settled = append(b.changes.Settled, s)
		o.outcome.Faults = append(o.outcome.Faults, operation.UnderParameter(i, []fault.Fault{Refusal(fault.Cancelled)})...)
	}
	key, _ := o.Key()
	b.Register.Change(key, o.outcome)
	b.changes.end(&o.Envelope, Ended{State: operation.Failed, Faults: o.outcome.Faults, At: now})
	return nil
}

// Reverse returns the units of a completed operation to its holdings, and takes its proceeds
// back from its accounts. sales are all sales of the operation. The sales stay Completed. The
// error is ErrNotCompleted, ErrReversed, *BelowZeroError if an account has spent the proceeds,
// or another error of Adjust.
func (b *Book) Reverse(sales []SaleEntry, id operation.ID, now time.Time) error {
	if len(sales) == 0 {
		return ErrNotCompleted
	}
	if slices.Contains(b.reversed, sales[0].ID) {
		return ErrReversed
	}
	first := &sales[0]
	reversal := Reversal{OperationID: first.ID, ID: id, At: now}
	for i := range sales {
		s := &sales[i]
		if s.State != operation.Completed {
			return ErrNotCompleted
		}
		for _, p := range s.ReversalPostings(&reversal) {
			err := b.move(&p.Posting)
			if err != nil {
				return err
			}
		}
	}
	b.changes.Reversals = append(b.changes.Reversals, reversal)
	b.changes.end(&first.Envelope, Ended{State: operation.Completed, Reversed: true, At: now})
	return nil
}

// NewRepeatLocks lists what Reverse and RecordAgain read or change: what NewCorrectionLocks
// lists, and the prices of the days of the sales.
func NewRepeatLocks(sales []SaleEntry) LockSet {
	t := NewCorrectionLocks(sales)
	for i := range sales {
		terms := &sales[i].Terms
		if !terms.SelectedDay.IsNone() {
			t.PriceDays = append(t.PriceDays, PriceDay{terms.Holding.Fund, terms.SelectedDay})
		}
	}
	t.PriceDays = sortedOnce(t.PriceDays, PriceDay.Compare)
	return t
}

// RecordAgain records the sales of an operation that Reverse has undone as another operation, for
// the same day. It settles like every due operation, at the price of that day. again is the
// envelope of the other operation. It has no CallerId: that of the first one names the first one.
// zone is the bank's time zone.
// The error is ErrNoDay if the operation took place at once, or ErrPriceHolds if each sale was settled
// at a price that still is the price of its day. An array waits again as a whole if the price of one
// of its funds was corrected.
func (b *Book) RecordAgain(sales []SaleEntry, again operation.Envelope, zone *time.Location) error {
	again.Header.CallerID = ""
	if tookPlaceAtOnce(sales, zone) {
		return ErrNoDay
	}
	if !slices.ContainsFunc(sales, b.hasOtherPrice) {
		return ErrPriceHolds
	}
	for i := range sales {
		b.changes.Sales = append(b.changes.Sales, SaleEntry{Envelope: again, Index: sales[i].Index, Terms: sales[i].Terms, State: operation.Recorded})
	}
	return nil
}

// hasOtherPrice reports whether a completed sale for a later day would now be settled at another
// price than the one at which it was settled.
func (b *Book) hasOtherPrice(s SaleEntry) bool {
	current, ok := b.current[s.PriceDay()]
	return !ok || current.ID != s.PriceID || current.ValidFrom != s.Terms.SelectedDay
}

// tookPlaceAtOnce reports whether a completed operation was for the day on which it was received. The
// caller agreed to each of its prices then. An operation that RecordAgain has recorded on its day
// names the prices of the first one, and at least one of its sales was settled at another one.
func tookPlaceAtOnce(sales []SaleEntry, zone *time.Location) bool {
	return !slices.ContainsFunc(sales, func(s SaleEntry) bool {
		selected := s.Terms.SelectedDay
		isOfItsDay := selected.IsNone() || selected == day.Of(s.ReceivedAt, zone)
		return !isOfItsDay || s.PriceID != s.Terms.PriceID
	})
}

// Adjust changes a holding or an account by a posting.
func (b *Book) Adjust(p Posting, now time.Time) error {
	err := b.move(&p)
	if err != nil {
		return err
	}
	b.changes.Adjustments = append(b.changes.Adjustments, PostingEntry{p, now})
	return nil
}

// Discard drops all changes after a correction failed.
func (b *Book) Discard() {
	b.changes = Changes{}
	b.Register = b.Register.WithoutChanges()
	for _, p := range b.holdings {
		p.now = p.loaded
	}
	for _, p := range b.accounts {
		p.now = p.loaded
	}
}

// move adds a posting to its position. The error says that the position does not exist or would
// leave its limits.
func (b *Book) move(p *Posting) error {
	if p.IsMoney() {
		account := b.accounts[p.Account]
		if account == nil {
			return ErrNoAccount
		}
		after, ok := account.now.Add(money.New(p.Quantity, p.Account.Currency))
		switch {
		case !ok:
			return ErrOutOfRange
		case after.Minor() < 0:
			return &BelowZeroError{"account", account.now.String(), p.taken()}
		}
		account.now = after
	} else {
		holding := b.holdings[p.Holding]
		if holding == nil {
			return ErrNoHolding
		}
		after := holding.now + Units(p.Quantity)
		switch {
		case p.Quantity > 0 && (after < holding.now || after > MaxUnits):
			return ErrOutOfRange
		case after < 0:
			return &BelowZeroError{"holding", holding.now.String(), p.taken()}
		}
		holding.now = after
	}
	return nil
}

// taken formats a negative quantity without its sign. The smallest number has no opposite.
func (p *Posting) taken() string { return strings.TrimPrefix(p.Format(p.Quantity), "-") }
