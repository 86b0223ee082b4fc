// Package fake keeps everything in memory: the ports of the use cases over one
// small store, a clock that is moved by hand, and IDs in a fixed sequence. It
// passes the suites of package contract, as any other storage has to.
//
// It is meant for tests and simulations, and to be read by a host that brings
// ports of its own: this is all that they have to do. The store starts no
// goroutine, reads no clock, and returns everything in a fixed order, so
// that a simulation which is run again comes out the same.
package fake

import (
	"context"
	"errors"
	"sync"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

// Store is what the ports share. Like SQLite it has one writer: a transaction
// sees all of those before it and nothing of those after it. It keeps copies,
// never what a caller still has in hand. It is safe for concurrent use.
type Store struct {
	writer chan struct{} // holds a token while a transaction is on its way

	mu            sync.Mutex // guards what follows; nobody waits for anything else while holding it
	holdings      map[fund.HoldingKey]fund.Units
	accounts      map[fund.AccountKey]money.Amount
	prices        []fund.Price
	sales         map[operation.ID][]fund.SaleEntry
	recorded      map[operation.ID]bool // those of sales that wait for their day
	postings      []fund.Posting
	operations    map[operation.Key]operation.Known
	notifications []push.Entry
	delivered     map[delivery]bool // identities of notifications
	subscriptions map[string]subscription.Subscription
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{
		writer:        make(chan struct{}, 1),
		holdings:      make(map[fund.HoldingKey]fund.Units),
		accounts:      make(map[fund.AccountKey]money.Amount),
		sales:         make(map[operation.ID][]fund.SaleEntry),
		recorded:      make(map[operation.ID]bool),
		operations:    make(map[operation.Key]operation.Known),
		delivered:     make(map[delivery]bool),
		subscriptions: make(map[string]subscription.Subscription),
	}
}

// Moment is a point of a transaction at which something may go wrong.
type Moment uint8

// The moments, in their order. Calls that only read have but the first.
const (
	Begin     Moment = iota // nothing was read yet
	Commit                  // everything was decided, nothing is written
	Committed               // everything is written, the caller does not know yet
)

// Strike is called at every Moment of every transaction of one port, and makes
// the storage slow by taking its time, or makes it fail:
//
//  1. nil: the transaction goes on.
//  2. ErrConflict: it has lost a race, and is run again from its beginning.
//  3. any other error: it ends there, and the port returns that error. What
//     was Committed stays: an error of kind fault.Indeterminate is the truth
//     at Commit and at Committed, one of fault.Unavailable only before.
//
// A nil Strike never strikes. While it takes its time no other transaction
// can write; reading goes on.
type Strike func(context.Context, Moment) error

// ErrConflict is what a Strike returns to have a transaction run again.
var ErrConflict = errors.New("lost a race")

// attempts is how often a transaction is run before it gives up.
const attempts = 10

// transact runs one transaction: read looks at the store, decide does not,
// write changes the store, all of it or, with an error, nothing.
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

func (s *Store) write(write func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return write()
}

// at also ends a transaction whose context ended, before or while it struck.
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

// load puts into the register what is known under the keys.
func (s *Store) load(r *operation.Register, keys []operation.Key) {
	for _, key := range keys {
		if known, ok := s.operations[key]; ok {
			r.Load(copyKnown(known))
		}
	}
}

// register writes what was added to and changed in a register.
func (s *Store) register(r *operation.Register) {
	for _, known := range r.Added() {
		s.operations[known.Key] = copyKnown(*known)
	}
	for _, known := range r.Changed() {
		s.operations[known.Key] = copyKnown(*known)
	}
}
