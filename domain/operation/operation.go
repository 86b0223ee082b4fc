// Package operation has what both operations of the API share: the Header of the
// request, the ID of an operation, and its outcome.
package operation

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"bankingapi/domain/fault"
)

// ID identifies one operation. It is a UUID of version 7, made by the service that
// accepted the operation.
type ID [16]byte

// ErrSyntax is returned for text that is not a UUID.
var ErrSyntax = errors.New("not a UUID")

// ParseID reads a UUID in the form 8-4-4-4-12, or its 32 digits as a trail has them. The
// error is ErrSyntax.
func ParseID(text string) (ID, error) {
	if len(text) == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-' {
		text = text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	}
	digits, err := hex.DecodeString(text)
	if err != nil || len(digits) != len(ID{}) {
		return ID{}, ErrSyntax
	}
	return ID(digits), nil
}

// String returns the UUID in the form 8-4-4-4-12, in lower case.
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

// Time returns the millisecond in which the ID was made.
func (id ID) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:]) >> 16)).UTC()
}

// Name is one of the two operations.
type Name uint8

// The operations of the API.
const (
	AddPushNotificationResponse Name = 1
	BuyFundFromCustomer         Name = 2
)

// Names are all operations, in the order of the API's document.
var Names = []Name{AddPushNotificationResponse, BuyFundFromCustomer}

var texts = map[Name]string{
	AddPushNotificationResponse: "AddPushNotificationResponse",
	BuyFundFromCustomer:         "BuyFundFromCustomer",
}

// String returns the name of the operation in paths and settings.
func (n Name) String() string { return texts[n] }

// AllNames are the names of all operations in paths and settings.
func AllNames() (names []string) {
	for _, n := range Names {
		names = append(names, n.String())
	}
	return names
}

// maxName is the maximum length of a name.
const maxName = 100

// IsName reports whether text can name an operation: it is one element of a path
// of 1 to 100 letters A-Z, a-z and digits.
func IsName(text string) bool {
	return text != "" && len(text) <= maxName && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	})
}

// State is Data.State of the answer (the contract, section 5).
type State uint8

// The states of an operation.
const (
	Recorded  State = 1 // takes place on a later day
	Completed State = 2
	Failed    State = 8
)

var states = map[State]string{0: "none", Recorded: "recorded", Completed: "completed", Failed: "failed"}

// String returns the state in lower case, for logs and metrics. The set of texts is closed.
func (s State) String() string { return cmp.Or(states[s], states[0]) }

// Header is the Header of a request (the contract, section 3). Every field is
// optional. An empty text means that the field is absent.
type Header struct {
	AppKey           string
	Channel          string
	TellerName       string
	CallerID         string
	ChannelSessionID string
	ChannelRequestID string
	// RequestID is the X-Request-Id that the caller sent. It is no member of the
	// request's Header. It is kept with the operation and does not belong to its
	// content. If the caller sent none, the operation's ID serves as one.
	RequestID string
}

// Envelope is what is kept of an operation beside what its caller asked for.
type Envelope struct {
	ID           ID
	Subscription string
	Header       Header
	ReceivedAt   time.Time
}

// Checked says how the Header of a request differs from the Header to record. The zero value
// means that it does not differ.
type Checked struct {
	// Filled has the fields that the caller left out and that have the defined values in the
	// Header to record. The content of the operation is what its caller sent, so they are no
	// part of it.
	Filled Filled
	// Contradiction is the error of a Header with other values than those defined for the
	// caller. Such a request is not carried out. But a repeat gets its answer, because the
	// values may have been defined after the operation (the contract, section 6).
	Contradiction error
}

// Filled says which fields of a Header have the value that is defined for the caller, because
// the caller sent no value.
type Filled struct{ AppKey, Channel, TellerName bool }

// FilledIn returns the fields that sent leaves out and recorded has.
func FilledIn(sent, recorded Header) Filled {
	return Filled{
		AppKey:     sent.AppKey == "" && recorded.AppKey != "",
		Channel:    sent.Channel == "" && recorded.Channel != "",
		TellerName: sent.TellerName == "" && recorded.TellerName != "",
	}
}

// maxHeader is the maximum length of a Header field, in characters.
const maxHeader = 200

// Faults returns the faults of fields that are too long or that cannot be kept
// (fault.List.Text). Pointers start with /Header. The pointer of RequestID is empty.
func (h *Header) Faults() []fault.Fault {
	var faults fault.List
	faults.Text("/Header/AppKey", h.AppKey, maxHeader)
	faults.Text("/Header/Channel", h.Channel, maxHeader)
	faults.Text("/Header/TellerName", h.TellerName, maxHeader)
	faults.Text("/Header/CallerId", h.CallerID, maxHeader)
	faults.Text("/Header/ChannelSessionId", h.ChannelSessionID, maxHeader)
	faults.Text("/Header/ChannelRequestId", h.ChannelRequestID, maxHeader)
	faults.Text("", h.RequestID, maxHeader)
	return faults
}

// Outcome is how an operation ended, or its current state.
type Outcome struct {
	ID     ID // the operation that was decided: of a repeat, the one it repeats
	State  State
	Faults []fault.Fault // the reasons of Failed; empty for other states
	// Replayed is true if the request repeats an operation. Then it had no effect
	// of its own, and the outcome is that of the operation.
	Replayed bool
}

// Decided returns an outcome and its error as they are. If there is neither, a port has returned before
// it decided anything: the error is fault.Internal.
func Decided(o Outcome, err error) (Outcome, error) {
	if err == nil && o.State == 0 {
		return o, fault.New(fault.Internal, "The port has not decided the operation, and returned no error.")
	}
	return o, err
}

// Decision is an operation that was decided: completed, recorded or refused. Every operation
// that was answered is kept.
type Decision struct {
	Envelope
	Operation Name
	State     State
	// Faults are the reasons of Failed, with codes and pointers.
	Faults []fault.Fault
}

// CountFaults returns the fault of a Parameters array with no records or with
// more than limit records. It returns nil for 1 to limit records.
func CountFaults(n, limit int) []fault.Fault {
	switch {
	case n == 0:
		return []fault.Fault{{Pointer: "/Parameters", Code: fault.TooFew, Detail: "At least one record."}}
	case n > limit:
		return []fault.Fault{{Pointer: "/Parameters", Code: fault.TooMany, Detail: "At most " + strconv.Itoa(limit) + " records."}}
	}
	return nil
}

// UnderParameter puts /Parameters/i in front of the pointer of every fault and
// returns the slice. It changes the faults in place.
func UnderParameter(i int, faults []fault.Fault) []fault.Fault {
	if len(faults) == 0 {
		return nil
	}
	return fault.Under("/Parameters/"+strconv.Itoa(i), faults)
}

// ParameterOf returns the index i of a pointer that begins with /Parameters/i. ok is false for any
// other pointer.
func ParameterOf(pointer string) (i int, ok bool) {
	rest, isUnder := strings.CutPrefix(pointer, "/Parameters/")
	if !isUnder {
		return 0, false
	}
	index, _, _ := strings.Cut(rest, "/")
	unsigned, err := strconv.ParseUint(index, 10, 31)
	return int(unsigned), err == nil
}
