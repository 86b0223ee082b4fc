package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Error says why an operation is not completed.
type Error struct {
	// Refused reports that the bank decided against the operation. Nothing was
	// changed. The decision is final under this CallerId: a corrected operation
	// needs a new one.
	Refused bool
	// Unknown reports that the operation may have taken effect: an answer was
	// lost, or the answer speaks of the request only, like 401, 422, 429 and 503.
	// Send the same operation again to learn its outcome before you do anything
	// else. If Unknown is false, the operation has had no effect.
	Unknown bool
	// Status is the HTTP status of the last answer. It is 200 if the bank
	// refused the operation, and 0 if there was no answer.
	Status int
	// Detail is one sentence for people. It never repeats values of the request.
	Detail string
	// Faults are the reasons, each with a pointer into the request and a code
	// of the catalogue.
	Faults []fault.Fault
	// CallerID is the CallerId of the operation.
	CallerID string
	// RequestID is the X-Request-Id of the last answer. Quote it in questions
	// to the bank.
	RequestID string
	// Cause is the error of the connection, the context, or both. It is nil if the
	// service answered in time.
	Cause error

	// certain reports that the answer has State 8, which is true of all attempts.
	certain bool
}

// Code is an error code of the catalogue. It is the target of errors.Is:
//
//	errors.Is(err, client.Code("holding-insufficient"))
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// Is reports whether one of the faults has the code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && slices.ContainsFunc(e.Faults, func(f fault.Fault) bool { return f.Code == string(code) })
}

// Code returns what the catalogue says about the first fault: what it means and
// what to do. ok is false if there is no fault, or if this version of the
// catalogue does not have its code.
func (e *Error) Code() (code fault.Code, ok bool) {
	if len(e.Faults) == 0 {
		return fault.Code{}, false
	}
	return fault.Describe(e.Faults[0].Code)
}

// Error describes the failure in one line, with the codes, pointers, sentences and
// ids.
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.Refused:
		b.WriteString("the bank refused the operation")
	case e.Unknown:
		b.WriteString("the outcome of the operation is not known")
	default:
		b.WriteString("the operation was not carried out")
	}
	if e.Status != 0 && !e.Refused {
		fmt.Fprintf(&b, ": status %d", e.Status)
	}
	for i, f := range e.Faults {
		b.WriteString([]string{": ", "; "}[min(i, 1)] + f.Code)
		if f.Pointer != "" {
			b.WriteString(" at " + f.Pointer)
		}
		if f.Detail != "" {
			b.WriteString(" (" + f.Detail + ")")
		}
	}
	if e.Cause != nil {
		b.WriteString(": " + strings.ReplaceAll(e.Cause.Error(), "\n", ": "))
	}
	for _, id := range []struct{ name, value string }{{"CallerId", e.CallerID}, {"X-Request-Id", e.RequestID}} {
		if id.value != "" {
			b.WriteString(", " + id.name + " " + id.value)
		}
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// wireAnswer is an answer of any status. Members that later versions add are
// ignored.
type wireAnswer struct {
	Data *struct {
		State operation.State
	}
	Detail string        `json:"detail"`
	Errors []fault.Fault `json:"errors"`
}

// read is the result of an attempt that has a whole answer.
func read(response *http.Response, content []byte) result {
	answer := Answer{
		Replayed:    response.Header.Get("Idempotent-Replayed") == "true",
		OperationID: response.Header.Get("Operation-Id"),
		RequestID:   response.Header.Get("X-Request-Id"),
		Receipt:     response.Header.Get("Receipt"),
	}
	var got wireAnswer
	err := json.Unmarshal(content, &got) // an answer of a proxy may be no JSON: then there is no Data
	// With another status State 8 would speak of the request, as in earlier versions
	// of the service, and not of the operation.
	failed := got.Data != nil && got.Data.State == operation.Failed && err == nil &&
		(response.StatusCode == http.StatusOK || response.StatusCode == http.StatusBadRequest)
	if response.StatusCode == http.StatusOK && err == nil && got.Data != nil {
		switch answer.State = got.Data.State; answer.State {
		case operation.Recorded, operation.Completed:
			return result{Answer: answer}
		case operation.Failed:
		}
	}
	return result{
		err: &Error{
			Refused: failed && response.StatusCode == http.StatusOK, Unknown: !failed, certain: failed, Status: response.StatusCode,
			Detail: got.Detail, Faults: got.Errors, RequestID: answer.RequestID,
		},
		retry:      isTransient(response.StatusCode) || response.StatusCode == http.StatusOK && !failed,
		retryAfter: retryAfter(response.Header),
	}
}

// isTransient reports whether the same request may succeed later. The service
// answers 429, 500 and 503; the others come from proxies and gateways.
func isTransient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
