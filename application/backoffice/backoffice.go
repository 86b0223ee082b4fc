// Package backoffice has the use cases of people: import a file, export rows, look up an
// operation or a customer, correct the book, verify it, load the demo book.
//
// Commands, the console and a host program call the same methods. Each use case works on ports,
// which this package declares and a storage adapter implements. Most have one to four methods.
// Reader has one for each kind of list.
//
// All ports are safe for concurrent use. Their errors have a kind of package fault: Unavailable
// if the storage cannot be used, Indeterminate if a commit was sent and not confirmed,
// Internal for anything unexpected. Results and findings may name customers and accounts.
// Errors never do.
package backoffice

import (
	"context"
	"time"

	"bankingapi/application/outcomes"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
)

// Ports are the ports of all use cases of this package. A storage adapter implements all of
// them. All are required: see store.Unsupported.
type Ports struct {
	Imports Imports
	Reader  Reader
	Lookups
	Evidence    Evidence
	Books       Books
	Audit       Audit
	Outcomes    outcomes.Source
	Erasing     Erasing
	Withdrawing Withdrawing
	RuleBook    RuleBook
	Pricing
}

// Audit keeps acts that change nothing else, such as reading personal data. For acts that
// change something, the context carries the act instead.
type Audit interface {
	// Keep keeps the act. It is durable when Keep returns nil.
	Keep(ctx context.Context, act audit.Act) error
}

// Office has all use cases of this package on one storage.
type Office struct {
	Ports
	// CheckTrail returns how to check the trail of the book against its newest checkpoint
	// outside the database and the checkpoints in the contents of files. The error is
	// fault.Invalid if a content has none. New leaves it nil: then Verify checks only the book.
	CheckTrail func(ctx context.Context, against []string) (TrailCheck, error)
	// CheckClock returns an error if the clock of this machine differs so much from the clock
	// of the storage that an export that follows would leave out rows, or messages would be
	// erased too soon. New sets a function that checks nothing.
	CheckClock func(ctx context.Context) error
	// Unkept receives the reason why Verify could not keep its act. It may be nil.
	Unkept func(error)
	// Acts makes the acts of people, with the time of the bank. Zone returns its time zone.
	Acts audit.Acts
	Zone func() *time.Location
	// About returns the first part of each Report of Verify: the book, its schema and the
	// program. New leaves it nil. Then a Report does not have this part.
	About func(ctx context.Context) (Report, error)
}

// New returns the use cases on the ports. acts makes the IDs of imports and corrections, and
// has the time of the bank. zone is the time zone of the bank.
func New(ports Ports, acts audit.Acts, zone *time.Location) *Office {
	return &Office{Ports: ports, Acts: acts, Zone: func() *time.Location { return zone }, CheckClock: func(context.Context) error { return nil }}
}

// Today returns the bank's current day.
func (o *Office) Today() day.Day { return day.Of(o.Acts.Now(), o.Zone()) }

// BeginSettling keeps the act of a person who settles due sales. The sales share transactions
// with new requests, so the act has its own transaction before them.
func (o *Office) BeginSettling(ctx context.Context, due int64) error {
	if due == 0 {
		return nil
	}
	return o.Audit.Keep(ctx, o.Acts.New(ctx, audit.Settle, o.Today().String(), Plural(due, "due sale")))
}
