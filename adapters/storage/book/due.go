package book

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/buyfund"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// Due implements buyfund.Books.
func (b *Books) Due(ctx context.Context, filter buyfund.Due, after *fund.Operation, limit int) ([]*fund.Operation, error) {
	afterDay, afterID := "0001-01-01", operation.ID{} // before all days and IDs
	if after != nil {
		afterDay, afterID = after.Sales[0].Terms().SelectedDay.String(), after.ID
	}
	// The limit must not cut an operation: the inner query counts operations, and the outer one
	// reads all their sales.
	operations := b.db.Reads.WithContext(ctx).Where(tables.IsRecorded).Select("operation_id").Limit(limit)
	if filter.Of == (fund.PriceDay{}) {
		operations = operations.Table(b.db.Operations.Name).Order("due_on, operation_id").
			Where("due_on <= ? AND (due_on, operation_id) > (?, ?)", filter.Until.String(), afterDay, b.db.Bind(batch.UUID(afterID)))
	} else {
		operations = operations.Table(b.db.Sales.Name).Group("operation_id").Order("operation_id").
			Where("selected_date = ? AND imkb_code = ? AND holder_corporation_name = ? AND operation_id > ?",
				filter.Of.Day.String(), filter.Of.Fund.IMKBCode, filter.Of.Fund.HolderCorporationName, b.db.Bind(batch.UUID(afterID)))
	}
	listed := &b.db.ListedSales
	query := b.db.Query(ctx).Table(listed.Source).Select(listed.Selected).
		Where("t."+tables.IsRecorded+" AND o."+tables.IsRecorded+" AND t.operation_id IN (?)", operations).Order("o.due_on, t.operation_id, t.position")
	var due []*fund.Operation
	var unreadable error
	isUnreadable := make(map[operation.ID]bool) // by this program, or changed by hand
	err := tables.Scan(query, listed.Table, func(row *tables.ListedSaleRow) error {
		if len(due) == 0 || due[len(due)-1].ID != operation.ID(row.Sale.OperationID) {
			due = append(due, row.Operation())
		}
		last := due[len(due)-1]
		terms, err := row.Sale.Terms()
		if err != nil {
			isUnreadable[last.ID], unreadable = true, fmt.Errorf("operation %s: %w", last.ID, err)
		}
		last.Sales = append(last.Sales, fund.RestoreSale(terms))
		return nil
	})
	if err != nil {
		return nil, b.db.Translate(err)
	}
	return slices.DeleteFunc(due, func(o *fund.Operation) bool { return isUnreadable[o.ID] }), b.db.Translate(unreadable)
}

// DueFunds implements buyfund.Books. The index of waiting funds has all columns that it reads.
func (b *Books) DueFunds(ctx context.Context, until day.Day, count bool) ([]buyfund.DueFund, error) {
	const key = "selected_date, imkb_code, holder_corporation_name"
	columns := key + ", EXISTS (SELECT 1 FROM " + b.db.Prices.Name + " p WHERE p.imkb_code = s.imkb_code" +
		" AND p.holder_corporation_name = s.holder_corporation_name AND p.valid_from = s.selected_date) AS priced"
	due := func() *gorm.DB {
		return b.db.Query(ctx).Table(b.db.Sales.Name+" AS s").Where(tables.IsRecorded+" AND selected_date <= ?", until.String()).Order(key)
	}
	var rows []dueFundRow
	if count {
		err := due().Select(columns + ", COUNT(*) AS sales").Group(key).Find(&rows).Error
		if err != nil {
			return nil, b.db.Translate(err)
		}
		return tables.AppendEntries([]buyfund.DueFund{}, rows, (*dueFundRow).fund)
	}
	last := dueFundRow{SelectedDate: "0001-01-01"}
	for { // one step in the index for each fund
		var next []dueFundRow
		err := due().Select(columns).Where("("+key+") > (?, ?, ?)", string(last.SelectedDate), last.IMKBCode, last.HolderCorporationName).Limit(1).Find(&next).Error
		if err != nil {
			return nil, b.db.Translate(err)
		}
		if len(next) == 0 {
			return tables.AppendEntries([]buyfund.DueFund{}, rows, (*dueFundRow).fund)
		}
		last = next[0]
		rows = append(rows, last)
	}
}

// dueFundRow is a fund with recorded sales for a day.
type dueFundRow struct {
	SelectedDate          batch.Day
	IMKBCode              string
	HolderCorporationName string
	Priced                bool
	Sales                 int64
}

func (r *dueFundRow) fund() (buyfund.DueFund, error) {
	date, err := day.Parse(string(r.SelectedDate))
	return buyfund.DueFund{
		PriceDay: fund.PriceDay{Fund: fund.Fund{IMKBCode: r.IMKBCode, HolderCorporationName: r.HolderCorporationName}, Day: date},
		Priced:   r.Priced, Sales: r.Sales,
	}, err
}
