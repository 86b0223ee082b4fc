package push

import (
	"slices"
	"time"

	"bankingapi/domain/fault"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
)

// Operation is one AddPushNotificationResponse. Either all its notifications are stored, or no
// notification.
type Operation struct {
	operation.Envelope
	operation.Checked
	Notifications []Notification // what the caller sent; never empty

	outcome operation.Outcome
	err     error
}

func (o *Operation) fingerprint(d *idempotency.Digest) idempotency.Fingerprint {
	d.Header(&o.Header, o.Filled)
	for i := range o.Notifications {
		o.Notifications[i].values.content(d)
	}
	return d.Sum()
}

// Key returns the identity of the operation. ok is false if its caller sent no CallerId.
func (o *Operation) Key() (key idempotency.Key, ok bool) {
	return idempotency.KeyOf(operation.AddPushNotificationResponse, &o.Envelope)
}

// Outcome returns how the operation ended, after an Inbox decided it. The error is
// fault.Conflict if the CallerId was used for other content. Then the outcome has
// only the ID of the operation that has the CallerId. The error is the Contradiction of an
// operation that has one and is not a repeat.
func (o *Operation) Outcome() (operation.Outcome, error) { return o.outcome, o.err }

// Stored is a notification that storage must insert. Storage keeps one
// notification for each identity, even if it is sent several times.
type Stored struct {
	Operation    *Operation
	Index        int // in the operation's Parameters, from 0
	Identity     Identity
	Notification *Notification
}

// Inbox is what a batch of operations reads and changes: the records of their CallerIds, and
// after Accept the notifications to insert. It is not safe for concurrent use.
type Inbox struct {
	Register idempotency.Register
	// Key is the key of the fingerprints in new records, so that an erased text cannot be
	// guessed. Without it the fingerprints have no key.
	Key      []byte
	stored   []Stored
	accepted []Accepted
}

// Accept decides every operation in the order of arrival and puts the
// notifications to insert into the inbox. A repeat has no second effect. A
// CallerId with other content is a conflict and stores nothing, and so does an
// operation with a Contradiction.
func (b *Inbox) Accept(operations []*Operation) {
	var digest idempotency.Digest
	keyed := idempotency.Keyer(b.Key)
	identifier := NewIdentifier(b.Key)
	messages := 0
	for _, o := range operations {
		messages += len(o.Notifications)
	}
	identities := make([]Identity, 0, messages) // of all operations
	b.stored = slices.Grow(b.stored, messages)
	b.accepted = slices.Grow(b.accepted, len(operations))
	for _, o := range operations {
		o.outcome = operation.Outcome{ID: o.ID, State: operation.Completed}
		o.err = nil
		accepted := Accepted{Operation: o}
		if key, ok := o.Key(); ok {
			stored := keyed(o.fingerprint(&digest))
			outcome, known, err := b.Register.Find(key, stored, nil)
			if known {
				o.outcome = outcome
				o.err = err
				continue
			}
			if o.Contradiction == nil {
				b.Register.Add(idempotency.Record{Key: key, Fingerprint: stored, Outcome: o.outcome})
				accepted.Fingerprint = stored
			}
		}
		if o.Contradiction != nil {
			o.outcome = operation.Outcome{}
			o.err = o.Contradiction
			continue
		}
		first := len(identities)
		for i := range o.Notifications {
			n := &o.Notifications[i]
			identity := identifier.Of(o.Subscription, &n.values)
			identities = append(identities, identity)
			b.stored = append(b.stored, Stored{o, i, identity, n})
		}
		accepted.Identities = identities[first:len(identities):len(identities)]
		b.accepted = append(b.accepted, accepted)
	}
}

// ToStore returns the notifications to insert, in the order of arrival. Storage
// does not change notifications that it already has.
func (b *Inbox) ToStore() []Stored { return b.stored }

// Accepted returns the operations that Accept has accepted as new ones, in the order of arrival.
// It leaves out repeats and conflicts.
func (b *Inbox) Accepted() []Accepted { return b.accepted }

// Keys returns the keys of the operations that have a CallerId, each once and
// sorted. Storage loads their records into the Register before Accept.
func Keys(operations []*Operation) []idempotency.Key {
	var keys []idempotency.Key
	for _, o := range operations {
		if key, ok := o.Key(); ok {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, idempotency.Key.Compare)
	return slices.Compact(keys)
}

// NewNotifications checks an array of Parameters: 1 to limit records and every rule of each of
// them. It returns either notifications or all faults. Pointers start with /Parameters.
func NewNotifications(parameters []Fields, limit int) ([]Notification, []fault.Fault) {
	if faults := operation.CountFaults(len(parameters), limit); faults != nil {
		return nil, faults
	}
	notifications := make([]Notification, len(parameters))
	var all fault.List
	for i, fields := range parameters {
		n, faults := New(fields)
		notifications[i] = n
		all = append(all, operation.UnderParameter(i, faults)...)
	}
	return fault.Either(notifications, all)
}

// Entry is one stored notification, with the stored fields of the operation that stored it.
type Entry struct {
	operation.Envelope
	Index    int // in the operation's Parameters, from 0
	Identity Identity
	Values   Values
	Erasure  *Erasure // nil unless the personal data were erased
}

// Erasure says why a stored notification has no personal data any more.
type Erasure struct {
	ID     operation.ID // of the act in the audit
	Reason string
}

// At is when the data were erased.
func (e *Erasure) At() time.Time { return e.ID.Time() }
