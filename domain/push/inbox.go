package push

import (
	"time"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Operation is one AddPushNotificationResponse: all its notifications are
// stored, or none.
type Operation struct {
	ID           operation.ID
	Subscription string
	Header       operation.Header
	ReceivedAt   time.Time
	// Notifications is what the caller sent; never empty.
	Notifications []Notification

	outcome operation.Outcome
	err     error
}

func (o *Operation) fingerprint(d *operation.Digest) operation.Fingerprint {
	d.Header(&o.Header)
	for i := range o.Notifications {
		o.Notifications[i].content(d)
	}
	return d.Sum()
}

// Key is the operation's identity; ok is false when its caller gave none.
func (o *Operation) Key() (key operation.Key, ok bool) {
	return operation.Key{
		CallerID:     o.Header.CallerID,
		Subscription: o.Subscription,
		Operation:    operation.AddPushNotificationResponse,
	}, o.Header.CallerID != ""
}

// Outcome is how the operation ended, once an Inbox accepted or refused it.
func (o *Operation) Outcome() (operation.Outcome, error) { return o.outcome, o.err }

// Stored is a notification on its way into storage: it is there once for its
// user and digest, however often it is sent.
type Stored struct {
	Operation    *Operation
	Position     int // in the operation's Parameters, from 0
	Digest       operation.Fingerprint
	Notification *Notification
}

// Inbox is what a batch of operations touches: the operations known by their
// CallerIds, and after Accept what is to be stored. It is not safe for
// concurrent use.
type Inbox struct {
	Register operation.Register
	stored   []Stored
}

// Accept decides every operation in order of arrival and leaves in the inbox
// what is to be stored. A repeated CallerId has no second effect; one of
// another content is a conflict and stores nothing.
func (b *Inbox) Accept(operations []*Operation) {
	var digest operation.Digest
	for _, o := range operations {
		o.outcome, o.err = operation.Outcome{State: operation.Completed}, nil
		if key, ok := o.Key(); ok {
			fingerprint := o.fingerprint(&digest)
			outcome, known, err := b.Register.Find(key, fingerprint)
			if known {
				o.outcome, o.err = outcome, err
				continue
			}
			b.Register.Add(operation.Known{Key: key, ID: o.ID, Fingerprint: fingerprint, Outcome: o.outcome})
		}
		for i := range o.Notifications {
			n := &o.Notifications[i]
			b.stored = append(b.stored, Stored{o, i, n.digest(&digest, o.Subscription), n})
		}
	}
}

// Stored are the notifications to be stored, in order of arrival. Those that
// storage has already are to be left as they are.
func (b *Inbox) Stored() []Stored { return b.stored }

// Keys are the CallerIds of the operations, each once and sorted: what is to
// be loaded into the Register before Accept.
func Keys(operations []*Operation) []operation.Key {
	var keys []operation.Key
	for _, o := range operations {
		if key, ok := o.Key(); ok {
			keys = append(keys, key)
		}
	}
	return operation.SortedKeys(keys)
}

// NewNotifications checks an array of Parameters: 1 to limit records, every
// fault of all of them, with pointers from /Parameters.
func NewNotifications(parameters []Fields, limit int) ([]Notification, []fault.Fault) {
	if faults := operation.CountFaults(len(parameters), limit); faults != nil {
		return nil, faults
	}
	notifications := make([]Notification, len(parameters))
	var all []fault.Fault
	for i, fields := range parameters {
		n, faults := New(fields)
		notifications[i] = n
		all = append(all, operation.UnderParameter(i, faults)...)
	}
	if len(all) > 0 {
		return nil, all
	}
	return notifications, nil
}
