package backoffice

import (
	"context"
	"fmt"
	"math/big"

	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// Evidence reads everything that Verify checks.
type Evidence interface {
	// Read passes all rows to the functions of w, from one snapshot, so that sales may
	// continue. The storage does the joins and sums, so that memory does not grow with the
	// book. A row is valid only during the call. Read stops at the first error of w and returns
	// it. It calls the functions one at a time, in any order and perhaps from other goroutines.
	//
	// The rows have the stored values without changes. Each row comes once. Read does not leave
	// out rows that break a rule. Of a row that cannot be read there is only the finding.
	Read(ctx context.Context, w Witness) error
}

// Witness receives the rows of Evidence. Position, Operation and Found are required. Batch and Head
// are required if Keys is set.
type Witness struct {
	// Position receives each holding and each account, even if it does not exist but has
	// postings.
	Position func(*Position) error
	// Operation receives each BuyFundFromCustomer with everything that is stored of it, even if
	// it is not complete: an operation or a reversal without sales, or sales without an operation.
	// Operations that were refused at once may be left out.
	Operation func(*Operation) error
	// Found receives a Flaw of a row, which only the storage can see.
	Found func(Finding) error

	// Keys are the keys with which the leaves of the trail were written. They are nil if Verify
	// does not check the trail. A storage without a trail ignores them.
	Keys *proof.Keys
	// Batch receives each batch of the log, in the order of the log.
	Batch func(*BatchRow) error
	// Head receives the newest state of the log, after everything else.
	Head func(*HeadRow) error
}

// Flaw describes how a row breaks a rule that the storage checks.
type Flaw struct {
	rule Rule
	text string
}

// Of returns the finding that the row with that name has the flaw.
func (f Flaw) Of(name string) Finding { return Finding{f.rule.Name, name + ": " + f.text} }

// The flaws of rows and leaves.
var (
	// WrongShape is the flaw of a posting of an unknown kind, or with neither units nor money, or
	// with both.
	WrongShape = Flaw{postingShape, "its kind is unknown, or it is not either of units or of money"}

	OutcomesMissing = Flaw{outcomeOfEnd, "some are missing"}
	OutcomeOfNoEnd  = Flaw{outcomeOfEnd, "is not how the operation ended"}
	EndWithout      = Flaw{outcomeOfEnd, "ended after it was answered, but has no outcome"}

	// Changed is the flaw of a row with another leaf.
	Changed = Flaw{trailUnchanged, "was changed after it was written"}
	// Added is the flaw of a row without a leaf. Removed is the flaw of a leaf without a row of its
	// own: also of the second one, if a batch was written twice.
	Added   = Flaw{trailNotAdded, "is not in the trail"}
	Removed = Flaw{trailNotRemoved, "is in the trail, but not in the rows, or not as often"}
	// NoBatch is the flaw of a place in the log without a batch. Either the row is lost, or the size of
	// the log was changed.
	NoBatch = Flaw{trailNotRemoved, "the size of the log counts it, but its row is not there"}
	// Late is the flaw of a leaf written long after its rows, and not when the trail began.
	Late = Flaw{trailNotAdded, "came into the trail long after its time"}
	// OtherTexts is the flaw of a notification whose texts are not those of its identity.
	OtherTexts = Flaw{trailTexts, "its texts are not those that came"}
	// Foreign is the flaw of a batch whose writer had seen another log.
	Foreign = Flaw{trailBatch, "it was made for another log, by a copy of this book or before a restore"}
)

// Unreadable is the flaw of an operation with a value that this program never writes.
func Unreadable(cause error) Flaw { return Flaw{readable, cause.Error()} }

// NotFound is the flaw of a search that does not find all rows.
func NotFound(rows int64) Flaw {
	return Flaw{searchComplete, "they do not find " + Plural(rows, "row") + ". Delete all rows of the tables lookup_runs and lookup_entries," +
		" which are no part of the book: a running service writes them again"}
}

// BatchRow is a batch of the log.
type BatchRow struct {
	ID     operation.ID
	Record []byte
	// IsGenuine is false if the batch was not made by a service.
	IsGenuine bool
	// Base is the state of the log that its writer had seen. It is nil if no service
	// made the batch, or if batches before this batch are missing.
	Base *proof.Base
	// Hashes are the hashes that the log stores for the record. A missing hash is zero. Hashes
	// is nil if batches before this batch are missing.
	Hashes []proof.Hash
}

// String names the batch in findings.
func (b *BatchRow) String() string { return "batch " + b.ID.String() + " of the trail" }

// HeadRow is the newest state of the log.
type HeadRow struct {
	HasBegun bool // if false, nothing is compared, because older rows have no leaves
	// IsBegunWrong says that the property log_begun is not that of this log: nothing is sealed or
	// taken in any more.
	IsBegunWrong bool
	Size         int64
	Checkpoint   string
	// Unsealed is the number of batches that are not in the log yet.
	Unsealed int64
	// HasOtherHashes says that the log stores hashes that belong to no batch.
	HasOtherHashes bool
	Compared       Compared
}

// Compared counts the rows that were compared with the trail, for the kinds that Proof does not
// count.
type Compared struct{ Messages, Refusals, Prices, Subscriptions, Acts int64 }

// Sum is a sum of quantities in two parts that cannot overflow: High * 10^9 + Low.
type Sum struct{ High, Low int64 }

// SumOf returns n as a Sum.
func SumOf(n int64) Sum { return Sum{n / 1_000_000_000, n % 1_000_000_000} }

// Plus returns s + o.
func (s Sum) Plus(o Sum) Sum { return Sum{s.High + o.High, s.Low + o.Low} }

// In formats a sum of minor units of a currency in the same way as money.Amount.
func (s Sum) In(c money.Currency) string { return exact(s.Value(), c.Decimals()) }

// OfUnits formats a sum of units of a fund, with all its decimals.
func (s Sum) OfUnits() string { return exact(s.Value(), fund.UnitDecimals) }

// Value returns the sum.
func (s Sum) Value() *big.Int {
	value := big.NewInt(s.High)
	return value.Mul(value, big.NewInt(1_000_000_000)).Add(value, big.NewInt(s.Low))
}

// Position is a holding, or an account if IsMoney, with its postings.
type Position struct {
	IsMoney  bool
	Holding  fund.HoldingKey
	Account  AccountName
	Quantity int64 // 0 if it does not exist
	Exists   bool
	Postings int64 // the number of postings
	Posted   Sum
}

// AccountName is an account's key with the currency code as it is stored.
type AccountName struct {
	CustomerNo, BranchCode, AccountSuffix int64
	CurrencyCode                          string
}

// decimals returns the number of decimals of the quantity. It is 0 for an unknown currency.
func (p *Position) decimals() int {
	if !p.IsMoney {
		return fund.UnitDecimals
	}
	currency, _ := money.ParseCurrency(p.Account.CurrencyCode)
	return currency.Decimals()
}

// String names the position in findings.
func (p *Position) String() string {
	if p.IsMoney {
		return fmt.Sprintf("account %d-%d-%d %s", p.Account.BranchCode, p.Account.CustomerNo, p.Account.AccountSuffix, p.Account.CurrencyCode)
	}
	return fmt.Sprintf("holding %d %s %q", p.Holding.CustomerNo, p.Holding.IMKBCode, p.Holding.HolderCorporationName)
}
