// Package tables has the tables of a book. Each file is a table. It has the row, which is a
// gorm model and the only declaration of its columns, the conversions from and to the domain, and
// the statements of the table.
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
	open(d, &d.Audits, Relied{Rights: addOnly})
	openOutcomes(d)
	openProperties(d)
	openRequests(d)
	d.Replicas = openBeside[ReplicaRow](d, Relied{Rights: allRights})
	openTrail(d)
	return d
}

// Naming names the tables: OperationRow is a row of the table operations.
func Naming(prefix string) schema.NamingStrategy {
	return schema.NamingStrategy{TablePrefix: prefix, NameReplacer: strings.NewReplacer("Row", "")}
}

func newTable[R any](d *Database) *batch.Table[R] {
	return batch.NewTable[R](d.DB.Dialect, Naming(d.Prefix))
}

// open opens a table of the book, and gives it an insert.
func open[R any](d *Database, t *Statements[R], relied Relied) {
	t.Table = openBeside[R](d, relied)
	t.Add = t.Insert()
	d.TableNames = append(d.TableNames, t.Name)
}

// openBeside returns a table that does not belong to the book, so it is not in TableNames. The name
// and the columns in relied are filled in from the row.
func openBeside[R any](d *Database, relied Relied) *batch.Table[R] {
	t := newTable[R](d)
	relied.Table = t.Name
	relied.Copies = copier[R]{t}
	relied.Columns = batch.Names(t.Columns)
	relied.Keys = slices.Sorted(slices.Values(t.Keys))
	relied.Nullable = []string{}
	relied.Defaults = []string{}
	for _, c := range t.Columns {
		relied.Kinds = append(relied.Kinds, c.Kind.String())
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
