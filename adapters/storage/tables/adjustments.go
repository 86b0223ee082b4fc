package tables

import (
	"strings"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fund"
)

// AdjustmentRow is a row of the table adjustments: what an import or a correction added to a
// position. The postings of sales and of reversals follow from the sales: see AllPostings.
type AdjustmentRow struct {
	CustomerNo            int64         `gorm:"not null"`
	BranchCode            int64         `gorm:"not null;default:0"`
	AccountSuffix         int64         `gorm:"not null;default:0"`
	Quantity              int64         `gorm:"not null"`
	PostedAt              batch.Instant `gorm:"not null"`
	Line                  int64         `gorm:"primaryKey"`
	Leg                   int64         `gorm:"primaryKey"`
	Kind                  int64         `gorm:"not null"`
	ActID                 batch.UUID    `gorm:"primaryKey"`
	IMKBCode              string        `gorm:"not null;default:''"`
	HolderCorporationName string        `gorm:"not null;default:''"`
	CurrencyCode          string        `gorm:"not null;default:''"`
}

func openAdjustments(d *Database) {
	open(d, &d.Adjustments, Relied{Rights: addOnly})
	d.AllPostings = newTable[PostingRow](d)
	d.AllPostings.Name = strings.ReplaceAll(AllPostings, "{{prefix}}", d.Prefix)
}

func newAdjustmentRow(p *fund.Posting, postedAt time.Time) AdjustmentRow {
	row := AdjustmentRow{
		CustomerNo:            p.CustomerNo(),
		BranchCode:            p.Account.BranchCode,
		AccountSuffix:         p.Account.AccountSuffix,
		Quantity:              p.Quantity,
		PostedAt:              batch.Instant{Time: postedAt},
		Line:                  int64(p.Index),
		Leg:                   UnitLeg,
		Kind:                  int64(p.Kind),
		ActID:                 batch.UUID(p.OperationID),
		IMKBCode:              p.Holding.IMKBCode,
		HolderCorporationName: p.Holding.HolderCorporationName,
		CurrencyCode:          p.Account.Currency.Code(),
	}
	if p.IsMoney() {
		row.Leg = MoneyLeg
	}
	return row
}

// AdjustmentRows returns the rows of the postings of imports and corrections. It leaves out the
// postings of sales and reversals.
func AdjustmentRows(postings []fund.Posting, postedAt time.Time) []AdjustmentRow {
	var rows []AdjustmentRow
	for i := range postings {
		if p := &postings[i]; p.Kind == fund.OpeningPosting || p.Kind == fund.AdjustmentPosting {
			rows = append(rows, newAdjustmentRow(p, postedAt))
		}
	}
	return rows
}

// IsShaped reports whether the row has only columns of its leg, as the service writes it.
func (r *AdjustmentRow) IsShaped() bool {
	if r.Leg == UnitLeg {
		return r.BranchCode == 0 && r.AccountSuffix == 0 && r.CurrencyCode == ""
	}
	return r.Leg == MoneyLeg && r.IMKBCode == "" && r.HolderCorporationName == ""
}

// Entry converts the row.
func (r *AdjustmentRow) Entry() (fund.PostingEntry, error) {
	posting := PostingRow{
		CustomerNo: r.CustomerNo, OperationID: r.ActID, Position: r.Line, Leg: r.Leg, Kind: r.Kind,
		IMKBCode: r.IMKBCode, HolderCorporationName: r.HolderCorporationName,
		BranchCode: r.BranchCode, AccountSuffix: r.AccountSuffix, CurrencyCode: r.CurrencyCode,
		Quantity: r.Quantity, PostedAt: r.PostedAt,
	}
	return posting.Entry()
}
