package calls

import (
	"context"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
)

// requestLog implements requestlog.Storage.
type requestLog struct{ db *tables.Database }

func (l requestLog) Add(ctx context.Context, entries []summary.Answered) error {
	rows := tables.Convert(entries, tables.NewRequestRow)
	return l.db.Transact(ctx, func(session batch.Session) error { return session.Commit(ctx, l.db.Requests.Add.Request(rows)) })
}

// forgotten is how many entries one transaction deletes.
const forgotten = 1000

func (l requestLog) Forget(ctx context.Context, before time.Time, newest, strangers int) error {
	surplus, err := l.surplus(ctx, newest, "1 = 1")
	if err != nil {
		return err
	}
	ofStrangers, err := l.surplus(ctx, strangers, "subscription = ''")
	if err != nil {
		return err
	}
	for deleted := int64(forgotten); deleted == forgotten; {
		err := l.db.Change(ctx, func(tx *gorm.DB) error {
			old := tx.Model(&tables.RequestRow{}).Select("entry_id").Order("entry_id").Limit(forgotten).
				Where("entry_id < ?", batch.UUID(backoffice.FirstID(before)))
			for _, id := range surplus {
				old = old.Or("entry_id <= ?", id)
			}
			for _, id := range ofStrangers {
				old = old.Or("subscription = '' AND entry_id <= ?", id)
			}
			result := tx.Where("entry_id IN (?)", old).Delete(&tables.RequestRow{})
			deleted = result.RowsAffected
			return result.Error
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// surplus returns the newest entry beyond the number of newest ones, or nothing. It counts the
// entries that meet the condition.
func (l requestLog) surplus(ctx context.Context, newest int, condition string) (found []batch.UUID, err error) {
	err = l.db.Reads.WithContext(ctx).Model(&tables.RequestRow{}).Where(condition).
		Order("entry_id DESC").Offset(newest).Limit(1).
		Pluck("entry_id", &found).Error
	return found, l.db.Translate(err)
}
