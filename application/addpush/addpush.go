// Package addpush is the use case AddPushNotificationResponse: it stores push
// messages that an external system sent.
package addpush

import (
	"context"
	"time"

	"bankingapi/application/commit"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

// Inboxes is where notifications are kept.
type Inboxes interface {
	// Update is one transaction. It loads a push.Inbox with those of the named
	// operations that exist, calls accept, and writes what accept left in the
	// inbox: every notification that is not there yet, and the added operations.
	//
	//  1. nil: all of it is on disk.
	//  2. fault.Unavailable: certainly nothing was written; trying later may help.
	//  3. fault.Indeterminate: the connection was lost during the commit.
	//  4. any other error: nothing was written, and trying again will not help.
	//
	// accept may be called again with a new inbox, when an inbox that was only
	// presumed to be so was not, or when the transaction lost a race (two
	// replicas and one CallerId): what counts is what the last call left. If it
	// panics, nothing is written and Update panics with it. A cancelled ctx
	// before the commit is outcome 2.
	Update(ctx context.Context, callers []operation.Key, accept func(*push.Inbox)) error
}

// Options are what an Adder needs besides its port. All are required.
type Options struct {
	// ParametersLimit is the most records of one request.
	ParametersLimit int
	Commit          commit.Limits
	Observer        commit.Observer
	// Now is the current time in UTC, cut to microseconds.
	Now func() time.Time
	// NewID makes a new operation's ID.
	NewID func() operation.ID
}

// Adder stores push notifications. It is safe for concurrent use: requests
// that arrive together share one transaction.
type Adder struct {
	options Options
	lane    *commit.Lane[*push.Operation]
}

// New returns an Adder that stores in inboxes. Close it to finish what it took.
func New(inboxes Inboxes, o Options) *Adder {
	store := func(ctx context.Context, batch []*push.Operation) error {
		return inboxes.Update(ctx, push.Keys(batch), func(b *push.Inbox) { b.Accept(batch) })
	}
	weight := func(o *push.Operation) int { return len(o.Notifications) }
	return &Adder{o, commit.New(o.Commit, weight, store, o.Observer)}
}

// Add stores all records of one request, or none (the contract, section 4).
//
// The outcome is Completed once they are on disk; a record that was stored
// before for the same subscription is not stored twice. A repeated CallerId
// has no second effect, its outcome is Replayed. The errors:
//
//   - fault.Invalid: records break rules, all faults at once;
//   - fault.Forbidden: the header contradicts what is defined for the caller;
//   - fault.Conflict: the CallerId was used before for another content;
//   - fault.Busy, fault.Unavailable: nothing happened, later it may work;
//   - fault.Indeterminate: the effect is not known. Repeating is harmless.
//
// A ctx that ends before the request's batch began is fault.Unavailable; after
// that Add waits for the outcome.
func (a *Adder) Add(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []push.Fields) (operation.Outcome, error) {
	notifications, faults := push.NewNotifications(parameters, a.options.ParametersLimit)
	if faults = append(header.Faults(), faults...); len(faults) > 0 {
		return operation.Outcome{}, fault.New(fault.Invalid, "The request breaks a rule.", faults...)
	}
	header, err := caller.Complete(header)
	if err != nil {
		return operation.Outcome{}, err
	}
	o := &push.Operation{
		ID:            a.options.NewID(),
		Subscription:  caller.Name,
		Header:        header,
		ReceivedAt:    a.options.Now(),
		Notifications: notifications,
	}
	if err := a.lane.Do(ctx, o); err != nil {
		return operation.Outcome{}, err
	}
	return o.Outcome()
}

// Faults are the rules that the request breaks, as Add would report them;
// nothing is stored. HTTP uses it to report them beside faults of its own.
func (a *Adder) Faults(header operation.Header, parameters []push.Fields) []fault.Fault {
	_, faults := push.NewNotifications(parameters, a.options.ParametersLimit)
	return append(header.Faults(), faults...)
}

// Close refuses new requests with fault.Busy and returns when all that were
// taken are answered, or ctx ends. It may be called twice.
func (a *Adder) Close(ctx context.Context) error { return a.lane.Close(ctx) }
