// Package tables has the tables of a book. A file is a table: its row, which is a model of
// gorm and the only declaration of its columns, with the conversions from and to the domain.
// In tables.go are the statements of all tables, and how their rows enter the trail.
//
// Database is the tables with the transactions on them.
package tables

import (
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

// Statements is a table with its statements. Those that nothing needs are nil.
type Statements[R any] struct {
	*batch.Table[R]
	Find     *batch.Query[R]
	Add, Put *batch.Statement[R]
	// Leaves says how the rows enter the trail, unless they do so with an operation.
	Leaves *leafKind[R]
}

// ModelNames gives the model SaleRow the table sales.
var ModelNames = strings.NewReplacer("Row", "")

// NewDatabase returns a database with all tables and statements.
func NewDatabase(db *batch.DB, prefix string) *Database {
	d := &Database{DB: db, Prefix: prefix, secret: new(atomic.Pointer[[]byte])}

	subscriptions := open(d, &d.Subscriptions.Statements, "SELECT")
	columns := batch.Names(subscriptions.Columns)
	subscriptions.Find, subscriptions.Add = subscriptions.Table.Find(batch.ForUpdate, "", columns...), subscriptions.Insert().Racing()
	subscriptions.Put, d.Subscriptions.Use = subscriptions.Update(columns[1:]...), subscriptions.Update(neverLogged...)
	subscriptions.Leaves = &leafKind[SubscriptionRow]{
		kind: trail.Changed, table: subscriptions.Table, row: "subscriptions", skip: neverLogged, what: "subscription",
		ID:   func(r *SubscriptionRow) operation.ID { return trail.NameID(r.Name) },
		text: func(id operation.ID) string { return strconv.Quote(id.String()) },
		name: func(r *SubscriptionRow) string { return strconv.Quote(r.Name) },
	}

	prices := open(d, &d.Prices.Statements, "SELECT", "price > 0")
	columns = []string{"imkb_code", "holder_corporation_name", "price", "currency_code", "valid_from"}
	prices.Find, prices.Add, prices.Put = prices.Table.Find(batch.NoLock, "", columns...), prices.Upsert(), prices.Update("valid_from")
	is := func(column, operator string) batch.Condition {
		return batch.Condition{Column: prices.Select(column)[0], Operator: operator}
	}
	newest := batch.Lookup{Select: prices.Select(append(columns, "price_id")...), Order: NewestPrice}
	newest.Where = []batch.Condition{is("imkb_code", "="), is("holder_corporation_name", "="), is("valid_from", "<=")}
	d.Prices.FindCurrent = prices.Lookup("find current "+prices.Name, newest)
	newest.Where = append(newest.Where[:2:2], is("valid_from", "<"), is("currency_code", "="))
	d.Prices.FindBefore = prices.Lookup("find earlier "+prices.Name, newest)
	prices.Leaves = &leafKind[PriceRow]{
		kind: trail.Priced, table: prices.Table, row: "prices", what: "price",
		ID:   func(r *PriceRow) operation.ID { return trail.PriceID(r.PriceID) },
		text: func(id operation.ID) string { return strconv.FormatInt(trail.ParsePriceID(id), 10) },
	}

	holdings := open(d, &d.Holdings, "SELECT INSERT UPDATE", "units >= 0")
	holdings.Find, holdings.Put, holdings.Add = holdings.Table.Find(batch.ForUpdate, "", "units"), holdings.Upsert("units"), holdings.Insert().Racing()

	accounts := open(d, &d.Accounts, "SELECT INSERT UPDATE", "balance >= 0")
	accounts.Find, accounts.Put, accounts.Add = accounts.Table.Find(batch.ForUpdate, "", "balance"), accounts.Upsert("balance"), accounts.Insert().Racing()

	operations := open(d, &d.Operations.Statements, "SELECT INSERT UPDATE")
	operations.Find = operations.Table.Find(batch.NoLock, "", "operation_id", "fingerprint", "state", "faults")
	operations.Add, operations.Put = operations.Insert().Racing(), operations.Update("state", "faults")

	sales := open(d, &d.Sales.Statements, "SELECT INSERT UPDATE", "units > 0")
	sales.Find, sales.Add = sales.Table.Find(batch.SkipLocked, "t."+IsRecorded, "state"), sales.Insert()
	sales.Put = sales.Update("state", "settled_price_id", "settled_price", "proceeds", "refusal", "settled_at")
	d.Sales.Listed = newTable[ListedSaleRow](d)
	d.Sales.Listed.Name = sales.Name

	postings := open(d, &d.Postings.Statements, "INSERT")
	postings.Add = postings.Insert()
	postings.Leaves = &leafKind[PostingRow]{ // of postings that belong to no sale
		kind: trail.Posted, isSum: true, table: postings.Table, row: "postings", what: "postings of", text: operation.ID.String,
		ID: func(r *PostingRow) operation.ID { return operation.ID(r.OperationID) },
		rows: func(tx *gorm.DB) *gorm.DB {
			return tx.Where("t.kind <> ?", int64(fund.SalePosting)).Order("t.operation_id")
		},
	}
	all := *postings.Table
	all.Name = strings.ReplaceAll(AllPostings, "{{prefix}}", prefix)
	d.Postings.All = &all

	transfers := open(d, &d.Transfers, "INSERT")
	transfers.Add = transfers.Insert()

	notifications := open(d, &d.Notifications.Statements, "SELECT INSERT DELETE")
	notifications.Find, notifications.Add = notifications.Table.Find(batch.NoLock, "", "operation_id"), notifications.Upsert()
	d.Notifications.Remove = notifications.Delete("")
	notifications.Put = notifications.Update("subject", "content", "deep_link_url", "tran_data", "channel_session_id")
	users := notifications.Select("user_id")
	d.Notifications.FindErased = notifications.Lookup("find erased "+notifications.Name, batch.Lookup{
		Select: users, Where: []batch.Condition{{Column: users[0], Operator: "="}},
	})
	notifications.Leaves = &leafKind[NotificationRow]{ // of the rows that one act has emptied
		kind: trail.Erased, isSum: true, table: notifications.Table, row: "notifications", what: "erasure", text: operation.ID.String,
		ID:   func(r *NotificationRow) operation.ID { return operation.ID(r.ErasureID) },
		rows: func(tx *gorm.DB) *gorm.DB { return tx.Where("t.user_id = ''").Order("t.erasure_id") },
	}
	identities := newTable[IdentityRow](d)
	identities.Name = notifications.Name
	// The first condition is asked once, and few books have erased messages. LIMIT leaves the
	// planner nothing but one index lookup for each message.
	of := identities.Name + " WHERE user_id = ''"
	d.Notifications.RemoveErased = identities.Delete("EXISTS (SELECT 1 FROM "+of+") AND (SELECT true FROM "+of+" AND digest = {erased} LIMIT 1)", "erased")

	refusals, refusedSales := open(d, &d.Refusals.Statements, "INSERT"), open(d, &d.Refusals.Sales, "INSERT")
	refusals.Add, refusedSales.Add = refusals.Insert(), refusedSales.Insert()

	// The CallerIds whose operations have no sales: of notifications, and of refusals by
	// versions that kept nothing else.
	operations.Leaves = &leafKind[OperationRow]{
		kind: trail.Answered, table: d.Operations.Table, row: "operations", what: "CallerId of operation", text: operation.ID.String,
		ID: func(r *OperationRow) operation.ID { return operation.ID(r.OperationID) },
		rows: func(tx *gorm.DB) *gorm.DB {
			const of = " o WHERE t.operation = 2 AND o.operation_id = t.operation_id AND o.caller_id = t.caller_id AND o.subscription = t.subscription)"
			return tx.Where("NOT EXISTS (SELECT 1 FROM " + d.Sales.Name + of).Where("NOT EXISTS (SELECT 1 FROM " + d.Refusals.Name + of)
		},
	}

	reversals := open(d, &d.Reversals.Statements, "SELECT")
	reversals.Find, reversals.Add = reversals.Table.Find(batch.NoLock, "", "reversal_id"), reversals.Insert().Racing()
	reversals.Leaves = &leafKind[ReversalRow]{
		kind: trail.Reversed, table: reversals.Table, row: "reversals", what: "reversal of operation", text: operation.ID.String,
		ID: func(r *ReversalRow) operation.ID { return operation.ID(r.OperationID) },
	}

	audits := open(d, &d.Audits, "")
	audits.Add = audits.Insert()
	audits.Leaves = &leafKind[AuditRow]{
		kind: trail.Act, table: audits.Table, row: "audits", what: "act", text: operation.ID.String,
		ID: func(r *AuditRow) operation.ID { return operation.ID(r.AuditID) },
	}

	calendars := open(d, &d.Calendars, "SELECT", "calendar_id = 1")
	calendars.Find, calendars.Add, calendars.Put = calendars.Table.Find(batch.ForUpdate, "", "closed_days"), calendars.Insert(), calendars.Update("closed_days")

	outcomes, counters := open(d, &d.Outcomes.Statements, "INSERT"), &d.Outcomes.Counters
	counters.Table = beside[OutcomeCounterRow](d, "SELECT UPDATE", "counter_id = 1")
	outcomes.Find, outcomes.Add = outcomes.Table.Find(batch.NoLock, "", "number"), outcomes.Insert()
	counters.Find, counters.Put = counters.Table.Find(batch.ForUpdate, "", "last"), counters.Update("last")

	requests := open(d, &d.Requests, "")
	requests.Add = requests.Insert()

	d.Marks, d.Properties = beside[MarkRow](d, "SELECT"), beside[PropertyRow](d, "SELECT")
	d.TrailBatches, d.TrailHashes, d.TrailLogs = beside[TrailBatchRow](d, ""), beside[TrailHashRow](d, ""), beside[TrailLogRow](d, "", "log_id = 1")
	return d
}

func newTable[R any](d *Database) *batch.Table[R] {
	return batch.NewTable[R](d.Dialect, schema.NamingStrategy{TablePrefix: d.Prefix, NameReplacer: ModelNames})
}

// open gives a table of the book its columns. rights and checks are those of Relied.
func open[R any](d *Database, t *Statements[R], rights string, checks ...string) *Statements[R] {
	t.Table = beside[R](d, rights, checks...)
	d.TableNames = append(d.TableNames, t.Name)
	return t
}

// beside opens a table that is not part of the book: of the mark, the trail or the schema.
func beside[R any](d *Database, rights string, checks ...string) *batch.Table[R] {
	t := newTable[R](d)
	r := Relied{Table: t.Name, Keys: slices.Sorted(slices.Values(t.Keys)), Checks: checks, Rights: strings.Fields(rights), Copies: copier[R]{t}}
	r.Columns = batch.Names(t.Columns)
	d.Relied = append(d.Relied, r)
	return t
}
