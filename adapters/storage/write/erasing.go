package write

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/read"
	"bankingapi/adapters/storage/tables"
	"bankingapi/adapters/storage/trail"
	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// erasing implements backoffice.Erasing.
type erasing struct{ trail.Writer }

// Erase first locks the row of the key.
func (e erasing) Erase(ctx context.Context, q backoffice.Query) (erased int, last operation.ID, err error) {
	if err := e.Ready(ctx); err != nil {
		return 0, last, err
	}
	err = e.Change(ctx, func(tx *gorm.DB) error {
		var key []tables.PropertyRow
		locking := clause.Locking{Strength: clause.LockingStrengthUpdate}
		if err := tx.Table(e.Properties.Name).Clauses(locking).Where("name = ?", tables.KeyProperty).Find(&key).Error; err != nil {
			return err
		}
		query := tx.Clauses(locking).Where("t.user_id <> ''").Order("t.operation_id").Limit(q.Limit)
		if q.UserID != "" {
			query = query.Where("t.user_id = ?", q.UserID)
		} else {
			query = query.Where("t.operation_id >= ? AND t.operation_id < ? AND t.received_at < ?", e.Dialect.Bind(batch.UUID(q.From)),
				e.Dialect.Bind(batch.UUID(backoffice.FirstID(q.Until.Add(read.Slack)))), e.Dialect.Bind(tables.Microsecond(q.Until)))
		}
		rows, err := tables.RowsOf(query, e.Notifications.Table)
		if erased = len(rows); err != nil || erased == 0 {
			return err
		}
		last = operation.ID(rows[erased-1].OperationID)
		return e.write(ctx, tx, rows)
	})
	return erased, last, err
}

func (e erasing) ErasedBefore(ctx context.Context) (before day.Day, err error) {
	if err := e.Ready(ctx); err != nil {
		return before, err
	}
	text, err := e.Property(ctx, erasedProperty)
	if err != nil || text == "" {
		return before, err
	}
	return day.Parse(text)
}

func (e erasing) SetErasedBefore(ctx context.Context, before day.Day) error {
	return e.SetProperty(ctx, erasedProperty, before.String(), tables.Replacing)
}

// erasedProperty is the day before which all messages were erased.
const erasedProperty = "messages_erased_before"

// write empties the rows. Their identities stay.
func (e erasing) write(ctx context.Context, tx *gorm.DB, rows []tables.NotificationRow) error {
	trailKeys := e.Writer.Keys()
	if trailKeys == nil {
		log, err := e.LogState(tx)
		if err != nil {
			return err
		}
		if log.HasBegun {
			return fault.New(fault.Unavailable, "This book has a trail. To erase messages, set trail.key_file to its key, or begin another log with 'bankingapi trail rekey'.")
		}
	}
	act, _ := audit.From(ctx)
	erased := e.NewSum()
	var overwritten, emptied []tables.NotificationRow
	var overwrittenSessions, sessions []tables.OperationRow
	for i := range rows {
		session := tables.OperationRow{OperationID: rows[i].OperationID, SessionHash: []byte{}} // nil would be NULL
		if trailKeys != nil {
			session.SessionHash = proof.SessionHash(trailKeys, rows[i].Header.ChannelSessionID)
		}
		if rows[i].Header.ChannelSessionID != "" && (len(sessions) == 0 || sessions[len(sessions)-1].OperationID != session.OperationID) {
			sessions = append(sessions, session)
			session.Header.ChannelSessionID = rows[i].Blank().Header.ChannelSessionID
			overwrittenSessions = append(overwrittenSessions, session)
		}
		// SQLite may leave parts of a text in the file, unless it was overwritten before.
		overwritten = append(overwritten, rows[i].Blank())
		row := rows[i]
		row.ErasureID, row.ErasureReason = batch.UUID(act.ID), act.Reason
		row.Erase()
		emptied = append(emptied, row)
		if erased == nil {
			continue
		}
		entry, err := row.Entry()
		if err != nil {
			return err
		}
		erased.Erased(&entry)
	}
	writes := batch.NonEmpty(
		e.Notifications.Put.Request(overwritten), e.Notifications.Put.Request(emptied),
		e.EraseSession.Request(overwrittenSessions), e.EraseSession.Request(sessions),
	)
	acts := e.ActWrites(ctx, trail.Changes{Erased: erased}, fmt.Sprintf("messages: %d", len(rows)))
	return e.Dialect.Within(tx.Statement.ConnPool).Exchange(ctx, append(writes, acts...)...)
}
