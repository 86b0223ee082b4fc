// Package write has the ports that write. Books and Inboxes carry out batches: a way fills a
// book, the book is settled, and the way writes what has changed. Everything that is written
// has its entry in the trail, and the act that the context carries.
package write

import (
	"bankingapi/adapters/storage/trail"
	"bankingapi/application/store"
)

// Fill sets the ports that write, except Books and Inboxes.
func Fill(s *store.Store, m trail.Writer) {
	s.Subscriptions, s.Usage = subscribers{m}, subscribers{m}
	s.Requests = requestLog{m.Database}
	p := &s.Backoffice
	p.Books, p.Imports, p.Audit, p.Erasing, p.Withdrawing = NewBooks(m), imports{m}, acts{m}, erasing{m}, acts{m}
}
