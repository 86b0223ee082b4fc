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
	// Update is one transaction. It loads a fund.Book with everything in touched that exists,
	// locked against every other Update in one fixed order. It calls settle. Then it writes the
	// Changes of the book and of its Register.
	//
	// Update may lock less if all transactions together still have the effects and the outcomes
	// of some order, one after another.
	//
	// Update claims each operation in touched.Due that is still recorded and that no other
	// transaction holds. It does not wait for operations that another transaction holds.
	//
	// It returns:
	//
	//  1. nil: everything is on disk.
	//  2. fault.Unavailable: nothing was written. A retry may succeed.
	//  3. fault.Indeterminate: the commit was sent and not confirmed; the effect is not known.
	//  4. any other error: nothing was written, and a retry will fail too.
	//
	// Update may call settle several times, each time with a new book: after a
	// lost race, or if the content of a book was not up to date. Only the last call
	// counts. If settle panics, nothing is written and Update panics with the same
	// value. If ctx is cancelled before the commit, the outcome is 2.
	Update(ctx context.Context, touched fund.LockSet, settle func(*fund.Book)) error

	// Snapshot loads a fund.Book with everything in touched that exists, as it is at one
	// moment, except the parts that only a writer needs: Due, Callers and Reversed. It locks
	// nothing, and waits for no transaction. The book is not written back. It returns the same
	// errors as Update, without fault.Indeterminate.
	Snapshot(ctx context.Context, touched fund.LockSet) (*fund.Book, error)

	// Due lists operations that are recorded for a day, in the order of day and ID. It returns
	// at most limit operations, fewer if they have thousands of sales, and an empty list at the
	// end. It starts after the given
	// operation, or with the first operation if after is nil. The given operation may have been
	// settled since. Each operation has its ID, Subscription, Header and ReceivedAt, and all
	// its sales in order. The other fields are not used: SettleDue marks the operations as due
	// itself. Due does not claim operations, Update does. Due returns the same errors as
	// Update. It leaves out operations that cannot be read, and returns the error with the
	// other operations.
	Due(ctx context.Context, of Due, after *fund.Operation, limit int) ([]*fund.Operation, error)

	// DueFunds lists the funds and days of the sales that are recorded for the day until or an
	// earlier day, in the order of DueFund.Compare. If count is true, it counts the sales, and so reads an
	// entry for each sale. Otherwise its time depends only on the number of funds. It returns
	// the same errors as Update.
	DueFunds(ctx context.Context, until day.Day, count bool) ([]DueFund, error)
}

// Due selects the recorded operations that Books.Due lists.
type Due struct {
	Until day.Day       // selects operations for this day or an earlier day
	Of    fund.PriceDay // if it is set, selects only operations for its day that sell units of its fund
}

// DueFund describes the sales of one fund that are recorded for one day.
type DueFund struct {
	PriceDay fund.PriceDay
	Priced   bool // the fund has a price whose ValidFrom is this day
	// PricedAt is when the first such price was imported. It is the zero time if this is not known.
	PricedAt time.Time
	Sales    int64 // the number of sales if it was counted, otherwise 0
	// Waiting is how many of Sales wait for a price: all if Priced is false, otherwise those whose
	// operation has another sale that is due for a fund without a price. It is 0 if Sales was not counted.
	Waiting int64
}

// Compare is the order of Books.DueFunds: by day, then by fund.
func (d DueFund) Compare(o DueFund) int {
	return cmp.Or(d.PriceDay.Day.Compare(o.PriceDay.Day), d.PriceDay.Fund.Compare(o.PriceDay.Fund))
}

// Options are what a Buyer needs in addition to its port. Only Now and NewID are required.
type Options struct {
	ParametersLimit int           // the maximum number of records in a request; 0 means 1000
	Commit          commit.Limits // the limits of the queue; 0 means the default
	Observer        commit.Observer
	// Rules are the rules of the bank. nil means the zero value of fund.Rules: the days are those
	// of UTC, the bank is open on every day, and settles from 00:00.
	Rules *Rules
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
	quotes  *commit.Queue[*quoting]
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

// owner is the subscription, whose groups take turns with those of others. Due operations of all
// subscriptions are settled for the bank, which has a turn of its own.
func (g group) owner() string {
	if g[0].Due {
		return ""
	}
	return g[0].Subscription
}

// New returns a Buyer that settles sales in books. The error names what is missing.
func New(books Books, o Options) (*Buyer, error) {
	if books == nil || o.Now == nil || o.NewID == nil {
		return nil, errors.New("buyfund.New needs the port books, and Now and NewID of its options")
	}
	o.ParametersLimit, o.Commit = cmp.Or(o.ParametersLimit, 1000), o.Commit.OrDefault()
	if o.Rules == nil {
		o.Rules = FixedRules(fund.Rules{}, nil, o.Now)
	}
	b := &Buyer{options: o, books: books}
	b.queue = commit.New(o.Commit, group.weight, group.owner, b.settle, o.Observer)
	b.quotes = commit.New(o.Commit, (*quoting).weight, (*quoting).owner, b.quoteBatch, commit.Observer{})
	return b, nil
}

// settle decides and stores one batch. It reads the clock once, so that a batch at midnight has
// one settlement time.
func (b *Buyer) settle(ctx context.Context, batch []group) error {
	operations := slices.Concat(batch...)
	now := b.options.Now()
	today := b.options.Rules.Known().Rules.Today(now)
	return b.books.Update(ctx, fund.NewLockSet(operations, today), func(book *fund.Book) {
		book.Settle(operations, now, today)
	})
}

// Buy carries out either all sales of a request or no sale (the contract, section 5).
//
// The outcome is Completed after the sales are on disk, and Recorded if they are for a later
// day. If the bank refuses a sale, the outcome is Failed with all reasons, and nothing was
// changed. A repeated CallerId has no second effect. Its outcome is the current outcome of the
// operation, marked Replayed. The errors are:
//
//   - fault.Invalid: the request breaks rules. The error has all faults.
//   - fault.Forbidden: the header has other values than the values defined for the caller, and
//     the request is not a repeat.
//   - fault.Conflict: the CallerId was already used for other content. The outcome has only the
//     ID of the operation that used it.
//   - fault.Busy, fault.Unavailable: nothing happened. A retry may succeed.
//   - fault.Indeterminate: the effect is not known. A repeat with the same
//     CallerId is harmless. Without a CallerId it may be a second sale. So ends just after
//     midnight a sale for the day before whose CallerId is not known: an earlier attempt may
//     still be carried out.
//
// If ctx ends before the request's batch begins, the error is fault.Unavailable. After that Buy
// waits for the outcome. If the deadline of ctx comes first, the error is fault.Indeterminate.
// If ctx is cancelled, Buy continues to wait and ignores the deadline.
func (b *Buyer) Buy(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []fund.SaleFields) (operation.Outcome, error) {
	for attempt := 1; ; attempt++ {
		o, err := b.prepare(ctx, caller, header, parameters)
		if err != nil {
			return operation.Outcome{}, err
		}
		if err := b.queue.Do(ctx, group{o}); err != nil {
			return operation.Outcome{}, err
		}
		if attempt < rulesAttempts && b.options.Rules.haveChanged(o) {
			continue
		}
		outcome, err := operation.Decided(o.Outcome())
		if fault.KindOf(err) == fault.Invalid && b.mayBeInProgress(o, parameters) {
			return operation.Outcome{}, errJustPast
		}
		return outcome, err
	}
}

// attemptTime is longer than an attempt takes, and than the clocks of replicas differ: they are at
// most a minute from the clock of the database.
const attemptTime = 90 * time.Second

var errJustPast = fault.New(fault.Indeterminate, "an attempt that arrived before midnight may still be carried out")

// mayBeInProgress reports whether an operation that is refused because of its day may be carried out
// by an attempt that arrived before midnight. The book cannot know it: the attempt may wait in the
// queue of another replica, or its transaction may not have ended.
func (b *Buyer) mayBeInProgress(o *fund.Operation, parameters []fund.SaleFields) bool {
	sinceMidnight := o.ReceivedAt.Sub(o.Today.Start(o.Zone))
	if len(o.DayFaults) == 0 || sinceMidnight >= attemptTime {
		return false
	}
	before := fund.NewRequest(parameters, b.options.ParametersLimit, o.Today.Plus(-1))
	return len(before.DayFaults) == 0
}

// prepare checks a request by the rules of the bank, and returns its operation.
func (b *Buyer) prepare(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []fund.SaleFields) (*fund.Operation, error) {
	rules := b.options.Rules.Known()
	now := b.options.Now()
	request := fund.NewRequest(parameters, b.options.ParametersLimit, rules.Rules.Today(now))
	request.NameDay(rules.Rules.In())
	faults := slices.Concat(header.Faults(), caller.Missing(header), request.Faults)
	recorded, checked, err := caller.Check(header)
	// A repeat gets its answer although its day has passed, and only the book knows if a
	// request is a repeat. A request without a CallerId is not a repeat, and a request with
	// other faults was never accepted. For these the day is checked now.
	if len(faults) > 0 || header.CallerID == "" {
		faults = append(faults, request.DayFaults...)
	}
	switch {
	case len(faults) > 0:
		return nil, fault.New(fault.Invalid, "The request breaks a rule.", faults...)
	case err != nil:
		return nil, err
	}
	o := &fund.Operation{
		Envelope: operation.Envelope{ID: b.options.NewID(), Subscription: caller.Name, Header: recorded, ReceivedAt: now},
		Checked:  checked,
		Sales:    request.Sales, Today: request.Today, DayFaults: request.DayFaults, Zone: rules.Rules.In(),
	}
	current, err := b.options.Rules.Current(ctx)
	if err != nil {
		return nil, err
	}
	// At midnight prepare starts again: a repeat is recognized by the day of the ID. It also
	// starts again if the bank is in another time zone than before.
	if current.Rules.Today(now) != request.Today || current.Rules.Today(b.options.Now()) != request.Today {
		return b.prepare(ctx, caller, header, parameters)
	}
	o.Rules = current.text
	o.Zone = current.Rules.In()
	o.Closed = current.Calendar.Refusal(request.Day(), request.Today, current.Rules.ClockAt(now))
	return o, nil
}

// Sell does the same as Buy for a Go program that has typed values. It checks the same rules
// and returns the same outcomes.
func (b *Buyer) Sell(ctx context.Context, caller *subscription.Subscription, header operation.Header, sales []fund.Sale) (operation.Outcome, error) {
	parameters := make([]fund.SaleFields, len(sales))
	for i, s := range sales {
		parameters[i] = s.Terms().Fields()
	}
	return b.Buy(ctx, caller, header, parameters)
}

// Faults returns the rules that a request with other faults breaks, as Buy would report them,
// except a CallerId that the caller must send. It sells nothing. HTTP uses it to report these
// faults together with its own faults.
func (b *Buyer) Faults(header operation.Header, parameters []fund.SaleFields) []fault.Fault {
	rules := b.options.Rules.Known()
	r := fund.NewRequest(parameters, b.options.ParametersLimit, rules.Rules.Today(b.options.Now()))
	r.NameDay(rules.Rules.In())
	return slices.Concat(header.Faults(), r.Faults, r.DayFaults)
}

// Busy returns an error of kind fault.Busy if a request of the caller would be refused now, because
// too much waits or the queue is closed. Otherwise it returns nil.
func (b *Buyer) Busy(caller *subscription.Subscription) error {
	if caller == nil { // Buy refuses it
		return nil
	}
	return b.queue.Busy(caller.Name)
}

// Close refuses new requests with fault.Busy. It returns when all accepted requests have their
// outcome, or when ctx ends. It may be called twice.
func (b *Buyer) Close(ctx context.Context) error {
	return errors.Join(b.queue.Close(ctx), b.quotes.Close(ctx))
}
