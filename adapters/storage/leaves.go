package storage

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// leafReader reads the leaves of stored rows. They are made by the same functions as when
// the rows were written.
type leafReader struct{ leafMaker }

func newLeafReader(d *database) leafReader { return leafReader{leafMaker{d}} }

// storedLeaf is the leaf of rows as they are stored.
type storedLeaf struct {
	trail.Entry
	// recorded is the leaf of the same rows as they were before they were settled;
	// nil if they never were in another state.
	recorded *trail.Hash
	// name names the rows in findings.
	name string
	// object is what an act was about.
	object string
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

func (d leafReader) within(w idRange) func(*gorm.DB) *gorm.DB {
	return func(tx *gorm.DB) *gorm.DB {
		if w.only != nil {
			tx = tx.Where("t.operation_id = ?", d.Dialect.Bind(*w.only))
		}
		if w.after != nil {
			tx = tx.Where("t.operation_id > ?", d.Dialect.Bind(*w.after))
		}
		if w.until != nil {
			tx = tx.Where("t.operation_id <= ?", d.Dialect.Bind(*w.until))
		}
		return tx
	}
}

// eachRange calls read with ranges that have all operations with sales, postings
// or refusals, in the order of their IDs.
func (d leafReader) eachRange(tx *gorm.DB, read func(idRange) error) error {
	var w idRange
	for {
		w.until = nil
		for _, table := range []string{d.sales.Name, d.refusals.Name} {
			var ids []batch.UUID
			query := d.within(idRange{after: w.after})(tx.Table(table + " AS t"))
			if err := query.Order("t.operation_id").Offset(rangeSize).Limit(1).Pluck("t.operation_id", &ids).Error; err != nil {
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

// decisions reads the decisions of a range.
func (d leafReader) decisions(ctx context.Context, tx *gorm.DB, w idRange, found func(*decision) error) error {
	all := make(map[batch.UUID]*decision)
	of := func(id batch.UUID) *decision {
		if all[id] == nil {
			all[id] = &decision{id: id}
		}
		return all[id]
	}
	ordered := func(order string) func(*gorm.DB) *gorm.DB {
		return func(tx *gorm.DB) *gorm.DB { return d.within(w)(tx).Order(order) }
	}
	callers := make(map[callerKey]batch.UUID)
	caller := func(id batch.UUID, callerID, subscription string) {
		if callerID != "" {
			callers[callerKey{callerID, subscription, int64(operation.BuyFundFromCustomer)}] = id
		}
	}
	err := each(tx, d.sales.Table, ordered("t.operation_id, t.position, t.customer_no"), func(row *SaleRow) error {
		o := of(row.OperationID)
		if len(o.sales) == 0 {
			caller(row.OperationID, row.Header.CallerID, row.Subscription)
		}
		o.sales = append(o.sales, *row)
		return nil
	})
	if err != nil {
		return err
	}
	err = each(tx, d.postings.all, func(tx *gorm.DB) *gorm.DB {
		return ordered("t.operation_id, t.position, t.leg, t.customer_no")(tx).Where("t.kind = ?", int64(fund.SalePosting))
	}, func(row *PostingRow) error {
		if o := of(row.OperationID); row.Leg == unitLeg {
			o.units = append(o.units, *row)
		} else {
			o.money = append(o.money, *row)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = each(tx, d.refusals.Table, ordered("t.operation_id"), func(row *RefusalRow) error {
		refusal, o := *row, of(row.OperationID)
		o.twice = o.twice || o.refusal != nil
		o.refusal = &refusal
		if row.Operation == int64(operation.BuyFundFromCustomer) {
			caller(row.OperationID, row.Header.CallerID, row.Subscription)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = d.recordsOf(ctx, tx, callers, func(id batch.UUID, row *OperationRow) { all[id].record = row })
	if err != nil {
		return err
	}
	for _, id := range slices.SortedFunc(maps.Keys(all), compareIDs) {
		if err := found(all[id]); err != nil {
			return err
		}
	}
	return nil
}

// callerKey is the key of an OperationRow.
type callerKey struct {
	callerID, subscription string
	operation              int64
}

// recordsOf finds the records of CallerIds.
func (d leafReader) recordsOf(ctx context.Context, tx *gorm.DB, callers map[callerKey]batch.UUID, found func(of batch.UUID, row *OperationRow)) error {
	if len(callers) == 0 {
		return nil
	}
	native, err := transaction(tx)
	if err != nil {
		return err
	}
	var keys []OperationRow
	var ids []batch.UUID
	for key, id := range callers {
		keys = append(keys, OperationRow{CallerID: key.callerID, Subscription: key.subscription, Operation: key.operation})
		ids = append(ids, id)
	}
	return d.Dialect.Within(native).Exchange(ctx, d.operations.find.Request(keys, func(i int, row *OperationRow) error {
		record := *row
		record.CallerID, record.Subscription, record.Operation = keys[i].CallerID, keys[i].Subscription, keys[i].Operation
		record.Fingerprint = bytes.Clone(row.Fingerprint)
		found(ids[i], &record)
		return nil
	}))
}

// storedDecisionLeaf is the leaf of a decision. A sale that has a day was recorded first,
// or was carried out at once because it was its day.
func (d leafReader) storedDecisionLeaf(buffer *[]byte, of *decision) storedLeaf {
	l := d.decisionLeaf(*buffer, trail.Decided, of)
	s := storedLeaf{Entry: trail.Entry{Kind: trail.Decided, ID: operation.ID(of.id), Leaf: l.Hash()}, name: "operation " + of.id.String()}
	*buffer = l.Memory()
	if len(of.sales) > 0 && of.sales[0].SelectedDate != "" && of.sales[0].State != int64(operation.Recorded) {
		l = d.decisionLeaf(*buffer, trail.Decided, of.asRecorded())
		hash := l.Hash()
		s.recorded = &hash
		*buffer = l.Memory()
	}
	return s
}

// settledHash is the hash of the second leaf of a decision.
func (d leafReader) settledHash(buffer []byte, of *decision) trail.Hash {
	l := d.decisionLeaf(buffer, trail.Settled, of)
	return l.Hash()
}

// few reads the leaves of which there are few: of prices, subscriptions, acts,
// imports and corrections.
func (d leafReader) few(tx *gorm.DB, keys *trail.Keys, found func(storedLeaf) error) error {
	return inTurn(
		func() error {
			return each(tx, d.prices.Table, nil, func(row *PriceRow) error {
				return found(storedLeaf{Entry: d.priceEntry(row), name: fmt.Sprintf("price %d", row.PriceID)})
			})
		},
		func() error {
			return each(tx, d.subscriptions.Table, nil, func(row *SubscriptionRow) error {
				return found(storedLeaf{Entry: d.subscriptionEntry(row), name: fmt.Sprintf("subscription %q", row.Name)})
			})
		},
		func() error {
			return each(tx, d.audits.Table, nil, func(row *AuditRow) error {
				return found(storedLeaf{Entry: d.actEntry(row), name: "act " + row.AuditID.String(), object: row.Object})
			})
		},
		func() error {
			return each(tx, d.reversals.Table, nil, func(row *ReversalRow) error {
				return found(storedLeaf{Entry: d.reversalEntry(row), name: "reversal of operation " + row.OperationID.String()})
			})
		},
		func() error { return d.postedLeaves(tx, keys, found) },
	)
}

// postedLeaves reads the leaves of postings that belong to no sale.
func (d leafReader) postedLeaves(tx *gorm.DB, keys *trail.Keys, found func(storedLeaf) error) error {
	var id batch.UUID
	sum := trail.NewSum(keys)
	flush := func() error {
		if sum.Rows() == 0 {
			return nil
		}
		l := sum.Leaf(trail.Posted, operation.ID(id))
		sum = trail.NewSum(keys)
		return found(storedLeaf{Entry: trail.Entry{Kind: trail.Posted, ID: operation.ID(id), Leaf: l.Hash()}, name: "postings of " + id.String()})
	}
	err := each(tx, d.postings.Table, func(tx *gorm.DB) *gorm.DB {
		return tx.Where("t.kind <> ?", int64(fund.SalePosting)).Order("t.operation_id")
	}, func(row *PostingRow) error {
		if row.OperationID != id {
			if err := flush(); err != nil {
				return err
			}
			id = row.OperationID
		}
		d.sum(sum, row)
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// eachAnswer reads the leaves of CallerIds whose operations have no sales: of
// notifications, and of refusals by versions that kept nothing else.
func (d leafReader) eachAnswer(tx *gorm.DB, found func(storedLeaf) error) error {
	var buffer []byte
	return each(tx, d.operations.Table, func(tx *gorm.DB) *gorm.DB {
		const of = " o WHERE t.operation = 2 AND o.operation_id = t.operation_id AND o.caller_id = t.caller_id AND o.subscription = t.subscription)"
		return tx.Where("NOT EXISTS (SELECT 1 FROM " + d.sales.Name + of).Where("NOT EXISTS (SELECT 1 FROM " + d.refusals.Name + of)
	}, func(row *OperationRow) error {
		l := d.decisionLeaf(buffer, trail.Answered, &decision{id: row.OperationID, record: row})
		buffer = l.Memory()
		return found(storedLeaf{
			Entry: trail.Entry{Kind: trail.Answered, ID: operation.ID(row.OperationID), Leaf: l.Hash()},
			name:  "CallerId of operation " + row.OperationID.String(),
		})
	})
}

// eachNotification reads the leaves of notifications. texts is false if the texts of one
// are not those of its digest.
func (d leafReader) eachNotification(tx *gorm.DB, keys *trail.Keys, found func(leaf storedLeaf, texts bool) error) error {
	var buffer []byte
	return each(tx, d.notifications.Table, nil, func(row *NotificationRow) error {
		l := d.notificationLeaf(buffer, keys, row)
		buffer = l.Memory()
		entry, err := row.entry()
		digest := entry.Digest()
		return found(storedLeaf{
			Entry: trail.Entry{Kind: trail.Notified, ID: operation.ID(row.OperationID), Digest: shortDigest(row.Digest), Leaf: l.Hash()},
			name:  fmt.Sprintf("notification %s/%d", row.OperationID, row.Position),
		}, err == nil && bytes.Equal(digest.Bytes(), row.Digest))
	})
}

// eachBatch reads batches in the order of their IDs. 0 is no limit.
func (d leafReader) eachBatch(tx *gorm.DB, after *batch.UUID, limit int, found func(*TrailBatchRow) error) error {
	return each(tx, d.batches, func(tx *gorm.DB) *gorm.DB {
		if after != nil {
			tx = tx.Where("t.batch_id > ?", d.Dialect.Bind(*after))
		}
		if limit > 0 {
			tx = tx.Limit(limit)
		}
		return tx.Order("t.batch_id")
	}, found)
}
