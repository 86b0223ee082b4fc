package office

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// StoredOperation has all stored rows of one operation. backoffice.Operation and the leaf of
// the operation are made from them.
type StoredOperation struct {
	ID batch.UUID
	// Row is nil if rows of other tables have no operation. The service never writes that.
	Row           *tables.OperationRow
	Sales         []tables.SaleRow
	prices        map[int64]fund.Price
	Notifications []tables.NotificationRow
	// endNumber and reversalNumber are the numbers of its outcomes, or 0.
	endNumber, reversalNumber int64
	// These are only read for a single ID: the adjustments of an import or a correction, and the
	// reasons of erasures by their acts.
	Adjustments []tables.AdjustmentRow
	reasons     map[batch.UUID]string
}

// IsDecided reports whether the operation has leaves.
func (o *StoredOperation) IsDecided() bool {
	return o.Row != nil || len(o.Sales)+len(o.Notifications) > 0
}

// IsPush reports whether nothing but messages is stored of the operation.
func (o *StoredOperation) IsPush() bool {
	isPush := o.Row != nil && o.Row.Operation == int64(operation.AddPushNotificationResponse)
	return isPush && len(o.Sales) == 0
}

// Operation converts the rows to an operation. It reuses the memory of result.
func (o *StoredOperation) Operation(result *backoffice.Operation) error {
	*result = backoffice.Operation{
		ID: operation.ID(o.ID), Prices: o.prices, Sales: result.Sales[:0], Postings: result.Postings[:0], ReversalPostings: result.ReversalPostings[:0],
	}
	of := operation.Envelope{ID: operation.ID(o.ID)}
	var endedAt time.Time
	var errs [5]error
	sales := &result.Sales
	if r := o.Row; r != nil {
		var decision operation.Decision
		decision, errs[0] = r.Decision()
		of = decision.Envelope
		endedAt = r.EndedAt.Time
		result.Answered = &decision
		result.Record, errs[1] = r.Record()
		result.Reversal = r.Reversal()
		if r.IsRefused() {
			result.Refusal = &decision
			sales = &result.RefusedSales
		}
	}
	*sales, errs[2] = tables.AppendEntries(*sales, o.Sales, func(r *tables.SaleRow) (fund.SaleEntry, error) { return r.Entry(of, endedAt) })
	result.Postings, errs[3] = tables.AppendEntries(result.Postings, o.Adjustments, (*tables.AdjustmentRow).Entry)
	for i := range result.Sales {
		s := &result.Sales[i]
		result.Postings = append(result.Postings, s.Postings()...)
		if result.Reversal != nil {
			result.ReversalPostings = append(result.ReversalPostings, s.ReversalPostings(result.Reversal)...)
		}
	}
	result.Notifications, errs[4] = tables.AppendEntries(result.Notifications, o.Notifications, func(r *tables.NotificationRow) (push.Entry, error) {
		e, err := r.Entry(of)
		if e.Erasure != nil {
			e.Erasure.Reason = o.reasons[r.ErasureID]
		}
		return e, err
	})
	return cmp.Or(errs[:]...)
}

// rangeSize is how many operations are read together.
const rangeSize = 2000

// Range is a range of operation IDs, greater than after and up to Until. Or it is one ID. nil
// means no bound.
type Range struct{ after, Until, Only *batch.UUID }

// rows is a scope of the rows t of the range.
func (r Range) rows(tx *gorm.DB) *gorm.DB {
	if r.Only != nil {
		tx = tx.Where("t.operation_id = ?", *r.Only)
	}
	if r.after != nil {
		tx = tx.Where("t.operation_id > ?", *r.after)
	}
	if r.Until != nil {
		tx = tx.Where("t.operation_id <= ?", *r.Until)
	}
	return tx
}

// EachRange calls read for consecutive ranges that cover all operations, in the order of IDs.
func EachRange(d *tables.Database, tx *gorm.DB, read func(Range) error) error {
	var r Range
	for {
		r.Until = nil
		var ids []batch.UUID
		err := tx.Table(d.Operations.Name+" AS t").Scopes(r.rows).
			Order("t.operation_id").Offset(rangeSize).Limit(1).
			Pluck("t.operation_id", &ids).Error
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			r.Until = &ids[0]
		}
		err = read(r)
		if err != nil || r.Until == nil {
			return err
		}
		r.after = r.Until
	}
}

// EachOperation reads all operations in the order of their IDs.
func EachOperation(d *tables.Database, tx *gorm.DB, visit func(*StoredOperation) error) error {
	return EachRange(d, tx, func(ids Range) error { return Operations(d, tx, ids, visit) })
}

// Operations reads the operations of a range in the order of their IDs.
func Operations(d *tables.Database, tx *gorm.DB, idRange Range, visit func(*StoredOperation) error) error {
	c := collection{d: d, tx: tx, operations: make(map[batch.UUID]*StoredOperation), prices: make(map[int64]fund.Price)}
	err := c.readRange(idRange)
	if err != nil {
		return err
	}
	if idRange.Only != nil {
		err = c.readOnly(*idRange.Only)
		if err != nil {
			return err
		}
	}
	err = c.readPrices()
	if err != nil {
		return err
	}
	for _, id := range slices.SortedFunc(maps.Keys(c.operations), tables.CompareIDs) {
		err = visit(c.operations[id])
		if err != nil {
			return err
		}
	}
	return nil
}

// collection collects the rows of operations, which are in several tables.
type collection struct {
	d          *tables.Database
	tx         *gorm.DB
	operations map[batch.UUID]*StoredOperation
	prices     map[int64]fund.Price // at which the sales were settled; all operations share it
}

// of returns the operation that a row belongs to.
func (c *collection) of(id batch.UUID) *StoredOperation {
	o := c.operations[id]
	if o == nil {
		o = &StoredOperation{ID: id, prices: c.prices}
		c.operations[id] = o
	}
	return o
}

// readRange reads what the operations of a range have in tables that are in their order.
func (c *collection) readRange(r Range) error {
	err := tables.Each(c.tx.Scopes(r.rows).Order("t.operation_id, t.position"), c.d.Sales.Table, func(row *tables.SaleRow) error {
		o := c.of(row.OperationID)
		o.Sales = append(o.Sales, *row)
		if row.SettledPriceID.Valid {
			c.prices[row.SettledPriceID.Int64] = fund.Price{}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = tables.Each(c.tx.Scopes(r.rows).Order("t.operation_id"), c.d.Operations.Table, func(row *tables.OperationRow) error {
		stored := *row
		c.of(row.OperationID).Row = &stored
		return nil
	})
	if err != nil {
		return err
	}
	err = tables.Each(c.tx.Scopes(r.rows).Order("t.operation_id, t.number"), c.d.Outcomes.Table, func(row *tables.OutcomeRow) error {
		o := c.operations[row.OperationID]
		switch {
		case o == nil: // verify reports an outcome without an operation
		case row.Reversed != 0:
			o.reversalNumber = row.Number
		default:
			o.endNumber = row.Number
		}
		return nil
	})
	if err != nil {
		return err
	}
	return tables.Each(c.tx.Scopes(r.rows).Order("t.operation_id, t.position"), c.d.Notifications.Table, func(row *tables.NotificationRow) error {
		o := c.of(row.OperationID)
		o.Notifications = append(o.Notifications, *row)
		return nil
	})
}

// readOnly reads what only the page of one operation shows: its adjustments, if it is an act, and
// the reasons of its erasures.
func (c *collection) readOnly(id batch.UUID) error {
	err := tables.Each(c.tx.Where("t.act_id = ?", id).Order("t.line, t.leg"), c.d.Adjustments.Table, func(row *tables.AdjustmentRow) error {
		o := c.of(row.ActID)
		o.Adjustments = append(o.Adjustments, *row)
		return nil
	})
	if err != nil {
		return err
	}
	return readReasons(c.d, c.tx, c.operations[id])
}

// readPrices reads the prices at which the sales were settled. A range may have more of them than a
// statement may have parameters.
func (c *collection) readPrices() error {
	ids := slices.Collect(maps.Keys(c.prices))
	clear(c.prices)
	for part := range slices.Chunk(ids, tables.Chunk) {
		err := tables.Each(c.tx.Where("t.price_id IN ?", part), c.d.Prices.Table, func(row *tables.PriceRow) error {
			price, err := row.ToPrice()
			if err != nil {
				return nil //nolint:nilerr // no sale was settled at an invalid price
			}
			c.prices[row.PriceID] = price
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readReasons reads the reasons of the erasures of an operation, which may be nil.
func readReasons(d *tables.Database, tx *gorm.DB, o *StoredOperation) error {
	if o == nil {
		return nil
	}
	var ids []batch.UUID
	o.reasons = make(map[batch.UUID]string)
	for i := range o.Notifications {
		id := o.Notifications[i].ErasureID
		_, isListed := o.reasons[id]
		if id == (batch.UUID{}) || isListed {
			continue
		}
		o.reasons[id] = ""
		ids = append(ids, id)
	}
	for part := range slices.Chunk(ids, tables.Chunk) {
		err := tables.Each(tx.Where("t.audit_id IN ?", part), d.Audits.Table, func(r *tables.AuditRow) error {
			o.reasons[r.AuditID] = r.Reason
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
