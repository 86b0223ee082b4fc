// Package buyfund is the use case BuyFundFromCustomer. It sells units of a
// customer's fund holding and credits the proceeds, now or on a later day.
package buyfund

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"bankingapi/application/commit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// Books keeps the bank's book.
type Books interface {
	// Update is one transaction. It loads a fund.Book with everything in touched
	// that exists, locked against every other Update in one fixed order. It calls
	// settle. Then it writes the Changes of the book and of its Register.
	//
	// Update claims each operation in touched.Due that is still recorded and that
	// no other transaction holds. It does not wait for the others.
	//
	// It returns:
	//
	//  1. nil: everything is on disk.
	//  2. fault.Unavailable: nothing was written. A retry may succeed.
	//  3. fault.Indeterminate: the connection was lost in the commit: the effect is not known.
	//  4. any other error: nothing was written, and a retry will fail too.
	//
	// Update may call settle several times, each time with a new book: after a
	// lost race, or if the content of a book was not up to date. Only the last call
	// counts. If settle panics, nothing is written and Update panics with the same
	// value. If ctx is cancelled before the commit, the outcome is 2.
	Update(ctx context.Context, touched fund.LockSet, settle func(*fund.Book)) error

	// Due lists operations that are recorded for a day, in the order of day and ID. It returns
	// at most limit operations, and none at the end of the list. It starts after the given
	// operation, or with the first one if after is nil; the given operation may have been
	// settled since. Each operation has its ID, Subscription, Header and ReceivedAt, and all
	// its sales in order. The other fields are not used: SettleDue marks the operations as due
	// itself. Due claims nothing, Update does. The errors are those of Update. Operations that
	// cannot be read are left out, and the error comes with the others.
	Due(ctx context.Context, of Due, after *fund.Operation, limit int) ([]*fund.Operation, error)

	// DueFunds lists the funds and days of the sales that are recorded for that day
	// or an earlier one, by day and fund. It counts the sales if count is true, for
	// which it reads an entry for each of them. Otherwise its time depends only on
	// the number of funds. The errors are those of Update.
	DueFunds(ctx context.Context, until day.Day, count bool) ([]DueFund, error)
}

// Due says which recorded operations Books.Due lists.
type Due struct {
	Until day.Day       // takes operations for that day or an earlier one
	Of    fund.PriceDay // if it is set, takes those for its day that sell units of its fund
}

// DueFund is what is recorded for a day and sells units of a fund.
type DueFund struct {
	fund.PriceDay
	Priced bool  // the fund has a price whose ValidFrom is that very day
	Sales  int64 // their number if it was counted, and 0 otherwise
}

// Options are what a Buyer needs in addition to its port. Only Now and NewID are required.
type Options struct {
	ParametersLimit int           // the maximum number of records in a request; 0 means 1000
	Commit          commit.Limits // of the queue; limits of 0 have defaults
	Observer        commit.Observer
	Calendar        *Calendar // says for which days the bank takes sales; nil takes them for every day
	// OfTheDay lets a sale for a later day wait for a price of that very day. Without
	// it the newest price until that day counts.
	OfTheDay bool
	// NotBefore is the local time of the bank before which the sales of a day are not
	// settled. None means 00:00.
	NotBefore day.Clock
	Zone      *time.Location // of the bank's calendar day; nil means UTC
	// Now returns the current time in UTC, truncated to microseconds, as clock.Now does.
	Now func() time.Time
	// NewID returns the ID of a new operation, as clock.NewID does. Later IDs sort after
	// earlier ones.
	NewID func() operation.ID
}

// Buyer carries out customers' fund sales. It is safe for concurrent use.
// Requests that arrive together share one transaction.
type Buyer struct {
	options Options
	books   Books
	queue   *commit.Queue[group]
}

// group is a list of operations that enter the queue together and keep their
// order. A request is a group of one operation.
type group []*fund.Operation

func (g group) weight() (sales int) {
	for _, o := range g {
		sales += len(o.Sales)
	}
	return sales
}

// New returns a Buyer that settles sales in books. Close waits for its accepted
// requests. The error names what is missing.
func New(books Books, o Options) (*Buyer, error) {
	if books == nil || o.Now == nil || o.NewID == nil {
		return nil, errors.New("buyfund.New needs the port books, and Now and NewID of its options")
	}
	o.ParametersLimit, o.Commit, o.Zone = cmp.Or(o.ParametersLimit, 1000), o.Commit.OrDefault(), cmp.Or(o.Zone, time.UTC)
	b := &Buyer{options: o, books: books}
	b.queue = commit.New(o.Commit, group.weight, b.settle, o.Observer)
	return b, nil
}

// settle decides and stores one batch. The clock is read once, so that a batch
// at midnight has one time of settling.
func (b *Buyer) settle(ctx context.Context, batch []group) error {
	operations := slices.Concat(batch...)
	now := b.options.Now()
	today := day.Of(now, b.options.Zone)
	return b.books.Update(ctx, fund.NewLockSet(operations, today), func(book *fund.Book) {
		book.Settle(operations, now, today)
	})
}

// Buy carries out all sales of a request, or none (the contract, section 5).
//
// The outcome is Completed after the sales are on disk, and Recorded if they are
// for a later day. It is Failed, with all reasons, if the bank refuses a sale.
// Then nothing was changed. A repeated CallerId has no second effect. Its outcome
// is the current outcome of the operation, Replayed. The errors are:
//
//   - fault.Invalid: the request breaks rules. The error has all faults.
//   - fault.Forbidden: the header has other values than those defined for the caller.
//   - fault.Conflict: the CallerId was already used for other content. The
//     outcome has only the ID of the operation that has it.
//   - fault.Busy, fault.Unavailable: nothing happened. A retry may succeed.
//   - fault.Indeterminate: the effect is not known. A repeat with the same
//     CallerId is harmless. Without a CallerId it may be a second sale.
//
// If ctx ends before the request's batch begins, the error is fault.Unavailable. After that Buy
// waits for the outcome, unless the deadline of ctx comes first: then the error is
// fault.Indeterminate. If ctx is cancelled, Buy waits on, and its deadline counts no more.
func (b *Buyer) Buy(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []fund.SaleFields) (operation.Outcome, error) {
	now := b.options.Now()
	request := fund.NewRequest(parameters, b.options.ParametersLimit, day.Of(now, b.options.Zone))
	faults := slices.Concat(header.Faults(), caller.Missing(header), request.Faults)
	completed, err := caller.Complete(header)
	// A repeat is answered although its day has passed, and only the book knows
	// if a request is a repeat. A request without a CallerId is none, and one with
	// other faults can never have been accepted: then the day is checked now.
	if len(faults) > 0 || header.CallerID == "" {
		faults = append(faults, request.DayFaults...)
	}
	switch {
	case len(faults) > 0:
		return operation.Outcome{}, fault.New(fault.Invalid, "The request breaks a rule.", faults...)
	case err != nil:
		return operation.Outcome{}, err
	}
	o := &fund.Operation{
		Envelope: operation.Envelope{ID: b.options.NewID(), Subscription: caller.Name, Header: completed, ReceivedAt: now},
		Sales:    request.Sales, Today: request.Today, DayFaults: request.DayFaults, Zone: b.options.Zone,
	}
	// At midnight the request begins anew: its ID must have its day, by which a repeat is known.
	if day.Of(b.options.Now(), b.options.Zone) != request.Today {
		return b.Buy(ctx, caller, header, parameters)
	}
	if b.options.Calendar != nil {
		calendar, err := b.options.Calendar.Current(ctx)
		if err != nil {
			return operation.Outcome{}, err
		}
		o.Closed = calendar.Refusal(request.Day(), request.Today, day.ClockOf(now, b.options.Zone))
	}
	if err := b.queue.Do(ctx, group{o}); err != nil {
		return operation.Outcome{}, err
	}
	return o.Outcome()
}

// Sell is Buy for a Go program that has typed values. It checks the same rules
// and has the same outcomes.
func (b *Buyer) Sell(ctx context.Context, caller *subscription.Subscription, header operation.Header, sales []fund.Sale) (operation.Outcome, error) {
	parameters := make([]fund.SaleFields, len(sales))
	for i, s := range sales {
		parameters[i] = s.Terms().Fields()
	}
	return b.Buy(ctx, caller, header, parameters)
}

// Faults returns the rules that a request breaks, as Buy would report them. It
// sells nothing. HTTP uses it to report them together with faults of its own.
func (b *Buyer) Faults(header operation.Header, parameters []fund.SaleFields) []fault.Fault {
	r := fund.NewRequest(parameters, b.options.ParametersLimit, day.Of(b.options.Now(), b.options.Zone))
	return slices.Concat(header.Faults(), r.Faults, r.DayFaults)
}

// Busy returns the error of kind fault.Busy with which a request would be
// refused now, because the queue is full or closed, or nil.
func (b *Buyer) Busy() error { return b.queue.Busy() }

// Close refuses new requests with fault.Busy. It returns when all accepted
// requests are answered, or when ctx ends. It may be called twice.
func (b *Buyer) Close(ctx context.Context) error { return b.queue.Close(ctx) }
