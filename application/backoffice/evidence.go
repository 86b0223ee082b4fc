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
	// The rows are the stored values as they are. Each row comes once. No row is left
	// out because it breaks a rule.
	Read(ctx context.Context, w Witness) error
}

// Witness receives the rows of Evidence. All functions are required.
type Witness struct {
	// Holding receives each holding, and each holding that does not exist but
	// has postings.
	Holding func(*HoldingRow) error
	// Account receives each account in the same way.
	Account func(*AccountRow) error
	// Operation receives each BuyFundFromCustomer with everything that is stored of it,
	// also if it is not complete: postings or a reversal without sales, or a CallerId that
	// says that it took place. It may leave out what was refused at once.
	Operation func(*Operation) error
	// Posting receives the name of each posting of an unknown kind, or that is neither of
	// units nor of money.
	Posting func(name string) error
	// Outcome receives, in a sentence, each outcome that is not the end of its operation,
	// and each end after the answer that has no outcome.
	Outcome func(finding string) error
	// Unreadable receives the rows that no Operation can have.
	Unreadable func(*UnreadableRow) error
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

// UnreadableRow is a row with a value that this program never writes.
type UnreadableRow struct {
	// Name names the operation.
	Name  string
	Cause error
}
