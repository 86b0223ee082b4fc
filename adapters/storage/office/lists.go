package office

import (
	"cmp"
	"context"
	"iter"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// reader implements backoffice.Reader. Its lists are in this file, what they have in common is in
// scopes.go.
type reader struct{ db *tables.Database }

var _ backoffice.Reader = reader{}

func (r reader) Prices(ctx context.Context, q backoffice.Query) iter.Seq2[fund.Price, error] {
	rows := func(tx *gorm.DB) *gorm.DB {
		return tx.Scopes(
			ifSet("valid_from > ?", lastDayBefore(q.Since, q.Zone)),
			ifSet("valid_from <= ?", lastDayBefore(q.Until, q.Zone)),
			ifSet("imkb_code = ?", q.Fund.IMKBCode),
			ifSet("holder_corporation_name = ?", q.Fund.HolderCorporationName),
		).Order("price_id")
	}
	return stream(ctx, r, q, r.db.Prices.Table, (*tables.PriceRow).ToPrice, rows)
}

// lastDayBefore returns the last day that begins before the instant. It is empty for the zero
// instant. It has a text also for the end of the last day of all, which begins the year 10000: the
// text of a day then would sort before all others.
func lastDayBefore(instant time.Time, zone *time.Location) string {
	if instant.IsZero() {
		return ""
	}
	d := day.Of(instant, zone)
	if !d.Start(zone).Before(instant) {
		d = d.Plus(-1)
	}
	return d.String()
}

func (r reader) Holdings(ctx context.Context, q backoffice.Query) iter.Seq2[fund.Holding, error] {
	rows := func(tx *gorm.DB) *gorm.DB {
		return tx.Scopes(ifSet("customer_no = ?", q.CustomerNo)).Order(strings.Join(r.db.Holdings.Keys, ", "))
	}
	return stream(ctx, r, q, r.db.Holdings.Table, (*tables.HoldingRow).Holding, rows)
}

func (r reader) Accounts(ctx context.Context, q backoffice.Query) iter.Seq2[fund.Account, error] {
	rows := func(tx *gorm.DB) *gorm.DB {
		return tx.Scopes(ifSet("customer_no = ?", q.CustomerNo)).Order(strings.Join(r.db.Accounts.Keys, ", "))
	}
	return stream(ctx, r, q, r.db.Accounts.Table, (*tables.AccountRow).Account, rows)
}

func (r reader) ClosedDays(ctx context.Context) iter.Seq2[fund.ClosedDay, error] {
	return func(yield func(fund.ClosedDay, error) bool) {
		var rows []tables.PropertyRow
		err := r.db.Query(ctx).Table(r.db.Properties.Name).Where("name = ?", tables.CalendarProperty).Find(&rows).Error
		if err != nil {
			yield(fund.ClosedDay{}, r.db.Translate(err))
			return
		}
		if len(rows) == 0 { // not a bank without closed days
			yield(fund.ClosedDay{}, tables.MissingProperty(tables.CalendarProperty))
			return
		}
		rows[0].Days(yield)
	}
}

// Sales finds the newest sales by the primary key or the index of failed sales.
func (r reader) Sales(ctx context.Context, q backoffice.Query) iter.Seq2[fund.SaleEntry, error] {
	read := func(since operation.ID) iter.Seq2[fund.SaleEntry, error] {
		return stream(ctx, r, q, r.db.ListedSales.Table, (*tables.ListedSaleRow).Entry, r.sales(q, since))
	}
	isOfFew := q.Subscription != "" || q.IMKBCode != "" || !q.Amount.IsAbsent() || q.PriceID != 0 || !q.SettledSince.IsZero() || q.State == operation.Recorded
	mayBeFew := q.CustomerNo == 0 && isOfFew
	if !mayBeFew {
		return read(operation.ID{})
	}
	scanned := func(tx *gorm.DB) *gorm.DB {
		tx = tx.Table(r.db.Sales.Name + " AS t")
		if q.Refused || q.State == operation.Failed {
			tx = tx.Where("t." + tables.InState(operation.Failed)) // failed sales have an index, so ScanLimit counts only them
		}
		return tx
	}
	return scan(ctx, r, q, "t.operation_id", scanned, read)
}

// sales selects sales t with their operations o, from the ID since on.
func (r reader) sales(q backoffice.Query, since operation.ID) scope {
	return func(tx *gorm.DB) *gorm.DB {
		tx = tx.Table(r.db.ListedSales.Source).Select(r.db.ListedSales.Selected)
		if q.Refused {
			tx = tx.Where(tables.Refused)
		} else {
			tx = tx.Not(tables.Refused)
		}
		if q.State != 0 {
			tx = tx.Where("t." + tables.InState(q.State))
		}
		if !q.SettledSince.IsZero() || !q.SettledUntil.IsZero() {
			tx = tx.Where("t.refusal <> ?", fault.Cancelled)
		}
		return tx.Scopes(
			r.ofOperation(q, "t.operation_id"),
			found(r, "t.", "sales", "customer_no", q.CustomerNo),
			between("o.ended_at", q.SettledSince, q.SettledUntil),
			ifSet("t.selected_date >= ?", q.DueSince.String()),
			ifSet("t.selected_date <= ?", q.DueUntil.String()),
			ifSet("t.settled_price_id = ?", q.PriceID),
			ifSet("t.imkb_code = ?", q.IMKBCode),
			ofAmount(q.Amount),
			newest(q, "t.operation_id", "t.position", since),
		).Order(orders{
			backoffice.ByKey:  "t.operation_id, t.position",
			backoffice.Newest: "t.operation_id DESC, t.position DESC",
			backoffice.ByDay:  "t.selected_date, t.operation_id, t.position",
		}.of(q))
	}
}

// Postings finds the postings of a customer by the sales and the adjustments.
func (r reader) Postings(ctx context.Context, q backoffice.Query) iter.Seq2[fund.PostingEntry, error] {
	source := r.db.AllPostings.Name
	var arguments []any
	if q.CustomerNo != 0 {
		condition, values := r.db.Engine.Find(r.db.Prefix, "s.", "sales", "customer_no", q.CustomerNo)
		source, arguments = tables.PostingsOfCustomer(r.db.Prefix, q.CustomerNo, condition, values)
	}
	rows := func(tx *gorm.DB) *gorm.DB {
		return tx.Table(source+" AS p", arguments...).Scopes(
			ifSet("operation_id = ?", batch.UUID(q.OperationID)),
			between("posted_at", q.Since, q.Until),
		).Order(orders{
			backoffice.ByKey:  "operation_id, position, leg",
			backoffice.ByTime: "posted_at, operation_id, position, leg",
			backoffice.Newest: "posted_at DESC, operation_id DESC, position DESC, leg DESC",
		}.of(q))
	}
	return stream(ctx, r, q, r.db.AllPostings, (*tables.PostingRow).Entry, rows)
}

func (r reader) Notifications(ctx context.Context, q backoffice.Query) iter.Seq2[push.Entry, error] {
	read := func(since operation.ID) iter.Seq2[push.Entry, error] {
		return stream(ctx, r, q, r.db.ListedNotifications.Table, (*tables.ListedNotificationRow).Entry, r.notifications(q, since))
	}
	mayBeFew := q.UserID == "" && (q.Subscription != "" || q.Application != "" || q.Platform != 0 || q.Status != backoffice.AnyStatus)
	if !mayBeFew {
		return read(operation.ID{})
	}
	scanned := func(tx *gorm.DB) *gorm.DB { return tx.Table(r.db.Notifications.Name + " AS t") }
	return scan(ctx, r, q, "t.operation_id", scanned, read)
}

// notifications selects notifications t with their operations o, from the ID since on.
func (r reader) notifications(q backoffice.Query, since operation.ID) scope {
	return func(tx *gorm.DB) *gorm.DB {
		tx = tx.Table(r.db.ListedNotifications.Source).Select(r.db.ListedNotifications.Selected)
		if q.Status != backoffice.AnyStatus {
			tx = tx.Where("t.send_status = ?", tables.Flag(q.Status == backoffice.Sent))
		}
		return tx.Scopes(
			r.ofOperation(q, "t.operation_id"),
			found(r, "t.", "notifications", "push_id", q.PushID),
			ifSet("t.user_id = ?", q.UserID),
			ifSet("t.external_application_code = ?", q.Application),
			ifSet("t.platform = ?", int64(q.Platform)),
			newest(q, "t.operation_id", "t.position", since),
		).Order(orders{
			backoffice.ByKey:  "t.user_id, t.identity",
			backoffice.Newest: "t.operation_id DESC, t.position DESC",
		}.of(q))
	}
}

// Decisions finds the newest operations by the primary key or the index of failed operations.
func (r reader) Decisions(ctx context.Context, q backoffice.Query) iter.Seq2[operation.Decision, error] {
	read := func(since operation.ID) iter.Seq2[operation.Decision, error] {
		return stream(ctx, r, q, r.db.Operations.Table, (*tables.OperationRow).Decision, r.decisions(q, since))
	}
	mayBeFew := q.CustomerNo == 0 && (q.Subscription != "" || q.Code != "")
	if !mayBeFew {
		return read(operation.ID{})
	}
	return scan(ctx, r, q, "o.operation_id", r.operations(q), read)
}

// operations selects operations o, or those that were refused at once.
func (r reader) operations(q backoffice.Query) scope {
	return func(tx *gorm.DB) *gorm.DB {
		tx = tx.Table(r.db.Operations.Name + " AS o")
		if q.Refused {
			tx = tx.Where(tables.Refused)
		}
		return tx
	}
}

// decisions selects operations o, from the ID since on.
func (r reader) decisions(q backoffice.Query, since operation.ID) scope {
	return func(tx *gorm.DB) *gorm.DB {
		if q.CustomerNo != 0 {
			sales := r.db.Reads.Model(&tables.SaleRow{}).Select("operation_id").Scopes(found(r, "", "sales", "customer_no", q.CustomerNo))
			tx = tx.Where("o.operation_id IN (?)", sales)
		}
		if q.Code != "" { // the code of the first fault
			tx = tx.Where("substr(o.faults, 1, ?) = ?", len(q.Code)+1, q.Code+" ")
		}
		return tx.Scopes(
			r.operations(q),
			r.ofOperation(q, "o.operation_id"),
			ifSet("o.state = ?", int64(q.State)),
			newest(q, "o.operation_id", "", since),
		).Order(byID(q, "o.operation_id"))
	}
}

func (r reader) Acts(ctx context.Context, q backoffice.Query) iter.Seq2[audit.Act, error] {
	rows := func(tx *gorm.DB) *gorm.DB {
		if q.Object != "" {
			tx = tx.Where("object = ? OR action = 'command.show' AND object = 'customer' AND details = ?", q.Object, strconv.FormatInt(q.CustomerNo, 10))
		}
		return tx.Scopes(
			ifSet("action = ?", q.Action),
			ifSet("actor = ?", q.Actor),
			between("at", q.Since, q.Until),
			newest(q, "audit_id", "", operation.ID{}),
		).Order(byID(q, "audit_id"))
	}
	return stream(ctx, r, q, r.db.Audits.Table, (*tables.AuditRow).Act, rows)
}

func (r reader) Requests(ctx context.Context, q backoffice.Query) iter.Seq2[summary.Answered, error] {
	read := func(since operation.ID) iter.Seq2[summary.Answered, error] {
		return stream(ctx, r, q, r.db.Requests.Table, (*tables.RequestRow).Entry, requests(q, since))
	}
	mayBeFew := q.Class != 0 && q.Subscription != "" && q.CallerID == "" && q.RequestID == ""
	if !mayBeFew {
		return read(operation.ID{})
	}
	scanned := func(tx *gorm.DB) *gorm.DB { return tx.Model(&tables.RequestRow{}) }
	return scan(ctx, r, q, "entry_id", scanned, read)
}

// requests selects requests from the ID since on.
func requests(q backoffice.Query, since operation.ID) scope {
	return func(tx *gorm.DB) *gorm.DB {
		return tx.Scopes(
			between("at", q.Since, q.Until),
			ifSet("subscription = ?", q.Subscription),
			ifSet("caller_id = ?", q.CallerID),
			ifSet("request_id = ?", q.RequestID),
			ifSet("status / 100 = ?", q.Class),
			newest(q, "entry_id", "", since),
		).Order(byID(q, "entry_id"))
	}
}

// scan yields the rows that read finds. Few of the newest rows may match, and no index finds them.
// So it reads only the ScanLimit newest rows of scanned. id is the column with their IDs.
func scan[T any](ctx context.Context, r reader, q backoffice.Query, id string, scanned scope, read func(since operation.ID) iter.Seq2[T, error]) iter.Seq2[T, error] {
	if q.Order != backoffice.Newest || q.ScanLimit == 0 {
		return read(operation.ID{})
	}
	return func(yield func(T, error) bool) {
		last, err := r.lastScanned(ctx, q, id, scanned)
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		count := 0
		for value, err := range read(last) {
			if !yield(value, err) || err != nil {
				return
			}
			count++
		}
		isFull := q.Limit > 0 && count >= q.Limit
		if last != (operation.ID{}) && !isFull && q.Truncated != nil {
			q.Truncated(backoffice.Cursor{OperationID: last})
		}
	}
}

// lastScanned returns the ID of the last row to scan, or zero if there are fewer rows. It reads
// only IDs, which are in an index.
func (r reader) lastScanned(ctx context.Context, q backoffice.Query, id string, scanned scope) (operation.ID, error) {
	after := id + " < ?"
	if q.After.Index > 0 { // the operation of After has more rows
		after = id + " <= ?"
	}
	var ids []batch.UUID
	err := r.db.Snapshot(ctx, func(tx *gorm.DB) error {
		return tx.Scopes(scanned, withinIDs(q, id), ifSet(after, batch.UUID(q.After.OperationID))).
			Order(id+" DESC").Limit(1).Offset(q.ScanLimit-1).Pluck(id, &ids).Error
	})
	if err != nil || len(ids) == 0 {
		return operation.ID{}, err
	}
	return operation.ID(ids[0]), nil
}

// stream reads rows in its own snapshot. If the reader stops early, a query without a limit is
// cancelled. On Postgres this closes the connection. A page ends by itself. A query in the
// transaction of a host is not cancelled either: the transaction would end with the connection.
func stream[R, T any](ctx context.Context, r reader, q backoffice.Query, t *batch.Table[R], entry func(*R) (T, error), rows scope) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		_, isPool := r.db.Reads.Statement.ConnPool.(*batch.Pool)
		stopped := false
		visit := func(row *R) error {
			if stopped {
				return nil
			}
			value, err := entry(row)
			if err != nil {
				return err
			}
			stopped = !yield(value, nil)
			if stopped && isPool && q.Limit == 0 {
				cancel()
			}
			return nil
		}
		err := r.db.Snapshot(ctx, func(tx *gorm.DB) error {
			all := tx.Model(new(R)).Select(batch.Names(t.Columns)) // rows may replace both
			return tables.Scan(all.Scopes(rows).Limit(cmp.Or(q.Limit, -1)), t, visit)
		})
		if err != nil && !stopped {
			var none T
			yield(none, err)
		}
	}
}
