package tables

import (
	"database/sql"
	"fmt"
	"strconv"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// SaleRow is a row of the table sales.
type SaleRow struct {
	CustomerNo            int64         `gorm:"primaryKey"`
	OperationID           batch.UUID    `gorm:"primaryKey"`
	Position              int64         `gorm:"primaryKey"` // the index in Parameters
	Subscription          string        `gorm:"not null"`
	Header                headerColumns `gorm:"embedded"`
	IMKBCode              string        `gorm:"not null"`
	HolderCorporationName string        `gorm:"not null"`
	PriceID               int64         `gorm:"not null"`
	Units                 int64         `gorm:"not null"`
	AccountCustomerNo     int64         `gorm:"not null"`
	BranchCode            int64         `gorm:"not null"`
	AccountSuffix         int64         `gorm:"not null"`
	CurrencyCode          string        `gorm:"not null"`
	ControlTotal          int64         `gorm:"not null;default:0"`
	SelectedDate          batch.Day
	State                 int64 `gorm:"not null"`
	SettledPriceID        sql.NullInt64
	SettledPrice          sql.NullInt64
	Proceeds              sql.NullInt64
	Refusal               string        `gorm:"not null;default:''"`
	ReceivedAt            batch.Instant `gorm:"not null"`
	SettledAt             batch.Instant
	RequestID             string `gorm:"not null;default:''"`
}

// ListedSaleRow is a row of a list of sales.
type ListedSaleRow struct {
	SaleRow    `gorm:"embedded"`
	ReversedAt batch.Instant
}

// Entry converts the row.
func (r *ListedSaleRow) Entry() (fund.SaleEntry, error) {
	e, err := r.SaleRow.Entry()
	e.ReversedAt = r.ReversedAt.Time
	return e, err
}

// NewSaleRow returns the row of a sale in its current state.
func NewSaleRow(s fund.SaleEntry) SaleRow {
	t := &s.Terms
	row := SaleRow{
		CustomerNo:            t.Holding.CustomerNo,
		OperationID:           batch.UUID(s.ID),
		Position:              int64(s.Index),
		Subscription:          s.Subscription,
		Header:                headerColumns(s.Header),
		IMKBCode:              t.Holding.IMKBCode,
		HolderCorporationName: t.Holding.HolderCorporationName,
		PriceID:               t.PriceID,
		Units:                 int64(t.Units),
		AccountCustomerNo:     t.Account.CustomerNo,
		BranchCode:            t.Account.BranchCode,
		AccountSuffix:         t.Account.AccountSuffix,
		CurrencyCode:          t.Account.Currency.Code(),
		ControlTotal:          t.ControlTotal,
		SelectedDate:          batch.Day(t.SelectedDay.String()),
		State:                 int64(s.State),
		Refusal:               s.Refusal,
		ReceivedAt:            batch.Instant{Time: s.ReceivedAt},
		SettledAt:             batch.Instant{Time: s.SettledAt},
		RequestID:             s.Header.RequestID,
	}
	if s.State == operation.Completed {
		row.SettledPriceID = sql.NullInt64{Int64: s.PriceID, Valid: true}
		row.SettledPrice = sql.NullInt64{Int64: int64(s.PerUnit), Valid: true}
		row.Proceeds = sql.NullInt64{Int64: s.Proceeds.Minor(), Valid: true}
	}
	return row
}

// Operation returns the recorded operation of the row, without its sales.
func (r *SaleRow) Operation() *fund.Operation {
	return &fund.Operation{Envelope: r.Header.envelope(r.OperationID, r.Subscription, r.RequestID, r.ReceivedAt), Due: true}
}

// Terms returns the terms of the sale.
func (r *SaleRow) Terms() (fund.Terms, error) {
	account, err := accountKey(r.AccountCustomerNo, r.BranchCode, r.AccountSuffix, r.CurrencyCode)
	var selected day.Day
	if err == nil && r.SelectedDate != "" {
		selected, err = day.Parse(string(r.SelectedDate))
	}
	if err != nil {
		return fund.Terms{}, err
	}
	return fund.Terms{
		Holding:      holdingKey(r.CustomerNo, r.IMKBCode, r.HolderCorporationName),
		Units:        fund.Units(r.Units),
		Account:      account,
		PriceID:      r.PriceID,
		ControlTotal: r.ControlTotal,
		SelectedDay:  selected,
	}, nil
}

// Entry converts the row.
func (r *SaleRow) Entry() (fund.SaleEntry, error) {
	terms, err := r.Terms()
	e := fund.SaleEntry{
		Envelope:  r.Header.envelope(r.OperationID, r.Subscription, r.RequestID, r.ReceivedAt),
		Index:     int(r.Position),
		Terms:     terms,
		State:     operation.State(r.State), //nolint:gosec // written by us
		PriceID:   r.SettledPriceID.Int64,
		PerUnit:   fund.UnitPrice(r.SettledPrice.Int64),
		Refusal:   r.Refusal,
		SettledAt: r.SettledAt.Time,
	}
	if r.Proceeds.Valid {
		e.Proceeds = money.New(r.Proceeds.Int64, terms.Account.Currency)
	}
	if err == nil && int64(e.State) != r.State {
		err = fmt.Errorf("a sale is in the state %d", r.State)
	}
	return e, err
}

// InState returns the condition of the indexes of sales. It has no parameter, so that the
// engine recognizes the index.
func InState(s operation.State) string { return "state = " + strconv.Itoa(int(s)) }

// OfRefused is the condition of the sales of operations that were refused at once. A sale that
// failed on its day has the time at which that was decided.
var OfRefused = InState(operation.Failed) + " AND settled_at IS NULL"

// IsRecorded is the condition of the indexes of due sales, and of recorded operations.
var IsRecorded = InState(operation.Recorded)
