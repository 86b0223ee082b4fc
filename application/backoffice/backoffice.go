// Package backoffice has the use cases of people: import a file, export rows, look up an
// operation or a customer, correct the book, prove it, load the demo book.
//
// Commands, the console and a host program call the same methods. Each use case works on ports
// of one to four methods, which this package declares and a storage adapter implements.
//
// All ports are safe for concurrent use. Their errors have a kind of package
// fault: Unavailable if the storage cannot be used, Indeterminate if the
// connection was lost during a commit, Internal for anything unexpected. Names
// of customers and accounts occur in results and in findings, never in errors.
package backoffice

import (
	"context"
	"time"

	"bankingapi/application/outcomes"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
)

// Ports are the ports of all use cases of this package. A storage adapter
// implements them together. All are required: see store.Unsupported.
type Ports struct {
	Imports Imports
	Reader  Reader
	Lookups
	Evidence Evidence
	Books    Books
	Audit    Audit
	Outcomes outcomes.Source
	Erasing  Erasing
	Withdrawing
}

// Audit keeps acts that change nothing else, such as a look at personal data.
// Acts that change something travel in the context instead.
type Audit interface {
	// Keep keeps the act. It is durable when Keep returns nil.
	Keep(ctx context.Context, act audit.Act) error
}

// Office is all use cases of this package on one storage.
type Office struct {
	Ports
	// OfTheDay lets Cancel cancel a sale while it waits for a price of its day. It is
	// that of buyfund.Options.
	OfTheDay bool
	// CheckTrail returns how to check the trail of the book, against its newest checkpoint
	// outside the database and those in the contents of files. The error is fault.Invalid if
	// a content has no checkpoint. New leaves it nil: then Verify checks the book alone.
	CheckTrail func(ctx context.Context, against []string) (TrailCheck, error)
	// CheckClock returns an error if the clock of this machine is so far from that of the storage
	// that an export that follows would leave rows out, or messages would be erased too soon. That
	// of New checks nothing.
	CheckClock func(ctx context.Context) error
	// Unkept receives the reason why Verify could not keep its act. It may be nil.
	Unkept func(error)
	// Acts makes the acts of people, at the time of the bank. Zone is its time zone.
	Acts audit.Acts
	Zone *time.Location
	// About begins each Report of Verify: the book, its schema and the program. New
	// leaves it nil: then a Report does not have them.
	About func(ctx context.Context) (Report, error)
}

// New returns the use cases on the ports. acts makes the IDs of imports and
// corrections, and has the time of the bank. zone is its time zone.
func New(ports Ports, acts audit.Acts, zone *time.Location) *Office {
	return &Office{Ports: ports, Acts: acts, Zone: zone, CheckClock: func(context.Context) error { return nil }}
}

// Today is the bank's current day.
func (o *Office) Today() day.Day { return day.Of(o.Acts.Now(), o.Zone) }

// BeginSettling keeps the act of a person who settles sales that are due. They
// share transactions with new requests, so that the act has its own, before them.
func (o *Office) BeginSettling(ctx context.Context, due int64) error {
	if due == 0 {
		return nil
	}
	return o.Audit.Keep(ctx, o.Acts.New(ctx, "settle", o.Today().String(), Plural(due, "due sale")))
}
