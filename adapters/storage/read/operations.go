package read

import (
	"cmp"
	"maps"
	"slices"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// StoredOperation has all stored rows of one operation. backoffice.Operation and the leaf of
// the operation are made from them.
type StoredOperation struct {
	ID batch.UUID
	// Row is nil if rows of other tables have no operation. The service never writes that.
	Row           *tables.OperationRow
	Sales         []tables.SaleRow
	Units, Money  []tables.PostingRow // postings of its sales
	reversed      []tables.PostingRow // postings of its reversal
	prices        map[int64]fund.Price
	Notifications []tables.NotificationRow
	// Others (postings that belong to no sale) are only read for a single ID.
	Others []tables.PostingRow
}

// IsDecided reports whether the operation has leaves.
func (o *StoredOperation) IsDecided() bool {
	return o.Row != nil || len(o.Sales)+len(o.Units)+len(o.Money)+len(o.Notifications) > 0
}

// IsPush reports whether nothing but messages is stored of the operation.
func (o *StoredOperation) IsPush() bool {
	isPush := o.Row != nil && o.Row.Operation == int64(operation.AddPushNotificationResponse)
	return isPush && len(o.Sales)+len(o.Units)+len(o.Money) == 0
}

// Operation converts the rows to an operation. It reuses the memory of result.
func (o *StoredOperation) Operation(result *backoffice.Operation) error {
	*result = backoffice.Operation{
		ID: operation.ID(o.ID), Prices: o.prices, Sales: result.Sales[:0], Postings: result.Postings[:0], ReversalPostings: result.ReversalPostings[:0],
	}
	var errs [8]error
	sales := &result.Sales
	if r := o.Row; r != nil {
		var decision operation.Decision
		decision, errs[0] = r.Decision()
		result.Answered = &decision
		result.Record, errs[1] = r.Record()
		result.Reversal = r.Reversal()
		if r.IsRefused() {
			result.Refusal, sales = &decision, &result.RefusedSales
		}
	}
	*sales, errs[2] = tables.AppendEntries(*sales, o.Sales, (*tables.SaleRow).Entry)
	result.Postings = slices.Grow(result.Postings, len(o.Units)+len(o.Money)+len(o.Others))
	result.Postings, errs[3] = tables.AppendEntries(result.Postings, o.Units, (*tables.PostingRow).Entry)
	result.Postings, errs[4] = tables.AppendEntries(result.Postings, o.Money, (*tables.PostingRow).Entry)
	result.Postings, errs[5] = tables.AppendEntries(result.Postings, o.Others, (*tables.PostingRow).Entry)
	slices.SortStableFunc(result.Postings, func(a, b fund.PostingEntry) int { return a.Index - b.Index })
	result.ReversalPostings, errs[6] = tables.AppendEntries(result.ReversalPostings, o.reversed, (*tables.PostingRow).Entry)
	result.Notifications, errs[7] = tables.AppendEntries(result.Notifications, o.Notifications, (*tables.NotificationRow).Entry)
	return cmp.Or(errs[:]...)
}

// rangeSize is how many operations are read together.
const rangeSize = 2000

// Range is a range of operation IDs, greater than after and up to Until. Or it is one ID. nil
// means no bound.
type Range struct{ after, Until, Only *batch.UUID }

// Narrow selects the rows of the range, in the order of their operations.
func (r Range) Narrow(d *tables.Database, tx *gorm.DB) *gorm.DB {
	return r.filter(d, tx, "t").Order("t.operation_id")
}

// filter selects the operations of the range. table is the name of their table in the query.
func (r Range) filter(d *tables.Database, tx *gorm.DB, table string) *gorm.DB {
	add := func(condition string, id *batch.UUID) {
		if id != nil {
			tx = tx.Where(table+".operation_id"+condition, d.Dialect.Bind(*id))
		}
	}
	add(" = ?", r.Only)
	add(" > ?", r.after)
	add(" <= ?", r.Until)
	return tx
}

// EachRange calls read for consecutive ranges that cover all operations, in the order of IDs.
func EachRange(d *tables.Database, tx *gorm.DB, read func(Range) error) error {
	var r Range
	for {
		r.Until = nil
		var ids []batch.UUID
		query := Range{after: r.after}.Narrow(d, tx.Table(d.Operations.Name+" AS t"))
		if err := query.Offset(rangeSize).Limit(1).Pluck("t.operation_id", &ids).Error; err != nil {
			return err
		}
		if len(ids) > 0 {
			r.Until = &ids[0]
		}
		if err := read(r); err != nil || r.Until == nil {
			return err
		}
		r.after = r.Until
	}
}

// Operations reads the operations of a range in the order of their IDs.
func Operations(d *tables.Database, tx *gorm.DB, idRange Range, visit func(*StoredOperation) error) error {
	operations, prices := make(map[batch.UUID]*StoredOperation), make(map[int64]fund.Price)
	operationOf := func(id batch.UUID) *StoredOperation {
		o := operations[id]
		if o == nil {
			o = &StoredOperation{ID: id, prices: prices}
			operations[id] = o
		}
		return o
	}
	rows := func() *gorm.DB { return idRange.Narrow(d, tx) }
	postings := rows()
	if idRange.Only == nil {
		postings = postings.Where("t.kind = ?", int64(fund.SalePosting))
	}
	reversed := make(map[batch.UUID]*StoredOperation)
	err := tables.InTurn(
		reading(rows().Order("t.position, t.customer_no"), d.Sales.Table, func(r tables.SaleRow) {
			o := operationOf(r.OperationID)
			if o.Sales = append(o.Sales, r); r.SettledPriceID.Valid {
				prices[r.SettledPriceID.Int64] = fund.Price{}
			}
		}),
		reading(rows().Order("t.position"), d.Transfers.Table, func(r tables.TransferRow) {
			o := operationOf(r.OperationID)
			unit, money := r.Postings()
			o.Units, o.Money = append(o.Units, unit), append(o.Money, money)
		}),
		reading(postings.Order("t.position, t.leg, t.customer_no"), d.Postings.Table, func(r tables.PostingRow) {
			switch o := operationOf(r.OperationID); {
			case r.Kind != int64(fund.SalePosting):
				o.Others = append(o.Others, r)
			case r.Leg == tables.UnitLeg:
				o.Units = append(o.Units, r)
			default:
				o.Money = append(o.Money, r)
			}
		}),
		reading(rows(), d.Operations.Table, func(r tables.OperationRow) {
			o := operationOf(r.OperationID)
			if o.Row = &r; r.ReversalID != (batch.UUID{}) {
				reversed[r.ReversalID] = o
			}
		}),
		reading(rows().Order("t.position"), d.Notifications.Table, func(r tables.NotificationRow) {
			o := operationOf(r.OperationID)
			o.Notifications = append(o.Notifications, r)
		}),
	)
	if err == nil && len(reversed) > 0 {
		ids := tables.Convert(slices.Collect(maps.Keys(reversed)), func(id batch.UUID) any { return d.Dialect.Bind(id) })
		err = reading(tx.Where("t.operation_id IN ?", ids).Order("t.position, t.leg, t.customer_no"), d.Postings.Table, func(r tables.PostingRow) {
			o := reversed[r.OperationID]
			o.reversed = append(o.reversed, r)
		})()
	}
	if err == nil && len(prices) > 0 {
		ids := slices.Collect(maps.Keys(prices))
		clear(prices)
		err = reading(tx.Where("t.price_id IN ?", ids), d.Prices.Table, func(r tables.PriceRow) {
			if price, err := r.ToPrice(); err == nil { // no sale was settled at an invalid price
				prices[r.PriceID] = price
			}
		})()
	}
	for _, id := range slices.SortedFunc(maps.Keys(operations), tables.CompareIDs) {
		if err != nil {
			break
		}
		o := operations[id]
		slices.SortStableFunc(o.Units, comparePlaces)
		slices.SortStableFunc(o.Money, comparePlaces)
		err = visit(o)
	}
	return err
}

func comparePlaces(a, b tables.PostingRow) int {
	return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.CustomerNo, b.CustomerNo))
}

// reading returns a step that reads rows.
func reading[R any](tx *gorm.DB, t *batch.Table[R], visit func(R)) func() error {
	return func() error {
		return tables.Each(tx, t, func(row *R) error {
			visit(*row)
			return nil
		})
	}
}
