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

// Clear keeps the act without its leaf: a batch of this transaction would be of the log that ends.
func (o origin) Clear(ctx context.Context, act audit.Act) error {
	return o.db.Change(ctx, func(tx *gorm.DB) error {
		err := o.journal.Clear(tx)
		if err != nil {
			return err
		}
		return o.db.Send(ctx, tx, o.db.Audits.Add.Request([]tables.AuditRow{tables.NewAuditRow(&act)}))
	})
}

// Adopt writes all leaves in one transaction: if two replicas begin the log, only one succeeds. It writes
// the leaf of the calendar in any case, so that every log has the batch that it began with.
func (o origin) Adopt(ctx context.Context) (adopted int64, err error) {
	keys := o.journal.Keys()
	head, err := o.db.LogState(o.db.Reads.WithContext(ctx))
	if err != nil || keys == nil || head.HasBegun {
		return 0, o.db.Translate(err)
	}
	if head.Size > 0 || head.Checkpoint != "" {
		return 0, errors.New("the log has batches, but says that it has not begun: somebody has changed the property log_begun. Set log_begun to 1 in the table properties")
	}
	var older []proof.Entry
	err = o.db.Snapshot(ctx, func(tx *gorm.DB) (err error) {
		log, err := o.readLog(tx)
		if err != nil {
			return err
		}
		older = nil
		err = o.withoutEntry(tx, keys, &log, func(e proof.Entry, _ string) { older = append(older, e) })
		if err != nil {
			return err
		}
		older, err = o.withCalendar(tx, older)
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
		err = o.mustBeCurrent(tx, older)
		if err != nil {
			return err
		}
		adopted = int64(len(older))
		for part := range slices.Chunk(older, tables.Chunk) {
			err = o.db.Send(ctx, tx, o.journal.WriteOlder(false, part))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return adopted, err
}

// withCalendar returns the entries with that of the calendar.
func (o origin) withCalendar(tx *gorm.DB, older []proof.Entry) ([]proof.Entry, error) {
	if slices.ContainsFunc(older, func(e proof.Entry) bool { return e.Kind == proof.Calendar }) {
		return older, nil
	}
	calendar, err := o.db.PropertyIn(tx, tables.CalendarProperty)
	return append(older, calendarEntry(calendar)), err
}

// TakeIn reads all rows and the whole log. If two do so at once, only one succeeds: nothing may get
// two leaves.
func (o origin) TakeIn(ctx context.Context, act func(names []string) audit.Act) (names []string, err error) {
	keys := o.journal.Keys()
	head, err := o.db.LogState(o.db.Reads.WithContext(ctx))
	if err != nil || keys == nil || !head.HasBegun {
		return nil, o.db.Translate(err)
	}
	var taken []proof.Entry
	err = o.db.Snapshot(ctx, func(tx *gorm.DB) (err error) {
		taken, names, err = o.outside(tx, keys)
		return err
	})
	if err != nil || len(taken) == 0 {
		return nil, err
	}
	kept := act(names)
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
	return names, err
}

var errTakenMeanwhile = fault.New(fault.Unavailable, "Somebody else has just taken rows into the log. Nothing was changed. Try again.")

// mustBeCurrent locks the prices, the subscriptions and the calendar, if some of them are taken. It
// returns an error if one has changed since its entry was made: the entry would be the newest one of
// the row, but not that of the row.
func (o origin) mustBeCurrent(tx *gorm.DB, taken []proof.Entry) error {
	changed := make(map[logged]bool)
	for i := range taken {
		if compare.NewestCounts(taken[i].Kind) {
			changed[loggedAs(&taken[i])] = true
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

// logRow names a row that has entries in the log.
type logRow struct {
	kind proof.Kind
	id   operation.ID
}

// logged names an entry of the log. The entry of a push has the identities of all its messages,
// so it has no leaf here.
type logged struct {
	logRow
	leaf proof.Hash
}

func loggedAs(e *proof.Entry) logged {
	row := logRow{e.Kind, e.ID}
	if e.Kind == proof.Push {
		return logged{logRow: row}
	}
	return logged{row, e.Leaf}
}

// logEntries are what the log has.
type logEntries struct {
	known map[logged]bool
	// last has the newest entry of each row, for kinds of which only that one counts.
	last map[logRow]placed
	rows map[logRow]bool
}

// placed is a leaf, and where it is in the log.
type placed struct {
	leaf proof.Hash
	at   compare.Place
}

// readLog reads the entries of all batches.
func (o origin) readLog(tx *gorm.DB) (log logEntries, err error) {
	log = logEntries{known: make(map[logged]bool), last: make(map[logRow]placed), rows: make(map[logRow]bool)}
	for row, err := range o.journal.Batches(tx, nil) {
		if err != nil {
			return log, err
		}
		b, err := row.Batch()
		if err != nil {
			return log, err
		}
		for i := range b.Entries {
			log.add(&b.Entries[i], journal.Place(row))
		}
	}
	return log, nil
}

func (l *logEntries) add(e *proof.Entry, at compare.Place) {
	row := logRow{e.Kind, e.ID}
	l.rows[row] = true
	if !compare.NewestCounts(e.Kind) {
		l.known[loggedAs(e)] = true
		return
	}
	last, isKnown := l.last[row]
	if !isKnown || last.at.IsBefore(at) {
		l.last[row] = placed{e.Leaf, at}
	}
}

// has reports whether the row of an entry is in the log as it is.
func (l *logEntries) has(e *proof.Entry) bool {
	if !compare.NewestCounts(e.Kind) {
		return l.known[loggedAs(e)]
	}
	last, isKnown := l.last[logRow{e.Kind, e.ID}]
	if !isKnown {
		return compare.IsNoClosedDay(e)
	}
	return last.leaf == e.Leaf
}

// outside returns the entries of rows that are not in the log as they are, and the names of these rows. It
// leaves out a row that no service changes, if it has an entry: verify reports it.
func (o origin) outside(tx *gorm.DB, keys *proof.Keys) (outside []proof.Entry, names []string, err error) {
	log, err := o.readLog(tx)
	if err != nil {
		return nil, nil, err
	}
	withdrawn, err := withdrawnPrices(o.db, tx)
	if err != nil {
		return nil, nil, err
	}
	err = o.withoutEntry(tx, keys, &log, func(e proof.Entry, name string) {
		if log.rows[logRow{e.Kind, e.ID}] && !mayChange(&e, withdrawn) {
			return
		}
		outside = append(outside, e)
		names = append(names, name)
	})
	return outside, slices.Compact(names), err // an operation may have two entries
}

// mayChange reports whether a service adds entries of a row that has one already.
func mayChange(e *proof.Entry, withdrawn map[operation.ID]bool) bool {
	switch e.Kind {
	case proof.End, proof.Subscription, proof.Calendar: // a service adds ends, and changes the others
		return true
	case proof.Price:
		return withdrawn[e.ID]
	default:
		return false
	}
}

// withoutEntry visits the entries of everything that the log does not have, and the names of their rows.
func (o origin) withoutEntry(tx *gorm.DB, keys *proof.Keys, log *logEntries, visit func(proof.Entry, string)) error {
	add := func(e proof.Entry, name string) {
		if !log.has(&e) {
			visit(e, name)
		}
	}
	err := office.EachOperation(o.db, tx, func(rows *office.StoredOperation) error {
		if !rows.IsDecided() {
			return nil
		}
		stored, _ := rows.Stored()
		for _, e := range proof.Of(keys, &stored) {
			add(e, compare.OperationName(stored.ID))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return eachOther(o.db, tx, keys, add)
}
