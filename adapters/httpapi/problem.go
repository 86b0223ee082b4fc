package httpapi

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"bankingapi/domain/fault"
)

// problem is the one body of every answer that is not 200: RFC 9457 problem
// details with the two members of API Management's errors (the contract,
// section 1).
type problem struct {
	status int
	// detail is one sentence, for people.
	detail string
	faults []fault.Fault
	// noEffect: nothing happened, for certain. Then the body says State 8.
	noEffect bool
	// header, when there is one, is what this status owes the caller besides.
	header, value string
	// cause is for the log.
	cause error
}

// refusal is a problem of the request as a whole, which therefore had no effect.
func refusal(status int, code, detail string) *problem {
	return &problem{status: status, detail: detail, faults: []fault.Fault{{Code: code, Detail: detail}}, noEffect: true}
}

func (p *problem) with(header, value string) *problem {
	p.header, p.value = header, value
	return p
}

// kinds is the only place where a kind of failure becomes a status. The code
// and detail are those of an error that brings none.
var kinds = map[fault.Kind]struct {
	status       int
	noEffect     bool
	code, detail string
}{
	fault.Internal: {http.StatusInternalServerError, false, "internal-error",
		"Something went wrong on our side. Repeat with the same CallerId, and tell us the X-Request-Id."},
	fault.Invalid:   {http.StatusBadRequest, true, "", ""},
	fault.Forbidden: {http.StatusForbidden, true, "contradicts-subscription", ""},
	fault.Conflict:  {http.StatusUnprocessableEntity, true, "caller-id-reused", ""},
	fault.Busy: {http.StatusServiceUnavailable, true, "overloaded",
		"The service has more work than it can take. Nothing was changed; try again."},
	fault.Unavailable: {http.StatusServiceUnavailable, true, "storage-unavailable",
		"The storage cannot be reached. Nothing was changed; try again."},
	fault.Indeterminate: {http.StatusServiceUnavailable, false, "outcome-unknown",
		"The connection to the storage was lost while committing. Repeat with the same CallerId to learn the outcome."},
}

// problemOf is the answer to a failure. What an error of the kinds Invalid,
// Forbidden and Conflict says is meant for the caller; of the others only the
// code is, if the error brings one.
func problemOf(err error) *problem {
	kind := fault.KindOf(err)
	of := kinds[kind]
	p := &problem{status: of.status, noEffect: of.noEffect, detail: of.detail, faults: fault.Of(err)}
	switch kind {
	case fault.Invalid:
		return invalid(p.faults, false)
	case fault.Forbidden, fault.Conflict:
		if e, ok := errors.AsType[*fault.Error](err); ok {
			p.detail = e.Detail
		}
		return p
	case fault.Busy:
		if len(p.faults) > 0 {
			p.detail = p.faults[0].Detail
		}
	default:
		p.faults = nil
	}
	if len(p.faults) == 0 {
		p.faults = []fault.Fault{{Code: of.code, Detail: of.detail}}
	}
	p.cause = err
	return p
}

func internal(cause error) *problem { return problemOf(fault.Wrap(fault.Internal, cause, "")) }

// invalid is a request that breaks rules. more says that there are faults
// beyond those given.
func invalid(faults []fault.Fault, more bool) *problem {
	if len(faults) > maxFaults {
		faults, more = faults[:maxFaults], true
	}
	count := strconv.Itoa(len(faults))
	p := &problem{status: kinds[fault.Invalid].status, noEffect: kinds[fault.Invalid].noEffect, faults: faults}
	switch {
	case more:
		p.detail = "The request breaks more than " + count + " rules. The first " + count + " are listed in errors."
	case len(faults) == 1:
		p.detail = "The request breaks 1 rule. It is listed in errors."
	default:
		p.detail = "The request breaks " + count + " rules. Each is listed in errors."
	}
	return p
}

// append writes the body.
func (p *problem) append(b []byte, requestID string) []byte {
	b = append(b, `{"type":"about:blank","title":`...)
	b = appendText(b, http.StatusText(p.status))
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(p.status), 10)
	b = append(b, `,"detail":`...)
	b = appendText(b, p.detail)
	b = append(b, `,"instance":`...)
	b = appendText(b, "urn:request:"+requestID)
	b = appendErrors(b, p.faults)
	b = append(b, `,"statusCode":`...)
	b = strconv.AppendInt(b, int64(p.status), 10)
	b = append(b, `,"message":`...)
	b = appendText(b, p.detail)
	if p.noEffect {
		b = append(b, `,"Data":{"State":8}`...)
	}
	return append(b, '}')
}

// appendRefusal writes the 200 of an operation that the bank refused.
func appendRefusal(b []byte, faults []fault.Fault) []byte {
	b = append(b, `{"Data":{"State":8},"title":"The bank refused the operation",`+
		`"detail":"Nothing was changed. Each reason is listed in errors."`...)
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
