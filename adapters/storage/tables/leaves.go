package tables

import (
	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// leafKind describes how the rows of a table are added to the trail.
type leafKind[R any] struct {
	kind  trail.Kind
	table *batch.Table[R]
	// rows selects and orders the rows. If it is nil, all rows are read.
	rows func(*gorm.DB) *gorm.DB
	// row is the name of the table in leaves. skip has the columns that are not in leaves.
	row  string
	skip []string
	ID   func(*R) operation.ID
	// isSum: all rows with one ID share one leaf. They are consecutive.
	isSum bool
	// nameOf returns the name of rows in findings, from their ID. name, if set, names one row.
	nameOf func(operation.ID) string
	name   func(*R) string
}

// nameAfter returns a nameOf that puts a text before the ID.
func nameAfter(what string) func(operation.ID) string {
	return func(id operation.ID) string { return what + " " + id.String() }
}

// StoredKind reads the leaves of one kind from the stored rows.
type StoredKind struct {
	Kind trail.Kind
	Each func(tx *gorm.DB, keys *trail.Keys, visit func(StoredLeaf) error) error
	// NameOf returns the name of a leaf that has no row. If it is nil, the kind is used.
	NameOf func(operation.ID) string
}

// Stored returns the functions that read the leaves from the rows.
func (k *leafKind[R]) Stored() StoredKind { return StoredKind{k.kind, k.Each, k.nameOf} }

func (k *leafKind[R]) Leaf(buffer []byte, row *R) trail.Leaf {
	l := trail.NewLeaf(buffer, k.kind, k.ID(row))
	Encode(&l, k.row, k.table, row, k.skip...)
	return l
}

// Entry returns the entry of a row.
func (k *leafKind[R]) Entry(row *R) trail.Entry { return EntryOf(k.kind, k.ID(row), k.Leaf(nil, row)) }

// Each reads the leaf of each row. If isSum is set, it reads the leaf of each ID.
func (k *leafKind[R]) Each(tx *gorm.DB, keys *trail.Keys, visit func(StoredLeaf) error) error {
	if k.rows != nil {
		tx = k.rows(tx)
	}
	if k.isSum {
		return k.sums(tx, keys, visit)
	}
	var buffer []byte
	return Each(tx, k.table, func(row *R) error {
		l := k.Leaf(buffer, row)
		buffer = l.Memory()
		s := StoredLeaf{Entry: EntryOf(k.kind, k.ID(row), l)}
		if s.Name = k.nameOf(s.ID); k.name != nil {
			s.Name = k.name(row)
		}
		return visit(s)
	})
}

// sums reads one leaf for each ID, from all rows of this ID.
func (k *leafKind[R]) sums(tx *gorm.DB, keys *trail.Keys, visit func(StoredLeaf) error) error {
	var id operation.ID
	sum := trail.NewSum(keys)
	end := func() error {
		if sum.Rows() == 0 {
			return nil
		}
		s := StoredLeaf{Entry: EntryOf(k.kind, id, sum.Leaf(k.kind, id)), Name: k.nameOf(id)}
		sum = trail.NewSum(keys)
		return visit(s)
	}
	err := Each(tx, k.table, func(row *R) (err error) {
		if k.ID(row) != id {
			err = end()
			id = k.ID(row)
		}
		k.Add(sum, row)
		return err
	})
	if err != nil {
		return err
	}
	return end()
}

// Add adds a row to a sum. The sum is nil while no trail is kept.
func (k *leafKind[R]) Add(sum *trail.Sum, row *R) {
	if sum != nil {
		sum.Row(k.row, func(l *trail.Leaf) { batch.Encode(k.table, row, l) })
	}
}

// SumOf returns the leaf of all rows with one ID.
func (k *leafKind[R]) SumOf(keys *trail.Keys, id operation.ID, rows []R) trail.Leaf {
	sum := trail.NewSum(keys)
	for i := range rows {
		k.Add(sum, &rows[i])
	}
	return sum.Leaf(k.kind, id)
}

// EntryOf returns the entry of a leaf in its batch.
func EntryOf(kind trail.Kind, id operation.ID, l trail.Leaf) trail.Entry {
	return trail.Entry{Kind: kind, ID: id, Leaf: l.Hash()}
}

// StoredLeaf is the leaf of stored rows.
type StoredLeaf struct {
	trail.Entry
	// Name is the name of the rows in findings.
	Name string
	// Recorded has the leaves of the same rows before and after their settlement. It is nil if
	// they never had another state.
	Recorded *[2]trail.Hash
	// HasOtherTexts: the texts of a notification do not match its digest.
	HasOtherTexts bool
}

// Encode adds a row to a leaf, without the columns in skip.
func Encode[R any](l *trail.Leaf, table string, t *batch.Table[R], row *R, skip ...string) {
	l.BeginRow(table)
	batch.Encode(t, row, l, skip...)
	l.EndRow()
}
