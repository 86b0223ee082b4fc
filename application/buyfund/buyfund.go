// Package buyfund is the use case BuyFundFromCustomer: it sells a customer's
// fund holding and credits the proceeds, now or on a later day.
package buyfund

import (
	"context"
	"slices"
	"time"

	"bankingapi/application/commit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// Books is where the bank's book is kept.
type Books interface {
	// Update is one transaction. It loads a fund.Book with those of the touched
	// things that exist, locked against every other Update in one fixed order,
	// calls settle, and writes the book's Changes and its Register's.
	//
	// Of touched.Due it claims what is still recorded and no other transaction
	// holds; it does not wait for the others.
	//
	//  1. nil: all of it is on disk.
	//  2. fault.Unavailable: certainly nothing was written; trying later may help.
	//  3. fault.Indeterminate: the connection was lost during the commit.
	//  4. any other error: nothing was written, and trying again will not help.
	//
	// settle may be called again with a new book, when the transaction lost a
	// race, or when a book that was only presumed to be so was not: what counts
	// is what the last call left. If it panics, nothing is written and Update
	// panics with it. A cancelled ctx before the commit is outcome 2.
	Update(ctx context.Context, touched fund.Touched, settle func(*fund.Book)) error

	// Due lists operations recorded for that day or an earlier one, with all
	// their sales, in the order of day and ID, from after the given operation
	// (nil: from the first), at most limit. It claims nothing. The errors are
	// those of Update.
	Due(ctx context.Context, on day.Day, after *fund.Operation, limit int) ([]*fund.Operation, error)
}

// Options are what a Buyer needs besides its port. All are required.
type Options struct {
	// ParametersLimit is the most records of one request.
	ParametersLimit int
	Commit          commit.Limits
	Observer        commit.Observer
	// Zone is where the bank's calendar day begins and ends.
	Zone *time.Location
	// Now is the current time in UTC, cut to microseconds.
	Now func() time.Time
	// NewID makes a new operation's ID; later ones sort after earlier ones.
	NewID func() operation.ID
}

// Buyer buys fund holdings from customers. It is safe for concurrent use:
// requests that arrive together share one transaction.
type Buyer struct {
	options Options
	books   Books
	lane    *commit.Lane[group]
}

// group is operations that enter the lane together and stay in their order: a
// single one where it is a request.
type group []*fund.Operation

// weight is the number of sales.
func (g group) weight() (sales int) {
	for _, o := range g {
		sales += len(o.Sales)
	}
	return sales
}

// New returns a Buyer that settles in books. Close it to finish what it took.
func New(books Books, o Options) *Buyer {
	b := &Buyer{options: o, books: books}
	b.lane = commit.New(o.Commit, group.weight, b.settle, o.Observer)
	return b
}

// settle decides and stores one batch. The day is read once, so that a batch
// at midnight is of one day.
func (b *Buyer) settle(ctx context.Context, batch []group) error {
	operations := slices.Concat(batch...)
	now := b.options.Now()
	today := day.Of(now, b.options.Zone)
	return b.books.Update(ctx, fund.Touch(operations, today), func(book *fund.Book) {
		book.Settle(operations, now, today)
	})
}

// Buy carries out all sales of one request, or none (the contract, section 5).
//
// The outcome is Completed once they are on disk, Recorded for a later day,
// and Failed, with its reasons, when the bank refuses: then nothing was
// changed. A repeated CallerId has no second effect; its outcome is that of
// the operation as it is now, Replayed. The errors:
//
//   - fault.Invalid: records break rules, all faults at once;
//   - fault.Forbidden: the header contradicts what is defined for the caller;
//   - fault.Conflict: the CallerId was used before for another content;
//   - fault.Busy, fault.Unavailable: nothing happened, later it may work;
//   - fault.Indeterminate: the effect is not known. With a CallerId, repeating
//     is harmless; without one it may be a second sale.
//
// A ctx that ends before the request's batch began is fault.Unavailable; after
// that Buy waits for the outcome.
func (b *Buyer) Buy(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []fund.SaleFields) (operation.Outcome, error) {
	sales, faults := b.check(header, parameters)
	// What is wrong with the day is not the end of a request that may be a
	// repeat: the book knows.
	dayFaults := b.dayFaults(sales)
	if len(faults) > 0 || (header.CallerID == "" && len(dayFaults) > 0) {
		return operation.Outcome{}, invalid(append(faults, dayFaults...))
	}
	header, err := caller.Complete(header)
	if err != nil {
		if len(dayFaults) > 0 { // 400 comes before 403 (the contract, section 1)
			return operation.Outcome{}, invalid(dayFaults)
		}
		return operation.Outcome{}, err
	}
	o := &fund.Operation{
		ID:           b.options.NewID(),
		Subscription: caller.Name,
		Header:       header,
		ReceivedAt:   b.options.Now(),
		Sales:        sales,
	}
	if err := b.lane.Do(ctx, group{o}); err != nil {
		return operation.Outcome{}, err
	}
	return o.Outcome()
}

// Faults are the rules that the request breaks, as Buy would report them;
// nothing is sold. HTTP uses it to report them beside faults of its own.
func (b *Buyer) Faults(header operation.Header, parameters []fund.SaleFields) []fault.Fault {
	sales, faults := b.check(header, parameters)
	return append(faults, b.dayFaults(sales)...)
}

func (b *Buyer) check(header operation.Header, parameters []fund.SaleFields) ([]fund.Sale, []fault.Fault) {
	sales, faults := fund.NewSales(parameters, b.options.ParametersLimit)
	return sales, append(header.Faults(), faults...)
}

func (b *Buyer) dayFaults(sales []fund.Sale) []fault.Fault {
	return fund.DayFaults(sales, day.Of(b.options.Now(), b.options.Zone))
}

func invalid(faults []fault.Fault) error {
	return fault.New(fault.Invalid, "The request breaks a rule.", faults...)
}

// Close refuses new requests with fault.Busy and returns when all that were
// taken are answered, or ctx ends. It may be called twice.
func (b *Buyer) Close(ctx context.Context) error { return b.lane.Close(ctx) }
