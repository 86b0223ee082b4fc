package trail

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/read"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	application "bankingapi/application/trail"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// trailLog implements the ports of package application/trail.
type trailLog struct {
	db  *tables.Database
	log Writer
}

func (t trailLog) Use(keys *proof.Keys, newID func() operation.ID) {
	t.log.maker.Store(&batchMaker{keys: keys, newID: newID})
}

func (t trailLog) Follow(base proof.Base) { t.log.base.Store(&base) }

func (t trailLog) Clear(ctx context.Context) error { return t.db.Change(ctx, t.log.ClearLog) }

// ClearLog removes the whole log.
func (d Writer) ClearLog(tx *gorm.DB) error {
	d.base.Store(&emptyLog)
	return tables.InTurn(
		func() error { return tx.Exec("DELETE FROM " + d.DB.TrailBatches.Name).Error },
		func() error { return tx.Exec("DELETE FROM " + d.DB.TrailHashes.Name).Error },
		func() error { return d.DB.ClearLogState(tx) },
	)
}

// askTimeout bounds a short question, which is asked each second: a connection may hang.
const askTimeout = 2 * time.Second

func (t trailLog) State(ctx context.Context) (application.State, error) {
	ctx, stop := context.WithTimeout(ctx, askTimeout)
	defer stop()
	row, err := t.db.LogState(t.db.Reads.WithContext(ctx))
	return application.State{Size: row.Size, Checkpoint: row.Checkpoint}, t.db.Translate(err)
}

// IsOf checks only the oldest batches: it has little time. With another key none is genuine.
func (t trailLog) IsOf(ctx context.Context, keys *proof.Keys) (isOf bool, err error) {
	err = t.db.Snapshot(ctx, func(tx *gorm.DB) error {
		page, err := t.log.batchPage(tx, nil)
		isOf = len(page) == 0 || keys != nil && slices.ContainsFunc(page, func(row tables.TrailBatchRow) bool {
			b, err := row.Batch()
			_, isGenuine := keys.OpenMAC(b.Record(), row.Entries, row.MAC)
			return err == nil && isGenuine
		})
		return err
	})
	return isOf, err
}

// Seal locks the state of the log.
func (t trailLog) Seal(ctx context.Context, limit int, mark bool, seal application.Seal) (round application.Round, err error) {
	var open int64
	asking, stop := context.WithTimeout(ctx, askTimeout)
	err = t.db.Reads.WithContext(asking).Raw("SELECT 1 FROM " + t.db.TrailBatches.Name + " WHERE position IS NULL LIMIT 1").Scan(&open).Error
	stop()
	if err != nil || open == 0 && !mark {
		return round, t.db.Translate(err)
	}
	work := func(tx *gorm.DB) error {
		head, err := t.db.LogState(tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}))
		if err != nil {
			return err
		}
		rows, records, left, err := t.openBatches(tx, limit)
		if err != nil {
			return err
		}
		if mark {
			rows, records, err = t.withMark(ctx, tx, head.Size, rows, records)
			if err != nil {
				return err
			}
		}
		round = left
		round.Sealed = len(rows)
		if len(rows) == 0 {
			return nil
		}
		added, err := seal(application.State{Size: head.Size, Checkpoint: head.Checkpoint}, records, t.log.hashesIn(tx))
		if err != nil {
			return err
		}
		return t.store(ctx, tx, &head, rows, &added)
	}
	if err = t.db.Change(ctx, work); errors.Is(err, errNoHash) && t.mayMend() {
		err = t.mend(ctx)
		if err != nil {
			return round, err
		}
		err = t.db.Change(ctx, work)
	}
	return round, err
}

// mayMend reports whether to mend now. It allows one attempt per hour: mend reads the whole
// log, and it does not help while something removes what mend writes.
func (t trailLog) mayMend() bool {
	maker, now := t.log.maker.Load(), t.db.Now()
	if last := maker.mended.Load(); last != nil && now.Sub(*last).Abs() < time.Hour {
		return false
	}
	maker.mended.Store(&now)
	return true
}

// mend writes the hashes that are missing or wrong. It computes them from the batches. The
// service compares them with the newest checkpoint before it signs the next one.
func (t trailLog) mend(ctx context.Context) error {
	var lost []tables.TrailHashRow
	var tree proof.Tree
	err := t.db.Snapshot(ctx, func(tx *gorm.DB) error {
		c := newLogComparison(t.log, tx, &backoffice.Witness{
			Keys:  t.log.Keys(),
			Found: func(backoffice.Finding) error { return nil }, // verify reports findings
			Batch: func(b *backoffice.BatchRow) error {
				next := proof.StoredHashes(tree.Size())
				for i, hash := range tree.Append(b.Record) {
					if b.Hashes[i] != hash {
						lost = append(lost, tables.TrailHashRow{HashIndex: next + int64(i), Hash: hash[:]})
					}
				}
				return nil
			},
		})
		return c.readBatches(nil)
	})
	if err != nil {
		return err
	}
	for part := range slices.Chunk(lost, tables.Chunk) {
		err = t.db.Transact(ctx, func(s batch.Session) error { return s.Commit(ctx, t.db.TrailHashes.Upsert("hash").Request(part)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// withMark puts a batch without leaves before the rows. Its base is the log before it.
func (t trailLog) withMark(ctx context.Context, tx *gorm.DB, size int64, rows []tables.TrailBatchRow, records [][]byte) ([]tables.TrailBatchRow, [][]byte, error) {
	tree, err := proof.LoadTree(size, t.log.hashesIn(tx))
	if err != nil {
		return nil, nil, err
	}
	maker := t.log.maker.Load()
	b := proof.Batch{ID: maker.newID()}
	mac := maker.keys.MAC(b.Record(), nil, proof.Provenance{Base: proof.Base{Size: size, Root: tree.Root()}})
	mark := []tables.TrailBatchRow{{BatchID: batch.UUID(b.ID), Entries: []byte{}, MAC: mac}}
	err = t.db.Send(ctx, tx, t.log.addBatch.Request(mark))
	return append(mark, rows...), append([][]byte{b.Record()}, records...), err
}

// mostLeftOut bounds how many foreign batches a round names.
const mostLeftOut = 5

// openBatches reads the next batches to be sealed, and their records.
func (t trailLog) openBatches(tx *gorm.DB, limit int) (rows []tables.TrailBatchRow, records [][]byte, round application.Round, err error) {
	maker, roots := t.log.maker.Load(), t.log.knownRoots()
	if maker == nil {
		return nil, nil, round, errors.New("no trail is kept")
	}
	for row, err := range t.log.batches(tx.Where("t.position IS NULL"), nil) {
		if err != nil {
			return nil, nil, round, err
		}
		b, isGenuine, err := t.genuine(tx, maker.keys, row, roots)
		switch {
		case err != nil:
			return nil, nil, round, err
		case isGenuine:
			rows, records = append(rows, *row), append(records, b.Record())
		default:
			if round.Foreign++; round.Foreign <= mostLeftOut {
				round.LeftOut = append(round.LeftOut, operation.ID(row.BatchID))
			}
		}
		if len(rows) == limit {
			break
		}
	}
	return rows, records, round, nil
}

// genuine decodes a batch. It returns false unless a service with these keys made the batch for
// this log.
func (t trailLog) genuine(tx *gorm.DB, keys *proof.Keys, row *tables.TrailBatchRow, known roots) (b proof.Batch, isGenuine bool, err error) {
	if b, err = row.Batch(); err != nil {
		return b, false, nil //nolint:nilerr // verify reports it
	}
	provenance, ok := keys.OpenMAC(b.Record(), row.Entries, row.MAC)
	if !ok || row.IsElsewhere(&provenance) {
		return b, false, nil
	}
	isGenuine, err = t.log.has(tx, provenance.Base, known)
	return b, isGenuine, err
}

func (t trailLog) store(ctx context.Context, tx *gorm.DB, head *tables.LogState, rows []tables.TrailBatchRow, added *application.Sealed) error {
	hashes := make([]tables.TrailHashRow, len(added.Hashes))
	for i := range hashes {
		hashes[i] = tables.TrailHashRow{HashIndex: added.First + int64(i), Hash: added.Hashes[i][:]}
	}
	for i := range rows {
		rows[i].Position = sql.NullInt64{Int64: head.Size + int64(i), Valid: true}
	}
	head.Size, head.Checkpoint = head.Size+int64(len(rows)), added.Checkpoint
	return t.db.Send(ctx, tx, batch.NonEmpty(
		t.log.hash.Request(hashes), t.log.place.Request(rows),
		t.db.Properties.Put.Request([]tables.PropertyRow{
			tables.NumberProperty(tables.LogSizeProperty, head.Size), {Name: tables.LogCheckpointProperty, Value: head.Checkpoint},
		}))...)
}

func (t trailLog) Hashes(ctx context.Context, indexes []int64) ([]proof.Hash, error) {
	hashes, err := t.log.hashesIn(t.db.Reads.WithContext(ctx))(indexes)
	return hashes, t.db.Translate(err)
}

// Adopt writes all leaves in one transaction: if two replicas begin the log, only one succeeds.
func (t trailLog) Adopt(ctx context.Context) (adopted int64, err error) {
	maker := t.log.maker.Load()
	head, err := t.db.LogState(t.db.Reads.WithContext(ctx))
	if err != nil || maker == nil || head.HasBegun {
		return 0, t.db.Translate(err)
	}
	if head.Size > 0 || head.Checkpoint != "" {
		return 0, errors.New("the log has batches, but says that it has not begun: somebody has changed the property log_begun")
	}
	var entries []proof.Entry
	err = t.db.Snapshot(ctx, func(tx *gorm.DB) (err error) {
		entries, err = t.adopt(tx, maker.keys)
		return err
	})
	if err != nil {
		return 0, err
	}
	err = t.db.Change(ctx, func(tx *gorm.DB) error {
		adopted = 0
		begins, err := t.db.BeginLog(tx)
		if err != nil || !begins { // another replica was faster
			return err
		}
		adopted = int64(len(entries))
		for part := range slices.Chunk(entries, tables.Chunk) {
			row := t.log.row(maker, part, proof.Provenance{IsAdopted: true})
			err = t.db.Send(ctx, tx, t.log.addBatch.Request([]tables.TrailBatchRow{row}))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return adopted, err
}

// TakeIn reads all rows and the whole log.
func (t trailLog) TakeIn(ctx context.Context, act func([]proof.Entry) audit.Act) (taken []proof.Entry, err error) {
	maker := t.log.maker.Load()
	head, err := t.db.LogState(t.db.Reads.WithContext(ctx))
	if err != nil || maker == nil || !head.HasBegun {
		return nil, t.db.Translate(err)
	}
	err = t.db.Snapshot(ctx, func(tx *gorm.DB) (err error) {
		taken, err = t.outside(tx, maker.keys)
		return err
	})
	if err != nil || len(taken) == 0 {
		return nil, err
	}
	ordered := act(taken)
	l := proof.OfAct(ordered.ID, &ordered, nil, nil)
	requests := []batch.Request{t.db.Audits.Add.Request([]tables.AuditRow{tables.NewAuditRow(&ordered)})}
	for part := range slices.Chunk(append([]proof.Entry{l.Entry()}, taken...), tables.Chunk) {
		row := t.log.row(maker, part, proof.Provenance{IsAdopted: true, ByAct: true})
		requests = append(requests, t.log.addBatch.Request([]tables.TrailBatchRow{row}))
	}
	err = t.db.Transact(ctx, func(s batch.Session) error { return s.Commit(ctx, requests...) })
	return taken, err
}

// outside returns the entries of rows that have no entry. A row whose entry has another leaf was
// changed: verify reports it. Only an end and a subscription may have several leaves, because they
// change more than once.
func (t trailLog) outside(tx *gorm.DB, keys *proof.Keys) ([]proof.Entry, error) {
	type row struct {
		kind proof.Kind
		id   operation.ID
	}
	hasLeaf := make(map[row]bool)
	err := tables.Each(tx, t.db.TrailBatches, func(r *tables.TrailBatchRow) error {
		b, err := r.Batch()
		for i := range b.Entries {
			hasLeaf[row{b.Entries[i].Kind, b.Entries[i].ID}] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	entries, err := t.adopt(tx, keys)
	entries = slices.DeleteFunc(entries, func(e proof.Entry) bool {
		return e.Kind != proof.End && e.Kind != proof.Subscription && hasLeaf[row{e.Kind, e.ID}]
	})
	return entries, err
}

// adopt returns the entries of everything that has no entry yet.
func (t trailLog) adopt(tx *gorm.DB, keys *proof.Keys) (entries []proof.Entry, err error) {
	type key struct {
		kind proof.Kind
		id   operation.ID
		leaf proof.Hash
	}
	known := make(map[key]bool)
	keyOf := func(e *proof.Entry) key {
		if e.Kind == proof.Push { // the log has the identities of all its messages
			return key{kind: e.Kind, id: e.ID}
		}
		return key{e.Kind, e.ID, e.Leaf}
	}
	err = tables.Each(tx, t.db.TrailBatches, func(row *tables.TrailBatchRow) error {
		b, err := row.Batch()
		for i := range b.Entries {
			known[keyOf(&b.Entries[i])] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	add := func(e proof.Entry, _ string) {
		if !known[keyOf(&e)] {
			entries = append(entries, e)
		}
	}
	err = read.EachRange(t.db, tx, func(ids read.Range) error {
		return read.Operations(t.db, tx, ids, func(rows *read.StoredOperation) error {
			if !rows.IsDecided() {
				return nil
			}
			stored, _ := rows.Stored()
			for _, e := range proof.Of(keys, &stored) {
				add(e, "")
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	err = t.log.eachOther(tx, keys, add)
	return entries, err
}

// Leaves finds the leaves of an operation or an act.
func (t trailLog) Leaves(ctx context.Context, id operation.ID) (found []application.Leaf, err error) {
	maker := t.log.maker.Load()
	if maker == nil {
		return nil, application.ErrNotFound
	}
	err = t.db.Snapshot(ctx, func(tx *gorm.DB) error {
		stored, err := t.stored(tx, id)
		if err != nil {
			return err
		}
		found, err = t.inBatches(tx, maker.keys, id, stored)
		return err
	})
	if err != nil {
		return found, err
	}
	if len(found) == 0 {
		return nil, application.ErrNotFound
	}
	return found, nil
}

// stored returns the operation with this ID, or nil.
func (t trailLog) stored(tx *gorm.DB, id operation.ID) (stored *proof.Stored, err error) {
	only := batch.UUID(id)
	err = read.Operations(t.db, tx, read.Range{Only: &only}, func(rows *read.StoredOperation) error {
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
func (t trailLog) inBatches(tx *gorm.DB, keys *proof.Keys, id operation.ID, stored *proof.Stored) (found []application.Leaf, err error) {
	var first []proof.Named
	var reversal wanted
	switch {
	case stored == nil:
		if first, err = t.actLeaf(tx, keys, id); err != nil {
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
			leaf, err := t.inBatch(tx, keys, stored, &w.leaves[i], w.after)
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
func (t trailLog) actLeaf(tx *gorm.DB, keys *proof.Keys, id operation.ID) (leaves []proof.Named, err error) {
	err = t.log.eachActOf(tx, keys, &id, func(l *proof.Named, _ string) { leaves = append(leaves, *l) })
	return leaves, err
}

// inBatch finds the batch that has the leaf, or nil. The entry of a push has the identities of
// all its messages: then the leaf is made with them.
func (t trailLog) inBatch(tx *gorm.DB, keys *proof.Keys, stored *proof.Stored, l *proof.Named, after batch.UUID) (*application.Leaf, error) {
	known := t.log.knownRoots()
	for row, err := range t.log.batches(tx, &after) {
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(row.Entries, l.ID[:]) {
			continue
		}
		b, isGenuine, err := t.genuine(tx, keys, row, known)
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
			leaf := &application.Leaf{Content: l.Leaf.Content(), Batch: b, Index: i, BatchIndex: -1}
			if row.Position.Valid {
				leaf.BatchIndex = row.Position.Int64
			}
			return leaf, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}
