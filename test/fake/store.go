// Package fake implements the ports of the use cases in memory, over one small
// store, with a clock that tests set and IDs in a fixed sequence. It passes the
// suites of package contract, as every other storage must.
//
// It is for tests and simulations, and an example for a host that implements the ports itself:
// an implementation needs nothing more. The store starts no goroutine, reads no clock, and
// returns everything in a fixed order, so that a simulation can be repeated exactly.
package fake

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"bankingapi/application/fleet"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

// Store holds the data of all ports. Like SQLite it has one writer: a transaction sees all
// earlier transactions and no later ones. It stores copies, so a caller may change its values
// afterwards. It is safe for concurrent use.
type Store struct {
	writer chan struct{} // holds a token while a transaction runs

	mu            sync.Mutex // guards the fields below; its holder never waits for anything else
	holdings      map[fund.HoldingKey]fund.Units
	accounts      map[fund.AccountKey]money.Amount
	prices        []fund.Price
	priceActs     map[int64]audit.Act // of their imports
	sales         map[operation.ID][]fund.SaleEntry
	recorded      map[operation.ID]bool // operations whose sales wait for their day
	postings      []fund.PostingEntry
	operations    map[idempotency.Key]idempotency.Record
	notifications []push.Entry
	delivered     map[push.Identity]bool
	subscriptions map[string]subscription.Subscription
	answered      map[operation.ID]operation.Decision // every operation of both kinds
	refusals      []operation.Decision
	refusedSales  map[operation.ID][]fund.SaleEntry
	reversals     map[operation.ID]fund.Reversal
	ended         []fund.Ended // in the order of their numbers
	acts          []audit.Act
	requests      []summary.Answered
	replicas      []fleet.Replica
	closed        []fund.ClosedDay // by day
	rules         string           // of the bank
	trail         *trailLog        // nil unless Trail was called
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{
		writer:        make(chan struct{}, 1),
		holdings:      make(map[fund.HoldingKey]fund.Units),
		accounts:      make(map[fund.AccountKey]money.Amount),
		priceActs:     make(map[int64]audit.Act),
		sales:         make(map[operation.ID][]fund.SaleEntry),
		recorded:      make(map[operation.ID]bool),
		operations:    make(map[idempotency.Key]idempotency.Record),
		delivered:     make(map[push.Identity]bool),
		answered:      make(map[operation.ID]operation.Decision),
		subscriptions: make(map[string]subscription.Subscription),
		reversals:     make(map[operation.ID]fund.Reversal),
		refusedSales:  make(map[operation.ID][]fund.SaleEntry),
	}
}

// Moment is a point of a transaction at which a fault can be injected.
type Moment uint8

// The moments in their order. Calls that only read have only the first one.
const (
	Begin     Moment = iota // before anything is read
	Commit                  // after the decision, before the write
	Committed               // after the write, before the caller knows
)

// Strike injects faults. It is called at every Moment of every transaction of one
// port. It may sleep to make the storage slow. Its result decides what happens:
//
//  1. nil: the transaction continues.
//  2. ErrConflict: the transaction lost a race and is retried from the start.
//  3. any other error: the transaction ends, and the port returns this error. At
//     Committed the changes remain. An error of kind fault.Indeterminate is true
//     at Commit and at Committed, one of kind fault.Unavailable only before them.
//
// A nil Strike injects nothing. While a Strike sleeps, no other transaction can
// write, but reads continue.
type Strike func(context.Context, Moment) error

// Once returns a Strike that returns err one time, at that moment.
func Once(at Moment, err error) Strike {
	return func(_ context.Context, m Moment) error {
		if m != at {
			return nil
		}
		defer func() { err = nil }()
		return err
	}
}

// ErrConflict is what a Strike returns to have a transaction run again.
var ErrConflict = errors.New("lost a race")

// attempts is how often a transaction is tried before it fails.
const attempts = 10

// transact runs one transaction. read reads the store and decide does not.
// write changes the store: completely, or not at all if it returns an error.
func (s *Store) transact(ctx context.Context, strike Strike, read func(), decide, write func() error) error {
	for range attempts {
		err := s.attempt(ctx, strike, read, decide, write)
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fault.Wrap(fault.Unavailable, ErrConflict, "too many attempts")
}

func (s *Store) attempt(ctx context.Context, strike Strike, read func(), decide, write func() error) error {
	select {
	case s.writer <- struct{}{}:
		defer func() { <-s.writer }() // also when decide panics
	case <-ctx.Done():
		return cancelled(ctx)
	}
	if err := s.read(ctx, strike, read); err != nil {
		return err
	}
	if err := decide(); err != nil {
		return err
	}
	if err := strike.at(ctx, Commit); err != nil {
		return err
	}
	if err := s.write(write); err != nil {
		return err
	}
	if strike != nil {
		return strike(ctx, Committed)
	}
	return nil
}

func (s *Store) read(ctx context.Context, strike Strike, read func()) error {
	if err := strike.at(ctx, Begin); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	read()
	return nil
}

// locked reads the store as it is.
func locked[T any](s *Store, read func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return read()
}

func (s *Store) write(write func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := write()
	s.trail.commit(err == nil)
	return err
}

// at calls strike. It also ends a transaction whose context ended before or during the call.
func (s Strike) at(ctx context.Context, m Moment) error {
	if s != nil && ctx.Err() == nil {
		if err := s(ctx, m); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	return nil
}

func cancelled(ctx context.Context) error {
	return fault.Wrap(fault.Unavailable, context.Cause(ctx), "the context ended before the commit")
}

// load adds the known records of the keys to the register.
func (s *Store) load(r *idempotency.Register, keys []idempotency.Key) {
	for _, key := range keys {
		if known, ok := s.operations[key]; ok {
			r.Load(copyKnown(known))
		}
	}
}

// register stores the additions and changes of a register.
func (s *Store) register(r *idempotency.Register) {
	for _, known := range slices.Concat(r.NewRecords(), r.ChangedRecords()) {
		s.operations[known.Key] = copyKnown(*known)
	}
}

// audit stores the act that ctx carries, if any.
func (s *Store) audit(ctx context.Context, more ...string) {
	if act, ok := audit.From(ctx); ok {
		if act.Details != "" {
			more = append([]string{act.Details}, more...)
		}
		act.Details = strings.Join(more, "; ")
		s.acts = append(s.acts, act)
		s.prove(func(keys *proof.Keys) []proof.Entry {
			return entriesOf(proof.OfAct(act.ID, &act, s.adjusted(keys, act.ID), nil))
		})
	}
}
