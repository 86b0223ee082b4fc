package trail

import (
	"iter"
	"slices"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	application "bankingapi/application/trail"
	"bankingapi/domain/proof"
)

// batchPage reads the next batches in the order of their IDs.
func (d Writer) batchPage(tx *gorm.DB, after *batch.UUID) ([]tables.TrailBatchRow, error) {
	if after != nil {
		tx = tx.Where("t.batch_id > ?", d.DB.Bind(*after))
	}
	return tables.RowsOf(tx.Order("t.batch_id").Limit(batchesRead), d.DB.TrailBatches)
}

// batches reads the batches after an ID in pages. Between two pages the caller can run queries.
func (d Writer) batches(tx *gorm.DB, after *batch.UUID) iter.Seq2[*tables.TrailBatchRow, error] {
	tx = tx.Session(&gorm.Session{}) // each page adds its own conditions
	return func(yield func(*tables.TrailBatchRow, error) bool) {
		for count := batchesRead; count == batchesRead; {
			page, err := d.batchPage(tx, after)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page {
				if after = &page[i].BatchID; !yield(&page[i], nil) {
					return
				}
			}
			count = len(page)
		}
	}
}

// roots has the root of the log for each size that batches name.
type roots map[int64]proof.Hash

// knownRoots returns the root of the newest state that this service follows.
func (d Writer) knownRoots() roots {
	base := d.base.Load()
	return roots{base.Size: base.Root}
}

// has reports whether the log was once in this state.
func (d Writer) has(tx *gorm.DB, base proof.Base, known roots) (bool, error) {
	root, ok := known[base.Size]
	if !ok {
		head, err := d.DB.LogState(tx)
		if err != nil || base.Size < 0 || base.Size > head.Size {
			return false, err
		}
		tree, err := proof.LoadTree(base.Size, d.hashesIn(tx))
		if err != nil {
			return false, err
		}
		root = tree.Root()
		known[base.Size] = root
	}
	return root == base.Root, nil
}

// errNoHash is also returned for a hash of the wrong length.
const errNoHash = application.Flaw("a stored hash of the log is missing. The service writes it again at its start, and at most once an hour. Run `bankingapi verify`")

// hashesIn reads stored hashes.
func (d Writer) hashesIn(tx *gorm.DB) proof.Hashes {
	return func(indexes []int64) ([]proof.Hash, error) {
		var rows []tables.TrailHashRow
		if len(indexes) == 0 {
			return nil, nil
		}
		if err := tx.Table(d.DB.TrailHashes.Name).Where("hash_index IN ?", indexes).Find(&rows).Error; err != nil {
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

// batchesRead is the number of batches in a page.
const batchesRead = 200
