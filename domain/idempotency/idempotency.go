// Package idempotency makes an operation happen once (the contract, section 6). A Record keeps
// which operation a CallerId belongs to and how it ended. A Register holds the records that a
// batch touches and decides what a repeated CallerId means.
package idempotency

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
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

// KeyOf returns the key of an operation. ok is false if its caller sent no CallerId.
func KeyOf(name operation.Name, of *operation.Envelope) (key Key, ok bool) {
	return Key{CallerID: of.Header.CallerID, Subscription: of.Subscription, Operation: name}, of.Header.CallerID != ""
}

// Identity returns the number under which storage finds the operation: the first half of a
// SHA-256. It never changes.
func (k Key) Identity() (identity [16]byte) {
	var buffer [256]byte // most keys fit, and cost no allocation then
	text := appendText(buffer[:0], "bankingapi caller 1")
	text = appendText(text, k.Operation.String())
	text = appendText(text, k.Subscription)
	text = appendText(text, k.CallerID)
	sum := sha256.Sum256(text)
	copy(identity[:], sum[:])
	return identity
}

// Compare is the order in which storage locks keys.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.CallerID, other.CallerID), cmp.Compare(k.Subscription, other.Subscription),
		cmp.Compare(k.Operation, other.Operation))
}

// Record is an operation that was decided under a CallerId. A repeat is compared
// with its Fingerprint and answered with its Outcome, which has the ID of the operation.
type Record struct {
	Key         Key
	Fingerprint Fingerprint
	Outcome     operation.Outcome
}

// ReuseError returns the error of a request whose CallerId belongs to an operation
// with other content (422).
func ReuseError() error {
	const detail = "This CallerId belongs to an operation with other content. Repeat that operation with its own content to learn its State."
	return fault.New(fault.Conflict, detail, fault.Fault{Pointer: "/Header/CallerId", Code: fault.CallerIDReused, Detail: detail})
}

// Register holds the records of the CallerIds that a batch touches. It decides
// what a CallerId means (the contract, section 6) and collects the records that
// the batch adds or changes. It is not safe for concurrent use.
type Register struct {
	known   map[Key]*Record
	added   []*Record
	changed []*Record
}

// Load puts a stored record into the register.
func (r *Register) Load(k Record) {
	if r.known == nil {
		r.known = make(map[Key]*Record)
	}
	r.known[k.Key] = &k
}

// Find looks for the operation of a request. found is false if the operation is new. If the
// request is a repeat, outcome is the current outcome of the operation, marked Replayed. The
// error is ReuseError if the content differs; then outcome has only the ID of the operation. It is
// fault.Internal if the contents cannot be compared, because another version of the service
// wrote the fingerprint.
//
// equal returns the other fingerprints of the same content, given the operation
// that has the CallerId. It may be nil.
func (r *Register) Find(key Key, f Fingerprint, equal func(operation.ID) []Fingerprint) (outcome operation.Outcome, found bool, err error) {
	k, found := r.known[key]
	if !found {
		return operation.Outcome{}, false, nil
	}
	same := []Fingerprint{f}
	if equal != nil {
		same = append(same, equal(k.Outcome.ID)...)
	}
	switch {
	case slices.Contains(same, k.Fingerprint):
		outcome = k.Outcome
		outcome.Replayed = true
		return outcome, true, nil
	case slices.ContainsFunc(same, k.Fingerprint.sameVersion):
		return operation.Outcome{ID: k.Outcome.ID}, true, ReuseError()
	}
	return operation.Outcome{}, true, fault.Wrap(fault.Internal, ErrFingerprint, "the fingerprint has an unknown version")
}

// Add adds the record of a new operation. Find finds it from then on.
func (r *Register) Add(k Record) {
	r.Load(k)
	r.added = append(r.added, r.known[k.Key])
}

// Change sets the outcome of a loaded operation, which keeps its ID. It ignores a key that
// was not loaded.
func (r *Register) Change(key Key, outcome operation.Outcome) {
	if k, ok := r.known[key]; ok {
		outcome.ID = k.Outcome.ID
		k.Outcome = outcome
		r.changed = append(r.changed, k)
	}
}

// FingerprintOf returns the fingerprint of an operation that was added. It returns nil if the
// operation has no CallerId.
func (r *Register) FingerprintOf(name operation.Name, of *operation.Envelope) *Fingerprint {
	key, hasKey := KeyOf(name, of)
	if !hasKey {
		return nil
	}
	k := r.known[key]
	if k == nil || k.Outcome.ID != of.ID {
		return nil
	}
	return &k.Fingerprint
}

// NewRecords returns the records to insert, in the order in which they were added.
func (r *Register) NewRecords() []*Record { return r.added }

// ChangedRecords returns the loaded records whose outcome must be updated.
func (r *Register) ChangedRecords() []*Record { return r.changed }

// WithoutChanges returns a register with the same loaded records and no changes.
func (r *Register) WithoutChanges() Register { return Register{known: r.known} }

// Fingerprint identifies the content of an operation: requests with equal
// fingerprints ask for the same. The zero value is no fingerprint.
//
// It has a version, because it is stored permanently. Version 1 is a SHA-256 of
// what the operation writes into a Digest: that of a sale. Version 2 is a keyed hash
// of version 1: that of a push, whose texts may be erased. What version 1 hashes
// never changes; golden values in the tests of packages fund and push hold it. A new
// field is hashed only if it is present, after everything else and with its name
// before it. Then the fingerprints of all other contents stay the same.
type Fingerprint struct {
	// stored is the version and the hash.
	stored [1 + sha256.Size]byte
}

// The versions that this program knows.
const (
	version1 = 1
	version2 = 2
)

// ErrFingerprint is returned for bytes that are not a stored fingerprint.
var ErrFingerprint = errors.New("not a stored fingerprint")

// Bytes returns the stored form, which must not be changed: the hash alone for version 1, and
// the version and the hash for every other one.
func (f *Fingerprint) Bytes() []byte {
	if f.stored[0] == version1 {
		return f.stored[1:]
	}
	return f.stored[:]
}

// ParseFingerprint reads the stored form. Fingerprints of later versions can be
// read too: a replica of a later version may have written them.
func ParseFingerprint(stored []byte) (Fingerprint, error) {
	var f Fingerprint
	switch {
	case len(stored) == sha256.Size:
		f.stored[0] = version1
		copy(f.stored[1:], stored)
	case len(stored) == len(f.stored) && stored[0] > version1:
		copy(f.stored[:], stored)
	default:
		return Fingerprint{}, ErrFingerprint
	}
	return f, nil
}

// Keyer returns a function that makes version 2 of a fingerprint: its HMAC-SHA-256. Without
// the key, nobody can test whether a text belongs to it. The function returns a fingerprint
// that has version 2 already as it is, and every one if key is empty. It is not safe for
// concurrent use.
func Keyer(key []byte) func(Fingerprint) Fingerprint {
	if len(key) == 0 {
		return func(f Fingerprint) Fingerprint { return f }
	}
	mac := hmac.New(sha256.New, key)
	return func(f Fingerprint) Fingerprint {
		if f.stored[0] != version1 {
			return f
		}
		mac.Reset()
		mac.Write(f.stored[1:])
		f.stored[0] = version2
		mac.Sum(f.stored[:1])
		return f
	}
}

// sameVersion reports whether two fingerprints can be compared.
func (f Fingerprint) sameVersion(other Fingerprint) bool { return f.stored[0] == other.stored[0] }

// Digest collects decoded content for a Fingerprint. Each value is written
// with its length, so that different contents never look the same.
type Digest struct{ content []byte }

// Text adds a text.
func (d *Digest) Text(s string) { d.content = appendText(d.content, s) }

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// Int adds a number.
func (d *Digest) Int(n int64) { d.content = binary.AppendVarint(d.content, n) }

// Header adds the fields of a Header that belong to the content, as the caller sent them: a
// filled field is left out. The CallerId is the key, and the tracking fields do not count (the
// contract, section 6).
func (d *Digest) Header(h *operation.Header, filled operation.Filled) {
	d.sent(h.AppKey, filled.AppKey)
	d.sent(h.Channel, filled.Channel)
	d.sent(h.TellerName, filled.TellerName)
}

// sent adds a field of a Header, or an empty text if the caller left it out.
func (d *Digest) sent(recorded string, filled bool) {
	if filled {
		recorded = ""
	}
	d.Text(recorded)
}

// Take returns everything that was added. The result is valid until the next call. Take empties
// the digest, so that its memory can be used again.
func (d *Digest) Take() []byte {
	content := d.content
	d.content = d.content[:0]
	return content
}

// IsZero reports whether f is the zero value, which is no fingerprint.
func (f *Fingerprint) IsZero() bool { return f.stored == [1 + sha256.Size]byte{} }

// Sum returns the fingerprint of everything that was added. It empties the
// digest, so that its memory can be used again.
func (d *Digest) Sum() Fingerprint {
	sum := sha256.Sum256(d.content)
	d.content = d.content[:0]
	f := Fingerprint{}
	f.stored[0] = version1
	copy(f.stored[1:], sum[:])
	return f
}
