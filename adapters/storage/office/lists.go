package office

import (
	"cmp"
	"context"
	"iter"
	"reflect"
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
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// reader implements backoffice.Reader.
type reader struct{ db *tables.Database }

var _ backoffice.Reader = reader{}

// list is a query of rows.
type list struct {
	reader
	query backoffice.Query
	// source is a table, or a query with its arguments. Its last word is its name.
	source     string
	sourceArgs []any
	id         string   // column that orders the rows by time
	columns    []string // nil for all columns
	// conditions are the conditions on the rows, each after AND.
	conditions string
	arguments  []any
	order      string
}

// where adds a condition unless the value is zero, which means that this field of the Query is
// not set. The argument is the value, unless other arguments are given.
func (l *list) where(condition string, value any, others ...any) *list {
	if id, ok := value.(operation.ID); ok {
		value = batch.UUID(id)
	}
	if reflect.ValueOf(value).IsZero() {
		return l
	}
	if len(others) == 0 {
		others = []any{value}
	}
	return l.and(condition, others...)
}

// and adds a condition.
func (l *list) and(condition string, arguments ...any) *list {
	l.conditions += " AND " + condition
	l.arguments = append(l.arguments, arguments...)
	return l
}

func (l *list) between(column string, since, until time.Time) *list {
	if !since.IsZero() {
		l.and(column+" >= ?", tables.Microsecond(since))
	}
	if !until.IsZero() {
		l.and(column+" < ?", tables.Microsecond(until))
	}
	return l
}

// withValue selects the rows of the table t with this value, unless it is zero.
func (l *list) withValue(table, column string, value any) *list {
	condition, arguments := l.matching("t.", table, column, value)
	return l.where(condition, value, arguments...)
}

// ofOperation selects the operations o that match the query.
func (l *list) ofOperation() *list {
	l.between("o.received_at", l.query.Since, l.query.Until).where("o.subscription = ?", l.query.Subscription).where("o.caller_id = ?", l.query.CallerID)
	if l.query.RequestID != "" {
		condition, arguments := l.matching("", l.db.Operations.Name, "request_id", l.query.RequestID)
		l.and(l.id+" IN (SELECT operation_id FROM "+l.db.Operations.Name+" WHERE request_id <> '' AND "+condition+")", arguments...)
	}
	return l.where(l.id+" = ?", l.query.OperationID).where(l.id+" >= ?", l.query.From)
}

// ofCustomer selects the operations with a sale of the customer.
func (l *list) ofCustomer() *list {
	if l.query.CustomerNo == 0 {
		return l
	}
	condition, arguments := l.matching("", l.db.Sales.Name, "customer_no", l.query.CustomerNo)
	return l.and(l.id+" IN (SELECT operation_id FROM "+l.db.Sales.Name+" WHERE "+condition+")", arguments...)
}

// newest applies the order Newest: it sorts by descending ID and starts after After. It selects
// IDs from since on. A zero ID is no bound. If one ID may have several rows, index is the
// column that orders them.
func (l *list) newest(index string, since operation.ID) *list {
	if l.query.Order != backoffice.Newest {
		return l
	}
	l.order = l.id + " DESC"
	if index == "" {
		l.where(l.id+" < ?", l.query.After.OperationID)
	} else {
		l.order += ", " + index + " DESC"
		after := batch.UUID(l.query.After.OperationID)
		l.where(l.id+" <= ?", after).where("("+l.id+" < ? OR "+index+" < ?)", after, after, l.query.After.Index)
	}
	return l.where(l.id+" >= ?", since).withinIDs()
}

// withinIDs bounds the ID by time, so that the database can use the key. The condition on the
// time of receipt is exact.
func (l *list) withinIDs() *list {
	bound := func(instant time.Time, slack time.Duration) (id operation.ID) {
		if !instant.IsZero() {
			id = backoffice.FirstID(instant.Add(slack))
		}
		return id
	}
	return l.where(l.id+" >= ?", bound(l.query.Since, -tables.IDSlack)).where(l.id+" < ?", bound(l.query.Until, tables.IDSlack))
}

// build returns the query in a transaction.
func (l *list) build(tx *gorm.DB) *gorm.DB {
	tx = tx.Table(l.source, l.sourceArgs...).Select(l.columns).Limit(cmp.Or(l.query.Limit, -1))
	if l.conditions != "" {
		tx = tx.Where(strings.TrimPrefix(l.conditions, " AND "), l.arguments...)
	}
	return tx.Order(l.order)
}

func (r reader) list(q backoffice.Query, source, id, order string) *list {
	return &list{reader: r, query: q, source: source, id: id, order: order}
}

func (r reader) Prices(ctx context.Context, q backoffice.Query) iter.Seq2[fund.Price, error] {
	return stream(ctx, r.db.Prices.Table, (*tables.PriceRow).ToPrice, r.list(q, r.db.Prices.Name, "price_id", "price_id").
		where("valid_from >= ?", firstDay(q.Since, q.Zone)).where("valid_from < ?", firstDay(q.Until, q.Zone)).
		where("imkb_code = ?", q.Fund.IMKBCode).where("holder_corporation_name = ?", q.Fund.HolderCorporationName))
}

// firstDay returns the first day that does not begin before the instant. It is empty for the
// zero instant.
func firstDay(instant time.Time, zone *time.Location) string {
	if instant.IsZero() {
		return ""
	}
	d := day.Of(instant, zone)
	if d.Start(zone).Before(instant) {
		d = d.Plus(1)
	}
	return d.String()
}

func (r reader) Holdings(ctx context.Context, q backoffice.Query) iter.Seq2[fund.Holding, error] {
	return stream(ctx, r.db.Holdings.Table, (*tables.HoldingRow).Holding,
		r.list(q, r.db.Holdings.Name, "", strings.Join(r.db.Holdings.Keys, ", ")).where("customer_no = ?", q.CustomerNo))
}

func (r reader) Accounts(ctx context.Context, q backoffice.Query) iter.Seq2[fund.Account, error] {
	return stream(ctx, r.db.Accounts.Table, (*tables.AccountRow).Account,
		r.list(q, r.db.Accounts.Name, "", strings.Join(r.db.Accounts.Keys, ", ")).where("customer_no = ?", q.CustomerNo))
}

func (r reader) ClosedDays(ctx context.Context) iter.Seq2[fund.ClosedDay, error] {
	return func(yield func(fund.ClosedDay, error) bool) {
		calendar, err := r.db.PropertyIn(r.db.Query(ctx), tables.CalendarProperty)
		if err != nil {
			yield(fund.ClosedDay{}, r.db.Translate(err))
			return
		}
		row := tables.PropertyRow{Name: tables.CalendarProperty, Value: calendar}
		row.Days(yield)
	}
}

// Sales finds the newest sales by the primary key or the index of failed sales.
func (r reader) Sales(ctx context.Context, q backoffice.Query) iter.Seq2[fund.SaleEntry, error] {
	listed, table := &r.db.ListedSales, r.db.Sales.Name
	ofRefused := "NOT (" + tables.Refused + ")"
	if q.Refused {
		ofRefused = tables.Refused
	}
	read := func(since operation.ID) iter.Seq2[fund.SaleEntry, error] {
		l := r.list(q, listed.Source, "t.operation_id", "t.operation_id, t.position").and(ofRefused).ofOperation().
			withValue(table, "customer_no", q.CustomerNo).
			between("o.ended_at", q.SettledSince, q.SettledUntil).
			where("t.selected_date >= ?", q.DueSince.String()).
			where("t.selected_date <= ?", q.DueUntil.String()).
			where("t.settled_price_id = ?", q.PriceID).
			where("t.imkb_code = ?", q.IMKBCode).
			where("(t.proceeds = ? OR t.control_total = ?)", q.Amount, q.Amount, q.Amount).
			newest("t.position", since)
		if q.State != 0 {
			l.and("t." + tables.InState(q.State))
		}
		if q.Order == backoffice.ByDay {
			l.order = "t.selected_date, t.operation_id, t.position"
		}
		l.columns = listed.Selected
		return stream(ctx, listed.Table, (*tables.ListedSaleRow).Entry, l)
	}
	walk := r.list(q, table+" t", "t.operation_id", "")
	if q.Refused || q.State == operation.Failed {
		walk.and("t." + tables.InState(operation.Failed)) // failed sales have an index, so ScanLimit counts only them
	}
	return scan(ctx, walk, q.CustomerNo == 0 && (q.Subscription != "" || q.IMKBCode != "" || q.Amount != 0 || q.PriceID != 0 || q.State == operation.Recorded), read)
}

// Postings finds the postings of a customer by the sales and the adjustments.
func (r reader) Postings(ctx context.Context, q backoffice.Query) iter.Seq2[fund.PostingEntry, error] {
	l := r.list(q, r.db.AllPostings.Name+" AS p", "operation_id", "operation_id, position, leg")
	switch q.Order {
	case backoffice.ByTime:
		l.order = "posted_at, " + l.order
	case backoffice.Newest:
		l.order = "posted_at DESC, operation_id DESC, position DESC, leg DESC"
	default:
	}
	if q.CustomerNo != 0 {
		condition, arguments := r.db.Engine.Find(r.db.Prefix, "s.", "sales", "customer_no", q.CustomerNo)
		l.source, l.sourceArgs = tables.PostingsOfCustomer(r.db.Prefix, q.CustomerNo, condition, arguments)
		l.source += " p"
	}
	return stream(ctx, r.db.AllPostings, (*tables.PostingRow).Entry, l.where("operation_id = ?", q.OperationID).between("posted_at", q.Since, q.Until))
}

func (r reader) Notifications(ctx context.Context, q backoffice.Query) iter.Seq2[push.Entry, error] {
	listed, table := &r.db.ListedNotifications, r.db.Notifications.Name
	read := func(since operation.ID) iter.Seq2[push.Entry, error] {
		l := r.list(q, listed.Source, "t.operation_id", "t.user_id, t.identity").ofOperation().
			withValue(table, "push_id", q.PushID).
			where("t.user_id = ?", q.UserID).
			where("t.external_application_code = ?", q.Application).
			where("t.platform = ?", int64(q.Platform)).
			where("t.send_status = ?", q.Status, tables.Flag(q.Status == backoffice.Sent)).
			newest("t.position", since)
		l.columns = listed.Selected
		return stream(ctx, listed.Table, (*tables.ListedNotificationRow).Entry, l)
	}
	return scan(ctx, r.list(q, table+" t", "t.operation_id", ""),
		q.UserID == "" && (q.Subscription != "" || q.Application != "" || q.Platform != 0 || q.Status != backoffice.AnyStatus), read)
}

// Decisions finds the newest operations by the primary key or the index of failed operations.
func (r reader) Decisions(ctx context.Context, q backoffice.Query) iter.Seq2[operation.Decision, error] {
	table := r.db.Operations.Name + " o"
	list := func(order string) *list {
		l := r.list(q, table, "o.operation_id", order)
		if q.Refused {
			l.and(tables.Refused)
		}
		return l
	}
	read := func(since operation.ID) iter.Seq2[operation.Decision, error] {
		return stream(ctx, r.db.Operations.Table, (*tables.OperationRow).Decision, list("o.operation_id").ofOperation().ofCustomer().
			where("o.state = ?", int64(q.State)).
			where("substr(o.faults, 1, ?) = ?", q.Code, len(q.Code)+1, q.Code+" "). // starts with the code of the first fault
			newest("", since))
	}
	return scan(ctx, list(""), q.CustomerNo == 0 && (q.Subscription != "" || q.Code != ""), read)
}

func (r reader) Acts(ctx context.Context, q backoffice.Query) iter.Seq2[audit.Act, error] {
	return stream(ctx, r.db.Audits.Table, (*tables.AuditRow).Act, r.list(q, r.db.Audits.Name, "audit_id", "audit_id").
		where("action = ?", q.Action).where("actor = ?", q.Actor).between("at", q.Since, q.Until).newest("", operation.ID{}).
		where("(object = ? OR action = 'command.show' AND object = 'customer' AND details = ?)", q.Object, q.Object, strconv.FormatInt(q.CustomerNo, 10)))
}

func (r reader) Requests(ctx context.Context, q backoffice.Query) iter.Seq2[summary.Answered, error] {
	table := r.db.Requests.Name
	read := func(since operation.ID) iter.Seq2[summary.Answered, error] {
		return stream(ctx, r.db.Requests.Table, (*tables.RequestRow).Entry, r.list(q, table, "entry_id", "entry_id").between("at", q.Since, q.Until).
			where("subscription = ?", q.Subscription).where("caller_id = ?", q.CallerID).where("request_id = ?", q.RequestID).
			where("status / 100 = ?", q.Class).newest("", since))
	}
	return scan(ctx, r.list(q, table, "entry_id", ""), q.Class != 0 && q.Subscription != "" && q.CallerID == "" && q.RequestID == "", read)
}

// matching returns a condition for the rows of the table with this value. alias is as in Find.
func (r reader) matching(alias, table, column string, value any) (condition string, arguments []any) {
	clause, extra := r.db.Engine.Find(r.db.Prefix, alias, strings.TrimPrefix(table, r.db.Prefix), column, value)
	return alias + column + " = ? AND " + clause, append([]any{value}, extra...)
}

// scan yields the rows that read finds. If few of the newest rows may match, and no index finds
// them, it reads only the ScanLimit newest rows of walk.
func scan[T any](ctx context.Context, walk *list, mayBeFew bool, read func(since operation.ID) iter.Seq2[T, error]) iter.Seq2[T, error] {
	if !mayBeFew || walk.query.Order != backoffice.Newest || walk.query.ScanLimit == 0 {
		return read(operation.ID{})
	}
	return func(yield func(T, error) bool) {
		last, err := walk.last(ctx)
		if err != nil {
			var zero T
			yield(zero, err)
			return
		}
		count := 0
		for value, err := range read(last) {
			if !yield(value, err) || err != nil {
				return
			}
			count++
		}
		if last != (operation.ID{}) && (walk.query.Limit == 0 || count < walk.query.Limit) && walk.query.Truncated != nil {
			walk.query.Truncated(backoffice.Cursor{OperationID: last})
		}
	}
}

// last returns the ID of the last row to scan, or zero if there are fewer rows. It reads only
// IDs, which are in an index.
func (l *list) last(ctx context.Context) (operation.ID, error) {
	operator := " < ?"
	if l.query.After.Index > 0 { // the operation of After has more rows
		operator = " <= ?"
	}
	query := *l
	query.withinIDs().where(l.id+operator, l.query.After.OperationID)
	query.order = l.id + " DESC"
	var ids []batch.UUID
	err := l.db.Snapshot(ctx, func(tx *gorm.DB) error {
		return query.build(tx).Limit(1).Offset(l.query.ScanLimit-1).Pluck(l.id, &ids).Error
	})
	if err != nil || len(ids) == 0 {
		return operation.ID{}, err
	}
	return operation.ID(ids[0]), nil
}

// stream reads a list in its own snapshot. If the reader stops early, a query without a limit
// is cancelled. On Postgres this closes the connection. A page ends by itself. A query in the
// transaction of a host is not cancelled either: the transaction would end with the connection.
func stream[R, T any](ctx context.Context, t *batch.Table[R], entry func(*R) (T, error), l *list) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		_, isPool := l.db.Reads.Statement.ConnPool.(*batch.Pool)
		stopped := false
		err := l.db.Snapshot(ctx, func(tx *gorm.DB) error {
			query := *l
			if query.columns == nil {
				query.columns = tables.ColumnsOf(l.source[strings.LastIndexByte(l.source, ' ')+1:], t)
			}
			return tables.Scan(query.build(tx), t, func(row *R) error {
				if stopped {
					return nil
				}
				value, err := entry(row)
				if stopped = err == nil && !yield(value, nil); stopped && isPool && l.query.Limit == 0 {
					cancel()
				}
				return err
			})
		})
		if err != nil && !stopped {
			var zero T
			yield(zero, err)
		}
	}
}
