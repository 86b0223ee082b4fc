package office

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
	"bankingapi/domain/push"
)

// lookups implements backoffice.Lookups.
type lookups struct {
	db      *tables.Database
	journal journal.Journal
}

func (l lookups) Operation(ctx context.Context, id operation.ID) (o backoffice.Operation, err error) {
	exists := false
	err = l.db.Snapshot(ctx, func(tx *gorm.DB) (err error) {
		exists, err = l.load(tx, id, &o)
		if err != nil {
			return err
		}
		return l.repeated(tx, &o)
	})
	if err != nil {
		return o, err
	}
	if !exists {
		return o, backoffice.ErrNotFound
	}
	return o, nil
}

func (l lookups) OperationOf(ctx context.Context, key idempotency.Key) (o backoffice.Operation, err error) {
	err = l.db.Snapshot(ctx, func(tx *gorm.DB) error {
		var ids []batch.UUID
		err := tx.Model(&tables.OperationRow{}).Where("identity = ? AND caller_id <> '' AND caller_id = ?", batch.UUID(key.Identity()), key.CallerID).
			Pluck("operation_id", &ids).Error
		if err != nil || len(ids) == 0 {
			return err
		}
		_, err = l.load(tx, operation.ID(ids[0]), &o)
		if err != nil {
			return err
		}
		return l.repeated(tx, &o)
	})
	if err != nil {
		return o, err
	}
	if o.Record == nil {
		return o, backoffice.ErrNotFound
	}
	return o, nil
}

func (l lookups) load(tx *gorm.DB, id operation.ID, o *backoffice.Operation) (exists bool, err error) {
	only := batch.UUID(id)
	err = Operations(l.db, tx, Range{Only: &only}, func(stored *StoredOperation) error {
		exists = true
		return stored.Operation(o)
	})
	return exists, err
}

// longestCommit bounds how long after its ID the entry of an operation came into the trail.
const longestCommit = time.Minute

// repeated sets the messages of a push that were stored before. Only its entry in the trail has
// their identities.
func (l lookups) repeated(tx *gorm.DB, o *backoffice.Operation) error {
	if o.Answered == nil || o.Answered.Operation != operation.AddPushNotificationResponse {
		return nil
	}
	identities, err := l.identities(tx, o.ID)
	if err != nil || len(identities) <= len(o.Notifications) {
		return err
	}
	own := make(map[int]bool)
	for i := range o.Notifications {
		own[o.Notifications[i].Index] = true
	}
	var ids []batch.UUID
	for i, identity := range identities {
		if !own[i] {
			ids = append(ids, batch.UUID(identity))
		}
	}
	stored := make(map[push.Identity]backoffice.Repeat)
	for part := range slices.Chunk(ids, tables.Chunk) {
		err = tables.Each(tx.Where("t.identity IN ?", part), l.db.Notifications.Table, func(row *tables.NotificationRow) error {
			stored[push.Identity(row.Identity)] = backoffice.Repeat{StoredBy: operation.ID(row.OperationID), StoredIndex: int(row.Position)}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i, identity := range identities {
		repeat, isStored := stored[identity]
		if !own[i] && isStored {
			repeat.Index = i
			o.Repeated = append(o.Repeated, repeat)
		}
	}
	return nil
}

// identities returns the identities of all messages of a push, or nothing if the trail does not
// have its entry. The IDs of batches grow with time.
func (l lookups) identities(tx *gorm.DB, id operation.ID) ([]push.Identity, error) {
	until := backoffice.FirstID(id.Time().Add(longestCommit))
	after := batch.UUID(id)
	for row, err := range l.journal.Batches(tx.Where("t.batch_id < ?", batch.UUID(until)), &after) {
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(row.Entries, id[:]) {
			continue
		}
		b, err := row.Batch()
		if err != nil {
			continue // verify reports it
		}
		for i := range b.Entries {
			e := &b.Entries[i]
			if e.Kind == proof.Push && e.ID == id {
				return e.Identities, nil
			}
		}
	}
	return nil, nil
}

// DueDays reads only the index of waiting sales. For those of a subscription it reads the operations
// that wait, and their sales by key: without statistics Postgres would look for each of them in the
// whole index of waiting sales. The sales of an operation that waits all wait.
func (l lookups) DueDays(ctx context.Context, of backoffice.DueQuery) (days []backoffice.DueDay, err error) {
	var rows []struct {
		SelectedDate      batch.Day
		Operations, Sales int64
	}
	due := l.db.Reads.Model(&tables.SaleRow{}).Select("selected_date, operation_id").Where(tables.IsRecorded).
		Order("selected_date, imkb_code, holder_corporation_name, operation_id")
	if of.Subscription != "" {
		due = l.db.Reads.Table(l.db.ListedSales.Source).Select("o.due_on AS selected_date, t.operation_id").
			Where("o."+tables.IsRecorded).Where("o.subscription = ?", of.Subscription).
			Order("o.due_on, t.operation_id")
	}
	if !of.Until.IsNone() {
		due = due.Where("selected_date <= ?", of.Until.String())
	}
	err = l.db.Snapshot(ctx, func(tx *gorm.DB) error {
		return tx.Table("(?) due", due.Limit(cmp.Or(of.Limit, -1))).
			Select("selected_date, COUNT(DISTINCT operation_id) AS operations, COUNT(*) AS sales").
			Group("selected_date").Order("selected_date").Find(&rows).Error
	})
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		date, err := day.Parse(string(row.SelectedDate))
		if err != nil {
			return nil, err
		}
		days = append(days, backoffice.DueDay{Day: date, Operations: row.Operations, Sales: row.Sales})
	}
	return days, nil
}

// CountReceived reads ranges of primary keys, and the operations that ended on their day by time.
func (l lookups) CountReceived(ctx context.Context, since, until time.Time) (r backoffice.Received, err error) {
	r.Add(backoffice.Received{}) // creates the maps
	err = l.db.Snapshot(ctx, func(tx *gorm.DB) error {
		// A cancelled sale ended too, but was not settled.
		unsettled := tx.Scopes(receivedIn("t", since, until)).Where("o.due_on IS NULL OR t.state = ? OR t.refusal = ?", operation.Recorded, fault.Cancelled)
		err := l.countSales(unsettled, false, &r)
		if err != nil {
			return err
		}
		ended := tx.Scopes(between("o.ended_at", since, until)).Where("o.due_on IS NOT NULL AND t.refusal <> ?", fault.Cancelled)
		err = l.countSales(ended, true, &r)
		if err != nil {
			return err
		}
		err = l.countRefused(tx.Scopes(receivedIn("o", since, until)), &r)
		if err != nil {
			return err
		}
		return tx.Table(l.db.Notifications.Name + " t").Scopes(receivedIn("t", since, until)).Count(&r.Messages).Error
	})
	return r, err
}

// receivedIn is a scope of the rows of a table that were received in a period, by their IDs.
func receivedIn(table string, since, until time.Time) func(*gorm.DB) *gorm.DB {
	first := batch.UUID(backoffice.FirstID(since))
	end := batch.UUID(backoffice.FirstID(until))
	return func(tx *gorm.DB) *gorm.DB {
		return tx.Where(table+".operation_id >= ? AND "+table+".operation_id < ?", first, end)
	}
}

// countSales counts the sales t of a query. waited says that they had waited for their day.
func (l lookups) countSales(tx *gorm.DB, waited bool, r *backoffice.Received) error {
	var rows []struct {
		IMKBCode, CurrencyCode string
		State                  operation.State
		Reversed               bool
		Sales, High, Low       int64 // High and Low are those of backoffice.Sum
	}
	err := tx.Table(l.db.ListedSales.Source).Not(tables.Refused).Select(
		"t.imkb_code, t.currency_code, t.state, o.reversal_id IS NOT NULL AS reversed, COUNT(*) AS sales",
		"CAST(COALESCE(SUM(t.proceeds / 1000000000), 0) AS BIGINT) AS high",
		"CAST(COALESCE(SUM(t.proceeds % 1000000000), 0) AS BIGINT) AS low",
	).Group("t.imkb_code, t.currency_code, t.state, o.reversal_id IS NOT NULL").Find(&rows).Error
	if err != nil {
		return err
	}
	for _, row := range rows {
		currency, _ := money.ParseCurrency(row.CurrencyCode) // it was checked before it was stored
		key := backoffice.SalesKey{IMKBCode: row.IMKBCode, Currency: currency, State: row.State, Reversed: row.Reversed, Waited: waited}
		r.Sales[key] = backoffice.SalesSum{Sales: row.Sales, Proceeds: backoffice.Sum{High: row.High, Low: row.Low}}
	}
	return nil
}

// countRefused counts the refused operations o of a query.
func (l lookups) countRefused(tx *gorm.DB, r *backoffice.Received) error {
	var rows []struct {
		Subscription, Faults string
		Refused              int64
	}
	err := tx.Table(l.db.Operations.Name + " o").Where(tables.Refused).Select("subscription, faults, COUNT(*) AS refused").
		Group("subscription, faults").Find(&rows).Error
	if err != nil {
		return err
	}
	for _, row := range rows {
		code := ""
		faults := tables.ParseFaults(row.Faults)
		if len(faults) > 0 {
			code = faults[0].Code
		}
		r.Refused[backoffice.RefusedKey{Subscription: row.Subscription, Code: code}] += row.Refused
	}
	return nil
}
