package tables

import (
	"fmt"
	"slices"
	"strings"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// PostingRow is a row of AllPostings.
type PostingRow struct {
	CustomerNo            int64
	OperationID           batch.UUID `gorm:"primaryKey"`
	Position              int64      `gorm:"primaryKey"`
	Leg                   int64      `gorm:"primaryKey"`
	Kind                  int64
	IMKBCode              string
	HolderCorporationName string
	BranchCode            int64
	AccountSuffix         int64
	CurrencyCode          string
	Quantity              int64
	PostedAt              batch.Instant
}

// The legs of a posting.
const (
	UnitLeg  = 1
	MoneyLeg = 2
)

// The postings: those of adjustments, and those that follow from sales and reversals.
const (
	ofAdjustments = `SELECT a.customer_no, a.act_id AS operation_id, a.line AS position, a.leg, a.kind, a.imkb_code, a.holder_corporation_name,
 a.branch_code, a.account_suffix, a.currency_code, a.quantity, a.posted_at FROM {{prefix}}adjustments a WHERE `
	ofUnits = `SELECT s.customer_no, {{id}} AS operation_id, s.position, CAST(1 AS smallint) AS leg, CAST({{kind}} AS smallint) AS kind, s.imkb_code, s.holder_corporation_name,
 CAST(0 AS bigint) AS branch_code, CAST(0 AS bigint) AS account_suffix, CAST('' AS text) AS currency_code, {{minus}}s.units AS quantity, {{at}} AS posted_at` + ofSales
	ofMoney = `SELECT s.account_customer_no AS customer_no, {{id}} AS operation_id, s.position, CAST(2 AS smallint) AS leg, CAST({{kind}} AS smallint) AS kind, CAST('' AS text) AS imkb_code, CAST('' AS text) AS holder_corporation_name,
 s.branch_code, s.account_suffix, s.currency_code, {{plus}}s.proceeds AS quantity, {{at}} AS posted_at` + ofSales
	ofSales = ` FROM {{prefix}}sales s JOIN {{prefix}}operations o ON o.operation_id = s.operation_id WHERE s.state = 2{{reversed}} AND `
)

var (
	sold     = strings.NewReplacer("{{id}}", "s.operation_id", "{{kind}}", "1", "{{minus}}", "-", "{{plus}}", "", "{{at}}", "o.ended_at", "{{reversed}}", "")
	reversed = strings.NewReplacer("{{id}}", "o.reversal_id", "{{kind}}", "4", "{{minus}}", "", "{{plus}}", "-", "{{at}}", "o.reversed_at", "{{reversed}}", " AND o.reversal_id IS NOT NULL")
)

// AllPostings has all postings. It is not the view postings of the database: a person who can
// change rows could change a view, unnoticed by verify.
var AllPostings = postingsWhere("TRUE", "TRUE", "TRUE")

// PostingsOfCustomer has the postings of a customer. found is the condition of Find on the sales s
// of the customer, with its arguments.
func PostingsOfCustomer(prefix string, customerNo int64, found string, arguments []any) (text string, all []any) {
	ofUnits := "s.customer_no = ? AND " + found
	ofMoney := "s.account_customer_no = ? AND s.customer_no = s.account_customer_no AND "
	customer := []any{customerNo}
	foundCustomer := slices.Concat(customer, arguments)
	text = postingsWhere("a.customer_no = ?", ofUnits, ofMoney+ofUnits, "s.account_customer_no = ? AND s.account_customer_no <> s.customer_no")
	ofBoth := slices.Concat(customer, foundCustomer)
	return strings.ReplaceAll(text, "{{prefix}}", prefix), slices.Concat(customer, foundCustomer, foundCustomer, ofBoth, ofBoth, customer, customer)
}

func postingsWhere(adjustments, units string, money ...string) string {
	parts := []string{ofAdjustments + adjustments, sold.Replace(ofUnits) + units, reversed.Replace(ofUnits) + units}
	for _, condition := range money {
		parts = append(parts, sold.Replace(ofMoney)+condition, reversed.Replace(ofMoney)+condition)
	}
	return "(\n" + strings.Join(parts, "\nUNION ALL\n") + "\n)"
}

// Entry converts the row.
func (r *PostingRow) Entry() (p fund.PostingEntry, err error) {
	p.Kind = fund.PostingKind(r.Kind) //nolint:gosec // checked below
	if int64(p.Kind) != r.Kind {
		return p, fmt.Errorf("a posting is of the kind %d", r.Kind)
	}
	p.OperationID = operation.ID(r.OperationID)
	p.Index = int(r.Position)
	p.Quantity = r.Quantity
	p.PostedAt = r.PostedAt.Time
	if r.Leg == UnitLeg {
		p.Holding = holdingKey(r.CustomerNo, r.IMKBCode, r.HolderCorporationName)
		return p, nil
	}
	p.Account, err = accountKey(r.CustomerNo, r.BranchCode, r.AccountSuffix, r.CurrencyCode)
	return p, err
}

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

// NewAdjustmentRow returns the row of a posting of an import or a correction.
func NewAdjustmentRow(p fund.PostingEntry) AdjustmentRow {
	row := AdjustmentRow{
		CustomerNo:            p.CustomerNo(),
		BranchCode:            p.Account.BranchCode,
		AccountSuffix:         p.Account.AccountSuffix,
		Quantity:              p.Quantity,
		PostedAt:              batch.Instant{Time: p.PostedAt},
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
