// Package subscription has the subscriptions that may call the API. A subscription has two
// keys, a state, and values that are defined for its caller (the contract, section 7).
package subscription

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// State says whether the keys of a subscription are accepted.
type State string

// The states of a subscription. Cancelled is final.
const (
	Active    State = "active"
	Suspended State = "suspended"
	Cancelled State = "cancelled"
)

// Slot is one of the two keys. With two keys a key can be changed without an
// interruption: the callers change to the other key, then this one is replaced.
type Slot string

// The two keys.
const (
	Primary   Slot = "primary"
	Secondary Slot = "secondary"
)

// Key is a subscription key in plain text: 128 random bits in 32 hex digits. It
// exists only until it is shown to its owner. String masks it, so that it does
// not get into a log by accident.
type Key struct{ text string }

// NewKey makes a key from 16 bytes of random.
func NewKey(random io.Reader) (Key, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return Key{}, fmt.Errorf("make a subscription key: %w", err)
	}
	return Key{hex.EncodeToString(b[:])}, nil
}

// Reveal returns the key in plain text. Show it to its owner once.
func (k Key) Reveal() string { return k.text }

// String hides the key.
func (k Key) String() string { return "***" }

// GoString hides the key.
func (k Key) GoString() string { return "***" }

// Hash returns the hash of the key.
func (k Key) Hash() Hash { return HashOf(k.text) }

// Hash is the SHA-256 of a key. The service stores nothing else of a key.
type Hash [sha256.Size]byte

// HashOf returns the hash of the text that a caller sends as its key.
func HashOf(presented string) Hash { return sha256.Sum256([]byte(presented)) }

// Equal compares two hashes in constant time.
func (h Hash) Equal(other Hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

// Subscription is a caller of the API. Change it only through its methods.
type Subscription struct {
	Name  string
	State State
	// Operations are the names of the operations that it may call, those of a host
	// program last. They are never empty.
	Operations []string
	// RequestsPerSecond is the maximum rate of its requests on each replica. 0 means no limit.
	RequestsPerSecond int
	// AppKey, Channel and TellerName are the values defined for the caller. An
	// empty text means that the value is not defined.
	AppKey, Channel, TellerName string

	RequireCallerID bool // of every request
	// ClientCertificate is the SHA-256 of a certificate, in 64 hex digits. If it is not
	// empty, the keys work only with that client certificate.
	ClientCertificate string

	PrimaryHash, SecondaryHash Hash
	Created                    time.Time // zero if that is not known
	PrimaryKey, SecondaryKey   KeyLife
	// WithoutCallerID is when its last BuyFundFromCustomer without a CallerId
	// arrived. It may be a minute late.
	WithoutCallerID time.Time
}

// KeyLife has the times of a key: when it was created, when it expires, and
// when it was last used, which may be a minute late. A zero time means unknown
// for Created, no expiry for Expires, and never for Used.
type KeyLife struct{ Created, Expires, Used time.Time }

// IsExpired reports whether the key has expired by then.
func (l *KeyLife) IsExpired(now time.Time) bool { return !l.Expires.IsZero() && !l.Expires.After(now) }

const (
	maxName    = 100
	maxDefined = 200 // as in the Header
	// Texts of times have four digits for the year. West of Greenwich, 9999-12-31 ends in a later one.
	maxYear = 9999
)

// New checks a new subscription. Its keys are set with Regenerate. The error is
// fault.Invalid and has all faults. Pointers are the names of the fields.
func New(s Subscription) (*Subscription, error) {
	var faults fault.List
	switch n := utf8.RuneCountInString(s.Name); {
	case n == 0:
		faults.Add("/Name", fault.Required, "A name of 1 to 100 characters.")
	case n > maxName:
		faults.Add("/Name", fault.TooLong, "A name of 1 to 100 characters.")
	case strings.TrimSpace(s.Name) != s.Name:
		faults.Add("/Name", fault.InvalidCharacter, "No spaces at the beginning or the end.")
	case strings.ContainsFunc(s.Name, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }):
		faults.Add("/Name", fault.InvalidCharacter, "Only printable characters.")
	}
	for _, name := range s.Operations {
		if !operation.IsName(name) {
			faults.Add("/HostOperations", fault.InvalidCharacter, "Names of 1 to 100 letters A-Z, a-z and digits.")
		}
	}
	if s.RequestsPerSecond < 0 {
		faults.Add("/RequestsPerSecond", fault.OutOfRange, "0 (no limit) or more.")
	}
	if max(s.PrimaryKey.Expires.UTC().Year(), s.SecondaryKey.Expires.UTC().Year()) > maxYear {
		faults.Add("/Expires", fault.OutOfRange, "A last day that ends before the year 10000 in UTC, or none.")
	}
	s.checkDefined(&faults)
	// openssl prints AB:CD:EF.
	s.ClientCertificate = strings.ToLower(strings.ReplaceAll(s.ClientCertificate, ":", ""))
	if digest, err := hex.DecodeString(s.ClientCertificate); err != nil || (len(digest) != 0 && len(digest) != sha256.Size) {
		faults.Add("/ClientCertificate", fault.InvalidCharacter, "The SHA-256 of the certificate in 64 hex digits, or empty.")
	}
	if len(faults) > 0 {
		return nil, fault.New(fault.Invalid, "The subscription is not valid.", faults...)
	}
	s.State = Active
	s.Operations = InOrder(s.Operations)
	if len(s.Operations) == 0 {
		s.Operations = operation.AllNames()
	}
	return &s, nil
}

// checkDefined checks the values that are defined for the caller.
func (s *Subscription) checkDefined(faults *fault.List) {
	faults.Text("/AppKey", s.AppKey, maxDefined)
	faults.Text("/Channel", s.Channel, maxDefined)
	faults.Text("/TellerName", s.TellerName, maxDefined)
}

// InOrder returns the names of operations, each once: those of a host program follow the
// others.
func InOrder(names []string) []string {
	var ordered []string
	for _, name := range append(operation.AllNames(), slices.Sorted(slices.Values(names))...) {
		if slices.Contains(names, name) && !slices.Contains(ordered, name) {
			ordered = append(ordered, name)
		}
	}
	return ordered
}

// Errors of changes.
var (
	// ErrCancelled is returned for changes of a cancelled subscription.
	ErrCancelled = errors.New("the subscription is cancelled, which is final: create a new one (a cancelled one keeps its name: choose another)")
	// ErrExpired is returned for a new key that would expire before it is used.
	ErrExpired = errors.New("a new key would be expired already: change the last day of the subscription first")
)

// Regenerate puts a key that was created now into the slot. The old key is not accepted
// any more. The new one expires with it: the error is ErrExpired if it has expired. It is
// ErrCancelled, or fault.Invalid for an unknown slot.
func (s *Subscription) Regenerate(slot Slot, key Key, now time.Time) error {
	hash := &s.PrimaryHash
	life := &s.PrimaryKey
	if slot == Secondary {
		hash = &s.SecondaryHash
		life = &s.SecondaryKey
	}
	switch {
	case s.State == Cancelled:
		return ErrCancelled
	case slot != Primary && slot != Secondary:
		return fault.New(fault.Invalid, "The key must be primary or secondary.")
	case life.IsExpired(now):
		return ErrExpired
	}
	*hash = key.Hash()
	*life = KeyLife{Created: now, Expires: life.Expires}
	return nil
}

// Become changes the state of the subscription. The error is ErrCancelled if the
// subscription is cancelled, and fault.Invalid for an unknown state. Setting the
// current state again is not an error.
func (s *Subscription) Become(state State) error {
	switch {
	case state != Active && state != Suspended && state != Cancelled:
		return fault.New(fault.Invalid, "The state must be active, suspended or cancelled.")
	case s.State == Cancelled && state != Cancelled:
		return ErrCancelled
	}
	s.State = state
	return nil
}

// OpensAt reports whether a presented key opens the subscription at that time, and which of the
// two keys it is. The subscription must be active. A key that has expired opens nothing.
func (s *Subscription) OpensAt(presented Hash, now time.Time) (slot Slot, ok bool) {
	primary := s.PrimaryHash.Equal(presented)
	secondary := s.SecondaryHash.Equal(presented)
	slot = Primary
	life := &s.PrimaryKey
	if !primary {
		slot = Secondary
		life = &s.SecondaryKey
	}
	return slot, (primary || secondary) && s.State == Active && !life.IsExpired(now)
}

// Revise sets what may change of a subscription: the operations, the limit, the
// values defined for the caller, its client certificate, and whether it must send
// CallerIds. Keys, times and state stay. The error is that of New, or ErrCancelled.
func (s *Subscription) Revise(to Subscription) error {
	if s.State == Cancelled {
		return ErrCancelled
	}
	to.Name = s.Name
	revised, err := New(to)
	if err != nil {
		return err
	}
	s.Operations = revised.Operations
	s.RequestsPerSecond = revised.RequestsPerSecond
	s.RequireCallerID = revised.RequireCallerID
	s.AppKey = revised.AppKey
	s.Channel = revised.Channel
	s.TellerName = revised.TellerName
	s.ClientCertificate = revised.ClientCertificate
	return nil
}

// CheckChange returns an error if the subscription may not become this from what it was before. A
// change keeps the name, the state, the keys and when they were made and used: use Become and
// Regenerate. What else it has must be as New accepts it, with at least one operation. The error is
// ErrCancelled or fault.Invalid.
func (s *Subscription) CheckChange(before *Subscription) error {
	isSame := s.Name == before.Name && s.State == before.State && s.Created.Equal(before.Created) &&
		s.PrimaryHash.Equal(before.PrimaryHash) && s.SecondaryHash.Equal(before.SecondaryHash)
	switch {
	case before.State == Cancelled:
		return ErrCancelled
	case !isSame:
		return fault.New(fault.Invalid, "A change keeps the name, the state and the keys of a subscription.")
	case len(s.Operations) == 0:
		return fault.New(fault.Invalid, "The subscription may call nothing: suspend it instead.")
	}
	_, err := New(*s)
	return err
}

// MayCall reports whether the subscription may call the operation with that name,
// which may be one of a host program. nil, which no key opens, may call nothing.
func (s *Subscription) MayCall(name string) bool {
	return s != nil && slices.Contains(s.Operations, name)
}

// Missing returns the faults of fields that the subscription requires and the
// header does not have.
func (s *Subscription) Missing(h operation.Header) []fault.Fault {
	if s == nil || !s.RequireCallerID || h.CallerID != "" {
		return nil
	}
	return []fault.Fault{{Pointer: "/Header/CallerId", Code: fault.Required,
		Detail: "Required: a unique id of the operation, 1 to 200 characters."}}
}

// Check holds the Header of a request against the values that are defined for the caller. It
// returns the Header to record, and how the request differs from it. If the request has a
// CallerId, a contradiction is no error yet: only the storage knows if the request is a repeat,
// which gets its answer whatever is defined now. Otherwise the errors are those of Complete.
func (s *Subscription) Check(sent operation.Header) (operation.Header, operation.Checked, error) {
	recorded, err := s.Complete(sent)
	if err == nil {
		return recorded, operation.Checked{Filled: operation.FilledIn(sent, recorded)}, nil
	}
	mayBeRepeat := s != nil && sent.CallerID != ""
	if mayBeRepeat && fault.KindOf(err) == fault.Forbidden {
		return sent, operation.Checked{Contradiction: err}, nil
	}
	return sent, operation.Checked{}, err
}

// Complete returns the header to record. It fills absent fields with the values
// that are defined for the caller. The error is fault.Forbidden if the header has
// another value than a defined one, with a fault for each such field (the
// contract, section 3). It is fault.Forbidden for nil too: there is no caller. It is
// fault.Invalid for a caller of a host with texts that are too long or that no storage can keep.
func (s *Subscription) Complete(h operation.Header) (operation.Header, error) {
	if s == nil {
		return h, fault.New(fault.Forbidden, "There is no caller.")
	}
	var faults fault.List
	faults.Text("/Name", s.Name, len(s.Name))
	if s.checkDefined(&faults); len(faults) > 0 {
		return h, fault.New(fault.Invalid, "The subscription is not valid.", faults...)
	}
	complete := func(sent *string, defined, pointer string) {
		switch {
		case defined == "" || *sent == defined:
		case *sent == "":
			*sent = defined
		default:
			faults.Add(pointer, fault.ContradictsSubscription, "The subscription has another value. Send that value, or leave the field out.")
		}
	}
	complete(&h.AppKey, s.AppKey, "/Header/AppKey")
	complete(&h.Channel, s.Channel, "/Header/Channel")
	complete(&h.TellerName, s.TellerName, "/Header/TellerName")
	if len(faults) > 0 {
		return h, fault.New(fault.Forbidden, "The Header does not match the values of the subscription.", faults...)
	}
	return h, nil
}
