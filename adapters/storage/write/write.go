// Package write implements the ports that write. Books and Inboxes carry out batches: a way
// fills a book, the book is settled, and the way writes the changes. A change of the book has an
// entry in the trail, and is written together with the act that the context carries. The log of
// requests, the use of keys and the progress of erasing have none.
package write

import (
	"bankingapi/adapters/storage/trail"
	"bankingapi/application/store"
)

// Fill sets the ports that write, except Books and Inboxes.
func Fill(s *store.Store, d trail.Writer) {
	s.Subscriptions, s.Usage = subscribers{d.DB, d}, subscribers{d.DB, d}
	s.Requests = requestLog{d.DB}
	p := &s.Backoffice
	p.Books, p.Imports, p.Audit, p.Erasing, p.Withdrawing = NewBooks(d), imports{d.DB, d}, acts{d.DB, d}, erasing{d.DB, d}, acts{d.DB, d}
	p.RuleBook = rules{d.DB, d}
}
