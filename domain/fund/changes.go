package fund

import (
	"cmp"
	"slices"
	"time"

	"bankingapi/domain/fault"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Changes is the effect of a settled batch. Storage writes all of it in one transaction.
type Changes struct {
	Holdings []Holding   // with their new quantities, in lock order
	Accounts []Account   // with their new balances, in lock order
	Sales    []SaleEntry // to insert
	Settled  []SaleEntry // sales of due operations: storage updates the existing rows
	// Adjustments are the postings of corrections. Those of sales and reversals follow from the
	// sales (SaleEntry.Postings, SaleEntry.ReversalPostings) and are not stored.
	Adjustments []PostingEntry
	// Refusals are the operations that were refused at once, in the order in which they were
	// settled. They do not include due operations that failed: the sales of these are Failed.
	Refusals     []operation.Decision
	RefusedSales []SaleEntry // of Refusals, in the same order
	Reversals    []Reversal
	// Ended are the operations that ended after their request was answered, in the order in
	// which they ended. They are due operations and corrected operations.
	Ended []Ended
}

// SaleEntry is one sale and its result, as it is stored.
type SaleEntry struct {
	operation.Envelope
	Index int // in the operation's Parameters, from 0
	Terms Terms
	State operation.State
	// PriceID, PerUnit and Proceeds are the result of settling. They are zero
	// unless the sale is Completed.
	PriceID   int64
	PerUnit   UnitPrice
	Proceeds  money.Amount
	Refusal   string    // code of a Failed sale; empty if only another sale of the array was refused
	SettledAt time.Time // zero while Recorded, and of an operation that was refused at once
	// ReversedAt is when the bank reversed the operation of the sale. Lists set it (package
	// backoffice, Reader). It is zero if the operation was not reversed.
	ReversedAt time.Time
}

// PriceDay returns the price at which a sale for a later day is settled.
func (s *SaleEntry) PriceDay() PriceDay { return PriceDay{s.Terms.Holding.Fund, s.Terms.SelectedDay} }

func (o *Operation) entry(index int, state operation.State) SaleEntry {
	return SaleEntry{Envelope: o.Envelope, Index: index, Terms: o.Sales[index].terms, State: state}
}

// PostingKind is the reason for a posting.
type PostingKind uint8

// The kinds of postings.
const (
	SalePosting       PostingKind = 1
	OpeningPosting    PostingKind = 2 // the first import of a holding or account
	AdjustmentPosting PostingKind = 3 // a later import with a new quantity, or a correction by a difference
	ReversalPosting   PostingKind = 4 // undoes a posting of a sale
)

var postingKinds = map[PostingKind]string{
	SalePosting: "sale", OpeningPosting: "opening", AdjustmentPosting: "adjustment", ReversalPosting: "reversal",
}

// String returns the kind in lower case. The set of texts is closed.
func (k PostingKind) String() string { return postingKinds[k] }

// Posting moves a quantity between a customer's position and the bank's own
// position of the same fund or currency. The bank's side changes by the opposite
// quantity, so a posting is always balanced. Either Holding or Account is set.
type Posting struct {
	Kind        PostingKind
	OperationID operation.ID // the sale's operation, or the ID of the import, adjustment or reversal
	Index       int          // the index of the sale in its operation, or of the line in its import
	Holding     HoldingKey
	Account     AccountKey
	// Quantity is added to the customer's side: millionths of a unit, or minor
	// units of the account's currency.
	Quantity int64
}

// PostingEntry is one stored posting.
type PostingEntry struct {
	Posting
	PostedAt time.Time
}

// Postings returns the postings that follow from a sale: its units leave the holding, and its
// proceeds enter the account. Only a completed sale has postings.
func (s *SaleEntry) Postings() []PostingEntry {
	if s.State != operation.Completed {
		return nil
	}
	return []PostingEntry{
		{UnitPosting(SalePosting, s.ID, s.Index, s.Terms.Holding, -s.Terms.Units), s.SettledAt},
		{MoneyPosting(SalePosting, s.ID, s.Index, s.Terms.Account, s.Proceeds.Minor()), s.SettledAt},
	}
}

// ReversalPostings returns the postings that follow from the reversal of a completed sale: they
// undo Postings.
func (s *SaleEntry) ReversalPostings(r *Reversal) []PostingEntry {
	if s.State != operation.Completed {
		return nil
	}
	return []PostingEntry{
		{UnitPosting(ReversalPosting, r.ID, s.Index, s.Terms.Holding, s.Terms.Units), r.At},
		{MoneyPosting(ReversalPosting, r.ID, s.Index, s.Terms.Account, -s.Proceeds.Minor()), r.At},
	}
}

// UnitPosting returns a posting that adds units to a holding. Negative units
// reduce the holding.
func UnitPosting(kind PostingKind, id operation.ID, index int, h HoldingKey, units Units) Posting {
	return Posting{Kind: kind, OperationID: id, Index: index, Holding: h, Quantity: int64(units)}
}

// MoneyPosting returns a posting that adds minor units of the account's currency to an account.
func MoneyPosting(kind PostingKind, id operation.ID, index int, a AccountKey, minor int64) Posting {
	return Posting{Kind: kind, OperationID: id, Index: index, Account: a, Quantity: minor}
}

// IsMoney reports whether the posting belongs to an account.
func (p *Posting) IsMoney() bool { return !p.Account.Currency.IsNone() }

// Format formats a quantity in the unit of the position.
func (p *Posting) Format(quantity int64) string {
	if p.IsMoney() {
		return money.New(quantity, p.Account.Currency).String()
	}
	return Units(quantity).String()
}

// CustomerNo returns the customer whose position the posting changes.
func (p *Posting) CustomerNo() int64 { return cmp.Or(p.Account.CustomerNo, p.Holding.CustomerNo) }

// Changes returns what storage must write after Settle. It leaves out positions that still have
// their loaded value.
func (b *Book) Changes() Changes {
	c := b.changes
	for key, p := range b.holdings {
		if p.now != p.loaded {
			c.Holdings = append(c.Holdings, Holding{key, p.now})
		}
	}
	for key, p := range b.accounts {
		if p.now != p.loaded {
			c.Accounts = append(c.Accounts, Account{key, p.now})
		}
	}
	slices.SortFunc(c.Holdings, func(x, y Holding) int { return x.Key.Compare(y.Key) })
	slices.SortFunc(c.Accounts, func(x, y Account) int { return x.Key.Compare(y.Key) })
	return c
}

// Differences returns the holdings and accounts of c, which are the Changes of this book, each with
// what was added to its loaded quantity. This is below zero for what was taken away.
func (b *Book) Differences(c *Changes) (holdings []Holding, accounts []Account) {
	for _, h := range c.Holdings {
		h.Units -= b.holdings[h.Key].loaded
		holdings = append(holdings, h)
	}
	for _, a := range c.Accounts {
		a.Balance = money.New(a.Balance.Minor()-b.accounts[a.Key].loaded.Minor(), a.Key.Currency)
		accounts = append(accounts, a)
	}
	return holdings, accounts
}

// Ended describes how an operation ended after its request was answered: it was settled on its
// day, cancelled, or reversed.
type Ended struct {
	// Number is the place in the order in which operations ended, from 1 on. Storage assigns
	// it. An outcome that is written later has a larger number.
	Number                 int64
	OperationID            operation.ID
	Subscription, CallerID string
	// State is Completed, or Failed with Faults. A reversed operation is Completed.
	State    operation.State
	Faults   []fault.Fault
	Reversed bool
	At       time.Time
}

// end adds the end of an operation.
func (c *Changes) end(of *operation.Envelope, e Ended) {
	e.OperationID = of.ID
	e.Subscription = of.Subscription
	e.CallerID = of.Header.CallerID
	c.Ended = append(c.Ended, e)
}
