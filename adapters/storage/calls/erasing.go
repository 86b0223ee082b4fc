package calls

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// erasing implements backoffice.Erasing.
type erasing struct {
	db      *tables.Database
	journal journal.Journal
}

// forUpdate locks the rows of a query.
var forUpdate = clause.Locking{Strength: clause.LockingStrengthUpdate}

// Erase first locks the row of the key.
func (e erasing) Erase(ctx context.Context, q backoffice.Query) (erased int, last operation.ID, err error) {
	err = e.db.Ready(ctx)
	if err != nil {
		return 0, last, err
	}
	err = e.db.Change(ctx, func(tx *gorm.DB) error {
		var key []tables.PropertyRow
		err := tx.Clauses(forUpdate).Where("name = ?", tables.KeyProperty).Find(&key).Error
		if err != nil {
			return err
		}
		query := tx.Clauses(forUpdate).Where("t.user_id <> ''").Order("t.operation_id").Limit(q.Limit)
		if q.UserID != "" {
			query = query.Where("t.user_id = ?", q.UserID)
		} else {
			query = query.Where("t.operation_id >= ? AND t.operation_id < ?", batch.UUID(q.From), beforeID(q)).
				Where("t.operation_id IN (?)", receivedBefore(tx, q))
		}
		rows, err := tables.RowsOf(query, e.db.Notifications.Table)
		if err != nil {
			return err
		}
		erased = len(rows)
		if erased == 0 {
			return nil
		}
		last = operation.ID(rows[erased-1].OperationID)
		return e.write(ctx, tx, rows)
	})
	return erased, last, err
}

// beforeID returns an ID that is larger than those of all operations before q.Until.
func beforeID(q backoffice.Query) batch.UUID {
	return batch.UUID(backoffice.FirstID(q.Until.Add(tables.IDSlack)))
}

// receivedBefore selects the operations from q.From on that were received before q.Until.
func receivedBefore(tx *gorm.DB, q backoffice.Query) *gorm.DB {
	return tx.Model(&tables.OperationRow{}).Select("operation_id").
		Where("operation_id >= ? AND operation_id < ? AND received_at < ?", batch.UUID(q.From), beforeID(q), tables.Microsecond(q.Until))
}

// EraseSessions locks the operations, which it reads in the order of their IDs, and not the key.
func (e erasing) EraseSessions(ctx context.Context, q backoffice.Query) (erased int, last operation.ID, err error) {
	err = e.db.Ready(ctx)
	if err != nil {
		return 0, last, err
	}
	err = e.db.Change(ctx, func(tx *gorm.DB) error {
		pushes := tx.Where("t.operation = ?", int64(operation.AddPushNotificationResponse)).
			Where("t.operation_id IN (?)", receivedBefore(tx, q)).
			Order("t.operation_id").Limit(q.Limit)
		sessions, err := e.sessions(pushes)
		if err != nil {
			return err
		}
		erased = len(sessions)
		if erased == 0 {
			return nil
		}
		last = operation.ID(sessions[erased-1].OperationID)
		writes, err := e.eraseSessions(tx, sessions)
		if err != nil {
			return err
		}
		acts := e.journal.ActWrites(ctx, journal.Changes{}, fmt.Sprintf("sessions: %d", erased))
		return e.db.Send(ctx, tx, append(writes, acts...)...)
	})
	return erased, last, err
}

// sessions locks the operations of the query that have a ChannelSessionId.
func (e erasing) sessions(query *gorm.DB) ([]tables.OperationRow, error) {
	return tables.RowsOf(query.Clauses(forUpdate).Where("t.channel_session_id <> ''"), e.db.Operations.Table)
}

// eraseSessions returns the requests that empty the ChannelSessionId of the operations.
func (e erasing) eraseSessions(tx *gorm.DB, sessions []tables.OperationRow) ([]batch.Request, error) {
	trailKeys := e.journal.Keys()
	if trailKeys == nil {
		log, err := e.db.LogState(tx)
		if err != nil {
			return nil, err
		}
		if log.HasBegun {
			return nil, fault.New(fault.Unavailable, "This book has a trail. To erase messages, set trail.key_file to its key, or begin another log with 'bankingapi trail rekey'.")
		}
	}
	overwritten := slices.Clone(sessions)
	emptied := slices.Clone(sessions)
	for i := range sessions {
		session := sessions[i].Header.ChannelSessionID
		hash := []byte{} // nil would be NULL
		if trailKeys != nil {
			hash = proof.SessionHash(trailKeys, session)
		}
		overwritten[i].Header.ChannelSessionID = strings.Repeat("-", len(session))
		overwritten[i].SessionHash = hash
		emptied[i].Header.ChannelSessionID = ""
		emptied[i].SessionHash = hash
	}
	return batch.NonEmpty(e.db.EraseSession.Request(overwritten), e.db.EraseSession.Request(emptied)), nil
}

func (e erasing) ErasedBefore(ctx context.Context) (before day.Day, err error) {
	err = e.db.Ready(ctx)
	if err != nil {
		return before, err
	}
	text, err := e.db.Property(ctx, erasedProperty)
	if err != nil || text == "" {
		return before, err
	}
	return day.Parse(text)
}

func (e erasing) SetErasedBefore(ctx context.Context, before day.Day) error {
	return e.db.SetProperty(ctx, erasedProperty, before.String(), tables.Replacing)
}

// erasedProperty is the day before which all messages were erased.
const erasedProperty = "messages_erased_before"

// write empties the rows. Their identities stay.
func (e erasing) write(ctx context.Context, tx *gorm.DB, rows []tables.NotificationRow) error {
	var ids []batch.UUID
	for i := range rows {
		if i == 0 || rows[i].OperationID != rows[i-1].OperationID {
			ids = append(ids, rows[i].OperationID)
		}
	}
	sessions, err := e.sessions(tx.Where("t.operation_id IN ?", ids).Order("t.operation_id"))
	if err != nil {
		return err
	}
	writes, err := e.eraseSessions(tx, sessions)
	if err != nil {
		return err
	}
	act, _ := audit.From(ctx)
	erased := e.journal.NewSum()
	var overwritten, emptied []tables.NotificationRow
	for i := range rows {
		// SQLite may leave parts of a text in the file, unless it was overwritten before.
		overwritten = append(overwritten, e.db.Blank(rows[i]))
		row := rows[i]
		row.ErasureID = batch.UUID(act.ID)
		row.Erase()
		emptied = append(emptied, row)
		if erased == nil {
			continue
		}
		entry, err := row.Entry(operation.Envelope{ID: operation.ID(row.OperationID)})
		if err != nil {
			return err
		}
		erased.Erased(&entry)
	}
	writes = append(writes, e.db.Notifications.Put.Request(overwritten), e.db.Notifications.Put.Request(emptied))
	acts := e.journal.ActWrites(ctx, journal.Changes{Erased: erased}, fmt.Sprintf("messages: %d", len(rows)))
	return e.db.Send(ctx, tx, append(writes, acts...)...)
}
