package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	compare "bankingapi/application/proof"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// Witness receives what a Reading reads.
type Witness struct {
	Keys *proof.Keys
	// Found receives what is wrong with the log, and the name of the batch.
	Found func(backoffice.Flaw, string)
	// Batch receives the sealed batches in the order of the log, with their stored hashes.
	Batch func(*backoffice.BatchRow) error
	// Entries receives the entries of all batches in the order of their IDs. It may be nil.
	Entries func(*proof.Batch, compare.Place, *proof.Provenance)
}

// Reading reads the whole log once, in the order of the IDs of batches. Their places in the log
// have almost the same order, so few batches wait for their turn.
type Reading struct {
	journal Journal
	tx      *gorm.DB
	witness Witness
	// early has records that were read before their turn. next is the position of the next one.
	next   int64
	early  map[int64]*backoffice.BatchRow
	opened []*backoffice.BatchRow
	last   *batch.UUID // the last batch that was read
	ended  bool        // all batches were read
	// isMissing is true if a batch is missing in the log.
	isMissing bool
}

// Read begins to read the log in a transaction.
func (j Journal) Read(tx *gorm.DB, w Witness) *Reading {
	return &Reading{journal: j, tx: tx, witness: w, early: make(map[int64]*backoffice.BatchRow)}
}

// Head reads the state of the log.
func (j Journal) Head(tx *gorm.DB) (backoffice.HeadRow, error) {
	log, err := j.db.LogState(tx)
	head := backoffice.HeadRow{HasBegun: log.HasBegun || log.Size != 0 || log.Checkpoint != "", Size: log.Size, Checkpoint: log.Checkpoint}
	if err != nil {
		return head, err
	}
	if !head.HasBegun { // unless a person has reset its state
		var placed []int64
		err = tx.Model(&tables.TrailBatchRow{}).Where("position IS NOT NULL").Limit(1).Pluck("position", &placed).Error
		head.HasBegun = len(placed) > 0
	}
	head.IsBegunWrong = log.HasBegun != head.HasBegun || !log.IsBegunReadable()
	return head, err
}

// Place returns the place of a batch in the log.
func Place(row *tables.TrailBatchRow) compare.Place {
	at := compare.Place{Position: compare.Open, Batch: operation.ID(row.BatchID)}
	if row.Position.Valid {
		at.Position = row.Position.Int64
	}
	return at
}

// Until reads the next batches, up to the first batch that is later than the operation. If until
// is nil, it reads all batches.
func (r *Reading) Until(until *batch.UUID) error {
	for !r.ended && (until == nil || r.last == nil || bytes.Compare(r.last[:], until[:]) <= 0) {
		page, err := r.journal.page(r.tx, r.last)
		if err != nil {
			return err
		}
		for i := range page {
			r.last = &page[i].BatchID
			r.read(&page[i])
		}
		err = r.records()
		if err != nil {
			return err
		}
		r.ended = len(page) < batchesRead
	}
	return nil
}

func (r *Reading) read(row *tables.TrailBatchRow) {
	b, err := row.Batch()
	if err != nil {
		r.changed(operation.ID(row.BatchID))
		return
	}
	provenance := r.note(row, b.Record())
	if r.witness.Entries != nil {
		r.witness.Entries(&b, Place(row), &provenance)
	}
}

// changed reports a batch.
func (r *Reading) changed(id operation.ID) {
	r.witness.Found(backoffice.Changed, "batch "+id.String())
}

// note stores the record until its turn in the log. It returns the provenance from the MAC.
func (r *Reading) note(row *tables.TrailBatchRow, record []byte) proof.Provenance {
	provenance, isGenuine := r.witness.Keys.OpenMAC(record, row.Entries, row.MAC)
	b := &backoffice.BatchRow{ID: operation.ID(row.BatchID), Record: record, IsGenuine: isGenuine}
	if isGenuine {
		b.Base = &provenance.Base
	}
	if isGenuine && row.IsElsewhere(&provenance) {
		b.Base = &proof.Base{Size: -1} // no log has this size
	}
	if !row.Position.Valid {
		b.Record = nil
		r.opened = append(r.opened, b)
		if !isGenuine {
			r.changed(b.ID)
		}
		return provenance
	}
	position := row.Position.Int64
	other := r.early[position]
	if other != nil { // two batches have this position
		r.changed(other.ID)
		r.changed(b.ID)
		return provenance
	}
	if position < r.next {
		r.changed(b.ID)
		return provenance
	}
	r.early[position] = b
	return provenance
}

// Open reports the open batches that were made for another log. It returns the number of open
// batches.
func (r *Reading) Open() (int64, error) {
	known := r.journal.KnownRoots()
	for _, b := range r.opened {
		if b.Base == nil {
			continue
		}
		has, err := r.journal.has(r.tx, *b.Base, known)
		if errors.Is(err, errNoHash) { // the missing hash is reported with its batch
			continue
		}
		if err != nil {
			return 0, err
		}
		if !has {
			r.witness.Found(backoffice.Foreign, b.String())
		}
	}
	return int64(len(r.opened)), nil
}

// records passes the records whose turn it is to the witness, with their stored hashes.
func (r *Reading) records() error {
	var ready []*backoffice.BatchRow
	size := r.next
	for b := r.early[r.next]; b != nil; b = r.early[r.next] {
		delete(r.early, r.next)
		ready = append(ready, b)
		r.next++
	}
	if len(ready) == 0 {
		return nil
	}
	first := proof.StoredHashes(size)
	hashes, err := r.hashes(first, proof.StoredHashes(r.next))
	if err != nil {
		return err
	}
	for _, b := range ready {
		offset := proof.StoredHashes(size) - first
		size++
		b.Hashes = hashes[offset : proof.StoredHashes(size)-first]
		if r.isMissing {
			b.Base = nil
			b.Hashes = nil
		}
		err = r.witness.Batch(b)
		if err != nil {
			return err
		}
	}
	return nil
}

// hashes reads the stored hashes from first to before end. A hash that is missing, or has another
// length, is zero. After a batch that is missing in the log all are.
func (r *Reading) hashes(first, end int64) ([]proof.Hash, error) {
	hashes := make([]proof.Hash, end-first)
	if r.isMissing {
		return hashes, nil
	}
	query := r.tx.Where("t.hash_index >= ? AND t.hash_index < ?", first, end)
	err := tables.Each(query, r.journal.db.TrailHashes, func(row *tables.TrailHashRow) error {
		if len(row.Hash) == len(proof.Hash{}) {
			hashes[row.HashIndex-first] = proof.Hash(row.Hash)
		}
		return nil
	})
	return hashes, err
}

// Gaps reports the batches that are missing in a log of this size, and batches after its end.
func (r *Reading) Gaps(size int64) error {
	places := slices.Sorted(maps.Keys(r.early))
	for i, place := range places {
		if place >= size {
			r.changed(r.early[place].ID)
			places[i] = size
		}
	}
	for _, next := range append(places, size) {
		if next > r.next {
			name := fmt.Sprintf("batch %d of the log", r.next+1)
			if next > r.next+1 {
				name = fmt.Sprintf("batch %d to %d of the log", r.next+1, next)
			}
			r.witness.Found(backoffice.NoBatch, name)
			r.next = next
			r.isMissing = true
		}
		if err := r.records(); err != nil {
			return err
		}
	}
	return nil
}

// HasOtherHashes reports whether there are hashes that a log of this size does not have.
func (r *Reading) HasOtherHashes(size int64) (bool, error) {
	var other []int64
	err := r.tx.Model(&tables.TrailHashRow{}).Where("hash_index < 0 OR hash_index >= ?", proof.StoredHashes(max(size, 0))).
		Limit(1).Pluck("hash_index", &other).Error
	return len(other) > 0, err
}
