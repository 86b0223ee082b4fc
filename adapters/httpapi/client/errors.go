package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Error says why an operation is not completed.
type Error struct {
	// Refused reports that the bank decided against the operation. Nothing was changed. The
	// decision is final under this CallerId: a corrected operation needs a new CallerId.
	Refused bool
	// Unknown reports that the operation may have taken effect: an answer was lost, or one of
	// the attempts was answered with 500 or 503, for example. Send the same operation again to
	// learn its outcome before you do anything else. If Unknown is false, the operation has had
	// no effect. An answer that is only about the request, like 401 or 422, leaves Unknown as it
	// was before, also after an earlier call with the same operation.
	Unknown bool
	// Status is the HTTP status of the last answer. It is 200 if the bank
	// refused the operation, and 0 if there was no answer.
	Status int
	// Detail is one sentence for people. It never repeats values of the request.
	Detail string
	// Faults are the reasons, each with a pointer into the request and a code of the catalogue.
	Faults []fault.Fault
	// Number is the Code of the answer's member Error: the stable number of the first fault's
	// code. It is 0 if there was no answer, or if the answer is not one of the service.
	Number    int
	CallerID  string // of the operation
	RequestID string // the X-Request-Id of the last answer, for questions to the bank
	// Cause is the error of the connection, the context, or both. It is nil if the
	// service answered in time.
	Cause error

	certain    bool // the answer has State 8, which is true of all attempts
	retry      bool // another attempt may succeed, after retryAfter
	retryAfter time.Duration
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

// Code returns what the catalogue says about the first fault. ok is false if there is
// no fault, or if this version of the catalogue does not have its code.
func (e *Error) Code() (code fault.Code, ok bool) {
	if len(e.Faults) == 0 {
		return fault.Code{}, false
	}
	return fault.Describe(e.Faults[0].Code)
}

// Error describes the failure in one line.
func (e *Error) Error() string {
	text := "the operation was not carried out"
	switch {
	case e.Refused:
		text = "the bank refused the operation"
	case e.Unknown:
		text = "the outcome of the operation is not known"
	}
	if e.Status != 0 && !e.Refused {
		text += fmt.Sprintf(": status %d", e.Status)
	}
	faults := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		faults[i] = f.Code
		if f.Pointer != "" {
			faults[i] += " at " + f.Pointer
		}
		if f.Detail != "" {
			faults[i] += " (" + f.Detail + ")"
		}
	}
	if len(faults) > 0 {
		text += ": " + strings.Join(faults, "; ")
	}
	if e.Cause != nil {
		text += ": " + strings.ReplaceAll(e.Cause.Error(), "\n", ": ")
	}
	if e.CallerID != "" {
		text += ", CallerId " + e.CallerID
	}
	if e.RequestID != "" {
		text += ", X-Request-Id " + e.RequestID
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// read returns the result of an attempt that has a complete answer.
func read(response *http.Response, content []byte) (Answer, *Error) {
	answer := Answer{
		Replayed:    response.Header.Get("Idempotent-Replayed") == "true",
		OperationID: response.Header.Get("Operation-Id"),
		RequestID:   response.Header.Get("X-Request-Id"),
		Receipt:     response.Header.Get("Receipt"),
	}
	var got struct {
		Error  struct{ Code int }
		Detail string        `json:"detail"`
		Errors []fault.Fault `json:"errors"`
	}
	err := json.Unmarshal(content, &got) // an answer of a proxy may not be JSON: then State is zero
	// With any other status, State 8 is not an answer of the service.
	status := response.StatusCode
	state := stateOf(content)
	failed := state == operation.Failed && err == nil && (status == http.StatusOK || status == http.StatusBadRequest)
	refused := slices.Contains(notCarriedOut, status)
	if status == http.StatusOK && err == nil && (state == operation.Recorded || state == operation.Completed) {
		answer.State = state
		return answer, nil
	}
	return Answer{}, &Error{
		Refused: failed && status == http.StatusOK, Unknown: !failed && !refused, certain: failed, Status: status,
		Detail: got.Detail, Faults: got.Errors, Number: got.Error.Code, RequestID: answer.RequestID,
		retry:      slices.Contains(transient, status) || status == http.StatusOK && !failed,
		retryAfter: retryAfter(response.Header),
	}
}

// stateOf returns Data.State, or 0 if the answer has none. The names are case-sensitive, which
// package json ignores for the fields of a struct.
func stateOf(content []byte) (state operation.State) {
	var answer, data map[string]json.RawMessage
	if json.Unmarshal(content, &answer) != nil {
		return 0
	}
	if json.Unmarshal(answer["Data"], &data) != nil {
		return 0
	}
	if json.Unmarshal(data["State"], &state) != nil {
		return 0
	}
	return state
}

// notCarriedOut has the statuses after which this request has had no effect. An earlier attempt
// may have had one.
var notCarriedOut = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
	http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusTooManyRequests,
}

// transient has the statuses after which the same request may succeed. The service answers 429,
// 500 and 503; the others come from proxies and gateways.
var transient = []int{
	http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}
