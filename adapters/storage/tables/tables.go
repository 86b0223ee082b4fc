// Package tables has the tables of a book. Each file is a table. It has the row, which is a
// gorm model and the only declaration of its columns, the conversions from and to the domain, and
// the statements of the table.
//
// Database has the tables and the transactions on them.
package tables

import (
	"slices"
	"sync/atomic"

	"gorm.io/gorm/schema"

	"bankingapi/adapters/storage/batch"
)

// NewDatabase returns a database with all tables and statements. A copy of a book copies the tables
// in this order.
func NewDatabase(db *batch.DB, prefix string) *Database {
	d := &Database{DB: db, Prefix: prefix, secret: new(atomic.Pointer[[]byte])}
	d.secret.Store(new([]byte))
	openSubscriptions(d)
	openPrices(d)
	openHoldings(d)
	openAccounts(d)
	openOperations(d)
	openSales(d)
	openAdjustments(d)
	openNotifications(d)
	open(d, &d.Audits, Relied{Table: "audits", Rights: addOnly})
	openOutcomes(d)
	openProperties(d)
	openRequests(d)
	d.Replicas = openBeside[ReplicaRow](d, Relied{Table: "replicas", Rights: allRights})
	openTrail(d)
	return d
}

// newTable returns a table. name has no prefix.
func newTable[R any](d *Database, name string) *batch.Table[R] {
	t := batch.NewTable[R](d.DB.Dialect, schema.NamingStrategy{})
	t.Name = d.Prefix + name
	return t
}

// open opens a table of the book, and gives it an insert.
func open[R any](d *Database, t *Statements[R], relied Relied) {
	t.Table = openBeside[R](d, relied)
	t.Add = t.Insert()
	d.TableNames = append(d.TableNames, t.Name)
}

// openBeside returns a table that does not belong to the book, so it is not in TableNames. The name
// in relied has no prefix; the columns are filled in from the row.
func openBeside[R any](d *Database, relied Relied) *batch.Table[R] {
	t := newTable[R](d, relied.Table)
	relied.Table, relied.Copies = t.Name, copier[R]{t}
	relied.Columns, relied.Keys = batch.Names(t.Columns), slices.Sorted(slices.Values(t.Keys))
	relied.Nullable, relied.Defaults = []string{}, []string{}
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

// The rights that the service needs in its tables.
var (
	addOnly      = []string{"SELECT", "INSERT"}
	addAndChange = []string{"SELECT", "INSERT", "UPDATE"}
	addAndDelete = []string{"SELECT", "INSERT", "DELETE"}
	allRights    = []string{"SELECT", "INSERT", "UPDATE", "DELETE"}
)
