package write

import (
	"context"
	"fmt"
	"strings"

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
	domain "bankingapi/domain/trail"
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
	set := clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"value"})}
	return e.SetProperty(ctx, erasedProperty, before.String(), set)
}

// erasedProperty is the day before which all messages were erased.
const erasedProperty = "messages_erased_before"

// write empties the rows. They get new keys, so the empty rows are added and the old ones
// removed. Then SQLite gives the new rows the next rowids, which lookups rely on.
func (e erasing) write(ctx context.Context, tx *gorm.DB, rows []tables.NotificationRow) error {
	trailKeys := e.Writer.Keys()
	if trailKeys == nil {
		log, err := e.LogRow(tx)
		if err == nil && log.Begun != 0 {
			err = fault.New(fault.Unavailable, "This book has a trail. To erase messages, set trail.key_file to its key, or begin another log with 'bankingapi trail rekey'.")
		}
		if err != nil {
			return err
		}
	}
	session, exists, erased := e.Dialect.Within(tx.Statement.ConnPool), make(map[int]bool), tables.ErasedDigests(e.MessagesKey())
	keys := tables.Convert(rows, func(row tables.NotificationRow) tables.NotificationRow {
		return tables.NotificationRow{Digest: erased(row.Digest)}
	})
	err := session.Exchange(ctx, e.Notifications.Find.Request(keys, func(key int, _ *tables.NotificationRow) error {
		exists[key] = true // version 11 stored an erased message again
		return nil
	}))
	if err != nil {
		return err
	}
	act, _ := audit.From(ctx)
	var emptied []tables.NotificationRow
	for i, row := range rows {
		if exists[i] {
			continue
		}
		if trailKeys != nil {
			l := e.NotificationLeaf(nil, trailKeys, &row)
			hash := l.Hash()
			row.Leaf = hash[:]
		}
		row.Digest, row.ErasureID, row.ErasureReason = keys[i].Digest, batch.UUID(act.ID), act.Reason
		row.UserID, row.Subject, row.Content, row.DeepLinkURL, row.TranData, row.Header.ChannelSessionID = "", "", "", "", "[]", ""
		emptied = append(emptied, row)
	}
	var entries []domain.Entry
	if trailKeys != nil && len(emptied) > 0 {
		entries = append(entries, tables.EntryOf(domain.Erased, act.ID, e.Notifications.Leaves.SumOf(trailKeys, act.ID, emptied)))
	}
	// SQLite may leave parts of a removed row in the file, unless it was overwritten before.
	blank := func(text string) string { return strings.Repeat("-", len(text)) }
	overwritten := tables.Convert(rows, func(r tables.NotificationRow) tables.NotificationRow {
		r.Subject, r.Content, r.DeepLinkURL, r.TranData, r.Header.ChannelSessionID = blank(r.Subject), blank(r.Content), blank(r.DeepLinkURL), blank(r.TranData), blank(r.Header.ChannelSessionID)
		return r
	})
	writes := batch.NonEmpty(e.Notifications.Put.Request(overwritten), e.Notifications.Add.Request(emptied), e.RemoveNotification.Request(rows))
	return session.Exchange(ctx, append(writes, e.ActWrites(ctx, entries, fmt.Sprintf("messages: %d", len(rows)))...)...)
}
