package trail

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/read"
	"bankingapi/adapters/storage/tables"
	application "bankingapi/application/trail"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// kinds returns all kinds of leaves except decisions.
func (d Writer) kinds() []tables.StoredKind {
	return []tables.StoredKind{
		d.Prices.Leaves.Stored(), d.Subscriptions.Leaves.Stored(), d.Audits.Leaves.Stored(), d.Reversals.Leaves.Stored(),
		d.Postings.Leaves.Stored(), d.Notifications.Leaves.Stored(),
		{Kind: trail.Answered, Each: d.Operations.Leaves.Each}, {Kind: trail.Notified, Each: d.eachNotification},
	}
}

// isOfMany reports whether a kind has too many leaves to compare them all at once.
func isOfMany(kind trail.Kind) bool { return kind == trail.Answered || kind == trail.Notified }

// storedDecisionLeaf returns the leaf of a decision. A sale that has a day was either recorded
// first, or carried out at once because the request came on that day.
func (d Writer) storedDecisionLeaf(stored *read.StoredOperation) tables.StoredLeaf {
	hash := func(kind trail.Kind, stored *read.StoredOperation) (hash trail.Hash) {
		d.buffer(func(buffer []byte) []byte {
			l := d.DecisionLeaf(buffer, kind, stored)
			hash = l.Hash()
			return l.Memory()
		})
		return hash
	}
	id := operation.ID(stored.ID)
	s := tables.StoredLeaf{Entry: trail.Entry{Kind: trail.Decided, ID: id, Leaf: hash(trail.Decided, stored)}, Name: "operation " + id.String()}
	if len(stored.Sales) > 0 && stored.Sales[0].SelectedDate != "" && stored.Sales[0].State != int64(operation.Recorded) {
		s.Recorded = &[2]trail.Hash{hash(trail.Decided, stored.AsRecorded()), hash(trail.Settled, stored)}
	}
	return s
}

// eachNotification reads the leaves of notifications.
func (d Writer) eachNotification(tx *gorm.DB, keys *trail.Keys, visit func(tables.StoredLeaf) error) error {
	var buffer []byte
	erased := tables.ErasedDigests(d.MessagesKey())
	return tables.Each(tx, d.Notifications.Table, func(row *tables.NotificationRow) error {
		l := d.NotificationLeaf(buffer, keys, row)
		hash := l.Hash()
		if len(row.Leaf) == len(hash) { // its personal data was erased
			hash = trail.Hash(row.Leaf)
		}
		buffer = l.Memory()
		n, err := row.Entry()
		digest := n.Digest()
		return visit(tables.StoredLeaf{
			Entry: trail.Entry{
				Kind: trail.Notified, ID: operation.ID(row.OperationID), Digest: tables.ShortDigest(erased(row.Digest)), Leaf: hash,
			},
			Name:          fmt.Sprintf("notification %s/%d", row.OperationID, row.Position),
			HasOtherTexts: err != nil || n.Erasure == nil && !bytes.Equal(digest.Bytes(), row.Digest),
		})
	})
}

// batchPage reads the next batches in the order of their IDs.
func (d Writer) batchPage(tx *gorm.DB, after *batch.UUID) ([]tables.TrailBatchRow, error) {
	if after != nil {
		tx = tx.Where("t.batch_id > ?", d.Dialect.Bind(*after))
	}
	return tables.RowsOf(tx.Order("t.batch_id").Limit(batchesRead), d.TrailBatches)
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

// LogRow reads the state of the log.
func (d Writer) LogRow(tx *gorm.DB) (row tables.TrailLogRow, err error) {
	var rows []tables.TrailLogRow
	if err := tx.Table(d.TrailLogs.Name).Find(&rows).Error; err != nil {
		return row, err
	}
	if len(rows) != 1 {
		return row, fmt.Errorf("the table trail_logs has %d rows, and must have one", len(rows))
	}
	return rows[0], nil
}

// roots has the root of the log for each size that batches name.
type roots map[int64]trail.Hash

// knownRoots returns the root of the newest state that this service follows.
func (d Writer) knownRoots() roots {
	base := d.base.Load()
	return roots{base.Size: base.Root}
}

// has reports whether the log was once in this state.
func (d Writer) has(tx *gorm.DB, base trail.Base, known roots) (bool, error) {
	root, ok := known[base.Size]
	if !ok {
		head, err := d.LogRow(tx)
		if err != nil || base.Size < 0 || base.Size > head.Size {
			return false, err
		}
		tree, err := trail.LoadTree(base.Size, d.hashesIn(tx))
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
func (d Writer) hashesIn(tx *gorm.DB) trail.Hashes {
	return func(indexes []int64) ([]trail.Hash, error) {
		var rows []tables.TrailHashRow
		if len(indexes) == 0 {
			return nil, nil
		}
		if err := tx.Table(d.TrailHashes.Name).Where("hash_index IN ?", indexes).Find(&rows).Error; err != nil {
			return nil, err
		}
		hashes := make([]trail.Hash, len(indexes))
		for i, index := range indexes {
			match := slices.IndexFunc(rows, func(r tables.TrailHashRow) bool { return r.HashIndex == index && len(r.Hash) == len(hashes[i]) })
			if match < 0 {
				return nil, errNoHash
			}
			hashes[i] = trail.Hash(rows[match].Hash)
		}
		return hashes, nil
	}
}

// leafKey is the key that a row and its leaf share. A notification is identified by its digest,
// because it may come again with another ID. So keyOf leaves the ID out.
type leafKey struct {
	kind   trail.Kind
	id     operation.ID
	digest trail.Hash
}

func keyOf(e *trail.Entry) leafKey {
	if e.Kind == trail.Notified {
		return leafKey{kind: e.Kind, digest: e.Digest}
	}
	return leafKey{kind: e.Kind, id: e.ID}
}

// batchesRead is the number of batches in a page.
const batchesRead = 200
