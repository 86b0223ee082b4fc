// Package backoffice has the use cases of people: import a file, export rows,
// look up an operation or a customer, correct the book, prove it, load the demo
// book.
//
// Commands, the console and a host program call the same methods. Each use
// case works on ports of one to four methods, which this package declares and
// a storage adapter implements.
//
// All ports are safe for concurrent use. Their errors have a kind of package
// fault: Unavailable if the storage cannot be reached, Indeterminate if the
// connection was lost during a commit, Internal for anything unexpected. Names
// of customers and accounts occur in results and in findings, never in errors.
package backoffice

import (
	"context"
	"time"

	"bankingapi/domain/audit"
	"bankingapi/domain/day"
)

// Ports are the ports of all use cases of this package. A storage adapter
// implements them together.
type Ports struct {
	Imports  Imports
	Book     Book
	History  History
	Lookups  Lookups
	Evidence Evidence
	// Recent may be nil. Then a page reads the whole history.
	Recent Recent
	// Recorded may be nil. Then counting reads every sale that waits.
	Recorded Recorded
	// Records and Books may be nil: then there are no lookups of refused
	// operations and no corrections.
	Records Records
	Books   Books
	// Reversals may be nil. Then Records finds them one by one.
	Reversals Reversals
	// Audit may be nil. Then looks at personal data are not kept in the book.
	Audit Audit
}

// Office is all use cases of this package on one storage.
type Office struct {
	Importer *Importer
	Finder   *Finder
	Verifier *Verifier
	// Book, History, Recent and Recorded are read as they are; they need no use
	// case between.
	Book     Book
	History  History
	Recent   Recent
	Recorded Recorded
	// Records and Audit are nil if the storage keeps none.
	Records Records
	Audit   Audit
	// Reversals is nil if Records is.
	Reversals Reversals
	// Corrector is nil if the storage cannot correct the book.
	Corrector *Corrector
	// Trail is the trail of the book. New leaves it nil: then Verify checks the book
	// alone.
	Trail Trail
	// Unkept receives the reason why Verify could not keep its act. It may be nil.
	Unkept func(error)
	// Acts makes the acts of people, at the time of the bank. Zone is its time zone.
	Acts audit.Acts
	Zone *time.Location
}

// New returns the use cases on the ports. acts makes the IDs of imports and
// corrections, and has the time of the bank. zone is its time zone.
func New(ports Ports, acts audit.Acts, zone *time.Location) *Office {
	slow := recentOf{ports.History, ports.Lookups, ports.Records}
	if ports.Recent == nil {
		ports.Recent = slow
	}
	if ports.Recorded == nil {
		ports.Recorded = slow
	}
	if ports.Reversals == nil && ports.Records != nil {
		ports.Reversals = reversalsOf{ports.Records}
	}
	office := &Office{
		Importer:  NewImporter(ports.Imports, acts.NewID),
		Finder:    NewFinder(ports.Book, ports.Lookups),
		Verifier:  NewVerifier(ports.Evidence),
		Book:      ports.Book,
		History:   ports.History,
		Recent:    ports.Recent,
		Recorded:  ports.Recorded,
		Records:   ports.Records,
		Audit:     ports.Audit,
		Acts:      acts,
		Zone:      zone,
		Reversals: ports.Reversals,
	}
	if ports.Books != nil {
		office.Corrector = NewCorrector(ports.Books, ports.Lookups, acts.NewID, acts.Now, zone)
	}
	return office
}

// BeginSettling keeps the act of a person who settles sales that are due. They
// share transactions with new requests, so that the act has its own, before them.
func (o *Office) BeginSettling(ctx context.Context, due int64) error {
	if due == 0 || o.Audit == nil {
		return nil
	}
	return o.Audit.Record(ctx, o.Acts.New(ctx, "settle", day.Of(o.Acts.Now(), o.Zone).String(), plural(int(due), "due sale")))
}
