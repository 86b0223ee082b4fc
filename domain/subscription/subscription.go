// Package subscription has who may call the API: a subscription as in API
// Management, with two keys, a state, and what is defined for its caller (the
// contract, section 7).
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
	"unicode"
	"unicode/utf8"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// State says whether the keys of a subscription open anything.
type State string

// The states of a subscription. Cancelled is final.
const (
	Active    State = "active"
	Suspended State = "suspended"
	Cancelled State = "cancelled"
)

// Slot is one of the two keys, so that a key is changed without a pause: move
// the callers to the other key, then make this one anew.
type Slot string

// The two keys.
const (
	Primary   Slot = "primary"
	Secondary Slot = "secondary"
)

// Key is a subscription key in clear: 128 random bits in 32 hex digits. It
// exists only between its making and its printing. It never shows itself by
// accident: String masks it.
type Key struct{ text string }

// NewKey makes a key from 16 bytes of random.
func NewKey(random io.Reader) (Key, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return Key{}, fmt.Errorf("make a subscription key: %w", err)
	}
	return Key{hex.EncodeToString(b[:])}, nil
}

// Reveal is the key in clear, to be shown to its owner once.
func (k Key) Reveal() string { return k.text }

// String hides the key.
func (k Key) String() string { return "***" }

// GoString hides the key.
func (k Key) GoString() string { return "***" }

// Hash is what the service keeps of the key.
func (k Key) Hash() Hash { return HashOf(k.text) }

// Hash is the SHA-256 of a key: all that is stored of it.
type Hash [sha256.Size]byte

// HashOf is the hash of what a caller presents as a key.
func HashOf(presented string) Hash { return sha256.Sum256([]byte(presented)) }

// Equal compares in constant time.
func (h Hash) Equal(other Hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

// Subscription is a caller of the API. Change it only through its methods.
type Subscription struct {
	Name  string
	State State
	// Operations it may call; never empty.
	Operations []operation.Name
	// RequestsPerSecond is the limit of its requests on each replica; 0 is none.
	RequestsPerSecond int
	// AppKey, Channel and TellerName are the values defined for the caller;
	// empty means not defined.
	AppKey, Channel, TellerName string

	PrimaryHash, SecondaryHash Hash
}

const (
	maxName    = 100
	maxDefined = 200 // as in the Header
)

// New checks a subscription to be made; its keys come with Regenerate. The
// error is fault.Invalid and names every fault; pointers are the fields' names.
func New(s Subscription) (*Subscription, error) {
	var faults []fault.Fault
	broken := func(field, code, detail string) {
		faults = append(faults, fault.Fault{Pointer: "/" + field, Code: code, Detail: detail})
	}
	switch n := utf8.RuneCountInString(s.Name); {
	case n == 0:
		broken("Name", fault.Required, "A name of 1 to 100 characters.")
	case n > maxName:
		broken("Name", fault.TooLong, "A name of 1 to 100 characters.")
	case strings.ContainsFunc(s.Name, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }):
		broken("Name", fault.InvalidCharacter, "Only printable characters.")
	}
	if s.RequestsPerSecond < 0 {
		broken("RequestsPerSecond", fault.OutOfRange, "0 (no limit) or more.")
	}
	for _, defined := range []struct{ field, value string }{
		{"AppKey", s.AppKey}, {"Channel", s.Channel}, {"TellerName", s.TellerName},
	} {
		if utf8.RuneCountInString(defined.value) > maxDefined {
			broken(defined.field, fault.TooLong, "At most 200 characters.")
		}
		if !utf8.ValidString(defined.value) || strings.ContainsRune(defined.value, 0) {
			broken(defined.field, fault.InvalidCharacter, "Valid UTF-8 without U+0000.")
		}
	}
	if len(faults) > 0 {
		return nil, fault.New(fault.Invalid, "The subscription is not valid.", faults...)
	}
	s.State = Active
	s.Operations = slices.Compact(slices.Sorted(slices.Values(s.Operations)))
	if len(s.Operations) == 0 {
		s.Operations = slices.Clone(operation.Names[:])
	}
	return &s, nil
}

// ErrCancelled says that a cancelled subscription stays so.
var ErrCancelled = errors.New("the subscription is cancelled, which is final: create a new one")

// Regenerate puts a new key into the slot; the key that was there opens
// nothing any more. A slot that is none is fault.Invalid.
func (s *Subscription) Regenerate(slot Slot, key Key) error {
	if s.State == Cancelled {
		return ErrCancelled
	}
	switch slot {
	case Primary:
		s.PrimaryHash = key.Hash()
	case Secondary:
		s.SecondaryHash = key.Hash()
	default:
		return fault.New(fault.Invalid, "The key is primary or secondary.")
	}
	return nil
}

// Become moves the subscription to a state; to the one it has is no change.
// Nothing comes back from Cancelled. A state that is none is fault.Invalid.
func (s *Subscription) Become(state State) error {
	switch {
	case state != Active && state != Suspended && state != Cancelled:
		return fault.New(fault.Invalid, "The state is active, suspended or cancelled.")
	case s.State == Cancelled && state != Cancelled:
		return ErrCancelled
	}
	s.State = state
	return nil
}

// Opens reports whether a presented key is one of this subscription's and the
// subscription is active.
func (s *Subscription) Opens(presented Hash) bool {
	primary, secondary := s.PrimaryHash.Equal(presented), s.SecondaryHash.Equal(presented)
	return (primary || secondary) && s.State == Active
}

// MayCall reports whether the subscription may call the operation.
func (s *Subscription) MayCall(n operation.Name) bool { return slices.Contains(s.Operations, n) }

// Complete returns the header to record: what is defined for the caller stands
// in for what the request omits. A request that contradicts a defined value is
// fault.Forbidden, with every contradiction (the contract, section 3).
func (s *Subscription) Complete(h operation.Header) (operation.Header, error) {
	var faults []fault.Fault
	complete := func(sent *string, defined, pointer string) {
		switch {
		case defined == "" || *sent == defined:
		case *sent == "":
			*sent = defined
		default:
			faults = append(faults, fault.Fault{Pointer: pointer, Code: "contradicts-subscription",
				Detail: "Another value is defined for this subscription: send that one, or none."})
		}
	}
	complete(&h.AppKey, s.AppKey, "/Header/AppKey")
	complete(&h.Channel, s.Channel, "/Header/Channel")
	complete(&h.TellerName, s.TellerName, "/Header/TellerName")
	if len(faults) > 0 {
		return h, fault.New(fault.Forbidden, "The Header contradicts what is defined for the subscription.", faults...)
	}
	return h, nil
}
