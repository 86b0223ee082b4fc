package read

import (
	"bytes"
	"cmp"
	"database/sql"
	"maps"
	"slices"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
)

// StoredOperation is everything that is stored of one operation, as rows: what
// backoffice.Operation is made of, and its leaf.
type StoredOperation struct {
	ID      batch.UUID
	Record  *tables.OperationRow // nil without a CallerId
	Refusal *tables.RefusalRow   // nil unless it was refused at once
	Asked   []tables.SaleRow
	// Twice says that there is another refusal. Only a table without its primary key has that.
	Twice        bool
	Sales        []tables.SaleRow
	Units, Money []tables.PostingRow // of its sales
	Reversal     *tables.ReversalRow // nil unless it was reversed
	reversed     []tables.PostingRow // of its reversal
	prices       map[int64]fund.Price
	// Notifications and others, the postings that are of no sale, are read for one ID only.
	Notifications []tables.NotificationRow
	Others        []tables.PostingRow
}

// IsDecided reports whether there is more than a reversal: then it has a leaf.
func (o *StoredOperation) IsDecided() bool {
	return o.Refusal != nil || len(o.Sales)+len(o.Units)+len(o.Money) > 0
}

// Operation makes the operation of the rows. It uses the memory of into.
func (o *StoredOperation) Operation(into *backoffice.Operation) error {
	*into = backoffice.Operation{
		ID: operation.ID(o.ID), Prices: o.prices, Sales: into.Sales[:0], Postings: into.Postings[:0], ReversalPostings: into.ReversalPostings[:0],
	}
	var errs [8]error
	into.Sales, errs[0] = tables.AppendEntries(into.Sales, o.Sales, (*tables.SaleRow).Entry)
	into.Postings = slices.Grow(into.Postings, len(o.Units)+len(o.Money)+len(o.Others))
	into.Postings, errs[1] = tables.AppendEntries(into.Postings, o.Units, (*tables.PostingRow).Entry)
	into.Postings, errs[2] = tables.AppendEntries(into.Postings, o.Money, (*tables.PostingRow).Entry)
	into.Postings, errs[3] = tables.AppendEntries(into.Postings, o.Others, (*tables.PostingRow).Entry)
	slices.SortStableFunc(into.Postings, func(a, b fund.PostingEntry) int { return a.Index - b.Index })
	into.ReversalPostings, errs[4] = tables.AppendEntries(into.ReversalPostings, o.reversed, (*tables.PostingRow).Entry)
	into.Notifications, errs[5] = tables.AppendEntries(into.Notifications, o.Notifications, (*tables.NotificationRow).Entry)
	into.RefusedSales, errs[6] = tables.AppendEntries(into.RefusedSales, o.Asked, (*tables.SaleRow).Entry)
	if o.Refusal != nil {
		refusal, _ := o.Refusal.Decision() // never fails
		into.Refusal = &refusal
	}
	if o.Reversal != nil {
		reversal := o.Reversal.Reversal()
		into.Reversal = &reversal
	}
	if r := o.Record; r != nil && (len(o.Sales) > 0 || r.OperationID == o.ID) { // another operation may have the CallerId of one that was refused
		into.Record = new(idempotency.Record)
		*into.Record, errs[7] = r.Record(r.Key())
	}
	return cmp.Or(errs[:]...)
}

// rangeSize is how many operations are read together.
const rangeSize = 2000

// Range is a range of operation IDs: after the first, up to the last; or one
// ID. nil is no bound.
type Range struct{ after, Until, Only *batch.UUID }

// Narrow takes the rows of the range, in the order of their operations.
func (w Range) Narrow(d *tables.Database, tx *gorm.DB) *gorm.DB {
	return w.of(d, tx, "t").Order("t.operation_id")
}

// of narrows to the operations of the range. table is the name of their table in the query.
func (w Range) of(d *tables.Database, tx *gorm.DB, table string) *gorm.DB {
	add := func(condition string, id *batch.UUID) {
		if id != nil {
			tx = tx.Where(table+".operation_id"+condition, d.Dialect.Bind(*id))
		}
	}
	add(" = ?", w.Only)
	add(" > ?", w.after)
	add(" <= ?", w.Until)
	return tx
}

// EachRange calls read with ranges that have all operations, in the order of their IDs.
func EachRange(d *tables.Database, tx *gorm.DB, read func(Range) error) error {
	var w Range
	for {
		w.Until = nil
		for _, table := range []string{d.Sales.Name, d.Refusals.Name} {
			var ids []batch.UUID
			query := Range{after: w.after}.Narrow(d, tx.Table(table+" AS t"))
			if err := query.Offset(rangeSize).Limit(1).Pluck("t.operation_id", &ids).Error; err != nil {
				return err
			}
			if len(ids) > 0 && (w.Until == nil || bytes.Compare(ids[0][:], w.Until[:]) < 0) {
				w.Until = &ids[0]
			}
		}
		if err := read(w); err != nil || w.Until == nil {
			return err
		}
		w.after = w.Until
	}
}

// Operations reads the operations of a range by their IDs.
func Operations(d *tables.Database, tx *gorm.DB, w Range, found func(*StoredOperation) error) error {
	all, prices := make(map[batch.UUID]*StoredOperation), make(map[int64]fund.Price)
	of := func(id batch.UUID) *StoredOperation {
		o := all[id]
		if o == nil {
			o = &StoredOperation{ID: id, prices: prices}
			all[id] = o
		}
		return o
	}
	own := func() *gorm.DB { return w.Narrow(d, tx) }
	answers := make(map[idempotency.Key]*tables.OperationRow)
	records := func(table, where string) func() error {
		joined := *d.Operations.Table
		joined.Name = table + " AS s, " + d.Operations.Name
		both := tx.Where("t.caller_id = s.caller_id AND t.subscription = s.subscription AND s.caller_id <> '' AND " + where)
		return reading(w.of(d, both, "s"), &joined, func(r tables.OperationRow) { answers[r.Key()] = &r })
	}
	postings := own()
	if w.Only == nil {
		postings = postings.Where("t.kind = ?", int64(fund.SalePosting))
	}
	reversed := make(map[batch.UUID]*StoredOperation)
	err := tables.InTurn(
		reading(own().Order("t.position, t.customer_no"), d.Sales.Table, func(r tables.SaleRow) {
			o := of(r.OperationID)
			if o.Sales = append(o.Sales, r); r.SettledPriceID.Valid {
				prices[r.SettledPriceID.Int64] = fund.Price{}
			}
		}),
		reading(own().Order("t.position"), d.Transfers.Table, func(r tables.TransferRow) {
			o := of(r.OperationID)
			unit, money := r.Postings()
			o.Units, o.Money = append(o.Units, unit), append(o.Money, money)
		}),
		reading(postings.Order("t.position, t.leg, t.customer_no"), d.Postings.Table, func(r tables.PostingRow) {
			switch o := of(r.OperationID); {
			case r.Kind != int64(fund.SalePosting):
				o.Others = append(o.Others, r)
			case r.Leg == tables.UnitLeg:
				o.Units = append(o.Units, r)
			default:
				o.Money = append(o.Money, r)
			}
		}),
		reading(own(), d.Refusals.Table, func(r tables.RefusalRow) {
			o := of(r.OperationID)
			o.Twice, o.Refusal = o.Twice || o.Refusal != nil, &r
		}),
		reading(own().Order("t.position"), d.RefusedSales.Table, func(r tables.SaleRow) {
			o := of(r.OperationID)
			o.Asked = append(o.Asked, r)
		}),
		reading(own(), d.Reversals.Table, func(r tables.ReversalRow) {
			o := of(r.OperationID)
			o.Reversal, reversed[r.ReversalID] = &r, o
		}),
		records(d.Sales.Name, "s.position = 0 AND t.operation = 2"),
		records(d.Refusals.Name, "t.operation = s.operation"),
	)
	if err == nil && w.Only != nil {
		err = tables.InTurn(
			reading(own().Order("t.position"), d.Notifications.Table, func(r tables.NotificationRow) {
				o := of(r.OperationID)
				o.Notifications = append(o.Notifications, r)
			}),
			records(d.Notifications.Name, "t.operation = 1"),
		)
	}
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
			if price, err := r.ToPrice(); err == nil { // no sale was settled at another one
				prices[r.PriceID] = price
			}
		})()
	}
	for _, id := range slices.SortedFunc(maps.Keys(all), tables.CompareIDs) {
		if err != nil {
			break
		}
		o := all[id]
		if len(o.Sales) > 0 {
			o.Record = answers[idempotency.Key{CallerID: o.Sales[0].Header.CallerID, Subscription: o.Sales[0].Subscription, Operation: operation.BuyFundFromCustomer}]
		}
		if r := o.Refusal; r != nil && o.Record == nil {
			o.Record = answers[idempotency.Key{CallerID: r.Header.CallerID, Subscription: r.Subscription, Operation: operation.Name(r.Operation)}] //nolint:gosec // written by us
		}
		if len(o.Notifications) > 0 && o.Record == nil {
			n := &o.Notifications[0]
			o.Record = answers[idempotency.Key{CallerID: n.Header.CallerID, Subscription: n.Subscription, Operation: operation.AddPushNotificationResponse}]
		}
		slices.SortStableFunc(o.Units, comparePlaces)
		slices.SortStableFunc(o.Money, comparePlaces)
		err = found(o)
	}
	return err
}

func comparePlaces(a, b tables.PostingRow) int {
	return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.CustomerNo, b.CustomerNo))
}

// reading is a step that reads rows.
func reading[R any](tx *gorm.DB, t *batch.Table[R], found func(R)) func() error {
	return func() error {
		return tables.Each(tx, t, func(row *R) error {
			found(*row)
			return nil
		})
	}
}

// AsRecorded is the decision as it was answered first: what settling changes is taken back.
func (o *StoredOperation) AsRecorded() *StoredOperation {
	first := &StoredOperation{ID: o.ID, Sales: make([]tables.SaleRow, len(o.Sales))}
	if o.Record != nil {
		record := *o.Record
		record.State, record.Faults = int64(operation.Recorded), ""
		first.Record = &record
	}
	for i, sale := range o.Sales {
		sale.State, sale.Refusal, sale.SettledAt = int64(operation.Recorded), "", batch.Instant{}
		sale.SettledPriceID, sale.SettledPrice, sale.Proceeds = sql.NullInt64{}, sql.NullInt64{}, sql.NullInt64{}
		first.Sales[i] = sale
	}
	return first
}

// WithoutPostings are the decision and its postings apart.
func (o *StoredOperation) WithoutPostings() (*StoredOperation, []tables.PostingRow) {
	without := *o
	without.Units, without.Money = nil, nil
	return &without, slices.Concat(o.Units, o.Money)
}
