package tables

import (
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// SaleRow is a row of the table sales. When it was settled stands in the row of its operation.
type SaleRow struct {
	CustomerNo            int64 `gorm:"not null"`
	PriceID               int64 `gorm:"not null"`
	Units                 int64 `gorm:"not null"`
	AccountCustomerNo     int64 `gorm:"not null"`
	BranchCode            int64 `gorm:"not null"`
	AccountSuffix         int64 `gorm:"not null"`
	ControlTotal          sql.NullInt64
	SettledPriceID        sql.NullInt64
	SettledPrice          sql.NullInt64
	Proceeds              sql.NullInt64
	SelectedDate          batch.Day
	Position              int64      `gorm:"primaryKey"` // the index in Parameters
	State                 int64      `gorm:"not null"`
	OperationID           batch.UUID `gorm:"primaryKey"`
	CurrencyCode          string     `gorm:"not null"`
	IMKBCode              string     `gorm:"not null"`
	HolderCorporationName string     `gorm:"not null"`
	Refusal               string     `gorm:"not null;default:''"`
}

func openSales(d *Database) {
	t := &d.Sales
	open(d, t, Relied{Rights: addAndChange, Checks: []string{"units > 0"}})
	t.Put = t.Update("state", "settled_price_id", "settled_price", "proceeds", "refusal")
	d.ListedSales = newListed[ListedSaleRow](d, t.Table)
}

// ListedSaleRow is a sale with the columns of its operation.
type ListedSaleRow struct {
	Sale        SaleRow `gorm:"embedded"`
	OfOperation `gorm:"embedded"`
	EndedAt     batch.Instant
	ReversedAt  batch.Instant
}

// Entry converts the row.
func (r *ListedSaleRow) Entry() (fund.SaleEntry, error) {
	e, err := r.Sale.Entry(r.envelope(r.Sale.OperationID), r.EndedAt.Time)
	if e.State == operation.Completed { // only a completed sale can be reversed
		e.ReversedAt = r.ReversedAt.Time
	}
	return e, err
}

// Operation returns the recorded operation of the row, without its sales.
func (r *ListedSaleRow) Operation() *fund.Operation {
	return &fund.Operation{Envelope: r.envelope(r.Sale.OperationID), Due: true}
}

// NewSaleRow returns the row of a sale in its current state.
func NewSaleRow(s fund.SaleEntry) SaleRow {
	t := &s.Terms
	row := SaleRow{
		CustomerNo:            t.Holding.CustomerNo,
		PriceID:               t.PriceID,
		Units:                 int64(t.Units),
		AccountCustomerNo:     t.Account.CustomerNo,
		BranchCode:            t.Account.BranchCode,
		AccountSuffix:         t.Account.AccountSuffix,
		ControlTotal:          sql.NullInt64{Int64: t.ControlTotal, Valid: t.ControlTotal != 0},
		SelectedDate:          batch.Day(t.SelectedDay.String()),
		Position:              int64(s.Index),
		State:                 int64(s.State),
		OperationID:           batch.UUID(s.ID),
		CurrencyCode:          t.Account.Currency.Code(),
		IMKBCode:              t.Holding.IMKBCode,
		HolderCorporationName: t.Holding.HolderCorporationName,
		Refusal:               s.Refusal,
	}
	if s.State == operation.Completed {
		row.SettledPriceID = sql.NullInt64{Int64: s.PriceID, Valid: true}
		row.SettledPrice = sql.NullInt64{Int64: int64(s.PerUnit), Valid: true}
		row.Proceeds = sql.NullInt64{Int64: s.Proceeds.Minor(), Valid: true}
	}
	return row
}

// Terms returns the terms of the sale.
func (r *SaleRow) Terms() (fund.Terms, error) {
	account, err := accountKey(r.AccountCustomerNo, r.BranchCode, r.AccountSuffix, r.CurrencyCode)
	if err != nil {
		return fund.Terms{}, err
	}
	var selected day.Day
	if r.SelectedDate != "" {
		selected, err = day.Parse(string(r.SelectedDate))
		if err != nil {
			return fund.Terms{}, err
		}
	}
	return fund.Terms{
		Holding:      holdingKey(r.CustomerNo, r.IMKBCode, r.HolderCorporationName),
		Units:        fund.Units(r.Units),
		Account:      account,
		PriceID:      r.PriceID,
		ControlTotal: r.ControlTotal.Int64,
		SelectedDay:  selected,
	}, nil
}

// Entry converts the row. of is its operation, which was settled or failed at endedAt.
func (r *SaleRow) Entry(of operation.Envelope, endedAt time.Time) (fund.SaleEntry, error) {
	terms, err := r.Terms()
	e := fund.SaleEntry{
		Envelope:  of,
		Index:     int(r.Position),
		Terms:     terms,
		State:     operation.State(r.State), //nolint:gosec // written by us
		PriceID:   r.SettledPriceID.Int64,
		PerUnit:   fund.UnitPrice(r.SettledPrice.Int64),
		Refusal:   r.Refusal,
		SettledAt: endedAt,
	}
	if r.Proceeds.Valid {
		e.Proceeds = money.New(r.Proceeds.Int64, terms.Account.Currency)
	}
	if err != nil {
		return e, err
	}
	if int64(e.State) != r.State {
		return e, fmt.Errorf("a sale is in the state %d", r.State)
	}
	return e, nil
}

// InState returns the condition of the indexes of sales. It has no parameter, so that the
// engine recognizes the index.
func InState(s operation.State) string { return "state = " + strconv.Itoa(int(s)) }

// IsRecorded is the condition of the indexes of due sales, and of recorded operations.
var IsRecorded = InState(operation.Recorded)
