// Package operation has what both operations of the API share: the request's
// Header, the identity of an operation by its CallerId, and how it ended.
package operation

import (
	"cmp"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"unicode/utf8"

	"bankingapi/domain/fault"
)

// ID names one operation for ever: the bytes of a UUID of version 7, made by
// the service that accepted it.
type ID [16]byte

// ErrSyntax says that a text is not a UUID.
var ErrSyntax = errors.New("not a UUID")

// ParseID reads the form 8-4-4-4-12.
func ParseID(text string) (ID, error) {
	var id ID
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return id, ErrSyntax
	}
	digits := text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return ID{}, ErrSyntax
	}
	return id, nil
}

// String is the form 8-4-4-4-12 in lower case.
func (id ID) String() string {
	var b [36]byte
	hex.Encode(b[:], id[:4])
	hex.Encode(b[9:], id[4:6])
	hex.Encode(b[14:], id[6:8])
	hex.Encode(b[19:], id[8:10])
	hex.Encode(b[24:], id[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// Name is one of the two operations.
type Name uint8

// The operations of the API.
const (
	AddPushNotificationResponse Name = 1
	BuyFundFromCustomer         Name = 2
)

// Names are all operations, in the order of the customer's document.
var Names = [...]Name{AddPushNotificationResponse, BuyFundFromCustomer}

// String is the operation's name in paths and settings.
func (n Name) String() string {
	switch n {
	case AddPushNotificationResponse:
		return "AddPushNotificationResponse"
	case BuyFundFromCustomer:
		return "BuyFundFromCustomer"
	}
	return ""
}

// ParseName finds an operation by its exact name.
func ParseName(text string) (Name, bool) {
	for _, n := range Names {
		if n.String() == text {
			return n, true
		}
	}
	return 0, false
}

// State is Data.State of the answer (the contract, section 5).
type State uint8

// The states of an operation.
const (
	Recorded  State = 1 // will take place on a later day
	Completed State = 2
	Failed    State = 8
)

// String is the state in lower case, for logs and metrics: a closed set.
func (s State) String() string {
	switch s {
	case Recorded:
		return "recorded"
	case Completed:
		return "completed"
	case Failed:
		return "failed"
	}
	return "none"
}

// Header is the request's Header (the contract, section 3). Every field is
// optional: empty means absent.
type Header struct {
	AppKey           string
	Channel          string
	TellerName       string
	CallerID         string
	ChannelSessionID string
	ChannelRequestID string
}

// maxHeader is the length of a Header field, in characters.
const maxHeader = 200

// Faults lists the fields that are too long, with pointers from /Header.
func (h *Header) Faults() []fault.Fault {
	var faults []fault.Fault
	check := func(value, pointer string) {
		if utf8.RuneCountInString(value) > maxHeader {
			faults = append(faults, fault.Fault{Pointer: pointer, Code: fault.TooLong, Detail: "At most 200 characters."})
		}
	}
	check(h.AppKey, "/Header/AppKey")
	check(h.Channel, "/Header/Channel")
	check(h.TellerName, "/Header/TellerName")
	check(h.CallerID, "/Header/CallerId")
	check(h.ChannelSessionID, "/Header/ChannelSessionId")
	check(h.ChannelRequestID, "/Header/ChannelRequestId")
	return faults
}

// Key is the identity of an operation whose caller gave it a CallerId: unique
// per subscription and operation (the contract, section 6).
type Key struct {
	CallerID     string
	Subscription string
	Operation    Name
}

// Compare orders keys: the order in which storage locks them.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.CallerID, other.CallerID), cmp.Compare(k.Subscription, other.Subscription),
		cmp.Compare(k.Operation, other.Operation))
}

// Known is an operation that took place under a CallerId: what a repeat of it
// is held against, and answered with.
type Known struct {
	Key         Key
	ID          ID
	Fingerprint Fingerprint
	Outcome     Outcome
}

// Outcome is how an operation ended, or stands now.
type Outcome struct {
	State State
	// Faults are the reasons of Failed; empty otherwise.
	Faults []fault.Fault
	// Replayed: this request had no effect of its own, the outcome is that of
	// the operation it repeats.
	Replayed bool
}

// Reused is the failure of a request whose CallerId belongs to an operation of
// another content (422).
func Reused() error {
	const detail = "This CallerId was used before for another content."
	return fault.New(fault.Conflict, detail, fault.Fault{Pointer: "/Header/CallerId", Code: "caller-id-reused", Detail: detail})
}

// CountFaults is the fault of a Parameters array that has not 1 to limit
// records; nil when it has.
func CountFaults(n, limit int) []fault.Fault {
	switch {
	case n == 0:
		return []fault.Fault{{Pointer: "/Parameters", Code: fault.TooFew, Detail: "At least one record."}}
	case n > limit:
		return []fault.Fault{{Pointer: "/Parameters", Code: fault.TooMany, Detail: "At most " + strconv.Itoa(limit) + " records."}}
	}
	return nil
}

// UnderParameter puts /Parameters/i before the pointer of every fault, in
// place, and returns the slice.
func UnderParameter(i int, faults []fault.Fault) []fault.Fault {
	if len(faults) == 0 {
		return nil
	}
	return fault.Under("/Parameters/"+strconv.Itoa(i), faults)
}

// SortedKeys are the keys in the order of Compare, each once. It reorders keys
// in place.
func SortedKeys(keys []Key) []Key {
	slices.SortFunc(keys, Key.Compare)
	return slices.Compact(keys)
}
