// Package calls keeps what partners call for, beside sales: their messages and who may call, the
// outcomes that they read, and the log of their requests. Messages arrive in batches like sales, but
// nothing depends on what is stored already, except repeats. A message has personal texts, so this
// package also erases them.
package calls

import (
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/store"
)

// Fill sets the ports that this package implements, except Inboxes.
func Fill(s *store.Store, d *tables.Database, j journal.Journal) {
	s.Subscriptions = subscribers{d, j}
	s.Usage = subscribers{d, j}
	s.Requests = requestLog{d}
	s.Backoffice.Outcomes = outcomes{d}
	s.Backoffice.Erasing = erasing{d, j}
}
