// Package fault describes failures: their kind, and the parts of a request that
// are at fault. Storage translates its native errors into faults, and HTTP
// translates faults into statuses. Callers see no other errors.
package fault

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"bankingapi/domain/day"
)

// Kind says who must act after a failure, and whether the request had an effect.
type Kind uint8

const (
	// Internal means an unexpected failure. Its text is never shown to callers.
	// It is the zero value, so that an error of unknown origin is Internal.
	Internal Kind = iota
	// Invalid means that the request breaks a rule. The same request fails again.
	Invalid
	// Forbidden means that the subscription may not send this request.
	Forbidden
	// Conflict means that the CallerId was already used for other content (the
	// contract, section 6).
	Conflict
	// Busy means that the queue is full or the service is stopping. Nothing
	// happened. Another replica may be able to take the request.
	Busy
	// Unavailable means that the storage cannot be used now: it cannot be reached, or
	// it refuses. Nothing happened.
	Unavailable
	// Indeterminate means that the commit was sent and not confirmed: the connection was lost,
	// or the time was over. The effect is not known. The caller repeats with the same CallerId.
	Indeterminate
	// None is the kind of no error.
	None
)

var kindNames = map[Kind]string{
	Internal: "internal", Invalid: "invalid", Forbidden: "forbidden", Conflict: "conflict",
	Busy: "busy", Unavailable: "unavailable", Indeterminate: "indeterminate", None: "none",
}

// String returns the kind in lower case, for logs and metrics. The set of texts is closed.
func (k Kind) String() string { return cmp.Or(kindNames[k], kindNames[Internal]) }

// Fault is one broken rule.
type Fault struct {
	// Pointer is an RFC 6901 pointer into the request. An empty pointer means the
	// whole request.
	Pointer string
	Code    string // the Name of a Code
	// Detail describes the rule in a sentence. It never repeats the value.
	Detail string
	// Named is what Detail names beside the rule, such as the current PriceID. It
	// is empty for most codes.
	Named string
}

// Under puts pointer in front of the pointer of every fault and returns the slice. It changes
// the faults in place. So the faults of a record become faults of its array.
func Under(pointer string, faults []Fault) []Fault {
	for i := range faults {
		faults[i].Pointer = pointer + faults[i].Pointer
	}
	return faults
}

// List collects the faults of a record.
type List []Fault

// Add adds a fault.
func (l *List) Add(pointer, code, detail string) {
	*l = append(*l, Fault{Pointer: pointer, Code: code, Detail: detail})
}

// Text checks a text, which it returns. The text has at most that many characters, and
// the storage can keep it: it is valid UTF-8 without U+0000.
func (l *List) Text(pointer, text string, most int) string {
	if len(text) > most && utf8.RuneCountInString(text) > most {
		l.Add(pointer, TooLong, "At most "+strconv.Itoa(most)+" characters.")
	}
	if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
		l.Add(pointer, InvalidCharacter, "Must be valid UTF-8 without the character U+0000.")
	}
	return text
}

// RequiredText is Text for a text of at least one character.
func (l *List) RequiredText(pointer, text string, most int) string {
	if text == "" {
		l.Add(pointer, Required, "Required: 1 to "+strconv.Itoa(most)+" characters.")
	}
	return l.Text(pointer, text, most)
}

// Date checks a date, which it returns. The date may be empty. ok is false if the text is not
// a date.
func (l *List) Date(pointer, text string) (date day.Day, ok bool) {
	if text == "" {
		return day.Day{}, true
	}
	date, err := day.ParseMidnight(text)
	if err != nil {
		l.Add(pointer, InvalidDate, "Must be empty or a real date in YYYY-MM-DD format. The only time that is accepted is T00:00:00, without a time zone.")
		return day.Day{}, false
	}
	return date, true
}

// Either returns the value if there are no faults, and otherwise the faults alone.
func Either[T any](value T, faults List) (T, []Fault) {
	if len(faults) > 0 {
		var none T
		return none, faults
	}
	return value, nil
}

// Error is a failure with a kind. Detail and Faults may be shown to callers. The
// text of Cause is for logs only, because it may contain anything.
type Error struct {
	Kind   Kind
	Detail string
	Faults []Fault
	Cause  error
}

// Unreached is the Detail of an error of a storage that did not answer, or whose answer says nothing
// to an operator.
const Unreached = "The storage cannot be reached."

// New returns an error of that kind.
func New(kind Kind, detail string, faults ...Fault) *Error {
	return &Error{Kind: kind, Detail: detail, Faults: faults}
}

// Wrap returns an error of that kind with a cause. It never returns nil, even if
// cause is nil, so that a mistake cannot turn a failure into a success.
func Wrap(kind Kind, cause error, detail string) *Error {
	return &Error{Kind: kind, Detail: detail, Cause: cause}
}

// Error returns the text for logs. It has codes and pointers, but no values.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Kind.String())
	detail := e.Detail
	if e.Cause != nil {
		detail = strings.TrimRight(detail, ".:")
	}
	if detail != "" {
		b.WriteString(": " + detail)
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

// KindOf returns the kind of the outermost Error in err's chain. It returns
// Internal if there is no Error, and None for nil.
func KindOf(err error) Kind {
	if err == nil {
		return None
	}
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

// Explain returns err with a text for people: the sentence of its Error, with the
// faults, or the cause if there is one. The error still wraps err, so that KindOf
// and errors.Is find what they found before. Explain may be called twice.
func Explain(err error) error {
	if _, done := errors.AsType[explained](err); done {
		return err
	}
	known, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	if known.Cause != nil {
		return explained{known.Detail + " " + known.Cause.Error(), err}
	}
	text := []string{known.Detail}
	for _, f := range known.Faults {
		text = append(text, strings.TrimPrefix(f.Pointer+": "+f.Detail, ": "))
	}
	return explained{strings.Join(text, " "), err}
}

// explained is an error with another text.
type explained struct {
	text string
	error
}

func (e explained) Error() string { return e.text }
func (e explained) Unwrap() error { return e.error }
