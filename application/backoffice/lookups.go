package backoffice

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Lookups finds single operations with their data, and counts. Each call reads one snapshot.
type Lookups interface {
	// Operation finds everything that is stored under an ID. The error is ErrNotFound if
	// nothing is stored.
	Operation(ctx context.Context, id operation.ID) (Operation, error)
	// OperationOf finds the operation of a CallerId. The error is ErrNotFound if
	// the CallerId was never used.
	OperationOf(ctx context.Context, key idempotency.Key) (Operation, error)
	// DueDays counts the sales that wait, by day.
	DueDays(ctx context.Context, of DueQuery) ([]DueDay, error)
	// CountReceived counts what was received from since on and before until, by the time in the
	// IDs of the operations. It counts sales that had waited by the time when they were settled.
	// Its cost grows with the rows that it counts.
	CountReceived(ctx context.Context, since, until time.Time) (Received, error)
}

// Received counts what was received in a period.
type Received struct {
	// Sales counts sales by fund, currency, current state, and whether they were reversed. A sale
	// for a later day counts when it was received, until it is settled. Then it counts when it was
	// settled, with Waited: it has one day, so that the sums of all days are those of the book.
	Sales map[SalesKey]SalesSum
	// Refused counts the operations that were refused at once.
	Refused map[RefusedKey]int64
	// Messages is the number of notifications that were stored.
	Messages int64
}

// SalesKey is the key by which Received counts sales.
type SalesKey struct {
	IMKBCode string
	Currency money.Currency
	State    operation.State
	Reversed bool
	// Waited says that the sale counts because it was settled after it had waited for its day.
	Waited bool
}

// SalesSum is the number of sales, and their proceeds in the smallest unit of the currency.
type SalesSum struct {
	Sales    int64
	Proceeds Sum
}

// RefusedKey is the key by which Received counts refusals. Code is the code of the first fault.
type RefusedKey struct{ Subscription, Code string }

// Add adds what was received in another period.
func (r *Received) Add(o Received) {
	if r.Sales == nil {
		r.Sales = make(map[SalesKey]SalesSum)
		r.Refused = make(map[RefusedKey]int64)
	}
	for key, sum := range o.Sales {
		r.Sales[key] = SalesSum{r.Sales[key].Sales + sum.Sales, r.Sales[key].Proceeds.Plus(sum.Proceeds)}
	}
	for key, n := range o.Refused {
		r.Refused[key] += n
	}
	r.Messages += o.Messages
}

// Count returns how many sales have that State, Reversed and Waited, in all currencies.
func (r Received) Count(like SalesKey) (sales int64) {
	for key, sum := range r.Sales {
		like.IMKBCode = key.IMKBCode
		like.Currency = key.Currency
		if key == like {
			sales += sum.Sales
		}
	}
	return sales
}

// Refusals returns the number of operations that were refused.
func (r Received) Refusals() (operations int64) {
	for _, n := range r.Refused {
		operations += n
	}
	return operations
}

// DueQuery selects waiting sales: those for the day Until or an earlier day, unless it is no day,
// and those of a subscription, unless it is empty. Limit is how many are counted at most, in the
// order of their days. 0 means no limit.
type DueQuery struct {
	Until        day.Day
	Subscription string
	Limit        int
}

// DueDay counts what waits for a day.
type DueDay struct {
	Day day.Day
	// Operations and Sales count what is recorded for the day.
	Operations, Sales int64
}

// Line is a posting in a customer's statement.
type Line struct {
	Posting fund.PostingEntry
	// After is the quantity of its holding or account after the posting.
	After int64
}

// Statement yields the postings of a customer before until with the running quantity of each
// holding and balance of each account, in the order of PostedAt. The zero time selects all
// postings. Statement keeps one number for each holding and account in memory.
func (o *Office) Statement(ctx context.Context, customerNo int64, until time.Time) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		if customerNo == 0 { // a Query without a number selects all customers
			return
		}
		after := make(map[fund.Posting]int64) // the key is a posting that has only its holding or account
		for p, err := range o.Reader.Postings(ctx, Query{CustomerNo: customerNo, Until: until, Order: ByTime}) {
			if err != nil {
				yield(Line{}, err)
				return
			}
			of := fund.Posting{Holding: p.Holding, Account: p.Account}
			after[of] += p.Quantity
			if !yield(Line{p, after[of]}, nil) {
				return
			}
		}
	}
}

// NewestLines returns the newest lines of the Statement of a customer before until, at most limit of
// them, and the newest first. has is what the customer had before until. If there are fewer
// postings, After is the sum of all of them. Otherwise it is counted back from has, and lacks what
// was posted since that was read.
func (o *Office) NewestLines(ctx context.Context, customerNo int64, until time.Time, has *Customer, limit int) ([]Line, error) {
	if customerNo == 0 { // a Query without a number selects all customers
		return nil, nil
	}
	var lines []Line
	sums := make(map[fund.Posting]int64) // with keys as in Statement
	for p, err := range o.Reader.Postings(ctx, Query{CustomerNo: customerNo, Until: until, Order: Newest, Limit: limit}) {
		if err != nil {
			return nil, err
		}
		lines = append(lines, Line{Posting: p})
		sums[fund.Posting{Holding: p.Holding, Account: p.Account}] += p.Quantity
	}
	after := sums
	if len(lines) == limit {
		after = make(map[fund.Posting]int64)
		for _, h := range has.Holdings {
			after[fund.Posting{Holding: h.Key}] = int64(h.Units)
		}
		for _, a := range has.Accounts {
			after[fund.Posting{Account: a.Key}] = a.Balance.Minor()
		}
	}
	for i := range lines {
		of := fund.Posting{Holding: lines[i].Posting.Holding, Account: lines[i].Posting.Account}
		lines[i].After = after[of]
		after[of] -= lines[i].Posting.Quantity
	}
	return lines, nil
}

// Customer has the holdings and accounts of a customer, in the order of the keys.
type Customer struct {
	Holdings []fund.Holding
	Accounts []fund.Account
}

// Customer reads what a customer has now or, if until is not the zero time, what the customer
// had before until. The past is the sum of the postings. An unknown customer has nothing.
func (o *Office) Customer(ctx context.Context, customerNo int64, until time.Time) (c Customer, err error) {
	if customerNo == 0 { // a Query without a number selects all customers
		return c, nil
	}
	if until.IsZero() {
		of := Query{CustomerNo: customerNo}
		c.Holdings, err = Collect(o.Reader.Holdings(ctx, of))
		if err != nil {
			return c, err
		}
		c.Accounts, err = Collect(o.Reader.Accounts(ctx, of))
		return c, err
	}
	holdings := make(map[fund.HoldingKey]fund.Units)
	accounts := make(map[fund.AccountKey]money.Amount)
	for line, err := range o.Statement(ctx, customerNo, until) {
		switch {
		case err != nil:
			return c, err
		case line.Posting.IsMoney():
			accounts[line.Posting.Account] = money.New(line.After, line.Posting.Account.Currency)
		default:
			holdings[line.Posting.Holding] = fund.Units(line.After)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(holdings), fund.HoldingKey.Compare) {
		c.Holdings = append(c.Holdings, fund.Holding{Key: key, Units: holdings[key]})
	}
	for _, key := range slices.SortedFunc(maps.Keys(accounts), fund.AccountKey.Compare) {
		c.Accounts = append(c.Accounts, fund.Account{Key: key, Balance: accounts[key]})
	}
	return c, nil
}

// Collect reads all rows, or those before an error.
func Collect[T any](rows iter.Seq2[T, error]) (all []T, err error) {
	for row, err := range rows {
		if err != nil {
			return all, err
		}
		all = append(all, row)
	}
	return all, nil
}

// Operation finds everything that is stored under an ID. The ID of a reversal leads to what it
// reversed. The error is ErrNotFound if nothing is stored.
func (o *Office) Operation(ctx context.Context, id operation.ID) (Operation, error) {
	found, err := o.Lookups.Operation(ctx, id)
	if !errors.Is(err, ErrNotFound) {
		return found, err
	}
	at := id.Time() // of the act, which has the ID of the reversal
	for act, err := range o.Reader.Acts(ctx, Query{Action: audit.SalesReverse, Since: at.Add(-time.Second), Until: at.Add(time.Second), Order: Newest}) {
		if err != nil {
			return found, err
		}
		if act.ID != id {
			continue
		}
		reversed, err := operation.ParseID(act.Object)
		if err != nil {
			return found, err
		}
		return o.Lookups.Operation(ctx, reversed)
	}
	return found, err
}

// OperationsOf finds the operations that a subscription sent with a CallerId: at most one of
// each kind. The error is ErrNotFound or the error of a port.
func (o *Office) OperationsOf(ctx context.Context, subscription, callerID string) ([]Operation, error) {
	return findAll(operation.Names[:], func(name operation.Name) (Operation, error) {
		return o.OperationOf(ctx, idempotency.Key{CallerID: callerID, Subscription: subscription, Operation: name})
	})
}

// OperationsOfRequest finds the operations of an X-Request-Id, in the order in which they were
// received. A caller may send an ID more than once. If the caller sent no ID, the X-Request-Id
// is the ID of the operation.
func (o *Office) OperationsOfRequest(ctx context.Context, requestID string) ([]Operation, error) {
	if requestID == "" { // a Query without an ID selects all requests
		return nil, ErrNotFound
	}
	var ids []operation.ID
	for d, err := range o.Reader.Decisions(ctx, Query{RequestID: requestID}) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, d.ID)
	}
	if id, err := operation.ParseID(requestID); err == nil && !slices.Contains(ids, id) {
		ids = append(ids, id)
	}
	return findAll(ids, func(id operation.ID) (Operation, error) { return o.Operation(ctx, id) })
}

// findAll returns the operations that find finds. The error is ErrNotFound without any.
func findAll[Key any](keys []Key, find func(Key) (Operation, error)) (all []Operation, err error) {
	for _, key := range keys {
		found, err := find(key)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	if len(all) == 0 {
		return nil, ErrNotFound
	}
	return all, nil
}

// Correction finds the act that reversed or cancelled an operation, or that adjusted a holding
// or an account under this ID. It returns nil if no act did this, or if the act is not known.
func (o *Office) Correction(ctx context.Context, of *Operation) (*audit.Act, error) {
	id := of.ID
	at := of.CancelledAt()
	switch {
	case of.Reversal != nil:
		id = of.Reversal.ID
		at = of.Reversal.At
	case len(of.Sales) == 0 && len(of.Postings) > 0:
		at = of.Postings[0].PostedAt
	}
	if at.IsZero() {
		return nil, nil //nolint:nilnil // most operations have no correction
	}
	for a, err := range o.Reader.Acts(ctx, Query{Since: at, Until: at.Add(time.Millisecond), Order: Newest}) {
		if err != nil {
			return nil, err
		}
		if a.ID == id || a.Action == audit.SalesCancel && a.Object == id.String() {
			return &a, nil
		}
	}
	return nil, nil //nolint:nilnil // the audit does not have the act
}

// LastVerified returns the act of the newest Verify that any program has kept in 90 days, or
// nil.
func (o *Office) LastVerified(ctx context.Context) (*audit.Act, error) {
	for a, err := range o.Reader.Acts(ctx, Query{Action: audit.Verify, Since: o.Acts.Now().AddDate(0, 0, -90), Limit: 1, Order: Newest}) {
		return &a, err
	}
	return nil, nil //nolint:nilnil // no program kept such an act
}
