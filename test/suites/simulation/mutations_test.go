package simulation

import (
	"bankingapi/application/addpush"
	"bankingapi/application/buyfund"
	"bankingapi/application/outcomes"
	"bankingapi/domain/fund"
	"bankingapi/domain/push"
	"bankingapi/test/fake"
)

// Mutant is a mistake that a run must find. Each function that is not nil wraps a
// part: the ports of the use cases, the failures of the store, its rows, or the
// options of a use case.
type Mutant struct {
	Books   func(buyfund.Books) buyfund.Books
	Inboxes func(addpush.Inboxes) addpush.Inboxes
	Strike  func(fake.Strike) fake.Strike
	Rows    func(Rows) Rows
	Options func(*buyfund.Options)
	Source  func(outcomes.Source) outcomes.Source
}

// Rows returns the contents of the store to the audit.
type Rows interface {
	Holdings() []fund.Holding
	Accounts() []fund.Account
	Sales() []fund.SaleEntry
	Postings() []fund.Posting
	Notifications() []push.Entry
}

func (p *Mutant) books(b buyfund.Books) buyfund.Books {
	if p.Books == nil {
		return b
	}
	return p.Books(b)
}

func (p *Mutant) inboxes(b addpush.Inboxes) addpush.Inboxes {
	if p.Inboxes == nil {
		return b
	}
	return p.Inboxes(b)
}

func (p *Mutant) strike(s fake.Strike) fake.Strike {
	if p.Strike == nil {
		return s
	}
	return p.Strike(s)
}

func (p *Mutant) rows(r Rows) Rows {
	if p.Rows == nil {
		return r
	}
	return p.Rows(r)
}

func (p *Mutant) outcomes(s outcomes.Source) outcomes.Source {
	if p.Source == nil {
		return s
	}
	return p.Source(s)
}
