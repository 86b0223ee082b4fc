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

// maxDueSales is how many sales a page of due operations has at most, unless its first operation has
// more. An operation may have a thousand sales.
const maxDueSales = 4096

// Due implements buyfund.Books.
func (b *Books) Due(ctx context.Context, filter buyfund.Due, after *fund.Operation, limit int) ([]*fund.Operation, error) {
	limit, err := b.fitting(ctx, filter, after, limit)
	if err != nil || limit == 0 {
		return nil, b.db.Translate(err)
	}
	listed := &b.db.ListedSales
	// The limit must not cut an operation: the inner query counts operations, and the outer one
	// reads all their sales by key. With a condition on their state Postgres may look for each
	// operation in the whole index of waiting sales, if it has no statistics.
	query := b.db.Query(ctx).Table(listed.Source).Select(listed.Selected).
		Where("o."+tables.IsRecorded+" AND t.operation_id IN (?)", b.dueIDs(ctx, filter, after, limit)).
		Order("o.due_on, t.operation_id, t.position")
	due := dueOperations{isUnreadable: make(map[operation.ID]bool)}
	err = tables.Scan(query, listed.Table, due.add)
	if err != nil {
		return nil, b.db.Translate(err)
	}
	return due.readable(), b.db.Translate(due.unreadable)
}

// fitting returns how many of the next due operations, at most limit, have no more than maxDueSales
// sales together. It is 0 only if there are none.
func (b *Books) fitting(ctx context.Context, filter buyfund.Due, after *fund.Operation, limit int) (count int, err error) {
	operations := b.due(b.db.Query(ctx), filter, after).Limit(limit).Table(b.db.Operations.Name + " AS d")
	if filter.Of != (fund.PriceDay{}) {
		// To group all due sales would read a thousand of them for each operation.
		sales := b.due(b.db.Reads.WithContext(ctx), filter, after).Limit(maxDueSales).Select("operation_id")
		operations = b.db.Query(ctx).Table("(?) AS d", sales).Group("d.operation_id").Order("d.operation_id").Limit(limit)
	}
	var lastPositions []int // of the sales of each operation
	err = operations.Select("COALESCE((SELECT MAX(s.position) FROM " + b.db.Sales.Name + " s WHERE s.operation_id = d.operation_id), 0)").
		Find(&lastPositions).Error
	if err != nil {
		return 0, err
	}
	sales := 0
	for _, last := range lastPositions {
		sales += last + 1
		if sales > maxDueSales && count > 0 {
			break
		}
		count++
	}
	return count, nil
}

// dueIDs selects the next due operations after one, which may be nil.
func (b *Books) dueIDs(ctx context.Context, filter buyfund.Due, after *fund.Operation, limit int) *gorm.DB {
	ids := b.due(b.db.Reads.WithContext(ctx), filter, after).Select("operation_id").Limit(limit)
	if filter.Of == (fund.PriceDay{}) {
		return ids
	}
	return ids.Group("operation_id")
}

// due finds the due operations after one, which may be nil. If the filter has a fund, it finds their
// sales of this fund.
func (b *Books) due(in *gorm.DB, filter buyfund.Due, after *fund.Operation) *gorm.DB {
	// Before all days and IDs.
	afterDay := "0001-01-01"
	afterID := operation.ID{}
	if after != nil {
		afterDay = after.Sales[0].Terms().SelectedDay.String()
		afterID = after.ID
	}
	recorded := in.Where(tables.IsRecorded)
	if filter.Of == (fund.PriceDay{}) {
		return recorded.Table(b.db.Operations.Name).Order("due_on, operation_id").
			Where("due_on <= ? AND (due_on, operation_id) > (?, ?)", filter.Until.String(), afterDay, batch.UUID(afterID))
	}
	of := filter.Of.Fund
	return recorded.Table(b.db.Sales.Name).Order("operation_id").
		Where("selected_date = ? AND imkb_code = ? AND holder_corporation_name = ? AND operation_id > ?",
			filter.Of.Day.String(), of.IMKBCode, of.HolderCorporationName, batch.UUID(afterID))
}

// dueOperations collects due operations from the rows of their sales.
type dueOperations struct {
	all []*fund.Operation
	// isUnreadable has operations that a person or another program has changed. unreadable is the
	// last error.
	isUnreadable map[operation.ID]bool
	unreadable   error
}

func (d *dueOperations) add(row *tables.ListedSaleRow) error {
	if row.Sale.State != int64(operation.Recorded) { // changed by hand
		return nil
	}
	id := operation.ID(row.Sale.OperationID)
	if len(d.all) == 0 || d.all[len(d.all)-1].ID != id {
		d.all = append(d.all, row.Operation())
	}
	terms, err := row.Sale.Terms()
	if err != nil {
		d.isUnreadable[id] = true
		d.unreadable = fmt.Errorf("operation %s: %w", id, err)
	}
	last := d.all[len(d.all)-1]
	last.Sales = append(last.Sales, fund.RestoreSale(terms))
	return nil // other operations are settled
}

// readable returns the operations that can be settled.
func (d *dueOperations) readable() []*fund.Operation {
	return slices.DeleteFunc(d.all, func(o *fund.Operation) bool { return d.isUnreadable[o.ID] })
}

// keyOfFund names a fund and day in the index of waiting sales.
const keyOfFund = "selected_date, imkb_code, holder_corporation_name"

// DueFunds implements buyfund.Books. The index of waiting funds has all columns that it reads.
func (b *Books) DueFunds(ctx context.Context, until day.Day, count bool) ([]buyfund.DueFund, error) {
	var rows []dueFundRow
	var err error
	if count {
		rows, err = b.countedFunds(ctx, until)
	} else {
		rows, err = b.listedFunds(ctx, until)
	}
	if err != nil {
		return nil, b.db.Translate(err)
	}
	return tables.AppendEntries([]buyfund.DueFund{}, rows, (*dueFundRow).fund)
}

// listedFunds takes one step in the index for each fund.
func (b *Books) listedFunds(ctx context.Context, until day.Day) (rows []dueFundRow, err error) {
	last := dueFundRow{SelectedDate: "0001-01-01"}
	for {
		var next []dueFundRow
		err := b.waitingSales(ctx, until).Select(b.fundColumns()).Order(keyOfFund).
			Where("("+keyOfFund+") > (?, ?, ?)", string(last.SelectedDate), last.IMKBCode, last.HolderCorporationName).
			Limit(1).Find(&next).Error
		if err != nil || len(next) == 0 {
			return rows, err
		}
		last = next[0]
		rows = append(rows, last)
	}
}

func (b *Books) countedFunds(ctx context.Context, until day.Day) (rows []dueFundRow, err error) {
	grouped := func(sales *gorm.DB, counts string) *gorm.DB {
		return sales.Select(b.fundColumns() + counts).Group(keyOfFund).Order(keyOfFund)
	}
	err = grouped(b.waitingSales(ctx, until), ", COUNT(*) AS sales").Find(&rows).Error
	if err != nil {
		return nil, err
	}
	priced := 0
	for i := range rows {
		if rows[i].Priced {
			priced++
		} else {
			rows[i].Waiting = rows[i].Sales
		}
	}
	if priced == 0 || priced == len(rows) {
		return rows, nil
	}
	// A sale of a fund with a price may wait for the price of another sale of its operation. The window
	// reads each sale once. A join might compare each with each, if Postgres has no statistics.
	const waits = ", MAX(CASE WHEN EXISTS (SELECT 1 %s) THEN 0 ELSE 1 END) OVER (PARTITION BY operation_id) AS waits"
	sales := b.waitingSales(ctx, until).Select(keyOfFund + fmt.Sprintf(waits, b.pricesOfDay()))
	rows = nil
	err = grouped(b.db.Query(ctx).Table("(?) AS s", sales), ", COUNT(*) AS sales, SUM(waits) AS waiting").Find(&rows).Error
	return rows, err
}

// waitingSales are the sales s that are recorded for the day or an earlier one.
func (b *Books) waitingSales(ctx context.Context, until day.Day) *gorm.DB {
	return b.db.Query(ctx).Table(b.db.Sales.Name+" AS s").Where(tables.IsRecorded+" AND selected_date <= ?", until.String())
}

func (b *Books) fundColumns() string {
	prices := b.pricesOfDay()
	return keyOfFund + ", EXISTS (SELECT 1 " + prices + ") AS priced, (SELECT p.act_id " + prices + " ORDER BY p.act_id LIMIT 1) AS first_act"
}

// pricesOfDay are the prices p of the fund and day of a sale s.
func (b *Books) pricesOfDay() string {
	return "FROM " + b.db.Prices.Name + " p WHERE p.imkb_code = s.imkb_code" +
		" AND p.holder_corporation_name = s.holder_corporation_name AND p.valid_from = s.selected_date"
}

// dueFundRow is a fund with recorded sales for a day.
type dueFundRow struct {
	SelectedDate          batch.Day
	IMKBCode              string
	HolderCorporationName string
	Priced                bool
	FirstAct              batch.UUID // the first import of such a price
	Sales, Waiting        int64
}

func (r *dueFundRow) fund() (buyfund.DueFund, error) {
	date, err := day.Parse(string(r.SelectedDate))
	due := buyfund.DueFund{
		PriceDay: fund.PriceDay{Fund: fund.Fund{IMKBCode: r.IMKBCode, HolderCorporationName: r.HolderCorporationName}, Day: date},
		Priced:   r.Priced, Sales: r.Sales, Waiting: r.Waiting,
	}
	if r.FirstAct != (batch.UUID{}) {
		due.PricedAt = operation.ID(r.FirstAct).Time()
	}
	return due, err
}
