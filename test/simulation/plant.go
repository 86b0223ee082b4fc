package simulation

import (
	"bankingapi/application/addpush"
	"bankingapi/application/buyfund"
	"bankingapi/domain/fund"
	"bankingapi/domain/push"
	"bankingapi/test/fake"
)

// Plant is a mistake that a run has to find: what is not nil stands between
// the use cases and the store, or between the store and who reads its rows.
type Plant struct {
	Books   func(buyfund.Books) buyfund.Books
	Inboxes func(addpush.Inboxes) addpush.Inboxes
	Strike  func(fake.Strike) fake.Strike
	Rows    func(Rows) Rows
	Options func(*buyfund.Options)
}

// Rows are what is in the store, as an auditor reads them.
type Rows interface {
	Holdings() []fund.Holding
	Accounts() []fund.Account
	Sales() []fund.SaleEntry
	Postings() []fund.Posting
	Notifications() []push.Entry
}

func (p *Plant) books(b buyfund.Books) buyfund.Books {
	if p.Books == nil {
		return b
	}
	return p.Books(b)
}

func (p *Plant) inboxes(b addpush.Inboxes) addpush.Inboxes {
	if p.Inboxes == nil {
		return b
	}
	return p.Inboxes(b)
}

func (p *Plant) strike(s fake.Strike) fake.Strike {
	if p.Strike == nil {
		return s
	}
	return p.Strike(s)
}

func (p *Plant) rows(r Rows) Rows {
	if p.Rows == nil {
		return r
	}
	return p.Rows(r)
}
