package storage

import (
	"bytes"
	"cmp"
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
		refusal, _ := o.refusal.decision() // never fails
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

// reading is a step that reads rows.
func reading[R any](tx *gorm.DB, t *batch.Table[R], narrow func(*gorm.DB) *gorm.DB, found func(R)) func() error {
	return func() error {
		return each(tx, t, narrow, func(row *R) error {
			found(*row)
			return nil
		})
	}
}

// rowsOf reads rows to the end of a slice.
func rowsOf[R any](to *[]R, tx *gorm.DB, t *batch.Table[R], narrow func(*gorm.DB) *gorm.DB) func() error {
	return reading(tx, t, narrow, func(row R) { *to = append(*to, row) })
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

// narrow takes the rows of the range, in the order of their operations.
func (w idRange) narrow(d *database) func(*gorm.DB) *gorm.DB {
	return func(tx *gorm.DB) *gorm.DB { return w.of(d, tx, "t").Order("t.operation_id") }
}

// of narrows to the operations of the range. table is the name of their table in the query.
func (w idRange) of(d *database, tx *gorm.DB, table string) *gorm.DB {
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
func eachRange(d *database, tx *gorm.DB, read func(idRange) error) error {
	var w idRange
	for {
		w.until = nil
		for _, table := range []string{d.sales.Name, d.refusals.Name} {
			var ids []batch.UUID
			query := idRange{after: w.after}.narrow(d)(tx.Table(table + " AS t"))
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
func readOperations(d *database, tx *gorm.DB, w idRange, found func(*storedOperation) error) error {
	all, prices := make(map[batch.UUID]*storedOperation), make(map[int64]fund.Price)
	of := func(id batch.UUID) *storedOperation {
		o := all[id]
		if o == nil {
			o = &storedOperation{id: id, prices: prices}
			all[id] = o
		}
		return o
	}
	ordered := func(order string) func(*gorm.DB) *gorm.DB {
		return func(tx *gorm.DB) *gorm.DB { return w.narrow(d)(tx).Order(order) }
	}
	answers := make(map[callerKey]*OperationRow)
	records := func(table, where string) func() error {
		joined := *d.operations.Table
		joined.Name = table + " AS s, " + d.operations.Name
		return reading(tx, &joined, func(tx *gorm.DB) *gorm.DB {
			return w.of(d, tx.Where("t.caller_id = s.caller_id AND t.subscription = s.subscription AND s.caller_id <> '' AND "+where), "s")
		}, func(r OperationRow) { answers[callerKey{r.CallerID, r.Subscription, r.Operation}] = &r })
	}
	reversed := make(map[batch.UUID]*storedOperation)
	err := inTurn(
		reading(tx, d.sales.Table, ordered("t.position, t.customer_no"), func(r SaleRow) {
			o := of(r.OperationID)
			if o.sales = append(o.sales, r); r.SettledPriceID.Valid {
				prices[r.SettledPriceID.Int64] = fund.Price{}
			}
		}),
		reading(tx, d.transfers.Table, ordered("t.position"), func(r TransferRow) {
			o := of(r.OperationID)
			unit, money := r.postings()
			o.units, o.money = append(o.units, unit), append(o.money, money)
		}),
		reading(tx, d.postings.Table, func(tx *gorm.DB) *gorm.DB {
			if tx = ordered("t.position, t.leg, t.customer_no")(tx); w.only == nil {
				tx = tx.Where("t.kind = ?", int64(fund.SalePosting))
			}
			return tx
		}, func(r PostingRow) {
			switch o := of(r.OperationID); {
			case r.Kind != int64(fund.SalePosting):
				o.others = append(o.others, r)
			case r.Leg == unitLeg:
				o.units = append(o.units, r)
			default:
				o.money = append(o.money, r)
			}
		}),
		reading(tx, d.refusals.Table, w.narrow(d), func(r RefusalRow) {
			o := of(r.OperationID)
			o.twice, o.refusal = o.twice || o.refusal != nil, &r
		}),
		reading(tx, d.refusals.sales.Table, ordered("t.position"), func(r RefusedSaleRow) {
			o := of(r.OperationID)
			o.asked = append(o.asked, r)
		}),
		reading(tx, d.reversals.Table, w.narrow(d), func(r ReversalRow) {
			o := of(r.OperationID)
			o.reversal, reversed[r.ReversalID] = &r, o
		}),
		records(d.sales.Name, "s.position = 0 AND t.operation = 2"),
		records(d.refusals.Name, "t.operation = s.operation"),
	)
	if err == nil && w.only != nil {
		err = inTurn(
			reading(tx, d.notifications.Table, ordered("t.position"), func(r NotificationRow) {
				o := of(r.OperationID)
				o.notifications = append(o.notifications, r)
			}),
			records(d.notifications.Name, "t.operation = 1"),
		)
	}
	if err == nil && len(reversed) > 0 {
		ids := convert(slices.Collect(maps.Keys(reversed)), func(id batch.UUID) any { return d.Dialect.Bind(id) })
		err = reading(tx, d.postings.Table, func(tx *gorm.DB) *gorm.DB {
			return tx.Where("t.operation_id IN ?", ids).Order("t.position, t.leg, t.customer_no")
		}, func(r PostingRow) {
			o := reversed[r.OperationID]
			o.reversed = append(o.reversed, r)
		})()
	}
	if err == nil {
		err = readPrices(d, tx, prices)
	}
	for _, id := range slices.SortedFunc(maps.Keys(all), compareIDs) {
		if err != nil {
			break
		}
		o := all[id]
		if len(o.sales) > 0 {
			o.record = answers[callerKey{o.sales[0].Header.CallerID, o.sales[0].Subscription, int64(operation.BuyFundFromCustomer)}]
		}
		if r := o.refusal; r != nil && o.record == nil {
			o.record = answers[callerKey{r.Header.CallerID, r.Subscription, r.Operation}]
		}
		if len(o.notifications) > 0 && o.record == nil {
			n := &o.notifications[0]
			o.record = answers[callerKey{n.Header.CallerID, n.Subscription, int64(operation.AddPushNotificationResponse)}]
		}
		slices.SortStableFunc(o.units, comparePlaces)
		slices.SortStableFunc(o.money, comparePlaces)
		err = found(o)
	}
	return err
}

func comparePlaces(a, b PostingRow) int {
	return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.CustomerNo, b.CustomerNo))
}

// callerKey is the key of an OperationRow.
type callerKey struct {
	callerID, subscription string
	operation              int64
}

// readPrices reads the prices of these IDs.
func readPrices(d *database, tx *gorm.DB, prices map[int64]fund.Price) error {
	keys := convert(slices.Collect(maps.Keys(prices)), func(id int64) PriceRow { return PriceRow{PriceID: id} })
	if len(keys) == 0 {
		return nil
	}
	clear(prices)
	native, err := transaction(tx)
	if err != nil {
		return err
	}
	return d.Dialect.Within(native).Exchange(tx.Statement.Context, d.prices.find.Request(keys, func(i int, row *PriceRow) error {
		row.PriceID = keys[i].PriceID
		if price, err := row.price(); err == nil { // no sale was settled at another one
			prices[row.PriceID] = price
		}
		return nil
	}))
}
