package buyfund

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// ClosedDays reads the days on which the bank is closed.
type ClosedDays interface {
	// ClosedDays yields all closed days, in the order of the days.
	ClosedDays(ctx context.Context) iter.Seq2[fund.ClosedDay, error]
}

// RuleBook reads the rules of the bank that are part of its book.
type RuleBook interface {
	// Rules reads the rules.
	Rules(ctx context.Context) (fund.Rules, error)
}

const (
	// rulesAge is the maximum age of the rules that Current returns. A change of the calendar
	// reaches every replica within 5 s (the contract, section 5.2). A sale never depends on
	// older rules: see Operation.Rules.
	rulesAge = 4 * time.Second
	// rulesTimeout bounds how long a request waits for the rules.
	rulesTimeout = 2 * time.Second
)

// Rules are the rules of the bank and its calendar, read from storage and kept for some seconds.
// They are safe for concurrent use. Make them with NewRules or FixedRules.
type Rules struct {
	book    RuleBook // nil if the rules are fixed
	days    ClosedDays
	now     func() time.Time
	reading chan struct{} // a semaphore: one goroutine reads at a time
	kept    atomic.Pointer[CurrentRules]
}

// CurrentRules are the rules of the bank at one moment.
type CurrentRules struct {
	Rules    fund.Rules
	Calendar fund.Calendar

	text string // for Operation.Rules; empty if the rules are fixed
	read time.Time
}

// NewRules returns the rules of a book. Until they are read, Known returns the rules of a new
// book. now returns the time of the service, not the time of the bank.
func NewRules(book RuleBook, days ClosedDays, ofNewBook fund.Rules, now func() time.Time) *Rules {
	r := &Rules{book: book, days: days, now: now, reading: make(chan struct{}, 1)}
	r.kept.Store(&CurrentRules{Rules: ofNewBook, Calendar: ofNewBook.Calendar()})
	return r
}

// FixedRules returns rules that no book keeps. days may be nil: then no single day is closed.
func FixedRules(rules fund.Rules, days ClosedDays, now func() time.Time) *Rules {
	return NewRules(nil, days, rules, now)
}

// From returns rules that start with the same copy and read from book when the copy is too old.
// It is for a transaction of a host, in which no code may use another connection.
func (r *Rules) From(book RuleBook, days ClosedDays) *Rules {
	kept := r.kept.Load()
	from := NewRules(book, days, kept.Rules, r.now)
	if r.book == nil {
		from.book = nil
	}
	from.kept.Store(kept)
	return from
}

// Known returns the rules that were read last. They may be old.
func (r *Rules) Known() *CurrentRules { return r.kept.Load() }

// Zone returns the time zone of the bank, as it was read last.
func (r *Rules) Zone() *time.Location { return r.kept.Load().Rules.In() }

// Current returns the rules as they were at most rulesAge ago. One caller reads them for all
// callers. Current returns the error of the ports.
func (r *Rules) Current(ctx context.Context) (*CurrentRules, error) {
	if kept := r.kept.Load(); r.isFresh(kept) {
		return kept, nil
	}
	ctx, cancel := context.WithTimeout(ctx, rulesTimeout)
	defer cancel()
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Unavailable, context.Cause(ctx), "The rules of the bank cannot be read.")
	}
	kept := r.kept.Load()
	if r.isFresh(kept) {
		return kept, nil
	}
	return r.readNow(ctx)
}

// Refresh reads the rules, so that Known returns rules of now. It returns nil, and reads nothing, if
// another caller has not read them in time.
func (r *Rules) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rulesTimeout)
	defer cancel()
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
	case <-ctx.Done():
		return nil // another caller reads them
	}
	_, err := r.readNow(ctx)
	return err
}

func (r *Rules) readNow(ctx context.Context) (*CurrentRules, error) {
	read := &CurrentRules{Rules: r.kept.Load().Rules, read: r.now()}
	if r.book != nil {
		var err error
		if read.Rules, err = r.book.Rules(ctx); err != nil {
			return nil, err
		}
		read.text = read.Rules.String()
	}
	read.Calendar = read.Rules.Calendar()
	read.Calendar.Closed = make(map[day.Day]bool)
	if r.days != nil {
		for closed, err := range r.days.ClosedDays(ctx) {
			if err != nil {
				return nil, err
			}
			read.Calendar.Closed[closed.Day] = true
		}
	}
	r.kept.Store(read)
	return read, nil
}

// Forget makes the next call of Current read the rules again.
func (r *Rules) Forget() {
	kept := *r.kept.Load()
	kept.read = time.Time{}
	r.kept.Store(&kept)
}

func (r *Rules) isFresh(kept *CurrentRules) bool {
	if r.book == nil && r.days == nil {
		return true
	}
	age := r.now().Sub(kept.read)
	return 0 <= age && age < rulesAge
}

// rulesAttempts is how often a request is prepared, if the rules of the bank change meanwhile.
const rulesAttempts = 5

// haveChanged reports whether an operation was not decided because the book has other rules.
// Then the next call of Current reads them.
func (r *Rules) haveChanged(o *fund.Operation) bool {
	_, err := o.Outcome()
	if !errors.Is(err, fund.ErrRulesChanged) {
		return false
	}
	r.Forget()
	return true
}
