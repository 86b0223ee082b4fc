package storage

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
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

// reader is backoffice.Reader.
type reader struct{ *database }

// slack is the maximum difference between the time of an ID and the time of
// receipt. It is not 0, because each replica has its own clock.
const slack = time.Hour

// Prices is as backoffice.Reader promises.
func (r reader) Prices(ctx context.Context, q backoffice.Query) iter.Seq2[fund.Price, error] {
	return stream(ctx, r.database, r.prices.Table, (*PriceRow).price, func(tx *gorm.DB) *gorm.DB {
		if !q.Since.IsZero() {
			tx = tx.Where("valid_from >= ?", firstDay(q.Since, q.Zone).String())
		}
		if !q.Until.IsZero() {
			tx = tx.Where("valid_from < ?", firstDay(q.Until, q.Zone).String())
		}
		return atMost(tx.Order("price_id"), q)
	})
}

// firstDay is the first day that does not begin before the instant.
func firstDay(instant time.Time, zone *time.Location) day.Day {
	d := day.Of(instant, zone)
	if d.Start(zone).Before(instant) {
		return d.Plus(1)
	}
	return d
}

// Holdings is as backoffice.Reader promises.
func (r reader) Holdings(ctx context.Context, q backoffice.Query) iter.Seq2[fund.Holding, error] {
	return stream(ctx, r.database, r.holdings.Table, (*HoldingRow).holding, func(tx *gorm.DB) *gorm.DB {
		return atMost(where(tx, "customer_no = ?", q.CustomerNo).Order("customer_no, imkb_code, holder_corporation_name"), q)
	})
}

// Accounts is as backoffice.Reader promises.
func (r reader) Accounts(ctx context.Context, q backoffice.Query) iter.Seq2[fund.Account, error] {
	return stream(ctx, r.database, r.accounts.Table, (*AccountRow).account, func(tx *gorm.DB) *gorm.DB {
		return atMost(where(tx, "customer_no = ?", q.CustomerNo).Order("customer_no, branch_code, account_suffix, currency_code"), q)
	})
}

// where adds a condition unless the value is zero, as a field of a Query that is not set.
// bound are the arguments, if value is none.
func where[T comparable](tx *gorm.DB, condition string, value T, bound ...any) *gorm.DB {
	var zero T
	switch {
	case value == zero:
		return tx
	case len(bound) == 0:
		return tx.Where(condition, value)
	}
	return tx.Where(condition, bound...)
}

// whereID is where for an ID.
func whereID(d batch.Dialect, tx *gorm.DB, condition string, id operation.ID) *gorm.DB {
	return where(tx, condition, id, d.Bind(batch.UUID(id)))
}

// inState is the condition of the indexes of sales. It has no parameter, so that an
// engine sees which index it is.
func inState(s operation.State) string { return "state = " + strconv.Itoa(int(s)) }

// recorded is the condition of the index of due sales.
var recorded = inState(operation.Recorded)

// Sales is as backoffice.Reader promises. The newest are found by the primary key or
// the index of failed sales.
func (r reader) Sales(ctx context.Context, q backoffice.Query) iter.Seq2[fund.SaleEntry, error] {
	table := r.sales.Name
	if q.Refused {
		table = r.refusals.sales.Name // has the columns of sales
	}
	narrow := func(tx *gorm.DB) *gorm.DB {
		tx = r.ofOperation(tx, table, q)
		if q.CustomerNo != 0 {
			tx = r.find(tx, table, "customer_no", q.CustomerNo)
		}
		tx = r.between(tx, "settled_at", q.SettledSince, q.SettledUntil)
		tx = where(tx, "selected_date >= ?", q.DueSince.String())
		tx = where(tx, "selected_date <= ?", q.DueUntil.String())
		if q.State != 0 {
			tx = tx.Where(inState(q.State))
		}
		tx = where(tx, "settled_price_id = ?", q.PriceID)
		tx = where(tx, "imkb_code = ?", q.IMKBCode)
		tx = where(tx, "(proceeds = ? OR control_total = ?)", q.Amount, q.Amount, q.Amount)
		return tx
	}
	read := func(since operation.ID) iter.Seq2[fund.SaleEntry, error] {
		return stream(ctx, r.database, r.sales.listed, (*listedSaleRow).entry, func(tx *gorm.DB) *gorm.DB {
			tx = narrow(tx.Table(table).Select(r.sales.listColumns(table, r.reversals.Name)))
			switch q.Order {
			case backoffice.Newest:
				tx = r.newest(tx, q, since, operation.ID{})
			case backoffice.ByDay:
				tx = tx.Order("selected_date, operation_id, position")
			default:
				tx = tx.Order("operation_id, position")
			}
			return atMost(tx, q)
		})
	}
	if q.Order != backoffice.Newest || q.CustomerNo != 0 || q.Subscription == "" && q.IMKBCode == "" && q.Amount == 0 && q.State != operation.Recorded { // all of them fit, or many
		return read(operation.ID{})
	}
	return scan(ctx, r, q, func(tx *gorm.DB) *gorm.DB {
		if tx = tx.Table(table); q.State == operation.Failed {
			return tx.Where(inState(q.State)) // they have an index, so ScanLimit is of them
		}
		return tx
	}, read)
}

// Postings is as backoffice.Reader promises.
func (r reader) Postings(ctx context.Context, q backoffice.Query) iter.Seq2[fund.PostingEntry, error] {
	return stream(ctx, r.database, r.postings.all, (*PostingRow).entry, func(tx *gorm.DB) *gorm.DB {
		tx = tx.Table(r.postings.all.Name + " AS p")
		if q.CustomerNo != 0 {
			tx = r.postingsOf(tx, q.CustomerNo)
		}
		tx = whereID(r.Dialect, tx, "operation_id = ?", q.OperationID)
		order := "operation_id, position, leg"
		if q.Order == backoffice.ByTime {
			order = "posted_at, " + order
		} else if q.Order == backoffice.Newest {
			order = "posted_at DESC, operation_id DESC, position DESC, leg DESC"
		}
		return atMost(r.between(tx, "posted_at", q.Since, q.Until).Order(order), q)
	})
}

// postingsOfCustomer is a query of the postings of a customer. Those of sales are
// found by the sales: see the indexes of version 5.
const postingsOfCustomer = `(
SELECT {{columns}} FROM {{prefix}}postings p WHERE customer_no = ? AND kind <> 1
UNION ALL
SELECT {{columns}} FROM {{all}} p WHERE customer_no = ? AND kind = 1 AND operation_id IN (
 SELECT operation_id FROM {{prefix}}sales WHERE {{found}}
 UNION
 SELECT operation_id FROM {{prefix}}sales WHERE account_customer_no = ? AND account_customer_no <> customer_no
)
) p`

// postingsOf reads from the postings of a customer.
func (r reader) postingsOf(tx *gorm.DB, customerNo int64) *gorm.DB {
	columns := strings.Join(batch.Names(r.postings.Columns), ", ")
	condition, arguments := r.matching(r.sales.Name, "customer_no", customerNo)
	query := strings.NewReplacer("{{prefix}}", r.prefix, "{{columns}}", columns, "{{found}}", condition, "{{all}}", r.postings.all.Name).Replace(postingsOfCustomer)
	return tx.Table(query, slices.Concat([]any{customerNo, customerNo}, arguments, []any{customerNo})...)
}

// Notifications is as backoffice.Reader promises. For the newest it looks at a short
// time first, and at longer ones until the page is full: a database that expects few
// rows would read and sort all of them.
func (r reader) Notifications(ctx context.Context, q backoffice.Query) iter.Seq2[push.Entry, error] {
	if q.Order != backoffice.Newest {
		return stream(ctx, r.database, r.notifications.Table, (*NotificationRow).entry, func(tx *gorm.DB) *gorm.DB {
			return atMost(r.ofNotifications(tx, q).Order("user_id, digest"), q)
		})
	}
	between := func(q backoffice.Query, since, until operation.ID) iter.Seq2[push.Entry, error] {
		return stream(ctx, r.database, r.notifications.Table, (*NotificationRow).entry, func(tx *gorm.DB) *gorm.DB {
			return atMost(r.newest(r.ofNotifications(tx, q), q, since, until), q)
		})
	}
	if q.ScanLimit > 0 && q.UserID == "" && (q.Subscription != "" || q.Application != "" || q.Platform != 0 || q.Status != backoffice.AnyStatus) {
		return scan(ctx, r, q, func(tx *gorm.DB) *gorm.DB { return tx.Table(r.notifications.Name) }, func(since operation.ID) iter.Seq2[push.Entry, error] {
			return between(q, since, operation.ID{})
		})
	}
	return func(yield func(push.Entry, error) bool) {
		found, rest := 0, q
		var until operation.ID
		for _, since := range ranges(q) {
			if q.Limit > 0 {
				rest.Limit = q.Limit - found
			}
			for entry, err := range between(rest, since, until) {
				if !yield(entry, err) || err != nil {
					return
				}
				found++
			}
			if q.Limit > 0 && found >= q.Limit {
				return
			}
			until = since
		}
	}
}

// ofNotifications narrows to the notifications that fit.
func (r reader) ofNotifications(tx *gorm.DB, q backoffice.Query) *gorm.DB {
	tx = r.ofOperation(tx, r.notifications.Name, q)
	if q.PushID != "" {
		tx = r.find(tx, r.notifications.Name, "push_id", q.PushID)
	}
	tx = where(tx, "user_id = ?", q.UserID)
	tx = where(tx, "external_application_code = ?", q.Application)
	tx = where(tx, "platform = ?", int64(q.Platform))
	return where(tx, "send_status = ?", q.Status, flag(q.Status == backoffice.Sent))
}

// ranges returns the first ID of each time range to read, newest first. The zero ID
// means everything.
func ranges(q backoffice.Query) (first []operation.ID) {
	from := q.Until
	if !q.After.IsZero() {
		if at := q.After.OperationID.Time(); from.IsZero() || at.Before(from) {
			from = at
		}
	}
	if q.Limit > 0 && q.UserID == "" && !from.IsZero() {
		for _, back := range []time.Duration{10 * time.Minute, 4 * time.Hour, 7 * 24 * time.Hour} {
			first = append(first, backoffice.FirstID(from.Add(-back)))
		}
	}
	return append(first, operation.ID{})
}

// Refusals is as backoffice.Reader promises.
func (r reader) Refusals(ctx context.Context, q backoffice.Query) iter.Seq2[operation.Refusal, error] {
	read := func(since operation.ID) iter.Seq2[operation.Refusal, error] {
		return stream(ctx, r.database, r.refusals.Table, (*RefusalRow).refusal, func(tx *gorm.DB) *gorm.DB {
			tx = r.ofOperation(tx, r.refusals.Name, q)
			if q.CustomerNo != 0 {
				condition, arguments := ofCustomer(r, r.refusals.sales.Name, q)
				tx = tx.Where(condition, arguments...)
			}
			// the text begins with the code of the first fault and a space
			tx = where(tx, "substr(faults, 1, ?) = ?", q.Code, len(q.Code)+1, q.Code+" ")
			return atMost(r.newestIDs(tx, "operation_id", q, since), q)
		})
	}
	if q.Order != backoffice.Newest || q.CustomerNo != 0 || q.Subscription == "" && q.Code == "" { // all of them fit, or few
		return read(operation.ID{})
	}
	return scan(ctx, r, q, func(tx *gorm.DB) *gorm.DB { return tx.Table(r.refusals.Name) }, read)
}

// decisions is a query of all decided operations. Every operation with sales has
// a sale at position 0. A notification that was stored before is not stored
// again, so that an operation of notifications may begin at a later position. The
// conditions stand inside, where each table has its indexes.
const decisions = `(
SELECT operation_id, 2 AS operation, subscription, app_key, channel, teller_name, caller_id, channel_session_id, channel_request_id,
 request_id, received_at, state,
 CASE WHEN state = 8 THEN (SELECT MAX(r.refusal) FROM {{prefix}}sales r WHERE r.operation_id = s.operation_id) ELSE '' END AS faults
FROM {{prefix}}sales s WHERE position = 0{{and}}
UNION ALL
SELECT operation_id, 1, MIN(subscription), MIN(app_key), MIN(channel), MIN(teller_name), MIN(caller_id), MIN(channel_session_id), MIN(channel_request_id),
 MIN(request_id), MIN(received_at), 2, ''
FROM {{prefix}}notifications WHERE TRUE{{and}} GROUP BY operation_id
UNION ALL
SELECT operation_id, operation, subscription, app_key, channel, teller_name, caller_id, channel_session_id, channel_request_id,
 request_id, received_at, state, faults
FROM {{prefix}}refusals WHERE TRUE{{and}}
) d`

// Decisions is as backoffice.Reader promises.
func (r reader) Decisions(ctx context.Context, q backoffice.Query) iter.Seq2[backoffice.Decision, error] {
	return stream(ctx, r.database, r.refusals.Table, (*RefusalRow).decision, func(tx *gorm.DB) *gorm.DB {
		query, arguments := strings.ReplaceAll(decisions, "{{prefix}}", r.prefix), []any(nil)
		for _, t := range [...]struct{ of, customers string }{{r.sales.Name, r.sales.Name}, {r.notifications.Name, ""}, {r.refusals.Name, r.refusals.sales.Name}} {
			and, more := r.conditions(t.of, q)
			if q.CustomerNo != 0 {
				condition, customer := ofCustomer(r, t.customers, q)
				and, more = and+" AND "+condition, append(more, customer...)
			}
			query, arguments = strings.Replace(query, "{{and}}", and, 1), append(arguments, more...)
		}
		return atMost(where(tx.Table(query, arguments...), "state = ?", int64(q.State)).Order("operation_id"), q)
	})
}

// Acts is as backoffice.Reader promises.
func (r reader) Acts(ctx context.Context, q backoffice.Query) iter.Seq2[audit.Act, error] {
	return stream(ctx, r.database, r.audits.Table, (*AuditRow).act, func(tx *gorm.DB) *gorm.DB {
		tx = tx.Select(columnsOf(r.audits.Name, r.audits.Table))
		tx = where(where(where(tx, "action = ?", q.Action), "actor = ?", q.Actor), "object = ?", q.Object)
		return atMost(r.newestIDs(r.between(tx, "at", q.Since, q.Until), "audit_id", q, operation.ID{}), q)
	})
}

// conditions returns the conditions of the query on the operations of a table,
// each after AND.
func (r reader) conditions(table string, q backoffice.Query) (and string, arguments []any) {
	add := func(condition string, set bool, argument any) {
		if set {
			and += " AND " + condition
			arguments = append(arguments, r.Dialect.Bind(argument))
		}
	}
	add("received_at >= ?", !q.Since.IsZero(), microsecond(q.Since))
	add("received_at < ?", !q.Until.IsZero(), microsecond(q.Until))
	add("subscription = ?", q.Subscription != "", q.Subscription)
	add("caller_id = ?", q.CallerID != "", q.CallerID)
	if q.RequestID != "" {
		condition, more := r.matching(table, "request_id", q.RequestID)
		and += " AND request_id <> '' AND " + condition // as in the index of refusals
		arguments = append(arguments, more...)
	}
	add("operation_id = ?", q.OperationID != (operation.ID{}), batch.UUID(q.OperationID))
	add("operation_id >= ?", q.From != (operation.ID{}), batch.UUID(q.From))
	return and, arguments
}

// ofCustomer is a condition that is true of the operations with a sale of the
// customer. table has their sales. Without one there is no sale.
func ofCustomer(r reader, table string, q backoffice.Query) (condition string, arguments []any) {
	if table == "" {
		return "FALSE", nil
	}
	condition, arguments = r.matching(table, "customer_no", q.CustomerNo)
	return "operation_id IN (SELECT operation_id FROM " + table + " WHERE " + condition + ")", arguments
}

// ofOperation narrows to the operations that fit the query.
func (r reader) ofOperation(tx *gorm.DB, table string, q backoffice.Query) *gorm.DB {
	if and, arguments := r.conditions(table, q); and != "" {
		tx = tx.Where(strings.TrimPrefix(and, " AND "), arguments...)
	}
	return tx
}

// find narrows to the rows of the table with that value.
func (r reader) find(tx *gorm.DB, table, column string, value any) *gorm.DB {
	condition, arguments := r.matching(table, column, value)
	return tx.Where(condition, arguments...)
}

// matching is a condition that is true of the rows of the table with that value.
func (r reader) matching(table, column string, value any) (condition string, arguments []any) {
	condition, arguments = column+" = ?", []any{value}
	if r.engine.Find != nil {
		by, more := r.engine.Find(r.prefix, strings.TrimPrefix(table, r.prefix), column, value)
		condition, arguments = condition+" AND "+by, append(arguments, more...)
	}
	return condition, arguments
}

func (r reader) between(tx *gorm.DB, column string, since, until time.Time) *gorm.DB {
	if !since.IsZero() {
		tx = tx.Where(column+" >= ?", r.Dialect.Bind(microsecond(since)))
	}
	if !until.IsZero() {
		tx = tx.Where(column+" < ?", r.Dialect.Bind(microsecond(until)))
	}
	return tx
}

// microsecond is the first instant not before t that can be stored.
func microsecond(t time.Time) time.Time {
	return t.Add(time.Microsecond - time.Nanosecond).UTC().Truncate(time.Microsecond)
}

// scan yields what read finds among the q.ScanLimit newest rows that walk has.
func scan[T any](ctx context.Context, r reader, q backoffice.Query, walk func(*gorm.DB) *gorm.DB, read func(since operation.ID) iter.Seq2[T, error]) iter.Seq2[T, error] {
	if q.ScanLimit == 0 {
		return read(operation.ID{})
	}
	return func(yield func(T, error) bool) {
		last, err := r.lastScanned(ctx, q, walk)
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
		if last != (operation.ID{}) && (q.Limit == 0 || found < q.Limit) && q.Truncated != nil {
			q.Truncated(backoffice.Cursor{OperationID: last})
		}
	}
}

// lastScanned is the operation of the last row to look at; zero if there are fewer.
// It reads only operation IDs, which an index has.
func (r reader) lastScanned(ctx context.Context, q backoffice.Query, walk func(*gorm.DB) *gorm.DB) (operation.ID, error) {
	var ids []batch.UUID
	err := r.snapshot(ctx, func(tx *gorm.DB) error {
		tx = r.withinIDs(walk(tx), "operation_id", q)
		after := r.Dialect.Bind(batch.UUID(q.After.OperationID))
		switch {
		case q.After.Index > 0: // its operation has more rows
			tx = tx.Where("operation_id <= ?", after)
		case !q.After.IsZero():
			tx = tx.Where("operation_id < ?", after)
		}
		return tx.Order("operation_id DESC").Limit(1).Offset(q.ScanLimit-1).Pluck("operation_id", &ids).Error
	})
	if err != nil || len(ids) == 0 {
		return operation.ID{}, err
	}
	return operation.ID(ids[0]), nil
}

// newest orders the rows of operations, newest first, behind q.After. It takes the
// operations from since on and before until; a zero ID is no bound.
func (r reader) newest(tx *gorm.DB, q backoffice.Query, since, until operation.ID) *gorm.DB {
	if !q.After.IsZero() {
		after := r.Dialect.Bind(batch.UUID(q.After.OperationID))
		tx = tx.Where("operation_id <= ?", after).Where("(operation_id < ? OR position < ?)", after, q.After.Index)
	}
	tx = whereID(r.Dialect, whereID(r.Dialect, tx, "operation_id >= ?", since), "operation_id < ?", until)
	return r.withinIDs(tx, "operation_id", q).Order("operation_id DESC, position DESC")
}

// newestIDs orders rows with one ID each: newest first behind q.After and from since
// on, or by the ID.
func (r reader) newestIDs(tx *gorm.DB, column string, q backoffice.Query, since operation.ID) *gorm.DB {
	if q.Order != backoffice.Newest {
		return tx.Order(column)
	}
	tx = whereID(r.Dialect, tx, column+" < ?", q.After.OperationID)
	tx = whereID(r.Dialect, tx, column+" >= ?", since)
	return r.withinIDs(tx, column, q).Order(column + " DESC")
}

// withinIDs bounds an ID, which is ordered by time. It lets the database find the
// place in the key; the time of receipt is exact.
func (r reader) withinIDs(tx *gorm.DB, column string, q backoffice.Query) *gorm.DB {
	if !q.Since.IsZero() {
		tx = tx.Where(column+" >= ?", r.Dialect.Bind(batch.UUID(backoffice.FirstID(q.Since.Add(-slack)))))
	}
	if !q.Until.IsZero() {
		tx = tx.Where(column+" < ?", r.Dialect.Bind(batch.UUID(backoffice.FirstID(q.Until.Add(slack)))))
	}
	return tx
}

// atMost takes at most that many rows.
func atMost(tx *gorm.DB, q backoffice.Query) *gorm.DB {
	if q.Limit > 0 {
		return tx.Limit(q.Limit)
	}
	return tx
}

// streamed is how many rows of a stream are handed on together.
const streamed = 40

// fewParts is how many unwanted parts are read, so that a query of few rows ends by
// itself. A longer one is cancelled, which costs Postgres the connection.
const fewParts = 3

// stream reads the rows that narrow leaves, in its order, in a snapshot of its
// own. The rows are scanned into one model again and again: gorm's own scan of
// a row takes several times longer. The next rows are read while the caller writes
// the ones before: on SQLite an export of sales takes 0.85 s instead of 0.93 on two
// cores.
func stream[R, T any](ctx context.Context, d *database, t *batch.Table[R], entry func(*R) (T, error), narrow func(*gorm.DB) *gorm.DB) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		parts := make(chan []T, 1)
		read := aside(func() error {
			defer close(parts)
			return d.snapshot(ctx, func(tx *gorm.DB) error {
				rows, err := narrow(tx.Table(t.Name).Select(batch.Names(t.Columns))).Rows() //nolint:rowserrcheck,sqlclosecheck // Each does it
				if err != nil {
					return err
				}
				var part []T
				flush := func() error {
					select {
					case parts <- part:
						part = make([]T, 0, streamed)
						return nil
					case <-ctx.Done(): // or closing the rows would read them to the end
						return ctx.Err()
					}
				}
				row := new(R)
				into := batch.Targets(row, t.Columns)
				err = batch.Each(rows, func() error {
					if err := rows.Scan(into...); err != nil {
						return err
					}
					value, err := entry(row)
					if err != nil {
						return errors.Join(flush(), err) // what came before it is good
					}
					if part = append(part, value); len(part) < streamed {
						return nil
					}
					return flush()
				})
				if err != nil {
					return err
				}
				return flush()
			})
		})
		defer func() {
			for range fewParts {
				if _, more := <-parts; !more {
					break
				}
			}
			cancel()
			_ = read() // nothing is read any more
		}()
		for part := range parts {
			for _, value := range part {
				if !yield(value, nil) {
					return
				}
			}
		}
		if err := read(); err != nil {
			var none T
			yield(none, err)
		}
	}
}
