package tables

import (
	"fmt"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// PostingRow is a row of the table postings, or one of the two postings of a TransferRow.
// AllPostings has both.
type PostingRow struct {
	CustomerNo            int64         `gorm:"primaryKey"`
	OperationID           batch.UUID    `gorm:"primaryKey"`
	Position              int64         `gorm:"primaryKey"`
	Leg                   int64         `gorm:"primaryKey"`
	Kind                  int64         `gorm:"not null"`
	IMKBCode              string        `gorm:"not null;default:''"`
	HolderCorporationName string        `gorm:"not null;default:''"`
	BranchCode            int64         `gorm:"not null;default:0"`
	AccountSuffix         int64         `gorm:"not null;default:0"`
	CurrencyCode          string        `gorm:"not null;default:''"`
	Quantity              int64         `gorm:"not null"`
	PostedAt              batch.Instant `gorm:"not null"`
}

// The legs of a posting.
const (
	UnitLeg  = 1
	MoneyLeg = 2
)

// AllPostings has the rows of postings, and the two postings of each transfer. It is not a view
// of the database: a person who can change rows could change a view, unnoticed by verify.
const AllPostings = `(
SELECT customer_no, operation_id, position, leg, kind, imkb_code, holder_corporation_name,
 branch_code, account_suffix, currency_code, quantity, posted_at FROM {{prefix}}postings
UNION ALL
SELECT customer_no, operation_id, position, CAST(1 AS bigint), CAST(1 AS bigint), imkb_code, holder_corporation_name,
 CAST(0 AS bigint), CAST(0 AS bigint), CAST('' AS text), unit_quantity, posted_at FROM {{prefix}}transfers
UNION ALL
SELECT account_customer_no, operation_id, position, CAST(2 AS bigint), CAST(1 AS bigint), CAST('' AS text), CAST('' AS text),
 branch_code, account_suffix, currency_code, money_quantity, posted_at FROM {{prefix}}transfers
)`

func newPostingRow(p *fund.Posting, postedAt time.Time) PostingRow {
	row := PostingRow{
		CustomerNo:            p.CustomerNo(),
		OperationID:           batch.UUID(p.OperationID),
		Position:              int64(p.Index),
		Leg:                   UnitLeg,
		Kind:                  int64(p.Kind),
		IMKBCode:              p.Holding.IMKBCode,
		HolderCorporationName: p.Holding.HolderCorporationName,
		BranchCode:            p.Account.BranchCode,
		AccountSuffix:         p.Account.AccountSuffix,
		CurrencyCode:          p.Account.Currency.Code(),
		Quantity:              p.Quantity,
		PostedAt:              batch.Instant{Time: postedAt},
	}
	if p.IsMoney() {
		row.Leg = MoneyLeg
	}
	return row
}

// PostingRows returns the rows of postings, separately for units and money: all postings of one
// leg have the same empty columns.
func PostingRows(postings []fund.Posting, postedAt time.Time) (units, money []PostingRow) {
	var legs [2][]PostingRow
	for i := range postings {
		row := newPostingRow(&postings[i], postedAt)
		legs[row.Leg-1] = append(legs[row.Leg-1], row)
	}
	return legs[0], legs[1]
}

// IsShaped reports whether the row has only columns of its leg, as the service writes it.
func (r *PostingRow) IsShaped() bool {
	if r.Leg == UnitLeg {
		return r.BranchCode == 0 && r.AccountSuffix == 0 && r.CurrencyCode == ""
	}
	return r.Leg == MoneyLeg && r.IMKBCode == "" && r.HolderCorporationName == ""
}

// Entry converts the row.
func (r *PostingRow) Entry() (p fund.PostingEntry, err error) {
	if p.Kind = fund.PostingKind(r.Kind); int64(p.Kind) != r.Kind { //nolint:gosec // checked here
		return p, fmt.Errorf("a posting is of the kind %d", r.Kind)
	}
	p.OperationID, p.Index, p.Quantity, p.PostedAt = operation.ID(r.OperationID), int(r.Position), r.Quantity, r.PostedAt.Time
	if r.Leg == UnitLeg {
		p.Holding = holdingKey(r.CustomerNo, r.IMKBCode, r.HolderCorporationName)
		return p, nil
	}
	p.Account, err = accountKey(r.CustomerNo, r.BranchCode, r.AccountSuffix, r.CurrencyCode)
	return p, err
}
