package evidence

import (
	"context"
	"errors"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/office"
	"bankingapi/adapters/storage/tables"
	compare "bankingapi/application/proof"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// origin implements trail.Origin.
type origin struct {
	db      *tables.Database
	journal journal.Journal
}

func (o origin) Clear(ctx context.Context) error { return o.db.Change(ctx, o.journal.Clear) }

// Adopt writes all leaves in one transaction: if two replicas begin the log, only one succeeds.
func (o origin) Adopt(ctx context.Context) (adopted int64, err error) {
	keys := o.journal.Keys()
	head, err := o.db.LogState(o.db.Reads.WithContext(ctx))
	if err != nil || keys == nil || head.HasBegun {
		return 0, o.db.Translate(err)
	}
	if head.Size > 0 || head.Checkpoint != "" {
		return 0, errors.New("the log has batches, but says that it has not begun: somebody has changed the property log_begun")
	}
	var entries []proof.Entry
	err = o.db.Snapshot(ctx, func(tx *gorm.DB) (err error) {
		entries, err = o.withoutEntry(tx, keys)
		return err
	})
	if err != nil {
		return 0, err
	}
	err = o.db.Change(ctx, func(tx *gorm.DB) error {
		adopted = 0
		begins, err := o.db.BeginLog(tx)
		if err != nil || !begins { // another replica was faster
			return err
		}
		err = o.mustBeCurrent(tx, entries)
		if err != nil {
			return err
		}
		adopted = int64(len(entries))
		for part := range slices.Chunk(entries, tables.Chunk) {
			err = o.db.Send(ctx, tx, o.journal.WriteOlder(false, part))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return adopted, err
}

// TakeIn reads all rows and the whole log. If two do so at once, only one succeeds: nothing may get
// two leaves.
func (o origin) TakeIn(ctx context.Context, act func([]proof.Entry) audit.Act) (taken []proof.Entry, err error) {
	keys := o.journal.Keys()
	head, err := o.db.LogState(o.db.Reads.WithContext(ctx))
	if err != nil || keys == nil || !head.HasBegun {
		return nil, o.db.Translate(err)
	}
	err = o.db.Snapshot(ctx, func(tx *gorm.DB) (err error) {
		taken, err = o.outside(tx, keys)
		return err
	})
	if err != nil || len(taken) == 0 {
		return nil, err
	}
	kept := act(taken)
	leaf := proof.OfAct(kept.ID, &kept, nil, nil)
	err = o.db.Change(ctx, func(tx *gorm.DB) error {
		isNext, err := o.db.CountTaking(tx, &head)
		if err != nil {
			return err
		}
		if !isNext {
			return errTakenMeanwhile
		}
		err = o.mustBeCurrent(tx, taken)
		if err != nil {
			return err
		}
		ordered, err := o.journal.After(ctx, o.db.Session(tx))
		if err != nil {
			return err
		}
		requests := []batch.Request{o.db.Audits.Add.Request([]tables.AuditRow{tables.NewAuditRow(&kept)})}
		for part := range slices.Chunk(append([]proof.Entry{leaf.Entry()}, taken...), tables.Chunk) {
			requests = append(requests, ordered.WriteOlder(true, part))
		}
		return o.db.Send(ctx, tx, requests...)
	})
	return taken, err
}

var errTakenMeanwhile = fault.New(fault.Unavailable, "Somebody else has just taken rows into the log. Nothing was changed. Try again.")

// mustBeCurrent locks the prices, the subscriptions and the calendar, if entries has some of them. It
// returns an error if one has changed since its entry was made: the entry would be the newest one of
// the row, but not that of the row.
func (o origin) mustBeCurrent(tx *gorm.DB, entries []proof.Entry) error {
	changed := make(map[logged]bool)
	for i := range entries {
		if compare.NewestCounts(entries[i].Kind) {
			changed[loggedAs(&entries[i])] = true
		}
	}
	if len(changed) == 0 {
		return nil
	}
	locking := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Session(&gorm.Session{})
	err := eachChanging(o.db, locking, func(e proof.Entry, _ string) { delete(changed, loggedAs(&e)) })
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		return errChangedMeanwhile
	}
	return nil
}

var errChangedMeanwhile = fault.New(fault.Unavailable, "A price, a subscription or the calendar was changed while the rows were read. No row was taken into the log. Try again.")

// eachEntry visits the entries of all batches.
func (o origin) eachEntry(tx *gorm.DB, visit func(*proof.Entry)) error {
	for row, err := range o.journal.Batches(tx, nil) {
		if err != nil {
			return err
		}
		b, err := row.Batch()
		if err != nil {
			return err
		}
		for i := range b.Entries {
			visit(&b.Entries[i])
		}
	}
	return nil
}

// outside returns the entries of rows that have no entry. A row whose entry has another leaf was
// changed: verify reports it. Only an end, a subscription and the calendar may have several leaves,
// because they change more than once.
func (o origin) outside(tx *gorm.DB, keys *proof.Keys) ([]proof.Entry, error) {
	type row struct {
		kind proof.Kind
		id   operation.ID
	}
	hasLeaf := make(map[row]bool)
	err := o.eachEntry(tx, func(e *proof.Entry) { hasLeaf[row{e.Kind, e.ID}] = true })
	if err != nil {
		return nil, err
	}
	entries, err := o.withoutEntry(tx, keys)
	entries = slices.DeleteFunc(entries, func(e proof.Entry) bool {
		return e.Kind != proof.End && e.Kind != proof.Subscription && e.Kind != proof.Calendar && hasLeaf[row{e.Kind, e.ID}]
	})
	return entries, err
}

// logged names an entry of the log. The entry of a push has the identities of all its messages,
// so it has no leaf here.
type logged struct {
	kind proof.Kind
	id   operation.ID
	leaf proof.Hash
}

func loggedAs(e *proof.Entry) logged {
	if e.Kind == proof.Push {
		return logged{kind: e.Kind, id: e.ID}
	}
	return logged{e.Kind, e.ID, e.Leaf}
}

// withoutEntry returns the entries of everything that has no such entry in the log yet.
func (o origin) withoutEntry(tx *gorm.DB, keys *proof.Keys) (entries []proof.Entry, err error) {
	known := make(map[logged]bool)
	err = o.eachEntry(tx, func(e *proof.Entry) { known[loggedAs(e)] = true })
	if err != nil {
		return nil, err
	}
	add := func(e proof.Entry, _ string) {
		if !known[loggedAs(&e)] {
			entries = append(entries, e)
		}
	}
	err = office.EachOperation(o.db, tx, func(rows *office.StoredOperation) error {
		if !rows.IsDecided() {
			return nil
		}
		stored, _ := rows.Stored()
		for _, e := range proof.Of(keys, &stored) {
			add(e, "")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = eachOther(o.db, tx, keys, add)
	return entries, err
}
