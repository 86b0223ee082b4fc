package storage

import (
	"bytes"
	"fmt"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// leafKind says how the rows of a table enter the trail: each row has a leaf, or all
// rows with one ID have one (sums). It is beside the row of the table, and in kinds.
type leafKind[R any] struct {
	kind  trail.Kind
	table *batch.Table[R]
	// rows chooses the rows and their order. nil takes all of them.
	rows func(*gorm.DB) *gorm.DB
	// row is the name of the table in leaves. skip are columns that stay out of them.
	row  string
	skip []string
	id   func(*R) operation.ID
	// what names the rows in findings, before text of their ID, or name if there is one.
	what string
	text func(operation.ID) string
	name func(*R) string
}

// storedKind reads the leaves of one kind from their rows.
type storedKind struct {
	kind trail.Kind
	each func(tx *gorm.DB, keys *trail.Keys, found func(storedLeaf) error) error
	// nameOf names a leaf without its row. If it is nil, the kind does.
	nameOf func(operation.ID) string
}

// kinds are all kinds of leaves but those of decisions.
func (d leafMaker) kinds() []storedKind {
	posted, erased := d.postings.leaves, d.notifications.leaves
	// The CallerIds whose operations have no sales: of notifications, and of refusals by
	// versions that kept nothing else.
	answered := leafKind[OperationRow]{
		kind: trail.Answered, table: d.operations.Table, row: "operations", what: "CallerId of operation", text: operation.ID.String,
		id: func(r *OperationRow) operation.ID { return operation.ID(r.OperationID) },
		rows: func(tx *gorm.DB) *gorm.DB {
			const of = " o WHERE t.operation = 2 AND o.operation_id = t.operation_id AND o.caller_id = t.caller_id AND o.subscription = t.subscription)"
			return tx.Where("NOT EXISTS (SELECT 1 FROM " + d.sales.Name + of).Where("NOT EXISTS (SELECT 1 FROM " + d.refusals.Name + of)
		},
	}
	return []storedKind{
		d.prices.leaves.stored(), d.subscriptions.leaves.stored(), d.audits.leaves.stored(), d.reversals.leaves.stored(),
		{trail.Posted, posted.sums, posted.nameOf}, {trail.Erased, erased.sums, erased.nameOf},
		{kind: trail.Answered, each: answered.each}, {kind: trail.Notified, each: d.eachNotification},
	}
}

// isOfMany reports whether there are too many leaves of a kind to compare them at once.
func isOfMany(kind trail.Kind) bool { return kind == trail.Answered || kind == trail.Notified }

func (k *leafKind[R]) stored() storedKind { return storedKind{k.kind, k.each, k.nameOf} }

func (k *leafKind[R]) nameOf(id operation.ID) string { return k.what + " " + k.text(id) }

func (k *leafKind[R]) leaf(buffer []byte, row *R) trail.Leaf {
	l := trail.NewLeaf(buffer, k.kind, k.id(row))
	encode(&l, k.row, k.table, row, k.skip...)
	return l
}

// entry is the entry of a row.
func (k *leafKind[R]) entry(row *R) trail.Entry { return entryOf(k.kind, k.id(row), k.leaf(nil, row)) }

// each reads the leaf of each row.
func (k *leafKind[R]) each(tx *gorm.DB, _ *trail.Keys, found func(storedLeaf) error) error {
	var buffer []byte
	return each(tx, k.table, k.rows, func(row *R) error {
		l := k.leaf(buffer, row)
		buffer = l.Memory()
		s := storedLeaf{Entry: entryOf(k.kind, k.id(row), l)}
		if s.name = k.nameOf(s.ID); k.name != nil {
			s.name = k.what + " " + k.name(row)
		}
		return found(s)
	})
}

// sums reads the leaf of each ID: all its rows, which come together, have one.
func (k *leafKind[R]) sums(tx *gorm.DB, keys *trail.Keys, found func(storedLeaf) error) error {
	var id operation.ID
	sum := trail.NewSum(keys)
	end := func() error {
		if sum.Rows() == 0 {
			return nil
		}
		s := storedLeaf{Entry: entryOf(k.kind, id, sum.Leaf(k.kind, id)), name: k.nameOf(id)}
		sum = trail.NewSum(keys)
		return found(s)
	}
	err := each(tx, k.table, k.rows, func(row *R) (err error) {
		if k.id(row) != id {
			err = end()
			id = k.id(row)
		}
		k.add(sum, row)
		return err
	})
	if err != nil {
		return err
	}
	return end()
}

// add adds a row to a sum, which is nil while no trail is kept.
func (k *leafKind[R]) add(sum *trail.Sum, row *R) {
	if sum != nil {
		sum.Row(k.row, func(l *trail.Leaf) { batch.Encode(k.table, row, l) })
	}
}

// sumOf is the leaf of all rows with one ID.
func (k *leafKind[R]) sumOf(keys *trail.Keys, id operation.ID, rows []R) trail.Leaf {
	sum := trail.NewSum(keys)
	for i := range rows {
		k.add(sum, &rows[i])
	}
	return sum.Leaf(k.kind, id)
}

func entryOf(kind trail.Kind, id operation.ID, l trail.Leaf) trail.Entry {
	return trail.Entry{Kind: kind, ID: id, Leaf: l.Hash()}
}

// storedLeaf is the leaf of rows as they are stored.
type storedLeaf struct {
	trail.Entry
	// name names the rows in findings.
	name string
	// recorded are the leaves of the same rows as they were before they were settled, and
	// since; nil if they never were in another state.
	recorded *[2]trail.Hash
	// hasOtherTexts says that the texts of a notification are not those of its digest.
	hasOtherTexts bool
}

// storedDecisionLeaf is the leaf of a decision. A sale that has a day was recorded first,
// or was carried out at once because it was its day.
func (d leafMaker) storedDecisionLeaf(buffer *[]byte, of *storedOperation) storedLeaf {
	hash := func(kind trail.Kind, of *storedOperation) trail.Hash {
		l := d.decisionLeaf(*buffer, kind, of)
		*buffer = l.Memory()
		return l.Hash()
	}
	id := operation.ID(of.id)
	s := storedLeaf{Entry: trail.Entry{Kind: trail.Decided, ID: id, Leaf: hash(trail.Decided, of)}, name: "operation " + id.String()}
	if len(of.sales) > 0 && of.sales[0].SelectedDate != "" && of.sales[0].State != int64(operation.Recorded) {
		s.recorded = &[2]trail.Hash{hash(trail.Decided, of.asRecorded()), hash(trail.Settled, of)}
	}
	return s
}

// eachNotification reads the leaves of notifications.
func (d leafMaker) eachNotification(tx *gorm.DB, keys *trail.Keys, found func(storedLeaf) error) error {
	var buffer []byte
	erased := d.erasedDigests()
	return each(tx, d.notifications.Table, nil, func(row *NotificationRow) error {
		l := d.notificationLeaf(buffer, keys, row)
		buffer = l.Memory()
		n, err := row.entry()
		digest := n.Digest()
		return found(storedLeaf{
			Entry: trail.Entry{
				Kind: trail.Notified, ID: operation.ID(row.OperationID), Digest: shortDigest(erased(row.Digest)), Leaf: row.leafHash(&l),
			},
			name:          fmt.Sprintf("notification %s/%d", row.OperationID, row.Position),
			hasOtherTexts: err != nil || n.Erasure == nil && !bytes.Equal(digest.Bytes(), row.Digest),
		})
	})
}

// batchPage reads the next batches in the order of their IDs.
func (d leafMaker) batchPage(tx *gorm.DB, after *batch.UUID, limit int) (page []TrailBatchRow, err error) {
	err = rowsOf(&page, tx, d.batches, func(tx *gorm.DB) *gorm.DB {
		if after != nil {
			tx = tx.Where("t.batch_id > ?", d.Dialect.Bind(*after))
		}
		return tx.Order("t.batch_id").Limit(limit)
	})()
	return page, err
}
