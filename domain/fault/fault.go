// Package fault is the one vocabulary of failure: what kind it is, and which
// parts of a request are at fault. Storage translates its native errors into
// it, HTTP translates it into statuses, nothing else invents errors callers
// see.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind says whose turn it is after a failure, and whether anything happened.
type Kind uint8

const (
	// Internal is everything nobody foresaw; its text is never shown. It is
	// the zero value, so that an error of unknown origin is Internal.
	Internal Kind = iota
	// Invalid says that the request breaks a rule; the same request fails again.
	Invalid
	// Forbidden says that the subscription may not ask for this.
	Forbidden
	// Conflict says that the CallerId was used before for another content (the
	// contract, section 6).
	Conflict
	// Busy says that the queue is full or the service is stopping; nothing happened,
	// and another replica may well have room.
	Busy
	// Unavailable says that the storage cannot be reached; nothing happened.
	Unavailable
	// Indeterminate says that the connection was lost while committing, so the effect
	// is not known. The caller repeats with the same CallerId.
	Indeterminate
)

var kindNames = [...]string{"internal", "invalid", "forbidden", "conflict", "busy", "unavailable", "indeterminate"}

// String is the kind in lower case, for logs and metrics: a closed set.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[Internal]
}

// Fault is one broken rule.
type Fault struct {
	// Pointer is an RFC 6901 pointer into the request; empty means the whole.
	Pointer string
	// Code is stable and kebab-case: programs may rely on it.
	Code string
	// Detail names the rule in a sentence and never repeats the value.
	Detail string
}

// Under puts pointer before the pointer of every fault, in place, and returns
// the slice: a record's faults become its array's.
func Under(pointer string, faults []Fault) []Fault {
	for i := range faults {
		faults[i].Pointer = pointer + faults[i].Pointer
	}
	return faults
}

// Error is a failure with a kind. The text of a Cause may hold anything and is
// for logs only; Detail and Faults are safe to show.
type Error struct {
	Kind   Kind
	Detail string
	Faults []Fault
	Cause  error
}

// New returns an error of that kind.
func New(kind Kind, detail string, faults ...Fault) *Error {
	return &Error{Kind: kind, Detail: detail, Faults: faults}
}

// Wrap gives cause a kind. A nil cause is a failure too: Wrap never returns
// nil, so a mistaken call cannot turn into a success.
func Wrap(kind Kind, cause error, detail string) *Error {
	return &Error{Kind: kind, Detail: detail, Cause: cause}
}

// Error is for logs. It names codes and pointers, never values.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Kind.String())
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	for _, f := range e.Faults {
		fmt.Fprintf(&b, "; %s %s", f.Code, f.Pointer)
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// KindOf is the kind of the outermost Error in err's chain, and Internal where
// there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Of returns a copy of the faults of the outermost Error in err's chain.
func Of(err error) []Fault {
	if e, ok := errors.AsType[*Error](err); ok {
		return slices.Clone(e.Faults)
	}
	return nil
}
