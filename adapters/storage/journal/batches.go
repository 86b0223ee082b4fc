package journal

import (
	"iter"
	"slices"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/trail"
	"bankingapi/domain/proof"
)

// batchesRead is the number of batches in a page.
const batchesRead = 200

// page reads the next batches in the order of their IDs.
func (j Journal) page(tx *gorm.DB, after *batch.UUID) ([]tables.TrailBatchRow, error) {
	if after != nil {
		tx = tx.Where("t.batch_id > ?", *after)
	}
	return tables.RowsOf(tx.Order("t.batch_id").Limit(batchesRead), j.db.TrailBatches)
}

// Batches reads the batches after an ID in pages. Between two pages the caller can run queries.
func (j Journal) Batches(tx *gorm.DB, after *batch.UUID) iter.Seq2[*tables.TrailBatchRow, error] {
	tx = tx.Session(&gorm.Session{}) // each page adds its own conditions
	return func(yield func(*tables.TrailBatchRow, error) bool) {
		for {
			page, err := j.page(tx, after)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page) == 0 { // a shorter page may lack rows that cannot be read
				return
			}
			for i := range page {
				after = &page[i].BatchID
				if !yield(&page[i], nil) {
					return
				}
			}
		}
	}
}

// Roots has the root of the log for each size that batches name.
type Roots map[int64]proof.Hash

// KnownRoots returns the root of the newest state that this service follows.
func (j Journal) KnownRoots() Roots {
	base := j.base.Load()
	return Roots{base.Size: base.Root}
}

// Genuine decodes a batch. It returns false unless a service with these keys made the batch for
// this log. It adds the roots that it reads to known.
func (j Journal) Genuine(tx *gorm.DB, keys *proof.Keys, row *tables.TrailBatchRow, known Roots) (b proof.Batch, isGenuine bool, err error) {
	if b, err = row.Batch(); err != nil {
		return b, false, nil //nolint:nilerr // verify reports it
	}
	provenance, ok := keys.OpenMAC(b.Record(), row.Entries, row.MAC)
	if !ok || row.IsElsewhere(&provenance) {
		return b, false, nil
	}
	isGenuine, err = j.has(tx, provenance.Base, known)
	return b, isGenuine, err
}

// has reports whether the log was once in this state.
func (j Journal) has(tx *gorm.DB, base proof.Base, known Roots) (bool, error) {
	root, ok := known[base.Size]
	if !ok {
		head, err := j.db.LogState(tx)
		if err != nil || base.Size < 0 || base.Size > head.Size {
			return false, err
		}
		tree, err := proof.LoadTree(base.Size, j.hashesIn(tx))
		if err != nil {
			return false, err
		}
		root = tree.Root()
		known[base.Size] = root
	}
	return root == base.Root, nil
}

// errNoHash is also returned for a hash of the wrong length.
const errNoHash = trail.Flaw("a stored hash of the log is missing. The service writes it again at its start, and at most once an hour. Run `bankingapi verify`")

// hashesIn reads stored hashes.
func (j Journal) hashesIn(tx *gorm.DB) proof.Hashes {
	return func(indexes []int64) ([]proof.Hash, error) {
		var rows []tables.TrailHashRow
		if len(indexes) == 0 {
			return nil, nil
		}
		if err := tx.Where("hash_index IN ?", indexes).Find(&rows).Error; err != nil {
			return nil, err
		}
		hashes := make([]proof.Hash, len(indexes))
		for i, index := range indexes {
			match := slices.IndexFunc(rows, func(r tables.TrailHashRow) bool { return r.HashIndex == index && len(r.Hash) == len(hashes[i]) })
			if match < 0 {
				return nil, errNoHash
			}
			hashes[i] = proof.Hash(rows[match].Hash)
		}
		return hashes, nil
	}
}
