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
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// trailLog implements the ports of package application/trail.
type trailLog struct{ Writer }

func (t trailLog) Use(keys *trail.Keys, newID func() operation.ID) {
	t.maker.Store(&batchMaker{keys: keys, newID: newID})
}

func (t trailLog) Follow(base trail.Base) { t.base.Store(&base) }

func (t trailLog) Clear(ctx context.Context) error { return t.Change(ctx, t.ClearLog) }

// ClearLog removes the whole log.
func (d Writer) ClearLog(tx *gorm.DB) error {
	d.base.Store(&emptyLog)
	return tables.InTurn(
		func() error { return tx.Exec("DELETE FROM " + d.TrailBatches.Name).Error },
		func() error { return tx.Exec("DELETE FROM " + d.TrailHashes.Name).Error },
		func() error {
			return tx.Exec("UPDATE " + d.TrailLogs.Name + " SET size = 0, checkpoint = '', begun = 0").Error
		},
	)
}

// askTimeout bounds a short question, which is asked each second: a connection may hang.
const askTimeout = 2 * time.Second

func (t trailLog) State(ctx context.Context) (application.State, error) {
	ctx, stop := context.WithTimeout(ctx, askTimeout)
	defer stop()
	row, err := t.LogRow(t.Reads.WithContext(ctx))
	return application.State{Size: row.Size, Checkpoint: row.Checkpoint}, t.Translate(err)
}

// IsOf checks only the oldest batches: it has little time. With another key none is genuine.
func (t trailLog) IsOf(ctx context.Context, keys *trail.Keys) (isOf bool, err error) {
	err = t.Snapshot(ctx, func(tx *gorm.DB) error {
		page, err := t.batchPage(tx, nil)
		isOf = len(page) == 0 || keys != nil && slices.ContainsFunc(page, func(row tables.TrailBatchRow) bool {
			b, err := row.Batch()
			_, isGenuine := keys.OpenMAC(b.Record(), row.Entries, row.MAC)
			return err == nil && isGenuine
		})
		return err
	})
	return isOf, err
}

// Seal locks the row of trail_logs.
func (t trailLog) Seal(ctx context.Context, limit int, mark bool, seal application.Seal) (round application.Round, err error) {
	var open int64
	asking, stop := context.WithTimeout(ctx, askTimeout)
	err = t.Reads.WithContext(asking).Raw("SELECT 1 FROM " + t.TrailBatches.Name + " WHERE position IS NULL LIMIT 1").Scan(&open).Error
	stop()
	if err != nil || open == 0 && !mark {
		return round, t.Translate(err)
	}
	work := func(tx *gorm.DB) error {
		head, err := t.LogRow(tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}))
		if err != nil {
			return err
		}
		rows, records, left, err := t.openBatches(tx, limit)
		if round = left; err == nil && mark {
			rows, records, err = t.withMark(ctx, tx, head.Size, rows, records)
		}
		if round.Sealed = len(rows); err != nil || len(rows) == 0 {
			return err
		}
		added, err := seal(application.State{Size: head.Size, Checkpoint: head.Checkpoint}, records, t.hashesIn(tx))
		if err != nil {
			return err
		}
		return t.store(ctx, tx, &head, rows, &added)
	}
	if err = t.Change(ctx, work); errors.Is(err, errNoHash) && t.mayMend() {
		if err = t.mend(ctx); err == nil {
			err = t.Change(ctx, work)
		}
	}
	return round, err
}

// mayMend reports whether to mend now. It allows one attempt per hour: mend reads the whole
// log, and it does not help while something removes what mend writes.
func (t trailLog) mayMend() bool {
	maker, now := t.maker.Load(), t.Now()
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
	var tree trail.Tree
	err := t.Snapshot(ctx, func(tx *gorm.DB) error {
		c := newComparison(t.Writer, tx, &backoffice.Witness{
			Keys:  t.Keys(),
			Found: func(backoffice.Finding) error { return nil }, // verify reports findings
			Batch: func(b *backoffice.BatchRow) error {
				next := trail.StoredHashes(tree.Size())
				for i, hash := range tree.Append(b.Record) {
					if b.Hashes[i] != hash {
						lost = append(lost, tables.TrailHashRow{HashIndex: next + int64(i), Hash: hash[:]})
					}
				}
				return nil
			},
		})
		c.isLogOnly = true
		return c.readBatches(nil)
	})
	for part := range slices.Chunk(lost, tables.Chunk) {
		if err == nil {
			err = t.Transact(ctx, func(s batch.Session) error { return s.Commit(ctx, t.TrailHashes.Upsert("hash").Request(part)) })
		}
	}
	return err
}

// withMark puts a batch without leaves before the rows. Its base is the log before it.
func (t trailLog) withMark(ctx context.Context, tx *gorm.DB, size int64, rows []tables.TrailBatchRow, records [][]byte) ([]tables.TrailBatchRow, [][]byte, error) {
	tree, err := trail.LoadTree(size, t.hashesIn(tx))
	if err != nil {
		return nil, nil, err
	}
	maker := t.maker.Load()
	b := trail.Batch{ID: maker.newID()}
	mac := maker.keys.MAC(b.Record(), nil, trail.Provenance{Base: trail.Base{Size: size, Root: tree.Root()}})
	mark := []tables.TrailBatchRow{{BatchID: batch.UUID(b.ID), Entries: []byte{}, MAC: mac}}
	err = t.Dialect.Within(tx.Statement.ConnPool).Exchange(ctx, t.addBatch.Request(mark))
	return append(mark, rows...), append([][]byte{b.Record()}, records...), err
}

// mostLeftOut bounds how many foreign batches a round names.
const mostLeftOut = 5

// openBatches reads the next batches to be sealed, and their records.
func (t trailLog) openBatches(tx *gorm.DB, limit int) (rows []tables.TrailBatchRow, records [][]byte, round application.Round, err error) {
	maker, roots := t.maker.Load(), t.knownRoots()
	if maker == nil {
		return nil, nil, round, errors.New("no trail is kept")
	}
	for row, err := range t.batches(tx.Where("t.position IS NULL"), nil) {
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
func (t trailLog) genuine(tx *gorm.DB, keys *trail.Keys, row *tables.TrailBatchRow, known roots) (b trail.Batch, isGenuine bool, err error) {
	if b, err = row.Batch(); err != nil {
		return b, false, nil //nolint:nilerr // verify reports it
	}
	provenance, ok := keys.OpenMAC(b.Record(), row.Entries, row.MAC)
	if !ok || !provenance.IsBound || row.IsElsewhere(&provenance) {
		return b, ok && !row.IsElsewhere(&provenance), nil
	}
	isGenuine, err = t.has(tx, provenance.Base, known)
	return b, isGenuine, err
}

func (t trailLog) store(ctx context.Context, tx *gorm.DB, head *tables.TrailLogRow, rows []tables.TrailBatchRow, added *application.Sealed) error {
	hashes := make([]tables.TrailHashRow, len(added.Hashes))
	for i := range hashes {
		hashes[i] = tables.TrailHashRow{HashIndex: added.First + int64(i), Hash: added.Hashes[i][:]}
	}
	for i := range rows {
		rows[i].Position = sql.NullInt64{Int64: head.Size + int64(i), Valid: true}
	}
	head.Size, head.Checkpoint = head.Size+int64(len(rows)), added.Checkpoint
	return t.Dialect.Within(tx.Statement.ConnPool).Exchange(ctx, batch.NonEmpty(
		t.hash.Request(hashes), t.place.Request(rows), t.advance.Request([]tables.TrailLogRow{*head}))...)
}

func (t trailLog) Hashes(ctx context.Context, indexes []int64) ([]trail.Hash, error) {
	hashes, err := t.hashesIn(t.Reads.WithContext(ctx))(indexes)
	return hashes, t.Translate(err)
}

// Adopt writes all leaves in one transaction: if two replicas begin the log, only one succeeds.
func (t trailLog) Adopt(ctx context.Context) (adopted int64, err error) {
	maker := t.maker.Load()
	head, err := t.LogRow(t.Reads.WithContext(ctx))
	if err != nil || maker == nil || head.Begun != 0 {
		return 0, t.Translate(err)
	}
	if head.Size > 0 || head.Checkpoint != "" {
		return 0, errors.New("the log has batches, but says that it has not begun: somebody has changed the table trail_logs")
	}
	var entries []trail.Entry
	err = t.Snapshot(ctx, func(tx *gorm.DB) (err error) {
		entries, err = t.adopt(tx, maker.keys)
		return err
	})
	if err != nil {
		return 0, err
	}
	err = t.Change(ctx, func(tx *gorm.DB) error {
		begins := tx.Exec("UPDATE " + t.TrailLogs.Name + " SET begun = 1 WHERE begun = 0")
		adopted = begins.RowsAffected * int64(len(entries)) // 0 if another replica was faster
		err := begins.Error
		for part := range slices.Chunk(entries[:adopted], tables.Chunk) {
			if err == nil {
				err = t.Dialect.Within(tx.Statement.ConnPool).Exchange(ctx, t.addBatch.Request([]tables.TrailBatchRow{t.row(maker, part, true)}))
			}
		}
		return err
	})
	return adopted, err
}

// adopt returns the entries of all rows that have no entry yet.
func (t trailLog) adopt(tx *gorm.DB, keys *trail.Keys) (entries []trail.Entry, err error) {
	known := make(map[leafKey]bool)
	err = tables.Each(tx, t.TrailBatches, func(row *tables.TrailBatchRow) error {
		b, err := row.Batch()
		for i := range b.Entries {
			known[leafKey{b.Entries[i].Kind, b.Entries[i].ID, t.entryDigest(row, &b.Entries[i])}] = true
		}
		return err
	})
	add := func(s tables.StoredLeaf) error { //nolint:unparam // as the readers want it
		if !known[leafKey{s.Kind, s.ID, s.Digest}] {
			entries = append(entries, s.Entry)
		}
		return nil
	}
	if err == nil {
		err = read.EachRange(t.Database, tx, func(ids read.Range) error {
			return read.Operations(t.Database, tx, ids, func(stored *read.StoredOperation) error {
				if !stored.IsDecided() {
					return nil
				}
				return add(t.storedDecisionLeaf(stored))
			})
		})
	}
	for _, kind := range t.kinds() {
		if err == nil {
			err = kind.Each(tx, keys, add)
		}
	}
	return entries, err
}

func (t trailLog) Leaf(ctx context.Context, id operation.ID) (application.Leaf, error) {
	erased := false
	leaf, err := t.find(ctx, id, func(tx *gorm.DB, keys *trail.Keys) (leaves []trail.Leaf, after batch.UUID, err error) {
		leaves, erased, err = t.contents(tx, batch.UUID(id), keys)
		return leaves, batch.UUID(id), err
	})
	if errors.Is(err, application.ErrNotFound) && erased {
		err = application.ErrErased
	}
	return leaf, err
}

func (t trailLog) Reversal(ctx context.Context, id operation.ID) (application.Leaf, error) {
	return t.find(ctx, id, func(tx *gorm.DB, _ *trail.Keys) (leaves []trail.Leaf, reversalID batch.UUID, err error) {
		only := batch.UUID(id)
		err = read.Operations(t.Database, tx, read.Range{Only: &only}, func(o *read.StoredOperation) error {
			if o.Reversal != nil {
				leaves, reversalID = append(leaves, t.Reversals.Leaves.Leaf(nil, o.Reversal)), o.Reversal.ReversalID
			}
			return nil
		})
		return leaves, reversalID, err
	})
}

// find looks for one of the leaves that readLeaves returns, in batches newer than an ID.
func (t trailLog) find(ctx context.Context, id operation.ID, readLeaves func(*gorm.DB, *trail.Keys) ([]trail.Leaf, batch.UUID, error)) (leaf application.Leaf, err error) {
	maker := t.maker.Load()
	if maker == nil {
		return leaf, application.ErrNotFound
	}
	err = t.Snapshot(ctx, func(tx *gorm.DB) error {
		contents, after, err := readLeaves(tx, maker.keys)
		if err != nil || len(contents) == 0 {
			return err
		}
		leaf, err = t.inBatch(tx, id, after, contents, maker.keys)
		return err
	})
	if err == nil && leaf.Content == nil {
		err = application.ErrNotFound
	}
	return leaf, err
}

// contents returns the leaves that the rows of an ID may have. erased is true if messages of
// the operation were erased.
func (t trailLog) contents(tx *gorm.DB, id batch.UUID, keys *trail.Keys) (leaves []trail.Leaf, erased bool, err error) {
	add := func(l trail.Leaf) { leaves = append(leaves, l) }
	ids := read.Range{Only: &id}
	err = read.Operations(t.Database, tx, ids, func(stored *read.StoredOperation) error {
		misplaced, _ := stored.WithoutPostings() // see comparison.isMisplaced
		for _, stored := range []*read.StoredOperation{stored, misplaced} {
			add(t.DecisionLeaf(nil, trail.Decided, stored))
			add(t.DecisionLeaf(nil, trail.Settled, stored))
		}
		add(t.Postings.Leaves.SumOf(keys, operation.ID(id), stored.Others))
		for i := range stored.Notifications {
			add(t.NotificationLeaf(nil, keys, &stored.Notifications[i]))
			erased = erased || stored.Notifications[i].UserID == ""
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	answered, err := tables.RowsOf(ids.Narrow(t.Database, tx), t.Operations.Table)
	for i := range answered {
		add(t.Operations.Leaves.Leaf(nil, &answered[i]))
	}
	if err != nil {
		return nil, false, err
	}
	acts, err := tables.RowsOf(tx.Where("t.audit_id = ?", t.Dialect.Bind(id)), t.Audits.Table)
	for i := range acts {
		add(t.Audits.Leaves.Leaf(nil, &acts[i]))
	}
	return leaves, erased, err
}

// inBatch finds the batch that has one of the leaves. A batch gets its ID after its entries get
// theirs, and IDs grow with time.
func (t trailLog) inBatch(tx *gorm.DB, id operation.ID, after batch.UUID, leaves []trail.Leaf, keys *trail.Keys) (leaf application.Leaf, err error) {
	byHash := make(map[trail.Hash]*trail.Leaf, len(leaves))
	for i := range leaves {
		byHash[leaves[i].Hash()] = &leaves[i]
	}
	known := t.knownRoots()
	for row, err := range t.batches(tx, &after) {
		if err != nil {
			return leaf, err
		}
		if !bytes.Contains(row.Entries, id[:]) {
			continue
		}
		b, isGenuine, err := t.genuine(tx, keys, row, known)
		if err != nil {
			return leaf, err
		}
		index := slices.IndexFunc(b.Entries, func(e trail.Entry) bool { return isGenuine && e.ID == id && byHash[e.Leaf] != nil })
		if index >= 0 {
			leaf = application.Leaf{Content: byHash[b.Entries[index].Leaf].Content(), Batch: b, Index: index, BatchIndex: -1}
			if row.Position.Valid {
				leaf.BatchIndex = row.Position.Int64
			}
			return leaf, nil
		}
	}
	return leaf, nil
}
