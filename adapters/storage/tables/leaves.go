package tables

import (
	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// leafKind says how the rows of a table enter the trail. It is an entry beside the table.
type leafKind[R any] struct {
	kind  trail.Kind
	table *batch.Table[R]
	// rows chooses the rows and their order. nil takes all of them.
	rows func(*gorm.DB) *gorm.DB
	// row is the name of the table in leaves. skip are columns that stay out of them.
	row  string
	skip []string
	ID   func(*R) operation.ID
	// isSum says that all rows with one ID have one leaf. They come together.
	isSum bool
	// nameOf names the rows in findings by their ID, and name by a row if it knows more.
	nameOf func(operation.ID) string
	name   func(*R) string
}

// nameAfter names rows by their ID, after a text.
func nameAfter(what string) func(operation.ID) string {
	return func(id operation.ID) string { return what + " " + id.String() }
}

// StoredKind reads the leaves of one kind from their rows.
type StoredKind struct {
	Kind trail.Kind
	Each func(tx *gorm.DB, keys *trail.Keys, found func(StoredLeaf) error) error
	// NameOf names a leaf without its row. If it is nil, the kind does.
	NameOf func(operation.ID) string
}

// Stored reads the leaves from the rows.
func (k *leafKind[R]) Stored() StoredKind { return StoredKind{k.kind, k.Each, k.nameOf} }

func (k *leafKind[R]) Leaf(buffer []byte, row *R) trail.Leaf {
	l := trail.NewLeaf(buffer, k.kind, k.ID(row))
	Encode(&l, k.row, k.table, row, k.skip...)
	return l
}

// Entry is the entry of a row.
func (k *leafKind[R]) Entry(row *R) trail.Entry { return EntryOf(k.kind, k.ID(row), k.Leaf(nil, row)) }

// Each reads the leaf of each row, or of each ID.
func (k *leafKind[R]) Each(tx *gorm.DB, keys *trail.Keys, found func(StoredLeaf) error) error {
	if k.rows != nil {
		tx = k.rows(tx)
	}
	if k.isSum {
		return k.sums(tx, keys, found)
	}
	var buffer []byte
	return Each(tx, k.table, func(row *R) error {
		l := k.Leaf(buffer, row)
		buffer = l.Memory()
		s := StoredLeaf{Entry: EntryOf(k.kind, k.ID(row), l)}
		if s.Name = k.nameOf(s.ID); k.name != nil {
			s.Name = k.name(row)
		}
		return found(s)
	})
}

// sums reads the leaf of each ID: all its rows, which come together, have one.
func (k *leafKind[R]) sums(tx *gorm.DB, keys *trail.Keys, found func(StoredLeaf) error) error {
	var id operation.ID
	sum := trail.NewSum(keys)
	end := func() error {
		if sum.Rows() == 0 {
			return nil
		}
		s := StoredLeaf{Entry: EntryOf(k.kind, id, sum.Leaf(k.kind, id)), Name: k.nameOf(id)}
		sum = trail.NewSum(keys)
		return found(s)
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

// Add adds a row to a sum, which is nil while no trail is kept.
func (k *leafKind[R]) Add(sum *trail.Sum, row *R) {
	if sum != nil {
		sum.Row(k.row, func(l *trail.Leaf) { batch.Encode(k.table, row, l) })
	}
}

// SumOf is the leaf of all rows with one ID.
func (k *leafKind[R]) SumOf(keys *trail.Keys, id operation.ID, rows []R) trail.Leaf {
	sum := trail.NewSum(keys)
	for i := range rows {
		k.Add(sum, &rows[i])
	}
	return sum.Leaf(k.kind, id)
}

// EntryOf is the entry of a leaf in its batch.
func EntryOf(kind trail.Kind, id operation.ID, l trail.Leaf) trail.Entry {
	return trail.Entry{Kind: kind, ID: id, Leaf: l.Hash()}
}

// StoredLeaf is the leaf of rows as they are stored.
type StoredLeaf struct {
	trail.Entry
	// Name names the rows in findings.
	Name string
	// Recorded are the leaves of the same rows as they were before they were settled, and
	// since; nil if they never were in another state.
	Recorded *[2]trail.Hash
	// HasOtherTexts says that the texts of a notification are not those of its digest.
	HasOtherTexts bool
}

// Encode adds a row to a leaf, without the columns that skip names.
func Encode[R any](l *trail.Leaf, table string, t *batch.Table[R], row *R, skip ...string) {
	l.BeginRow(table)
	batch.Encode(t, row, l, skip...)
	l.EndRow()
}
