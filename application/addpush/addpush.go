// Package addpush is the use case AddPushNotificationResponse. It stores push
// notifications that an external system sent.
package addpush

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"bankingapi/application/commit"
	"bankingapi/domain/fault"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

// Inboxes keeps the notifications.
type Inboxes interface {
	// Update is one transaction. It loads a push.Inbox with the existing records of callers,
	// and calls accept. Then it writes what accept put into the inbox, all of it or nothing:
	//
	//   - each operation of Accepted, with the record of its CallerId. So every answered
	//     operation can be found later, also one whose notifications were all stored before
	//   - each notification of ToStore, unless one with its Identity is stored already or comes
	//     earlier in ToStore. The Identity covers the subscription and every field, so that
	//     notifications that differ in one byte are both stored. A stored notification does not
	//     change, and keeps the ID of the operation that stored it
	//
	// Updates may run at the same time, with notifications in any order. Those that need the
	// same CallerId or notification wait for each other. They do not end in a deadlock.
	//
	// It returns:
	//
	//  1. nil: everything is on disk.
	//  2. fault.Unavailable: nothing was written. A retry may succeed.
	//  3. fault.Indeterminate: the commit was sent and not confirmed; the effect is not known.
	//  4. any other error: nothing was written, and a retry will fail too.
	//
	// Update may call accept several times, each time with a new inbox: after a lost race (two
	// replicas and one CallerId), or if the content of an inbox was not up to date. Only the
	// last call counts. If accept panics, nothing is written and Update panics with the same
	// value. If ctx is cancelled before the commit, the outcome is 2.
	Update(ctx context.Context, callers []idempotency.Key, accept func(*push.Inbox)) error
}

// Options are what an Adder needs in addition to its port. Only Now and NewID are required.
type Options struct {
	ParametersLimit int           // the maximum number of records in a request; 0 means 1000
	Commit          commit.Limits // the limits of the queue; 0 means the default
	Observer        commit.Observer
	// Now returns the current time in UTC, truncated to microseconds, as clock.Now does.
	Now func() time.Time
	// NewID returns the ID of a new operation, as clock.NewID does. Later IDs sort after
	// earlier ones.
	NewID func() operation.ID
}

// Adder stores push notifications. It is safe for concurrent use. Requests that
// arrive together share one transaction.
type Adder struct {
	options Options
	queue   *commit.Queue[*push.Operation]
}

// New returns an Adder that stores notifications in inboxes. The error names what is missing.
func New(inboxes Inboxes, o Options) (*Adder, error) {
	if inboxes == nil || o.Now == nil || o.NewID == nil {
		return nil, errors.New("addpush.New needs the port inboxes, and Now and NewID of its options")
	}
	o.ParametersLimit = cmp.Or(o.ParametersLimit, 1000)
	store := func(ctx context.Context, batch []*push.Operation) error {
		return inboxes.Update(ctx, push.Keys(batch), func(b *push.Inbox) { b.Accept(batch) })
	}
	weight := func(o *push.Operation) int { return len(o.Notifications) }
	owner := func(o *push.Operation) string { return o.Subscription }
	return &Adder{o, commit.New(o.Commit.OrDefault(), weight, owner, store, o.Observer)}, nil
}

// Add stores either all records of a request or no record (the contract, section 4).
//
// The outcome is Completed after the records are on disk. A record that the same
// subscription stored before is not stored twice. A repeated CallerId has no
// second effect, and its outcome is Replayed. The errors are:
//
//   - fault.Invalid: the request breaks rules. The error has all faults.
//   - fault.Forbidden: the header has other values than the values defined for the caller, and
//     the request is not a repeat.
//   - fault.Conflict: the CallerId was already used for other content. The outcome has only the
//     ID of the operation that used it.
//   - fault.Busy, fault.Unavailable: nothing happened. A retry may succeed.
//   - fault.Indeterminate: the effect is not known. A repeat is harmless.
//
// If ctx ends before the request's batch begins, the error is fault.Unavailable. After that Add
// waits for the outcome. If the deadline of ctx comes first, the error is fault.Indeterminate.
// If ctx is cancelled, Add continues to wait and ignores the deadline.
func (a *Adder) Add(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []push.Fields) (operation.Outcome, error) {
	notifications, faults := push.NewNotifications(parameters, a.options.ParametersLimit)
	faults = slices.Concat(header.Faults(), caller.Missing(header), faults)
	if len(faults) > 0 {
		return operation.Outcome{}, fault.New(fault.Invalid, "The request breaks a rule.", faults...)
	}
	recorded, checked, err := caller.Check(header)
	if err != nil {
		return operation.Outcome{}, err
	}
	o := &push.Operation{
		Envelope:      operation.Envelope{ID: a.options.NewID(), Subscription: caller.Name, Header: recorded, ReceivedAt: a.options.Now()},
		Checked:       checked,
		Notifications: notifications,
	}
	if err := a.queue.Do(ctx, o); err != nil {
		return operation.Outcome{}, err
	}
	return operation.Decided(o.Outcome())
}

// Store does the same as Add for a Go program that has typed values. It checks the same rules
// and returns the same outcomes.
func (a *Adder) Store(ctx context.Context, caller *subscription.Subscription, header operation.Header, notifications []push.Notification) (operation.Outcome, error) {
	parameters := make([]push.Fields, len(notifications))
	for i := range notifications {
		parameters[i] = notifications[i].Values().Fields()
	}
	return a.Add(ctx, caller, header, parameters)
}

// Faults returns the rules that a request breaks, as Add would report them, except a CallerId that
// the caller must send. It stores nothing. HTTP uses it to report these faults together with its
// own faults.
func (a *Adder) Faults(header operation.Header, parameters []push.Fields) []fault.Fault {
	_, faults := push.NewNotifications(parameters, a.options.ParametersLimit)
	return append(header.Faults(), faults...)
}

// Busy returns an error of kind fault.Busy if a request of the caller would be refused now, because
// too much waits or the queue is closed. Otherwise it returns nil.
func (a *Adder) Busy(caller *subscription.Subscription) error {
	if caller == nil { // Add refuses it
		return nil
	}
	return a.queue.Busy(caller.Name)
}

// Close refuses new requests with fault.Busy. It returns when all accepted requests have their
// outcome, or when ctx ends. It may be called twice.
func (a *Adder) Close(ctx context.Context) error { return a.queue.Close(ctx) }
