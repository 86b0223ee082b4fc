package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"bankingapi/adapters/httpapi/strictjson"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// problem is the one body of every answer that is not 200: RFC 9457 problem
// details with the two members of API Management's errors (the contract,
// section 1.4).
type problem struct {
	status int
	// faults is never empty. Members type and message are about the first one.
	faults []fault.Fault
	// rest follows the first fault in detail. It may be empty.
	rest string
	// bare: the error is one of HTTP alone, so type is about:blank.
	bare bool
	// stateless: the request is no operation, or an earlier attempt may have
	// succeeded, so the body has no State.
	stateless bool
	// header is a header that this status requires. It may be empty.
	header, value string
	// cause is for the log.
	cause error
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
	p.header, p.value = header, value
	return p
}

// ofKind is the response for a kind of failure. It has the fault for errors
// without one.
type ofKind struct {
	status int
	fault  fault.Fault
}

// kinds is the only place where a kind of failure becomes a status.
var kinds = map[fault.Kind]ofKind{
	fault.Internal:      {http.StatusInternalServerError, described(fault.InternalError)},
	fault.Invalid:       {http.StatusBadRequest, described(fault.InvalidFormat)},
	fault.Forbidden:     {http.StatusForbidden, described(fault.ContradictsSubscription)},
	fault.Conflict:      {http.StatusUnprocessableEntity, described(fault.CallerIDReused)},
	fault.Busy:          {http.StatusServiceUnavailable, described(fault.Overloaded)},
	fault.Unavailable:   {http.StatusServiceUnavailable, described(fault.StorageUnavailable)},
	fault.Indeterminate: {http.StatusServiceUnavailable, described(fault.OutcomeUnknown)},
}

// described is the fault of a code as the list of codes describes it.
func described(code string) fault.Fault {
	c, _ := fault.Describe(code)
	return fault.Fault{Code: code, Detail: c.Meaning + " " + c.Action}
}

// problemOf is the answer to a failure. Faults of the kinds Invalid, Forbidden,
// Conflict and Busy are meant for the caller. Of the other kinds only the kind
// is told.
func problemOf(err error) *problem {
	kind := fault.KindOf(err)
	of := kinds[kind]
	p := &problem{status: of.status}
	if kind == fault.Invalid || kind == fault.Forbidden || kind == fault.Conflict || kind == fault.Busy {
		p.faults = fault.Of(err)
	}
	if len(p.faults) == 0 {
		p.faults = []fault.Fault{of.fault}
	}
	switch kind {
	case fault.Invalid:
		return invalid(p.faults, false)
	case fault.Forbidden, fault.Conflict:
	default:
		p.cause = err
	}
	return p
}

func internal(cause error) *problem { return problemOf(fault.Wrap(fault.Internal, cause, "")) }

// invalid is a request that breaks rules. more says that there are faults
// beyond those given.
func invalid(faults []fault.Fault, more bool) *problem {
	if len(faults) > strictjson.MaxFaults {
		faults, more = faults[:strictjson.MaxFaults], true
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
// subscription may not have required a CallerId.
func isPermanent(f fault.Fault) bool {
	return (f.Pointer != "/Parameters" || f.Code != fault.TooMany) && (f.Pointer != "/Header/CallerId" || f.Code != fault.Required)
}

// append writes the body. Links begin with pages; if it is empty, there are none.
func (p *problem) append(b []byte, pages, requestID string) []byte {
	first := sentence(p.faults[0])
	b = append(b, `{"type":`...)
	if code := p.faults[0].Code; p.bare || pages == "" || !hasPage(code) {
		b = append(b, `"about:blank"`...)
	} else {
		b = appendText(b, pages+code)
	}
	b = append(b, `,"title":`...)
	b = appendText(b, http.StatusText(p.status))
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(p.status), 10)
	b = append(b, `,"detail":`...)
	b = appendText(b, first+p.rest)
	b = append(b, `,"instance":`...)
	b = appendText(b, "urn:request:"+requestID)
	b = appendErrors(b, p.faults)
	b = append(b, `,"statusCode":`...)
	b = strconv.AppendInt(b, int64(p.status), 10)
	b = append(b, `,"message":`...)
	b = appendText(b, first)
	// State 8 is about the operation, not about the request (the contract, section
	// 9). Only a content that can never have been accepted is certain to have had
	// no effect: with all other statuses an earlier attempt may have succeeded.
	if p.status == http.StatusBadRequest && !p.stateless {
		b = append(b, `,"Data":{"State":8}`...)
	}
	return append(b, '}')
}

// hasPage reports whether the code has a page. The codes of operations of a
// host have none.
func hasPage(code string) bool {
	_, known := fault.Describe(code)
	return known
}

// sentence is a fault as text: where, if it has a place, and what.
func sentence(f fault.Fault) string {
	if f.Pointer == "" {
		return f.Detail
	}
	return f.Pointer + ": " + f.Detail
}

// Answer returns the body of the answer to a decided operation. The status is 200.
func Answer(o operation.Outcome) []byte {
	switch o.State {
	case operation.Completed:
		return completed
	case operation.Recorded:
		return recorded
	case operation.Failed:
		return appendRefusal(nil, o.Faults, false)
	}
	return nil
}

// appendRefusal writes the 200 of an operation that the bank refused. In Turkish, the
// details are for the screen of a customer.
func appendRefusal(b []byte, faults []fault.Fault, turkish bool) []byte {
	b = append(b, `{"Data":{"State":8},"title":"The bank refused the operation","detail":`...)
	if turkish && len(faults) > 0 {
		faults = slices.Clone(faults)
		for i, f := range faults {
			c, _ := fault.Describe(f.Code)
			faults[i].Detail = cmp.Or(c.Refusal(f.Named, true), f.Detail)
		}
		b = appendText(b, faults[0].Detail+" Hiçbir değişiklik yapılmadı.")
		return append(appendErrors(b, faults), '}')
	}
	first, rest := "", "Nothing was changed."
	if len(faults) > 0 {
		first = sentence(faults[0]) + " "
	}
	if len(faults) > 1 {
		rest += " All " + strconv.Itoa(len(faults)) + " reasons are listed in errors."
	}
	b = appendText(b, first+rest)
	return append(appendErrors(b, faults), '}')
}

func appendErrors(b []byte, faults []fault.Fault) []byte {
	b = append(b, `,"errors":[`...)
	for i, f := range faults {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"pointer":`...)
		b = appendText(b, f.Pointer)
		b = append(b, `,"code":`...)
		b = appendText(b, f.Code)
		b = append(b, `,"detail":`...)
		b = appendText(b, f.Detail)
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // bytes that are not UTF-8 become U+FFFD
	return b
}
