package fund

import (
	"slices"
	"time"

	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Changes is what settling a batch did: all of it is to be written in one
// transaction, or none.
type Changes struct {
	Holdings []Holding // with their new quantities, in lock order
	Accounts []Account // with their new balances, in lock order
	Sales    []SaleRecord
	Postings []Posting
}

// SaleRecord is what became of one sale. Those of a Due operation exist and
// are to be changed, the others are to be inserted.
type SaleRecord struct {
	Operation *Operation
	Position  int // in the operation's Parameters, from 0
	State     operation.State
	Price     Price        // it was settled at; zero unless Completed
	Proceeds  money.Amount // credited; zero unless Completed
	Refusal   string       // code of a Failed sale; empty for one that failed only with its array
	SettledAt time.Time    // zero while Recorded
}

// Terms is what the sale says.
func (s *SaleRecord) Terms() Terms { return s.Operation.Sales[s.Position].terms }

// PostingKind is why a quantity moved.
type PostingKind uint8

// The kinds of postings.
const (
	SalePosting       PostingKind = 1
	OpeningPosting    PostingKind = 2 // the first import of a holding or account
	AdjustmentPosting PostingKind = 3 // a later import, which sets it anew
)

// String is the kind in lower case: a closed set.
func (k PostingKind) String() string {
	switch k {
	case SalePosting:
		return "sale"
	case OpeningPosting:
		return "opening"
	case AdjustmentPosting:
		return "adjustment"
	}
	return ""
}

// Posting moves a quantity between a customer's position and the bank's
// counter-position of the same fund or currency: what the customer's side
// gains the bank's side loses, so no posting can be out of balance. Exactly
// one of Holding and Account is set.
type Posting struct {
	Kind        PostingKind
	OperationID operation.ID // the sale's operation, or the import's ID
	Position    int          // of the sale in its operation; of the line in its import
	Holding     HoldingKey
	Account     AccountKey
	// Quantity is added to the customer's side: millionths of a unit, or minor
	// units of the account's currency.
	Quantity int64
}

// UnitPosting moves units into a holding; negative units move out of it.
func UnitPosting(kind PostingKind, id operation.ID, position int, h HoldingKey, units Units) Posting {
	return Posting{Kind: kind, OperationID: id, Position: position, Holding: h, Quantity: int64(units)}
}

// MoneyPosting moves minor units of the account's currency into an account.
func MoneyPosting(kind PostingKind, id operation.ID, position int, a AccountKey, minor int64) Posting {
	return Posting{Kind: kind, OperationID: id, Position: position, Account: a, Quantity: minor}
}

// IsMoney reports whether the posting is of an account.
func (p *Posting) IsMoney() bool { return !p.Account.Currency.IsNone() }

// CustomerNo is the customer whose position the posting changes.
func (p *Posting) CustomerNo() int64 {
	if p.IsMoney() {
		return p.Account.CustomerNo
	}
	return p.Holding.CustomerNo
}

// Changes is what Settle left to be written. Positions that came out as they
// were loaded are not among them.
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
