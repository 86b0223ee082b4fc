// Package tables has the tables of a book. Each file is a table. It has the row, which is a
// gorm model and the only declaration of its columns, and the conversions from and to the
// domain. tables.go has the statements of all tables.
//
// Database has the tables and the transactions on them.
package tables

import (
	"slices"
	"strings"
	"sync/atomic"

	"gorm.io/gorm/schema"

	"bankingapi/adapters/storage/batch"
)

// NewDatabase returns a database with all tables and statements.
func NewDatabase(db *batch.DB, prefix string) *Database {
	d := &Database{DB: db, Prefix: prefix, secret: new(atomic.Pointer[[]byte])}
	d.secret.Store(new([]byte))

	subscriptions := open(d, &d.Subscriptions, "subscriptions", "SELECT INSERT UPDATE")
	columns := batch.Names(subscriptions.Columns)
	subscriptions.Find, subscriptions.Add = subscriptions.Table.Find(batch.ForUpdate, "", columns...), subscriptions.Insert().Racing()
	subscriptions.Put, d.UseSubscription = subscriptions.Update(columns[1:]...), subscriptions.Update(neverLogged...)

	prices := open(d, &d.Prices, "prices", "SELECT INSERT UPDATE", "price > 0")
	columns = []string{"imkb_code", "holder_corporation_name", "price", "currency_code", "valid_from"}
	prices.Find, prices.Add, prices.Put = prices.Table.Find(batch.NoLock, "", columns...), prices.Upsert(), prices.Update("valid_from")
	condition := func(column, operator string) batch.Condition {
		return batch.Condition{Column: prices.Select(column)[0], Operator: operator}
	}
	newest := batch.Lookup{Select: prices.Select(append(columns, "price_id")...), Order: NewestPrice}
	newest.Where = []batch.Condition{condition("imkb_code", "="), condition("holder_corporation_name", "="), condition("valid_from", "<=")}
	d.FindCurrentPrice = prices.Lookup("find current "+prices.Name, newest)
	newest.Where = append(newest.Where[:2:2], condition("valid_from", "<"), condition("currency_code", "="))
	d.FindEarlierPrice = prices.Lookup("find earlier "+prices.Name, newest)

	holdings := open(d, &d.Holdings, "holdings", "SELECT INSERT UPDATE", "units >= 0")
	holdings.Find, holdings.Put, holdings.Add = holdings.Table.Find(batch.ForUpdate, "", "units"), holdings.Upsert("units"), holdings.Insert().Racing()
	d.ReadHolding = holdings.Table.Find(batch.NoLock, "", "units")

	accounts := open(d, &d.Accounts, "accounts", "SELECT INSERT UPDATE", "balance >= 0")
	accounts.Find, accounts.Put, accounts.Add = accounts.Table.Find(batch.ForUpdate, "", "balance"), accounts.Upsert("balance"), accounts.Insert().Racing()
	d.ReadAccount = accounts.Table.Find(batch.NoLock, "", "balance")

	operations := open(d, &d.Operations, "operations", "SELECT INSERT UPDATE")
	last := &d.Relied[len(d.Relied)-1]
	last.Unique, last.Where = "identity", "caller_id <> ''"
	operations.Find = operations.Table.Find(batch.SkipLocked, "t."+IsRecorded, "state")
	operations.Add, operations.Put = operations.Insert().Racing(), operations.Update("state", "faults", "ended_at")
	d.LockOperation = operations.Table.Find(batch.ForUpdate, "", "state", "reversal_id")
	d.ReverseOperation = operations.Update("reversal_id", "reversed_at")
	d.EraseSession = operations.Update("channel_session_id", "session_hash")
	callers := newTable[CallerRow](d, "operations")
	d.FindCaller = callers.Find(batch.NoLock, "t.caller_id <> ''", "caller_id", "operation_id", "fingerprint", "state", "faults")

	sales := open(d, &d.Sales, "sales", "SELECT INSERT UPDATE", "units > 0")
	sales.Put = sales.Update("state", "settled_price_id", "settled_price", "proceeds", "refusal")
	d.ListedSales = newListed[ListedSaleRow](d, "sales", sales.Columns)

	open(d, &d.Adjustments, "adjustments", "SELECT INSERT")
	d.AllPostings = newTable[PostingRow](d, "postings")
	d.AllPostings.Name = strings.ReplaceAll(AllPostings, "{{prefix}}", prefix)

	notifications := open(d, &d.Notifications, "notifications", "SELECT INSERT UPDATE")
	notifications.Find, notifications.Add = notifications.Table.Find(batch.NoLock, "", "operation_id"), notifications.Upsert()
	d.Erasable = notifications.Select(erasable(notifications.Table)...)
	notifications.Put = notifications.Update(batch.Names(d.Erasable)...)
	listed := newListed[ListedNotificationRow](d, "notifications", notifications.Columns)
	listed.Source += " LEFT JOIN " + d.Prefix + "audits a ON a.audit_id = t.erasure_id"
	listed.Selected[len(listed.Selected)-1] = "COALESCE(a.reason, '') AS reason"
	d.ListedNotifications = listed

	open(d, &d.Audits, "audits", "SELECT INSERT")

	outcomes := open(d, &d.Outcomes, "outcomes", "SELECT INSERT")
	outcomes.Find = outcomes.Table.Find(batch.NoLock, "", "number")
	d.ListedOutcomes = newListed[ListedOutcomeRow](d, "outcomes", outcomes.Columns)

	properties := &d.Properties
	properties.Table = openBeside[PropertyRow](d, "properties", "SELECT INSERT UPDATE")
	properties.Find, properties.Put = properties.Table.Find(batch.ForUpdate, "", "value"), properties.Update("value")

	requests := open(d, &d.Requests, "requests", "SELECT INSERT DELETE")
	requests.Add = requests.Upsert()

	d.FindRules = d.Properties.Table.Find(batch.NoLock, "", "value")
	d.LockRulesOfNewBook = d.Properties.Table.Find(batch.ForUpdate, "NOT EXISTS (SELECT 1 FROM "+d.Operations.Name+")", "value")
	d.Replicas = openBeside[ReplicaRow](d, "replicas", "SELECT INSERT UPDATE DELETE")
	d.TrailBatches, d.TrailHashes = openBeside[TrailBatchRow](d, "trail_batches", "SELECT INSERT UPDATE"), openBeside[TrailHashRow](d, "trail_hashes", "SELECT INSERT")
	return d
}

// newTable returns a table. name has no prefix.
func newTable[R any](d *Database, name string) *batch.Table[R] {
	t := batch.NewTable[R](d.DB.Dialect, schema.NamingStrategy{})
	t.Name = d.Prefix + name
	return t
}

// open returns a table of the book with an insert. rights and checks are as in Relied.
func open[R any](d *Database, t *Statements[R], name, rights string, checks ...string) *Statements[R] {
	t.Table = openBeside[R](d, name, rights, checks...)
	t.Add = t.Insert()
	d.TableNames = append(d.TableNames, t.Name)
	return t
}

// openBeside returns a table without adding it to TableNames.
func openBeside[R any](d *Database, name, rights string, checks ...string) *batch.Table[R] {
	t := newTable[R](d, name)
	relied := Relied{
		Table: t.Name, Columns: batch.Names(t.Columns), Keys: slices.Sorted(slices.Values(t.Keys)),
		Nullable: []string{}, Defaults: []string{},
		Checks: checks, Rights: strings.Fields(rights), Copies: copier[R]{t},
	}
	for _, c := range t.Columns {
		if c.Nullable {
			relied.Nullable = append(relied.Nullable, c.Name)
		}
		if c.Sparse && !c.Nullable {
			relied.Defaults = append(relied.Defaults, c.Name)
		}
	}
	d.Relied = append(d.Relied, relied)
	return t
}
