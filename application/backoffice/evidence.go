package backoffice

import (
	"context"
	"math/big"

	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// Evidence reads everything that Verify judges.
type Evidence interface {
	// Read hands all rows to the functions of w, from one snapshot, so that
	// sales may continue. The storage does the joins and sums; memory does not
	// grow with the book. A row is valid only during the call. The first error
	// of w ends the reading and is returned. The functions are called one at a
	// time, in any order and perhaps from other goroutines.
	//
	// The rows are the stored values as they are, valid or not. Each row comes
	// once. No row is left out because it breaks a rule.
	Read(ctx context.Context, w Witness) error
}

// Witness receives the rows of Evidence. All functions are required.
type Witness struct {
	// Holding receives each holding, and each holding that does not exist but
	// has postings.
	Holding func(*HoldingRow) error
	// Account receives each account in the same way.
	Account func(*AccountRow) error
	// Sale receives each sale.
	Sale func(*SaleRow) error
	// Posting receives every posting that may break a rule. It may leave out the
	// postings of completed sales and of imports, if they are either of units
	// (leg 1) or of money (leg 2).
	Posting func(*PostingRow) error
	// Operation receives every BuyFundFromCustomer that may break a rule. It may
	// leave out those whose sales are complete and in one state, and failed ones
	// without sales.
	Operation func(*OperationRow) error
	// Reversal receives each sale of a reversed operation, and each reversed
	// operation without sales.
	Reversal func(*ReversalRow) error
	// Trail receives what the trail has. It is nil if the trail is not to be
	// checked; a storage without a trail ignores it.
	Trail *TrailWitness
}

// TrailWitness receives the trail.
type TrailWitness struct {
	// Keys are those with which the leaves were written.
	Keys *trail.Keys
	// Record receives the record of each batch of the log, in the order of the
	// log.
	Record func(*BatchRow) error
	// Foreign receives each batch that is not in the log, and whose writer had seen another log.
	Foreign func(id operation.ID) error
	// Hashes receives the hashes that the log stores for the record before. One that
	// is missing is zero. It is not called after a batch that is missing.
	Hashes func(stored []trail.Hash) error
	// Head receives the newest state of the log, after everything else.
	Head func(*HeadRow) error
	// Leaf receives the rows and leaves that do not belong together.
	Leaf func(*LeafRow) error
}

// BatchRow is a batch of the log.
type BatchRow struct {
	ID     operation.ID
	Record []byte
	// IsSealed is false if no service has made the batch.
	IsSealed bool
	// Base is the state of the log that its writer had seen. It is nil if an earlier version made
	// the batch, or if batches before it are missing.
	Base *trail.Base
}

// HeadRow is the newest state of the log.
type HeadRow struct {
	// Begun is false if the trail has not begun: then nothing else was read.
	Begun      bool
	Size       int64
	Checkpoint string
	// Unsealed is how many batches the log does not have yet.
	Unsealed int64
	// HasOtherHashes says that there are stored hashes that no batch has.
	HasOtherHashes bool
}

// LeafRow is a leaf of the trail without its rows, or rows without their leaf.
type LeafRow struct {
	// Name names the rows, or the leaf.
	Name string
	// HasRows and HasLeaf say what there is. If there are both, they differ.
	HasRows, HasLeaf bool
	// HasOtherTexts says that the texts of a notification are not those of its
	// digest.
	HasOtherTexts bool
	// IsLate says that the leaf was written long after its rows, and not when the
	// trail began.
	IsLate bool
}

// Sum is a sum of quantities in two parts that cannot overflow: High * 10^9 +
// Low.
type Sum struct{ High, Low int64 }

// Value is the sum.
func (s Sum) Value() *big.Int {
	value := big.NewInt(s.High)
	return value.Mul(value, big.NewInt(1_000_000_000)).Add(value, big.NewInt(s.Low))
}

// PositionSums is a quantity and the sum of its postings.
type PositionSums struct {
	Quantity int64 // 0 if it does not exist
	Exists   bool
	Postings int64 // how many there are
	Posted   Sum
}

// HoldingRow is a holding with its postings.
type HoldingRow struct {
	Key fund.HoldingKey
	PositionSums
}

// AccountRow is an account with its postings.
type AccountRow struct {
	Key AccountName
	PositionSums
}

// AccountName is an account's key with the currency code as it is stored.
type AccountName struct {
	CustomerNo, BranchCode, AccountSuffix int64
	CurrencyCode                          string
}

// SaleRow is a sale with its postings, the price it was settled at, and what
// its CallerId answers.
type SaleRow struct {
	OperationID    operation.ID
	Index          int64
	Holding        fund.HoldingKey
	Units          int64
	Account        AccountName
	State          int64
	HasSelectedDay bool
	HasSettledAt   bool
	// The columns of a completed sale; nil if empty.
	SettledPriceID, SettledPrice, Proceeds *int64

	// UnitPosting and MoneyPosting are the postings of leg 1 of the seller and
	// of leg 2 of the account's customer; nil if there is none.
	UnitPosting  *UnitPostingRow
	MoneyPosting *MoneyPostingRow
	// Price is the price of SettledPriceID; nil if it does not exist.
	Price *PriceRow
	// HasCallerID is true if the caller gave a CallerId. Record is what is stored
	// under it; nil if nothing is.
	HasCallerID bool
	Record      *RecordRow
}

// UnitPostingRow is a posting of units of a known customer.
type UnitPostingRow struct {
	Kind     int64
	Fund     fund.Fund
	Quantity int64
}

// MoneyPostingRow is a posting of money.
type MoneyPostingRow struct {
	Kind     int64
	Account  AccountName
	Quantity int64
}

// PriceRow is a price of the book.
type PriceRow struct {
	Fund         fund.Fund
	PerUnit      int64
	CurrencyCode string
}

// RecordRow is what is stored under a CallerId.
type RecordRow struct {
	OperationID operation.ID
	State       int64
}

// PostingRow is a posting, and whether a completed sale belongs to it.
type PostingRow struct {
	OperationID operation.ID
	Index       int64
	Leg         int64
	Kind        int64
	CustomerNo  int64
	// Fund is empty for money.
	Fund fund.Fund
	// CurrencyCode is empty for units.
	CurrencyCode string
	// HasSale is true if it belongs to a completed sale: of the seller if it is
	// of units, of the account's customer if it is of money. The posting of a
	// reversal belongs to a sale of the operation that it reverses.
	HasSale bool
	// IsSecond is true if it says again what another posting of the sale says.
	IsSecond bool
}

// OperationRow is an operation under a CallerId, or one with sales.
type OperationRow struct {
	ID operation.ID
	// RecordState is what its CallerId answers; 0 if it has none.
	RecordState int64
	// Sales is how many sales it has, LastIndex the highest index of them,
	// LowestState and HighestState their states.
	Sales, LastIndex          int64
	LowestState, HighestState int64
	// SharesIndex is true if two of its sales have the same index.
	SharesIndex bool
}

// ReversalRow is a sale of a reversed operation, with the postings of the
// reversal.
type ReversalRow struct {
	OperationID, ReversalID operation.ID
	// HasSale is false for an operation without sales. The fields below are empty
	// then.
	HasSale  bool
	Index    int64
	State    int64
	Holding  fund.HoldingKey
	Units    int64
	Account  AccountName
	Proceeds *int64
	// UnitPosting and MoneyPosting are those of the reversal; nil if there is none.
	UnitPosting  *UnitPostingRow
	MoneyPosting *MoneyPostingRow
}
