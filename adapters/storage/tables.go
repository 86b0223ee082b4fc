package storage

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// table is a table with its statements. Those that nothing needs are nil.
type table[R any] struct {
	*batch.Table[R]
	find     *batch.Query[R]
	add, put *batch.Statement[R]
	// leaves says how the rows enter the trail, unless they do so with an operation.
	leaves *leafKind[R]
}

// modelNames gives the model SaleRow the table sales.
var modelNames = strings.NewReplacer("Row", "")

// newDatabase returns a database with all tables and statements.
func newDatabase(db *batch.DB, prefix string) *database {
	d := &database{DB: db, prefix: prefix, secret: new(atomic.Pointer[[]byte])}

	subscriptions := open(d, &d.subscriptions.table, "SELECT")
	columns := batch.Names(subscriptions.Columns)
	subscriptions.find, subscriptions.add = subscriptions.Find(batch.ForUpdate, "", columns...), subscriptions.Insert().Racing()
	subscriptions.put, d.subscriptions.use = subscriptions.Update(columns[1:]...), subscriptions.Update(neverLogged...)
	subscriptions.leaves = &leafKind[SubscriptionRow]{
		kind: trail.Changed, table: subscriptions.Table, row: "subscriptions", skip: neverLogged, what: "subscription",
		id:   func(r *SubscriptionRow) operation.ID { return trail.NameID(r.Name) },
		text: func(id operation.ID) string { return strconv.Quote(id.String()) },
		name: func(r *SubscriptionRow) string { return strconv.Quote(r.Name) },
	}

	prices := open(d, &d.prices.table, "SELECT", "price > 0")
	columns = []string{"imkb_code", "holder_corporation_name", "price", "currency_code", "valid_from"}
	prices.find, prices.add, prices.put = prices.Find(batch.NoLock, "", columns...), prices.Upsert(), prices.Update("valid_from")
	is := func(column, operator string) batch.Condition {
		return batch.Condition{Column: prices.Select(column)[0], Operator: operator}
	}
	newest := batch.Lookup{Select: prices.Select(append(columns, "price_id")...), Order: NewestPrice}
	newest.Where = []batch.Condition{is("imkb_code", "="), is("holder_corporation_name", "="), is("valid_from", "<=")}
	d.prices.findCurrent = prices.Lookup("find current "+prices.Name, newest)
	newest.Where = append(newest.Where[:2:2], is("valid_from", "<"), is("currency_code", "="))
	d.prices.findBefore = prices.Lookup("find earlier "+prices.Name, newest)
	prices.leaves = &leafKind[PriceRow]{
		kind: trail.Priced, table: prices.Table, row: "prices", what: "price",
		id:   func(r *PriceRow) operation.ID { return trail.PriceID(r.PriceID) },
		text: func(id operation.ID) string { return strconv.FormatInt(trail.ParsePriceID(id), 10) },
	}

	holdings := open(d, &d.holdings, "SELECT INSERT UPDATE", "units >= 0")
	holdings.find, holdings.put, holdings.add = holdings.Find(batch.ForUpdate, "", "units"), holdings.Upsert("units"), holdings.Insert().Racing()

	accounts := open(d, &d.accounts, "SELECT INSERT UPDATE", "balance >= 0")
	accounts.find, accounts.put, accounts.add = accounts.Find(batch.ForUpdate, "", "balance"), accounts.Upsert("balance"), accounts.Insert().Racing()

	operations := open(d, &d.operations.table, "SELECT INSERT UPDATE")
	operations.find = operations.Find(batch.NoLock, "", "operation_id", "fingerprint", "state", "faults")
	operations.add, operations.put = operations.Insert().Racing(), operations.Update("state", "faults")

	sales := open(d, &d.sales.table, "SELECT INSERT UPDATE", "units > 0")
	sales.find, sales.add = sales.Find(batch.SkipLocked, "t."+recorded, "state"), sales.Insert()
	sales.put = sales.Update("state", "settled_price_id", "settled_price", "proceeds", "refusal", "settled_at")
	d.sales.listed = newTable[listedSaleRow](d)
	d.sales.listed.Name = sales.Name

	postings := open(d, &d.postings.table, "INSERT")
	postings.add = postings.Insert()
	postings.leaves = &leafKind[PostingRow]{ // of postings that belong to no sale
		kind: trail.Posted, table: postings.Table, row: "postings", what: "postings of", text: operation.ID.String,
		id: func(r *PostingRow) operation.ID { return operation.ID(r.OperationID) },
		rows: func(tx *gorm.DB) *gorm.DB {
			return tx.Where("t.kind <> ?", int64(fund.SalePosting)).Order("t.operation_id")
		},
	}
	all := *postings.Table
	all.Name = strings.ReplaceAll(allPostings, "{{prefix}}", prefix)
	d.postings.all = &all

	transfers := open(d, &d.transfers, "INSERT")
	transfers.add = transfers.Insert()

	notifications := open(d, &d.notifications.table, "SELECT INSERT DELETE")
	notifications.find, notifications.add = notifications.Find(batch.NoLock, "", "operation_id"), notifications.Upsert()
	d.notifications.remove = notifications.Delete("")
	notifications.put = notifications.Update("subject", "content", "deep_link_url", "tran_data", "channel_session_id")
	users := notifications.Select("user_id")
	d.notifications.findErased = notifications.Lookup("find erased "+notifications.Name, batch.Lookup{
		Select: users, Where: []batch.Condition{{Column: users[0], Operator: "="}},
	})
	notifications.leaves = &leafKind[NotificationRow]{ // of the rows that one act has emptied
		kind: trail.Erased, table: notifications.Table, row: "notifications", what: "erasure", text: operation.ID.String,
		id:   func(r *NotificationRow) operation.ID { return operation.ID(r.ErasureID) },
		rows: func(tx *gorm.DB) *gorm.DB { return tx.Where("t.user_id = ''").Order("t.erasure_id") },
	}
	identities := newTable[identityRow](d)
	identities.Name = notifications.Name
	// The first condition is asked once, and few books have erased messages. LIMIT leaves the
	// planner nothing but one index lookup for each message.
	of := identities.Name + " WHERE user_id = ''"
	d.notifications.removeErased = identities.Delete("EXISTS (SELECT 1 FROM "+of+") AND (SELECT true FROM "+of+" AND digest = {erased} LIMIT 1)", "erased")

	refusals, refusedSales := open(d, &d.refusals.table, "INSERT"), open(d, &d.refusals.sales, "INSERT")
	refusals.add, refusedSales.add = refusals.Insert(), refusedSales.Insert()

	reversals := open(d, &d.reversals.table, "SELECT")
	reversals.find, reversals.add = reversals.Find(batch.NoLock, "", "reversal_id"), reversals.Insert().Racing()
	reversals.leaves = &leafKind[ReversalRow]{
		kind: trail.Reversed, table: reversals.Table, row: "reversals", what: "reversal of operation", text: operation.ID.String,
		id: func(r *ReversalRow) operation.ID { return operation.ID(r.OperationID) },
	}

	audits := open(d, &d.audits, "")
	audits.add = audits.Insert()
	audits.leaves = &leafKind[AuditRow]{
		kind: trail.Act, table: audits.Table, row: "audits", what: "act", text: operation.ID.String,
		id: func(r *AuditRow) operation.ID { return operation.ID(r.AuditID) },
	}

	calendars := open(d, &d.calendars, "SELECT", "calendar_id = 1")
	calendars.find, calendars.add, calendars.put = calendars.Find(batch.ForUpdate, "", "closed_days"), calendars.Insert(), calendars.Update("closed_days")

	outcomes, counters := open(d, &d.outcomes.table, "INSERT"), &d.outcomes.counters
	counters.Table = beside[OutcomeCounterRow](d, "SELECT UPDATE", "counter_id = 1")
	outcomes.find, outcomes.add = outcomes.Find(batch.NoLock, "", "number"), outcomes.Insert()
	counters.find, counters.put = counters.Find(batch.ForUpdate, "", "last"), counters.Update("last")

	requests := open(d, &d.requests, "")
	requests.add = requests.Insert()

	d.marked, d.properties = beside[MarkRow](d, "SELECT"), beside[PropertyRow](d, "SELECT")
	d.batches, d.trailHashes, d.trailLogs = beside[TrailBatchRow](d, ""), beside[TrailHashRow](d, ""), beside[TrailLogRow](d, "", "log_id = 1")
	return d
}

func newTable[R any](d *database) *batch.Table[R] {
	return batch.NewTable[R](d.Dialect, schema.NamingStrategy{TablePrefix: d.prefix, NameReplacer: modelNames})
}

// open gives a table of the book its columns. rights and checks are those of Relied.
func open[R any](d *database, t *table[R], rights string, checks ...string) *table[R] {
	t.Table = beside[R](d, rights, checks...)
	d.tables = append(d.tables, t.Name)
	return t
}

// beside opens a table that is not part of the book: of the mark, the trail or the schema.
func beside[R any](d *database, rights string, checks ...string) *batch.Table[R] {
	t := newTable[R](d)
	r := Relied{Table: t.Name, Keys: slices.Sorted(slices.Values(t.Keys)), Checks: checks, Rights: strings.Fields(rights), copies: copier[R]{t}}
	r.Columns = batch.Names(t.Columns)
	d.relied = append(d.relied, r)
	return t
}

// lookUp finds the row of one key. It is nil if there is none.
func lookUp[R any](ctx context.Context, s batch.Session, q *batch.Query[R], key R) (found *R, err error) {
	err = s.Exchange(ctx, q.Request([]R{key}, func(_ int, row *R) error {
		kept := *row
		found = &kept
		return nil
	}))
	return found, err
}
