package storage

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
)

// storedOperation is everything that is stored of one operation, as rows: what
// backoffice.Operation is made of, and its leaf.
type storedOperation struct {
	id      batch.UUID
	record  *OperationRow // nil without a CallerId
	refusal *RefusalRow   // nil unless it was refused at once
	asked   []RefusedSaleRow
	// twice says that there is another refusal. Only a table without its primary
	// key has that.
	twice        bool
	sales        []SaleRow
	units, money []PostingRow // of its sales
	reversal     *ReversalRow // nil unless it was reversed
	reversed     []PostingRow // of its reversal
	prices       map[int64]fund.Price
	// notifications and others, the postings that are of no sale, are read for one ID only.
	notifications []NotificationRow
	others        []PostingRow
}

// isDecided reports whether there is more than a reversal: then it has a leaf.
func (o *storedOperation) isDecided() bool {
	return o.refusal != nil || len(o.sales)+len(o.units)+len(o.money) > 0
}

// operation makes the operation of the rows. It uses the memory of into.
func (o *storedOperation) operation(into *backoffice.Operation) (err error) {
	*into = backoffice.Operation{
		ID: operation.ID(o.id), Prices: o.prices, Sales: into.Sales[:0], Postings: into.Postings[:0], ReversalPostings: into.ReversalPostings[:0],
	}
	if into.Sales, err = appendEntries(into.Sales, o.sales, (*SaleRow).entry); err != nil {
		return err
	}
	into.Postings = slices.Grow(into.Postings, len(o.units)+len(o.money)+len(o.others))
	for _, rows := range [][]PostingRow{o.units, o.money, o.others} {
		if into.Postings, err = appendEntries(into.Postings, rows, (*PostingRow).entry); err != nil {
			return err
		}
	}
	slices.SortStableFunc(into.Postings, func(a, b fund.PostingEntry) int { return a.Index - b.Index })
	if into.ReversalPostings, err = appendEntries(into.ReversalPostings, o.reversed, (*PostingRow).entry); err != nil {
		return err
	}
	if into.Notifications, err = appendEntries(into.Notifications, o.notifications, (*NotificationRow).entry); err != nil {
		return err
	}
	if o.refusal != nil {
		refusal, _ := o.refusal.refusal() // never fails
		into.Refusal = &refusal
	}
	if into.RefusedSales, err = appendEntries(into.RefusedSales, o.asked, (*RefusedSaleRow).entry); err != nil {
		return err
	}
	if o.reversal != nil {
		reversal := o.reversal.reversal()
		into.Reversal = &reversal
	}
	if r := o.record; r != nil && (len(o.sales) > 0 || r.OperationID == o.id) { // another operation may have the CallerId of one that was refused
		record, err := r.record(idempotency.Key{CallerID: r.CallerID, Subscription: r.Subscription, Operation: operation.Name(r.Operation)}) //nolint:gosec // written by us
		if err != nil {
			return err
		}
		into.Record = &record
	}
	return nil
}

func appendEntries[R, T any](to []T, rows []R, entry func(*R) (T, error)) ([]T, error) {
	for i := range rows {
		value, err := entry(&rows[i])
		if err != nil {
			return to, err
		}
		to = append(to, value)
	}
	return to, nil
}

// rowReader reads rows as they are stored.
type rowReader struct{ leafMaker }

func newRowReader(d *database) rowReader { return rowReader{leafMaker{d}} }

// inTurn takes steps until one fails.
func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// each reads rows. narrow chooses them and their order; nil takes all of them. A
// row is valid during the call.
func each[R any](tx *gorm.DB, t *batch.Table[R], narrow func(*gorm.DB) *gorm.DB, found func(*R) error) error {
	query := tx.Table(t.Name + " AS t").Select(columnsOf("t", t))
	if narrow != nil {
		query = narrow(query)
	}
	rows, err := query.Rows() //nolint:rowserrcheck,sqlclosecheck // Each does it
	if err != nil {
		return err
	}
	row := new(R)
	into := batch.Targets(row, t.Columns)
	return batch.Each(rows, func() error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		return found(row)
	})
}

// rowsOf reads rows to the end of a slice.
func rowsOf[R any](to *[]R, tx *gorm.DB, t *batch.Table[R], narrow func(*gorm.DB) *gorm.DB) func() error {
	return func() error {
		return each(tx, t, narrow, func(row *R) error {
			*to = append(*to, *row)
			return nil
		})
	}
}

// columnsOf are the columns of a table with its name in the query. Alone, a name
// may be a keyword.
func columnsOf[R any](as string, t *batch.Table[R]) []string {
	names := batch.Names(t.Columns)
	for i := range names {
		names[i] = as + "." + names[i]
	}
	return names
}

// rangeSize is how many operations are read together.
const rangeSize = 2000

// idRange is a range of operation IDs: after the first, up to the last; or one
// ID. nil is no bound.
type idRange struct{ after, until, only *batch.UUID }

func (d rowReader) within(w idRange) func(*gorm.DB) *gorm.DB {
	return func(tx *gorm.DB) *gorm.DB { return d.ofRange(tx, "t", w).Order("t.operation_id") }
}

// ofRange narrows to the operations of a range. table is the name of their table in the query.
func (d rowReader) ofRange(tx *gorm.DB, table string, w idRange) *gorm.DB {
	add := func(condition string, id *batch.UUID) {
		if id != nil {
			tx = tx.Where(table+".operation_id"+condition, d.Dialect.Bind(*id))
		}
	}
	add(" = ?", w.only)
	add(" > ?", w.after)
	add(" <= ?", w.until)
	return tx
}

// eachRange calls read with ranges that have all operations, in the order of their IDs.
func (d rowReader) eachRange(tx *gorm.DB, read func(idRange) error) error {
	var w idRange
	for {
		w.until = nil
		for _, table := range []string{d.sales.Name, d.refusals.Name} {
			var ids []batch.UUID
			query := d.within(idRange{after: w.after})(tx.Table(table + " AS t"))
			if err := query.Offset(rangeSize).Limit(1).Pluck("t.operation_id", &ids).Error; err != nil {
				return err
			}
			if len(ids) > 0 && (w.until == nil || bytes.Compare(ids[0][:], w.until[:]) < 0) {
				w.until = &ids[0]
			}
		}
		if err := read(w); err != nil || w.until == nil {
			return err
		}
		w.after = w.until
	}
}

// readOperations reads the operations of a range by their IDs.
func (d rowReader) readOperations(ctx context.Context, tx *gorm.DB, w idRange, found func(*storedOperation) error) error {
	var (
		sales            []SaleRow
		transfers        []TransferRow
		postings, undone []PostingRow
		refusals         []RefusalRow
		asked            []RefusedSaleRow
		reversals        []ReversalRow
		notifications    []NotificationRow
		records          []OperationRow
	)
	ordered := func(order string) func(*gorm.DB) *gorm.DB {
		return func(tx *gorm.DB) *gorm.DB { return d.within(w)(tx).Order(order) }
	}
	err := inTurn(
		rowsOf(&sales, tx, d.sales.Table, ordered("t.position, t.customer_no")),
		rowsOf(&transfers, tx, d.transfers.Table, ordered("t.position")),
		rowsOf(&postings, tx, d.postings.Table, func(tx *gorm.DB) *gorm.DB {
			if tx = ordered("t.position, t.leg, t.customer_no")(tx); w.only == nil {
				tx = tx.Where("t.kind = ?", int64(fund.SalePosting))
			}
			return tx
		}),
		rowsOf(&refusals, tx, d.refusals.Table, d.within(w)),
		rowsOf(&asked, tx, d.refusals.sales, ordered("t.position")),
		rowsOf(&reversals, tx, d.reversals.Table, d.within(w)),
		d.recordsOf(&records, tx, d.sales.Name, "s.position = 0 AND t.operation = 2", w),
		d.recordsOf(&records, tx, d.refusals.Name, "t.operation = s.operation", w),
	)
	if err == nil && w.only != nil {
		err = inTurn(
			rowsOf(&notifications, tx, d.notifications.Table, ordered("t.position")),
			d.recordsOf(&records, tx, d.notifications.Name, "t.operation = 1", w),
		)
	}
	if err == nil && len(reversals) > 0 {
		ids := convert(reversals, func(r ReversalRow) any { return d.Dialect.Bind(r.ReversalID) })
		err = rowsOf(&undone, tx, d.postings.Table, func(tx *gorm.DB) *gorm.DB {
			return tx.Where("t.operation_id IN ?", ids).Order("t.position, t.leg, t.customer_no")
		})()
	}
	if err != nil {
		return err
	}

	all, prices := make(map[batch.UUID]*storedOperation, len(sales)), make(map[int64]fund.Price)
	of := func(id batch.UUID) *storedOperation {
		o := all[id]
		if o == nil {
			o = &storedOperation{id: id, prices: prices}
			all[id] = o
		}
		return o
	}
	answers := make(map[callerKey]*OperationRow, len(records))
	for i := range records {
		answers[callerKey{records[i].CallerID, records[i].Subscription, records[i].Operation}] = &records[i]
	}
	for len(sales) > 0 {
		o := of(sales[0].OperationID)
		o.sales, sales = cut(sales, o.id, saleOperation)
		o.record = answers[callerKey{o.sales[0].Header.CallerID, o.sales[0].Subscription, int64(operation.BuyFundFromCustomer)}]
		for i := range o.sales {
			if id := o.sales[i].SettledPriceID; id.Valid {
				prices[id.Int64] = fund.Price{}
			}
		}
	}
	units, money := make([]PostingRow, len(transfers)), make([]PostingRow, len(transfers))
	for i := range transfers {
		units[i], money[i] = transfers[i].postings()
	}
	for len(units) > 0 {
		o := of(units[0].OperationID)
		o.units, units = cut(units, o.id, postingOperation)
		o.money, money = cut(money, o.id, postingOperation)
	}
	for i := range postings {
		switch row, o := postings[i], of(postings[i].OperationID); {
		case row.Kind != int64(fund.SalePosting):
			o.others = append(o.others, row)
		case row.Leg == unitLeg:
			o.units = append(o.units, row)
		default:
			o.money = append(o.money, row)
		}
	}
	for i := range refusals {
		row, o := &refusals[i], of(refusals[i].OperationID)
		o.twice = o.twice || o.refusal != nil
		o.refusal = row
		if o.record == nil {
			o.record = answers[callerKey{row.Header.CallerID, row.Subscription, row.Operation}]
		}
	}
	for len(asked) > 0 {
		o := of(asked[0].OperationID)
		o.asked, asked = cut(asked, o.id, func(r *RefusedSaleRow) batch.UUID { return r.OperationID })
	}
	reversed := make(map[batch.UUID]*storedOperation, len(reversals))
	for i := range reversals {
		o := of(reversals[i].OperationID)
		o.reversal, reversed[reversals[i].ReversalID] = &reversals[i], o
	}
	for i := range undone {
		o := reversed[undone[i].OperationID]
		o.reversed = append(o.reversed, undone[i])
	}
	if len(notifications) > 0 {
		first, o := &notifications[0], of(notifications[0].OperationID)
		o.notifications = notifications
		if o.record == nil {
			o.record = answers[callerKey{first.Header.CallerID, first.Subscription, int64(operation.AddPushNotificationResponse)}]
		}
	}
	if err := d.readPrices(ctx, tx, prices); err != nil {
		return err
	}
	for _, id := range slices.SortedFunc(maps.Keys(all), compareIDs) {
		o := all[id]
		slices.SortStableFunc(o.units, comparePlaces)
		slices.SortStableFunc(o.money, comparePlaces)
		if err := found(o); err != nil {
			return err
		}
	}
	return nil
}

func comparePlaces(a, b PostingRow) int {
	return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.CustomerNo, b.CustomerNo))
}

// callerKey is the key of an OperationRow.
type callerKey struct {
	callerID, subscription string
	operation              int64
}

// recordsOf reads the records of the CallerIds in a table of operations.
func (d rowReader) recordsOf(to *[]OperationRow, tx *gorm.DB, table, where string, w idRange) func() error {
	joined := *d.operations.Table
	joined.Name = table + " AS s, " + d.operations.Name
	return rowsOf(to, tx, &joined, func(tx *gorm.DB) *gorm.DB {
		return d.ofRange(tx.Where("t.caller_id = s.caller_id AND t.subscription = s.subscription AND s.caller_id <> '' AND "+where), "s", w)
	})
}

// readPrices reads the prices of these IDs.
func (d rowReader) readPrices(ctx context.Context, tx *gorm.DB, prices map[int64]fund.Price) error {
	keys := convert(slices.Collect(maps.Keys(prices)), func(id int64) PriceRow { return PriceRow{PriceID: id} })
	if len(keys) == 0 {
		return nil
	}
	clear(prices)
	native, err := transaction(tx)
	if err != nil {
		return err
	}
	return d.Dialect.Within(native).Exchange(ctx, d.prices.find.Request(keys, func(i int, row *PriceRow) error {
		row.PriceID = keys[i].PriceID
		if price, err := row.price(); err == nil { // no sale was settled at another one
			prices[row.PriceID] = price
		}
		return nil
	}))
}
