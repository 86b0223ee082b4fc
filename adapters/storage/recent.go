package storage

import (
	"context"
	"iter"
	"strconv"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// recent is backoffice.Recent and backoffice.Recorded.
type recent struct{ *database }

// slack is the maximum difference between the time of an ID and the time of
// receipt. It is not 0, because each replica has its own clock.
const slack = time.Hour

// RecentSales is as backoffice.Recent promises. It walks the primary key
// backwards, or the index of failed sales.
func (r recent) RecentSales(ctx context.Context, f backoffice.RecentFilter) iter.Seq2[fund.SaleEntry, error] {
	in := func(tx *gorm.DB, state operation.State) *gorm.DB {
		if state == 0 {
			return tx
		}
		// No parameter: an engine must see that it is the state of an index.
		return tx.Where("state = " + strconv.Itoa(int(state)))
	}
	if f.Subscription == "" && f.State != operation.Recorded {
		f.Depth = 0 // all of them fit, or many
	}
	walk := func(tx *gorm.DB) *gorm.DB {
		if tx = tx.Table(r.sales.Name); f.State == operation.Failed {
			return in(tx, f.State) // they have an index, so Depth is of them
		}
		return tx
	}
	return bounded(ctx, r, f, walk, func(since operation.ID) iter.Seq2[fund.SaleEntry, error] {
		return stream(ctx, r.database, r.sales.Table, (*SaleRow).entry, func(tx *gorm.DB) *gorm.DB {
			return in(r.since(r.page(tx, f), since), f.State)
		})
	})
}

// bounded yields what read finds among the f.Depth newest rows that walk has.
func bounded[T any](ctx context.Context, r recent, f backoffice.RecentFilter, walk func(*gorm.DB) *gorm.DB, read func(since operation.ID) iter.Seq2[T, error]) iter.Seq2[T, error] {
	if f.Depth == 0 {
		return read(operation.ID{})
	}
	return func(yield func(T, error) bool) {
		last, err := r.deepest(ctx, f, walk)
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		found := 0
		for each, err := range read(last) {
			if !yield(each, err) || err != nil {
				return
			}
			found++
		}
		if last != (operation.ID{}) && (f.Limit == 0 || found < f.Limit) && f.Rest != nil {
			f.Rest(backoffice.Cursor{OperationID: last})
		}
	}
}

// deepest is the operation of the last row to look at; zero if there are fewer. It
// reads only operation IDs, which an index has.
func (r recent) deepest(ctx context.Context, f backoffice.RecentFilter, walk func(*gorm.DB) *gorm.DB) (operation.ID, error) {
	var ids []batch.UUID
	err := r.snapshot(ctx, func(tx *gorm.DB) error {
		tx = r.identified(walk(tx), "operation_id", f)
		before := r.Dialect.Bind(batch.UUID(f.Before.OperationID))
		switch {
		case f.Before.Index > 0: // its operation has more rows
			tx = tx.Where("operation_id <= ?", before)
		case !f.Before.IsZero():
			tx = tx.Where("operation_id < ?", before)
		}
		return tx.Order("operation_id DESC").Limit(1).Offset(f.Depth-1).Pluck("operation_id", &ids).Error
	})
	if err != nil || len(ids) == 0 {
		return operation.ID{}, err
	}
	return operation.ID(ids[0]), nil
}

// since narrows to operations from that one on. The zero ID is no bound.
func (r recent) since(tx *gorm.DB, id operation.ID) *gorm.DB {
	if id != (operation.ID{}) {
		tx = tx.Where("operation_id >= ?", r.Dialect.Bind(batch.UUID(id)))
	}
	return tx
}

// RecentNotifications is as backoffice.Recent promises. It looks at a short time
// first, and at longer ones until the page is full: a database that expects few
// rows would read and sort all of them.
func (r recent) RecentNotifications(ctx context.Context, f backoffice.RecentFilter) iter.Seq2[push.Entry, error] {
	if f.Depth > 0 && f.UserID == "" && (f.Subscription != "" || f.Application != "" || f.Platform != 0 || f.Status != backoffice.AnyStatus) {
		walk := func(tx *gorm.DB) *gorm.DB { return tx.Table(r.notifications.Name) }
		return bounded(ctx, r, f, walk, func(since operation.ID) iter.Seq2[push.Entry, error] {
			return r.notificationsIn(ctx, f, since, operation.ID{})
		})
	}
	return func(yield func(push.Entry, error) bool) {
		found, rest := 0, f
		var until operation.ID
		for _, since := range windows(f) {
			if f.Limit > 0 {
				rest.Limit = f.Limit - found
			}
			for entry, err := range r.notificationsIn(ctx, rest, since, until) {
				if !yield(entry, err) || err != nil {
					return
				}
				found++
			}
			if f.Limit > 0 && found >= f.Limit {
				return
			}
			until = since
		}
	}
}

// windows returns the first ID of each time range to read, newest first. The
// zero ID means everything.
func windows(f backoffice.RecentFilter) (first []operation.ID) {
	from := f.Until
	if !f.Before.IsZero() {
		if at := timeOf(f.Before.OperationID); from.IsZero() || at.Before(from) {
			from = at
		}
	}
	if f.Limit > 0 && f.UserID == "" && !from.IsZero() {
		for _, back := range []time.Duration{10 * time.Minute, 4 * time.Hour, 7 * 24 * time.Hour} {
			first = append(first, backoffice.FirstID(from.Add(-back)))
		}
	}
	return append(first, operation.ID{})
}

// timeOf is the time in a UUID of version 7.
func timeOf(id operation.ID) time.Time {
	var milliseconds int64
	for _, b := range id[:6] {
		milliseconds = milliseconds<<8 | int64(b)
	}
	return time.UnixMilli(milliseconds).UTC()
}

// notificationsIn yields those of the operations from since on and before
// until. A zero ID is no bound.
func (r recent) notificationsIn(ctx context.Context, f backoffice.RecentFilter, since, until operation.ID) iter.Seq2[push.Entry, error] {
	return stream(ctx, r.database, r.notifications.Table, (*NotificationRow).entry, func(tx *gorm.DB) *gorm.DB {
		tx = r.since(r.page(tx, f), since)
		if until != (operation.ID{}) {
			tx = tx.Where("operation_id < ?", r.Dialect.Bind(batch.UUID(until)))
		}
		if f.UserID != "" {
			tx = tx.Where("user_id = ?", f.UserID)
		}
		if f.Application != "" {
			tx = tx.Where("external_application_code = ?", f.Application)
		}
		if f.Platform != 0 {
			tx = tx.Where("platform = ?", int64(f.Platform))
		}
		switch f.Status {
		case backoffice.Sent:
			tx = tx.Where("send_status = 1")
		case backoffice.NotSent:
			tx = tx.Where("send_status = 0")
		case backoffice.AnyStatus:
		}
		return tx
	})
}

// RecentRefusals is as backoffice.Recent promises. It walks the primary key
// backwards.
func (r recent) RecentRefusals(ctx context.Context, f backoffice.RecentFilter) iter.Seq2[operation.Refusal, error] {
	if f.Subscription == "" && f.Code == "" {
		f.Depth = 0 // all of them fit
	}
	walk := func(tx *gorm.DB) *gorm.DB { return tx.Table(r.refusals.Name) }
	return bounded(ctx, r, f, walk, func(since operation.ID) iter.Seq2[operation.Refusal, error] {
		return stream(ctx, r.database, r.refusals.Table, (*RefusalRow).refusal, func(tx *gorm.DB) *gorm.DB {
			tx = r.since(r.refused(tx, f), since)
			if f.Code != "" { // the text begins with the code of the first fault and a space
				tx = tx.Where("substr(faults, 1, ?) = ?", len(f.Code)+1, f.Code+" ")
			}
			return tx
		})
	})
}

// refused takes the refusals of a page. An operation has one.
func (r recent) refused(tx *gorm.DB, f backoffice.RecentFilter) *gorm.DB {
	if !f.Before.IsZero() {
		tx = tx.Where("operation_id < ?", r.Dialect.Bind(batch.UUID(f.Before.OperationID)))
	}
	return limited(r.received(tx, f).Order("operation_id DESC"), f.Limit)
}

// RecordedSales is as backoffice.Recorded promises.
func (r recent) RecordedSales(ctx context.Context, since, until day.Day, limit int) iter.Seq2[fund.SaleEntry, error] {
	return stream(ctx, r.database, r.sales.Table, (*SaleRow).entry, func(tx *gorm.DB) *gorm.DB {
		tx = tx.Where(recorded+" AND selected_date <= ?", until.String())
		if !since.IsNone() {
			tx = tx.Where("selected_date >= ?", since.String())
		}
		return limited(tx.Order("selected_date, operation_id, position"), limit)
	})
}

// recorded is the condition of the index of due sales. It has no parameter, so
// that an engine sees this.
var recorded = "state = " + strconv.Itoa(int(operation.Recorded))

// RecordedDays is as backoffice.Recorded promises. The index of due sales has
// all that it reads.
func (r recent) RecordedDays(ctx context.Context, until day.Day, limit int) (days []backoffice.DueDay, err error) {
	var rows []struct {
		SelectedDate      batch.Day
		Operations, Sales int64
	}
	due := r.reads.Table(r.sales.Name).Select("selected_date, operation_id").Where(recorded+" AND selected_date <= ?", until.String()).
		Order("selected_date, operation_id, position")
	err = r.snapshot(ctx, func(tx *gorm.DB) error {
		return tx.Table("(?) due", limited(due, limit)).
			Select("selected_date, COUNT(DISTINCT operation_id) AS operations, COUNT(*) AS sales").
			Group("selected_date").Order("selected_date").Find(&rows).Error
	})
	for _, row := range rows {
		of, err := day.Parse(string(row.SelectedDate))
		if err != nil {
			return nil, err
		}
		days = append(days, backoffice.DueDay{Day: of, Operations: row.Operations, Sales: row.Sales})
	}
	return days, err
}

// page takes the rows of a page.
func (r recent) page(tx *gorm.DB, f backoffice.RecentFilter) *gorm.DB {
	if !f.Before.IsZero() {
		before := r.Dialect.Bind(batch.UUID(f.Before.OperationID))
		tx = tx.Where("operation_id <= ?", before).Where("(operation_id < ? OR position < ?)", before, f.Before.Index)
	}
	return limited(r.received(tx, f).Order("operation_id DESC, position DESC"), f.Limit)
}

// received narrows to the time and the subscription. The bounds of the operation
// ID let the database find the place in the key; the time of receipt is exact.
func (r recent) received(tx *gorm.DB, f backoffice.RecentFilter) *gorm.DB {
	tx = r.identified(tx, "operation_id", f)
	if f.Subscription != "" {
		tx = tx.Where("subscription = ?", f.Subscription)
	}
	return r.between(tx, "received_at", backoffice.Filter{Since: f.Since, Until: f.Until})
}

// identified bounds an ID, which is ordered by time.
func (r recent) identified(tx *gorm.DB, column string, f backoffice.RecentFilter) *gorm.DB {
	if !f.Since.IsZero() {
		tx = tx.Where(column+" >= ?", r.Dialect.Bind(batch.UUID(backoffice.FirstID(f.Since.Add(-slack)))))
	}
	if !f.Until.IsZero() {
		tx = tx.Where(column+" < ?", r.Dialect.Bind(batch.UUID(backoffice.FirstID(f.Until.Add(slack)))))
	}
	return tx
}

// limited takes at most that many rows. 0 means no limit.
func limited(tx *gorm.DB, limit int) *gorm.DB {
	if limit > 0 {
		return tx.Limit(limit)
	}
	return tx
}

// RecentActs is as backoffice.Recent promises.
func (r recent) RecentActs(ctx context.Context, f backoffice.RecentFilter) iter.Seq2[audit.Act, error] {
	return stream(ctx, r.database, r.audits.Table, (*AuditRow).act, func(tx *gorm.DB) *gorm.DB {
		tx = tx.Select(columnsOf(r.audits.Name, r.audits.Table))
		if !f.Before.IsZero() {
			tx = tx.Where("audit_id < ?", r.Dialect.Bind(batch.UUID(f.Before.OperationID)))
		}
		if f.Action != "" {
			tx = tx.Where("action = ?", f.Action)
		}
		tx = r.between(r.identified(tx, "audit_id", f), "at", backoffice.Filter{Since: f.Since, Until: f.Until})
		return limited(tx.Order("audit_id DESC"), f.Limit)
	})
}

// Record is as backoffice.Audit promises.
func (r recent) Record(ctx context.Context, act audit.Act) error {
	ctx = audit.With(ctx, act)
	return r.Transact(ctx, func(session batch.Session) error { return session.Commit(ctx, r.acted(ctx, nil)...) })
}
