package storage

import (
	"bytes"
	"fmt"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// leafKind says how the rows of a table enter the trail: each row has a leaf. A table
// has one beside its row, and is listed in leafKinds.
type leafKind[R any] struct {
	kind  trail.Kind
	table *batch.Table[R]
	// row is the name of the table in leaves. skip are columns that stay out of them.
	row  string
	skip []string
	id   func(*R) operation.ID
	// what names the rows in findings, before text of their ID, or name if there is one.
	what string
	text func(operation.ID) string
	name func(*R) string
}

// rowLeaves is a leafKind of any rows.
type rowLeaves interface {
	is(trail.Kind) bool
	// each reads the leaves of all rows.
	each(tx *gorm.DB, found func(storedLeaf) error) error
	// nameOf names a leaf without its row.
	nameOf(operation.ID) string
}

// leafKinds are the kinds of leaves that have one row each.
func (d leafMaker) leafKinds() []rowLeaves {
	return []rowLeaves{d.prices.leaves, d.subscriptions.leaves, d.audits.leaves, d.reversals.leaves}
}

func (k *leafKind[R]) is(kind trail.Kind) bool { return k.kind == kind }

func (k *leafKind[R]) nameOf(id operation.ID) string { return k.what + " " + k.text(id) }

func (k *leafKind[R]) leaf(row *R) trail.Leaf {
	l := trail.NewLeaf(nil, k.kind, k.id(row))
	encode(&l, k.row, k.table, row, k.skip...)
	return l
}

// entry is the entry of a row.
func (k *leafKind[R]) entry(row *R) trail.Entry { return entryOf(k.kind, k.id(row), k.leaf(row)) }

func (k *leafKind[R]) each(tx *gorm.DB, found func(storedLeaf) error) error {
	return each(tx, k.table, nil, func(row *R) error {
		s := storedLeaf{Entry: k.entry(row)}
		if s.name = k.nameOf(s.ID); k.name != nil {
			s.name = k.what + " " + k.name(row)
		}
		return found(s)
	})
}

func entryOf(kind trail.Kind, id operation.ID, l trail.Leaf) trail.Entry {
	return trail.Entry{Kind: kind, ID: id, Leaf: l.Hash()}
}

// storedLeaf is the leaf of rows as they are stored.
type storedLeaf struct {
	trail.Entry
	// recorded is the leaf of the same rows as they were before they were settled;
	// nil if they never were in another state.
	recorded *trail.Hash
	// name names the rows in findings.
	name string
}

// storedDecisionLeaf is the leaf of a decision. A sale that has a day was recorded first,
// or was carried out at once because it was its day.
func (d rowReader) storedDecisionLeaf(buffer *[]byte, of *storedOperation) storedLeaf {
	l := d.decisionLeaf(*buffer, trail.Decided, of)
	s := storedLeaf{Entry: entryOf(trail.Decided, operation.ID(of.id), l), name: "operation " + of.id.String()}
	*buffer = l.Memory()
	if len(of.sales) > 0 && of.sales[0].SelectedDate != "" && of.sales[0].State != int64(operation.Recorded) {
		l = d.decisionLeaf(*buffer, trail.Decided, of.asRecorded())
		hash := l.Hash()
		s.recorded = &hash
		*buffer = l.Memory()
	}
	return s
}

// few reads the leaves of which there are few: of rows with a kind of their own, and of
// imports and corrections.
func (d rowReader) few(tx *gorm.DB, keys *trail.Keys, found func(storedLeaf) error) error {
	for _, kind := range d.leafKinds() {
		if err := kind.each(tx, found); err != nil {
			return err
		}
	}
	if err := d.postedLeaves(tx, keys, found); err != nil {
		return err
	}
	return d.erasedLeaves(tx, keys, found)
}

// postedLeaves reads the leaves of postings that belong to no sale.
func (d rowReader) postedLeaves(tx *gorm.DB, keys *trail.Keys, found func(storedLeaf) error) error {
	var id batch.UUID
	sum := trail.NewSum(keys)
	flush := func() error {
		if sum.Rows() == 0 {
			return nil
		}
		l := sum.Leaf(trail.Posted, operation.ID(id))
		sum = trail.NewSum(keys)
		return found(storedLeaf{Entry: entryOf(trail.Posted, operation.ID(id), l), name: "postings of " + id.String()})
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
func (d rowReader) eachAnswer(tx *gorm.DB, found func(storedLeaf) error) error {
	var buffer []byte
	return each(tx, d.operations.Table, func(tx *gorm.DB) *gorm.DB {
		const of = " o WHERE t.operation = 2 AND o.operation_id = t.operation_id AND o.caller_id = t.caller_id AND o.subscription = t.subscription)"
		return tx.Where("NOT EXISTS (SELECT 1 FROM " + d.sales.Name + of).Where("NOT EXISTS (SELECT 1 FROM " + d.refusals.Name + of)
	}, func(row *OperationRow) error {
		l := d.decisionLeaf(buffer, trail.Answered, &storedOperation{id: row.OperationID, record: row})
		buffer = l.Memory()
		return found(storedLeaf{
			Entry: entryOf(trail.Answered, operation.ID(row.OperationID), l),
			name:  "CallerId of operation " + row.OperationID.String(),
		})
	})
}

// eachNotification reads the leaves of notifications. texts is false if the texts of one
// are not those of its digest.
func (d rowReader) eachNotification(tx *gorm.DB, keys *trail.Keys, found func(leaf storedLeaf, texts bool) error) error {
	var buffer []byte
	return each(tx, d.notifications.Table, nil, func(row *NotificationRow) error {
		l := d.notificationLeaf(buffer, keys, row)
		buffer = l.Memory()
		entry, err := row.entry()
		digest := entry.Digest()
		return found(storedLeaf{
			Entry: trail.Entry{Kind: trail.Notified, ID: operation.ID(row.OperationID), Digest: shortDigest(d.erasedDigest(row.Digest)), Leaf: row.leafHash(&l)},
			name:  fmt.Sprintf("notification %s/%d", row.OperationID, row.Position),
		}, err == nil && (entry.Erasure != nil || bytes.Equal(digest.Bytes(), row.Digest)))
	})
}

// eachBatch reads batches in the order of their IDs. 0 is no limit.
func (d rowReader) eachBatch(tx *gorm.DB, after *batch.UUID, limit int, found func(*TrailBatchRow) error) error {
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
