package evidence

import (
	"bytes"
	"context"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/office"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/trail"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// finder implements trail.Finder.
type finder struct {
	db      *tables.Database
	journal journal.Journal
}

// Leaves finds the leaves of an operation or an act.
func (f finder) Leaves(ctx context.Context, id operation.ID) (found []trail.Leaf, err error) {
	keys := f.journal.Keys()
	if keys == nil {
		return nil, trail.ErrNotFound
	}
	err = f.db.Snapshot(ctx, func(tx *gorm.DB) error {
		stored, err := f.stored(tx, id)
		if err != nil {
			return err
		}
		found, err = f.inBatches(tx, keys, id, stored)
		return err
	})
	if err != nil {
		return found, err
	}
	if len(found) == 0 {
		return nil, trail.ErrNotFound
	}
	return found, nil
}

// stored returns the operation with this ID, or nil.
func (f finder) stored(tx *gorm.DB, id operation.ID) (stored *proof.Stored, err error) {
	only := batch.UUID(id)
	err = office.Operations(f.db, tx, office.Range{Only: &only}, func(rows *office.StoredOperation) error {
		if rows.IsDecided() {
			o, _ := rows.Stored()
			stored = &o
		}
		return nil
	})
	return stored, err
}

// wanted are the leaves of an ID that are looked for.
type wanted struct {
	leaves []proof.Named
	after  batch.UUID // a batch with them has a larger ID
}

// inBatches finds the leaves of an operation or an act in genuine batches. A batch gets its ID
// after its entries get theirs, and IDs grow with time.
func (f finder) inBatches(tx *gorm.DB, keys *proof.Keys, id operation.ID, stored *proof.Stored) (found []trail.Leaf, err error) {
	var first []proof.Named
	var reversal wanted
	switch {
	case stored == nil:
		if first, err = f.actLeaf(tx, keys, id); err != nil {
			return nil, err
		}
	case stored.Reversal != nil:
		first = proof.Leaves(keys, stored)
		last := len(first) - 1
		reversal = wanted{first[last:], batch.UUID(stored.Reversal.ID)}
		first = first[:last]
	default:
		first = proof.Leaves(keys, stored)
	}
	for _, w := range []wanted{{first, batch.UUID(id)}, reversal} {
		for i := range w.leaves {
			leaf, err := f.inBatch(tx, keys, stored, &w.leaves[i], w.after)
			if err != nil {
				return nil, err
			}
			if leaf != nil {
				found = append(found, *leaf)
			}
		}
	}
	return found, nil
}

// actLeaf returns the leaf of an act, or of postings without an act.
func (f finder) actLeaf(tx *gorm.DB, keys *proof.Keys, id operation.ID) (leaves []proof.Named, err error) {
	err = eachActOf(f.db, tx, keys, &id, func(l *proof.Named, _ string) { leaves = append(leaves, *l) })
	return leaves, err
}

// inBatch finds the batch that has the leaf, or nil. The entry of a push has the identities of
// all its messages: then the leaf is made with them.
func (f finder) inBatch(tx *gorm.DB, keys *proof.Keys, stored *proof.Stored, l *proof.Named, after batch.UUID) (*trail.Leaf, error) {
	known := f.journal.KnownRoots()
	for row, err := range f.journal.Batches(tx, &after) {
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(row.Entries, l.ID[:]) {
			continue
		}
		b, isGenuine, err := f.journal.Genuine(tx, keys, row, known)
		if err != nil {
			return nil, err
		}
		if !isGenuine {
			continue
		}
		for i := range b.Entries {
			e := &b.Entries[i]
			if e.Kind != l.Kind || e.ID != l.ID {
				continue
			}
			if l.Kind == proof.Push {
				stored.Identities = e.Identities
				l = &proof.Leaves(keys, stored)[0]
			}
			if l.Leaf.Hash() != e.Leaf {
				continue
			}
			leaf := &trail.Leaf{Content: l.Leaf.Content(), Batch: b, Index: i, BatchIndex: -1}
			if row.Position.Valid {
				leaf.BatchIndex = row.Position.Int64
			}
			return leaf, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}
