package journal

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/application/trail"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// Clear removes the whole log.
func (j Journal) Clear(tx *gorm.DB) error {
	j.base.Store(&emptyLog)
	err := tx.Exec("DELETE FROM " + j.db.TrailBatches.Name).Error
	if err != nil {
		return err
	}
	err = tx.Exec("DELETE FROM " + j.db.TrailHashes.Name).Error
	if err != nil {
		return err
	}
	return j.db.ClearLogState(tx)
}

// Log implements trail.Log: it seals batches, and reads what is sealed.
type Log struct {
	db      *tables.Database
	journal Journal
}

var _ trail.Log = Log{}

// Log returns the log of the journal.
func (j Journal) Log() Log { return Log{j.db, j} }

// askTimeout bounds a short question, which is asked each second: a connection may hang.
const askTimeout = 2 * time.Second

// State implements trail.Log.
func (l Log) State(ctx context.Context) (trail.State, error) {
	ctx, stop := context.WithTimeout(ctx, askTimeout)
	defer stop()
	row, err := l.db.LogState(l.db.Reads.WithContext(ctx))
	return trail.State{Size: row.Size, Checkpoint: row.Checkpoint}, l.db.Translate(err)
}

// IsOf checks only the oldest batches: it has little time. With another key none is genuine.
func (l Log) IsOf(ctx context.Context, keys *proof.Keys) (isOf bool, err error) {
	err = l.db.Snapshot(ctx, func(tx *gorm.DB) error {
		page, err := l.journal.page(tx, nil)
		if err != nil {
			return err
		}
		isOf = len(page) == 0 || keys != nil && hasGenuine(page, keys)
		return nil
	})
	return isOf, err
}

// hasGenuine reports whether a batch was written with the keys.
func hasGenuine(page []tables.TrailBatchRow, keys *proof.Keys) bool {
	for i := range page {
		b, err := page[i].Batch()
		if err != nil {
			continue
		}
		if _, isGenuine := keys.OpenMAC(b.Record(), page[i].Entries, page[i].MAC); isGenuine {
			return true
		}
	}
	return false
}

// Seal locks the state of the log.
func (l Log) Seal(ctx context.Context, limit int, mark bool, seal trail.Seal) (round trail.Round, err error) {
	var open int64
	asking, stop := context.WithTimeout(ctx, askTimeout)
	err = l.db.Reads.WithContext(asking).Model(&tables.TrailBatchRow{}).Where("position IS NULL").Limit(1).Select("1").Scan(&open).Error
	stop()
	if err != nil || open == 0 && !mark {
		return round, l.db.Translate(err)
	}
	work := func(tx *gorm.DB) error {
		head, err := l.db.LogState(tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}))
		if err != nil {
			return err
		}
		rows, records, left, err := l.openBatches(tx, limit)
		if err != nil {
			return err
		}
		if mark {
			rows, records, err = l.withMark(ctx, tx, head.Size, rows, records)
			if err != nil {
				return err
			}
		}
		round = left
		round.Sealed = len(rows)
		if len(rows) == 0 {
			return nil
		}
		added, err := seal(trail.State{Size: head.Size, Checkpoint: head.Checkpoint}, records, l.journal.hashesIn(tx))
		if err != nil {
			return err
		}
		return l.store(ctx, tx, &head, rows, &added)
	}
	if err = l.db.Change(ctx, work); errors.Is(err, errNoHash) && l.mayMend() {
		err = l.mend(ctx)
		if err != nil {
			return round, err
		}
		err = l.db.Change(ctx, work)
	}
	return round, err
}

// mayMend reports whether to mend now. It allows one attempt per hour: mend reads the whole
// log, and it does not help while something removes what mend writes.
func (l Log) mayMend() bool {
	maker := l.journal.maker.Load()
	now := l.db.Now()
	last := maker.mended.Load()
	if last != nil && now.Sub(*last).Abs() < time.Hour {
		return false
	}
	maker.mended.Store(&now)
	return true
}

// mend writes the hashes that are missing or wrong. It computes them from the batches. The
// service compares them with the newest checkpoint before it signs the next one.
func (l Log) mend(ctx context.Context) error {
	var lost []tables.TrailHashRow
	var tree proof.Tree
	err := l.db.Snapshot(ctx, func(tx *gorm.DB) error {
		r := l.journal.Read(tx, Witness{
			Keys:  l.journal.Keys(),
			Found: func(backoffice.Flaw, string) {}, // verify reports flaws
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
		return r.Until(nil)
	})
	if err != nil {
		return err
	}
	for part := range slices.Chunk(lost, tables.Chunk) {
		err = l.db.Transact(ctx, func(s batch.Session) error { return s.Commit(ctx, l.db.TrailHashes.Upsert("hash").Request(part)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// withMark puts a batch without leaves before the rows. Its base is the log before it.
func (l Log) withMark(ctx context.Context, tx *gorm.DB, size int64, rows []tables.TrailBatchRow, records [][]byte) ([]tables.TrailBatchRow, [][]byte, error) {
	tree, err := proof.LoadTree(size, l.journal.hashesIn(tx))
	if err != nil {
		return nil, nil, err
	}
	maker := l.journal.maker.Load()
	b := proof.Batch{ID: maker.newID()}
	mac := maker.keys.MAC(b.Record(), nil, proof.Provenance{Base: proof.Base{Size: size, Root: tree.Root()}})
	mark := []tables.TrailBatchRow{{BatchID: batch.UUID(b.ID), Entries: []byte{}, MAC: mac}}
	err = l.db.Send(ctx, tx, l.journal.addBatch.Request(mark))
	return append(mark, rows...), append([][]byte{b.Record()}, records...), err
}

// mostLeftOut bounds how many foreign batches a round names.
const mostLeftOut = 5

// openBatches reads the next batches to be sealed, and their records.
func (l Log) openBatches(tx *gorm.DB, limit int) (rows []tables.TrailBatchRow, records [][]byte, round trail.Round, err error) {
	maker := l.journal.maker.Load()
	roots := l.journal.KnownRoots()
	if maker == nil {
		return nil, nil, round, errors.New("no trail is kept")
	}
	for row, err := range l.journal.Batches(tx.Where("t.position IS NULL"), nil) {
		if err != nil {
			return nil, nil, round, err
		}
		b, isGenuine, err := l.journal.Genuine(tx, maker.keys, row, roots)
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

func (l Log) store(ctx context.Context, tx *gorm.DB, head *tables.LogState, rows []tables.TrailBatchRow, added *trail.Sealed) error {
	hashes := make([]tables.TrailHashRow, len(added.Hashes))
	for i := range hashes {
		hashes[i] = tables.TrailHashRow{HashIndex: added.First + int64(i), Hash: added.Hashes[i][:]}
	}
	for i := range rows {
		rows[i].Position = sql.NullInt64{Int64: head.Size + int64(i), Valid: true}
	}
	head.Size = head.Size + int64(len(rows))
	head.Checkpoint = added.Checkpoint
	return l.db.Send(ctx, tx, batch.NonEmpty(
		l.journal.hash.Request(hashes), l.journal.place.Request(rows),
		l.db.Properties.Put.Request([]tables.PropertyRow{
			tables.NumberProperty(tables.LogSizeProperty, head.Size), {Name: tables.LogCheckpointProperty, Value: head.Checkpoint},
		}))...)
}

// Hashes implements trail.Log.
func (l Log) Hashes(ctx context.Context, indexes []int64) ([]proof.Hash, error) {
	hashes, err := l.journal.hashesIn(l.db.Reads.WithContext(ctx))(indexes)
	return hashes, l.db.Translate(err)
}
