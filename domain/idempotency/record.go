// Package idempotency makes an operation happen once (the contract, section 6).
// A Record keeps which operation a CallerId belongs to and how it ended. A
// Register holds the records that a batch touches and decides what a repeated
// CallerId means.
package idempotency

import (
	"cmp"
	"slices"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Key identifies an operation that has a CallerId. A CallerId is unique for each
// subscription and operation (the contract, section 6).
type Key struct {
	CallerID     string
	Subscription string
	Operation    operation.Name
}

// KeyOf returns the identity of an operation. ok is false if its caller sent no CallerId.
func KeyOf(e *operation.Envelope, of operation.Name) (key Key, ok bool) {
	return Key{CallerID: e.Header.CallerID, Subscription: e.Subscription, Operation: of}, e.Header.CallerID != ""
}

// Compare is the order in which storage locks keys.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.CallerID, other.CallerID), cmp.Compare(k.Subscription, other.Subscription),
		cmp.Compare(k.Operation, other.Operation))
}

// Record is an operation that was decided under a CallerId. A repeat is compared
// with its Fingerprint and answered with its Outcome.
type Record struct {
	Key         Key
	ID          operation.ID
	Fingerprint Fingerprint
	Outcome     operation.Outcome
}

// Reused returns the error of a request whose CallerId belongs to an operation
// with other content (422).
func Reused() error {
	const detail = "This CallerId belongs to an operation with other content. Repeat that operation with its own content to learn its State."
	return fault.New(fault.Conflict, detail, fault.Fault{Pointer: "/Header/CallerId", Code: fault.CallerIDReused, Detail: detail})
}

// SortedKeys returns the keys in the order of Compare, each once. It changes keys
// in place.
func SortedKeys(keys []Key) []Key {
	slices.SortFunc(keys, Key.Compare)
	return slices.Compact(keys)
}
