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

// trailLog has the ports of package application/trail.
type trailLog struct{ Writer }

func (t trailLog) Use(keys *trail.Keys, newID func() operation.ID) {
	t.on.Store(&batchMaker{keys: keys, newID: newID})
}

func (t trailLog) Follow(base trail.Base) { t.base.Store(&base) }

func (t trailLog) Clear(ctx context.Context) error { return t.Change(ctx, t.ClearLog) }

// ClearLog removes all of the log.
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

// IsOf asks the oldest batches only: it has little time, and with another key none is genuine.
func (t trailLog) IsOf(ctx context.Context, keys *trail.Keys) (is bool, err error) {
	err = t.Snapshot(ctx, func(tx *gorm.DB) error {
		page, err := t.batchPage(tx, nil)
		is = len(page) == 0 || keys != nil && slices.ContainsFunc(page, func(row tables.TrailBatchRow) bool {
			b, err := row.Batch()
			_, isOwn := keys.OpenMAC(b.Record(), row.Entries, row.MAC)
			return err == nil && isOwn
		})
		return err
	})
	return is, err
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

// mayMend reports whether to mend now: once an hour, because mend reads the whole log, and does
// not help while something removes what it writes.
func (t trailLog) mayMend() bool {
	m, now := t.on.Load(), t.Now()
	if last := m.mended.Load(); last != nil && now.Sub(*last).Abs() < time.Hour {
		return false
	}
	m.mended.Store(&now)
	return true
}

// mend writes hashes that are missing or others. They follow from the batches, and whoever
// signs compares them with the newest checkpoint.
func (t trailLog) mend(ctx context.Context) error {
	var lost []tables.TrailHashRow
	var tree trail.Tree
	err := t.Snapshot(ctx, func(tx *gorm.DB) error {
		c := newComparison(t.Writer, tx, &backoffice.Witness{
			Keys:  t.Keys(),
			Found: func(backoffice.Finding) error { return nil }, // for verify to say
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

// withMark begins with a batch without leaves. Its base is the log before it.
func (t trailLog) withMark(ctx context.Context, tx *gorm.DB, size int64, rows []tables.TrailBatchRow, records [][]byte) ([]tables.TrailBatchRow, [][]byte, error) {
	tree, err := trail.LoadTree(size, t.hashesIn(tx))
	if err != nil {
		return nil, nil, err
	}
	r := t.on.Load()
	b := trail.Batch{ID: r.newID()}
	mac := r.keys.MAC(b.Record(), nil, trail.Provenance{Base: trail.Base{Size: size, Root: tree.Root()}})
	mark := []tables.TrailBatchRow{{BatchID: batch.UUID(b.ID), Entries: []byte{}, MAC: mac}}
	err = t.Dialect.Within(tx.Statement.ConnPool).Exchange(ctx, t.addBatch.Request(mark))
	return append(mark, rows...), append([][]byte{b.Record()}, records...), err
}

// mostLeftOut bounds how many foreign batches a round names.
const mostLeftOut = 5

// openBatches reads the next batches to be sealed, and their records.
func (t trailLog) openBatches(tx *gorm.DB, limit int) (rows []tables.TrailBatchRow, records [][]byte, round application.Round, err error) {
	maker, roots := t.on.Load(), t.knownRoots()
	if maker == nil {
		return nil, nil, round, errors.New("no trail is kept")
	}
	for row, err := range t.batches(tx.Where("t.position IS NULL"), nil) {
		if err != nil {
			return nil, nil, round, err
		}
		b, isOwn, err := t.genuine(tx, maker.keys, row, roots)
		switch {
		case err != nil:
			return nil, nil, round, err
		case isOwn:
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

// genuine decodes a batch. It returns false if no service with these keys has made it for this
// log.
func (t trailLog) genuine(tx *gorm.DB, keys *trail.Keys, row *tables.TrailBatchRow, known roots) (b trail.Batch, is bool, err error) {
	if b, err = row.Batch(); err != nil {
		return b, false, nil //nolint:nilerr // verify names it
	}
	from, ok := keys.OpenMAC(b.Record(), row.Entries, row.MAC)
	if !ok || !from.IsBound || row.IsElsewhere(&from) {
		return b, ok && !row.IsElsewhere(&from), nil
	}
	is, err = t.has(tx, from.Base, known)
	return b, is, err
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

// Adopt writes all leaves in one transaction: of two replicas that begin the log, one does.
func (t trailLog) Adopt(ctx context.Context) (adopted int64, err error) {
	maker := t.on.Load()
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
		adopted = begins.RowsAffected * int64(len(entries)) // none if another replica was faster
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

// adopt returns the entries of all rows that have none.
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
		err = read.EachRange(t.Database, tx, func(w read.Range) error {
			return read.Operations(t.Database, tx, w, func(of *read.StoredOperation) error {
				if !of.IsDecided() {
					return nil
				}
				return add(t.storedDecisionLeaf(of))
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
	found, err := t.find(ctx, id, func(tx *gorm.DB, keys *trail.Keys) (leaves []trail.Leaf, after batch.UUID, err error) {
		leaves, erased, err = t.contents(tx, batch.UUID(id), keys)
		return leaves, batch.UUID(id), err
	})
	if errors.Is(err, application.ErrNotFound) && erased {
		err = application.ErrErased
	}
	return found, err
}

func (t trailLog) Reversal(ctx context.Context, id operation.ID) (application.Leaf, error) {
	return t.find(ctx, id, func(tx *gorm.DB, _ *trail.Keys) (leaves []trail.Leaf, by batch.UUID, err error) {
		only := batch.UUID(id)
		err = read.Operations(t.Database, tx, read.Range{Only: &only}, func(o *read.StoredOperation) error {
			if o.Reversal != nil {
				leaves, by = append(leaves, t.Reversals.Leaves.Leaf(nil, o.Reversal)), o.Reversal.ReversalID
			}
			return nil
		})
		return leaves, by, err
	})
}

// find finds one of the leaves that read returns, in a batch that is newer than an ID.
func (t trailLog) find(ctx context.Context, id operation.ID, read func(*gorm.DB, *trail.Keys) ([]trail.Leaf, batch.UUID, error)) (found application.Leaf, err error) {
	maker := t.on.Load()
	if maker == nil {
		return found, application.ErrNotFound
	}
	err = t.Snapshot(ctx, func(tx *gorm.DB) error {
		contents, after, err := read(tx, maker.keys)
		if err != nil || len(contents) == 0 {
			return err
		}
		found, err = t.inBatch(tx, id, after, contents, maker.keys)
		return err
	})
	if err == nil && found.Content == nil {
		err = application.ErrNotFound
	}
	return found, err
}

// contents are the leaves that the rows of an ID may have. erased says that messages of
// it were erased.
func (t trailLog) contents(tx *gorm.DB, id batch.UUID, keys *trail.Keys) (leaves []trail.Leaf, erased bool, err error) {
	add := func(l trail.Leaf) { leaves = append(leaves, l) }
	own := read.Range{Only: &id}
	err = read.Operations(t.Database, tx, own, func(of *read.StoredOperation) error {
		misplaced, _ := of.WithoutPostings() // see comparison.isMisplaced
		for _, of := range []*read.StoredOperation{of, misplaced} {
			add(t.DecisionLeaf(nil, trail.Decided, of))
			add(t.DecisionLeaf(nil, trail.Settled, of))
		}
		add(t.Postings.Leaves.SumOf(keys, operation.ID(id), of.Others))
		for i := range of.Notifications {
			add(t.NotificationLeaf(nil, keys, &of.Notifications[i]))
			erased = erased || of.Notifications[i].UserID == ""
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	answered, err := tables.RowsOf(own.Narrow(t.Database, tx), t.Operations.Table)
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

// inBatch finds the batch of one of the leaves. A batch is made after the IDs
// in it, and IDs grow with time.
func (t trailLog) inBatch(tx *gorm.DB, id operation.ID, after batch.UUID, leaves []trail.Leaf, keys *trail.Keys) (found application.Leaf, err error) {
	of := make(map[trail.Hash]*trail.Leaf, len(leaves))
	for i := range leaves {
		of[leaves[i].Hash()] = &leaves[i]
	}
	known := t.knownRoots()
	for row, err := range t.batches(tx, &after) {
		if err != nil {
			return found, err
		}
		if !bytes.Contains(row.Entries, id[:]) {
			continue
		}
		b, isOwn, err := t.genuine(tx, keys, row, known)
		if err != nil {
			return found, err
		}
		at := slices.IndexFunc(b.Entries, func(e trail.Entry) bool { return isOwn && e.ID == id && of[e.Leaf] != nil })
		if at >= 0 {
			found = application.Leaf{Content: of[b.Entries[at].Leaf].Content(), Batch: b, Index: at, BatchIndex: -1}
			if row.Position.Valid {
				found.BatchIndex = row.Position.Int64
			}
			return found, nil
		}
	}
	return found, nil
}
