package httpapi

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"bankingapi/adapters/httpapi/strictjson"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// problem is the one body of every answer that is not 200: RFC 9457 problem details with the
// two members of API Management's errors (the contract, section 1.4).
type problem struct {
	status int
	// faults is never empty. Members type and message are about the first one.
	faults []fault.Fault
	rest   string // follows the first fault in detail; it may be empty
	bare   bool   // the error is one of HTTP alone, so type is about:blank
	// stateless: the request is no operation, or an earlier attempt may have
	// succeeded, so the body has no State.
	stateless     bool
	header, value string    // a header that this status requires; it may be empty
	unread        io.Reader // the rest of a body that is read after the answer; it may be nil
	cause         error     // for the log
}

// refusal is a problem of the request as a whole.
func refusal(status int, code, detail string) *problem {
	return &problem{status: status, faults: []fault.Fault{{Code: code, Detail: detail}}}
}

// bare is a refusal for a reason of HTTP alone.
func bare(status int, code, detail string) *problem {
	p := refusal(status, code, detail)
	p.bare = true
	return p
}

func (p *problem) with(header, value string) *problem {
	p.header = header
	p.value = value
	return p
}

// kinds is the only place where a kind of failure becomes a status. The fault is for
// errors without one. The checks before an operation name the statuses of their refusals
// themselves: see accept.
var kinds = map[fault.Kind]*problem{
	fault.Internal:      described(http.StatusInternalServerError, fault.InternalError),
	fault.Invalid:       described(http.StatusBadRequest, fault.InvalidFormat),
	fault.Forbidden:     described(http.StatusForbidden, fault.ContradictsSubscription),
	fault.Conflict:      described(http.StatusUnprocessableEntity, fault.CallerIDReused),
	fault.Busy:          described(http.StatusServiceUnavailable, fault.Overloaded),
	fault.Unavailable:   described(http.StatusServiceUnavailable, fault.StorageUnavailable),
	fault.Indeterminate: described(http.StatusServiceUnavailable, fault.OutcomeUnknown),
}

// described is a refusal with the text of the list of codes.
func described(status int, code string) *problem {
	c, _ := fault.Describe(code)
	return refusal(status, code, c.Meaning+" "+c.Action)
}

// problemOf is the answer to a failure. Faults of the kinds Invalid, Forbidden, Conflict and
// Busy are meant for the caller. Of the other kinds only the kind is told.
func problemOf(err error) *problem {
	kind := fault.KindOf(err)
	p := *cmp.Or(kinds[kind], kinds[fault.Internal])
	given := fault.Of(err)
	if len(given) > 0 && kind != fault.Internal && kind != fault.Unavailable && kind != fault.Indeterminate {
		p.faults = given
	}
	switch kind {
	case fault.Invalid:
		return invalid(p.faults, false)
	case fault.Forbidden, fault.Conflict:
	default:
		p.cause = err
	}
	return &p
}

func internal(cause error) *problem { return problemOf(fault.Wrap(fault.Internal, cause, "")) }

// invalid is a request that breaks rules. more says that there are faults beyond those given.
func invalid(faults []fault.Fault, more bool) *problem {
	if len(faults) > strictjson.MaxFaults {
		faults = faults[:strictjson.MaxFaults]
		more = true
	}
	p := &problem{status: kinds[fault.Invalid].status, faults: faults, stateless: !slices.ContainsFunc(faults, isPermanent)}
	switch count := strconv.Itoa(len(faults)); {
	case more:
		p.rest = " The request breaks more than " + count + " rules. The first " + count + " are listed in errors."
	case len(faults) > 1:
		p.rest = " The request breaks " + count + " rules. All are listed in errors."
	}
	return p
}

// isPermanent reports whether a content with this fault can never have been
// accepted. http.parameters_limit may have been higher before, and the
// subscription may not have required a CallerId. A value that is not allowed and
// has no place in the body is one of a header, as in a sandbox: the content may
// have been accepted with another header.
func isPermanent(f fault.Fault) bool {
	switch f.Code {
	case fault.TooMany:
		return f.Pointer != "/Parameters"
	case fault.Required:
		return f.Pointer != "/Header/CallerId"
	case fault.NotAllowed:
		return f.Pointer != ""
	}
	return true
}

// append writes the body. Links begin with pages; if it is empty, there are none.
func (p *problem) append(b []byte, pages, requestID string) []byte {
	first := sentence(p.faults[0])
	page := "about:blank"
	if _, hasPage := fault.Describe(p.faults[0].Code); !p.bare && pages != "" && hasPage { // codes of a host have none
		page = pages + p.faults[0].Code
	}
	b = appendText(b, `{"type":`, page)
	b = appendText(b, `,"title":`, http.StatusText(p.status))
	b = strconv.AppendInt(append(b, `,"status":`...), int64(p.status), 10)
	b = appendText(b, `,"detail":`, first+p.rest)
	b = appendText(b, `,"instance":`, "urn:request:"+requestID)
	b = appendFaults(append(b, `,"errors":`...), p.faults)
	b = strconv.AppendInt(append(b, `,"statusCode":`...), int64(p.status), 10)
	b = appendText(b, `,"message":`, first)
	b = appendError(append(b, ','), p.faults, first+p.rest)
	// State 8 is about the operation, not about the request (the contract, section 9).
	// Only a content that can never have been accepted has certainly had no effect.
	if p.status == http.StatusBadRequest && !p.stateless {
		b = append(b, `,"Data":{"State":8}`...)
	}
	return append(b, '}')
}

// sentence is a fault as text: where, if it has a place, and what.
func sentence(f fault.Fault) string {
	if f.Pointer == "" {
		return f.Detail
	}
	return f.Pointer + ": " + f.Detail
}

// Answer returns the body of the answer to a decided operation. The status is 200. It
// returns nil if the operation is not decided.
func Answer(o operation.Outcome, turkish bool) []byte {
	switch o.State {
	case operation.Completed:
		return completed
	case operation.Recorded:
		return recorded
	case operation.Failed:
		return appendRefusal(nil, o.Faults, turkish)
	}
	return nil
}

// appendRefusal writes the 200 of an operation that the bank refused. In Turkish, the
// details are for the screen of a customer.
func appendRefusal(b []byte, faults []fault.Fault, turkish bool) []byte {
	first := ""
	rest := "Nothing was changed."
	switch {
	case turkish && len(faults) > 0:
		faults = slices.Clone(faults)
		for i, f := range faults {
			c, _ := fault.Describe(f.Code)
			faults[i].Detail = cmp.Or(c.Refusal(f.Named, true), f.Detail)
		}
		first = faults[0].Detail + " "
		rest = "Hiçbir değişiklik yapılmadı."
	case len(faults) > 0:
		first = sentence(faults[0]) + " "
		if len(faults) > 1 {
			rest += " All " + strconv.Itoa(len(faults)) + " reasons are listed in errors."
		}
	}
	b = appendError(append(b, `{"Data":{"State":8},`...), faults, first+rest)
	b = appendText(b, `,"title":"The bank refused the operation","detail":`, first+rest)
	return append(appendFaults(append(b, `,"errors":`...), faults), '}')
}

// appendError writes the member Error (the contract, section 1.4): clients of the API's family
// take an answer without its Description for a success.
func appendError(b []byte, faults []fault.Fault, detail string) []byte {
	number := fault.Unlisted
	if len(faults) > 0 {
		number = fault.NumberOf(faults[0].Code)
	}
	b = strconv.AppendInt(append(b, `"Error":{"Code":`...), int64(number), 10)
	return append(appendText(b, `,"Description":`, detail), '}')
}

func appendFaults(b []byte, faults []fault.Fault) []byte {
	b = append(b, '[')
	for i, f := range faults {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, `{"pointer":`, f.Pointer)
		b = appendText(b, `,"code":`, f.Code)
		b = append(appendText(b, `,"detail":`, f.Detail), '}')
	}
	return append(b, ']')
}

// appendText writes the start of a member and its text.
func appendText(b []byte, start, text string) []byte {
	b, _ = jsontext.AppendQuote(append(b, start...), text) // bytes that are not UTF-8 become U+FFFD
	return b
}
