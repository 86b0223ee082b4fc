// Package office serves the people of the bank: lists and lookups, imports, the calendar, the rules
// and other acts. People ask for rows in many combinations, and change few of them, so this package
// uses gorm. Only imports and acts write batches.
//
// Operations is the only reader of everything that is stored of an operation, which is in several
// tables. The evidence for verify is made from the same rows as what a person sees.
package office

import (
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
)

// Fill sets the ports of the back office that this package implements.
func Fill(p *backoffice.Ports, d *tables.Database, j journal.Journal) {
	p.Reader = reader{d}
	p.Lookups = lookups{d, j}
	p.Pricing = pricing{d}
	p.Imports = imports{d, j}
	p.RuleBook = rules{d, j}
	p.Audit = acts{d, j}
	p.Withdrawing = acts{d, j}
}
