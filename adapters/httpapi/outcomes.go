package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"bankingapi/application/outcomes"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// OutcomesPath is where callers read how their operations ended (the contract,
// section 10). Its version is part of no prefix: it is no operation of the API.
const OutcomesPath = "/outcomes"

// outcome is an item of the answer.
type outcome struct {
	OperationID string `json:"OperationId"`
	CallerID    string `json:"CallerId"`
	Operation   string
	State       operation.State
	At          time.Time
	Errors      jsontext.Value `json:",omitempty"`
	Reversed    bool           `json:",omitzero"`
}

// serveOutcomes answers the caller's own outcomes.
func (a *api) serveOutcomes(x *exchange, r *http.Request) *problem {
	caller, refused := a.identify(x, r)
	if refused == nil {
		refused = a.admit(x, r, caller)
	}
	if refused != nil {
		return refused
	}
	body, err := a.readOutcomes(x, r, caller)
	if err != nil {
		return a.outcomesProblem(x, r, err)
	}
	return a.sendRead(x, r, body)
}

// outcomesProblem answers a read of outcomes that failed.
func (a *api) outcomesProblem(x *exchange, r *http.Request, err error) *problem {
	var ended *endedError
	switch {
	case errors.As(err, &ended):
		return ended.refused
	case errors.Is(err, outcomes.ErrCursorLost):
		return described(http.StatusGone, fault.CursorLost)
	case errors.Is(err, outcomes.ErrTooManyWaits):
		return tooManyRequests("Too many requests of the subscription wait for outcomes.", time.Second)
	case errors.Is(err, errors.ErrUnsupported): // the storage of a host has no outcomes
		return a.notFound(x, r)
	}
	p := problemOf(err)
	p.stateless = true // a failed read says nothing of an operation
	return p
}

// endedError ends a read whose caller may not read any more.
type endedError struct{ refused *problem }

func (e *endedError) Error() string { return "the key of the caller is not valid any more" }

// mayReadStill returns a function that returns an error once the key of the request does not
// open the same subscription any more.
func (a *api) mayReadStill(x *exchange, r *http.Request, name string) func() error {
	return func() error {
		caller, refused := a.identify(x, r)
		if refused == nil && caller.Name != name {
			refused = x.challenge(r, fault.KeyInvalid, invalidKey)
		}
		if refused == nil {
			return nil
		}
		return &endedError{refused}
	}
}

func (a *api) readOutcomes(x *exchange, r *http.Request, caller *subscription.Subscription) ([]byte, error) {
	q, err := outcomesQuery(r)
	if err != nil {
		return nil, err
	}
	q.Subscription = caller.Name
	q.Check = a.mayReadStill(x, r, caller.Name)
	if a.WriteTimeout > 0 && q.Wait > 0 { // a server that cannot do this closes the connection sooner
		_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(now().Add(a.WriteTimeout + min(q.Wait, outcomes.MaxWait)))
	}
	page, err := a.Outcomes.Page(r.Context(), q)
	if err != nil {
		return nil, err
	}
	if r.Context().Err() != nil {
		x.abandon(r.Context().Err())
	}
	var shown struct {
		Outcomes []outcome
		Next     string
	}
	shown.Next = page.Next
	for _, e := range page.Outcomes {
		shown.Outcomes = append(shown.Outcomes, outcome{
			OperationID: e.OperationID.String(), CallerID: e.CallerID, Operation: operation.BuyFundFromCustomer.String(),
			State: e.State, At: e.At.UTC(), Errors: appendFaults(nil, e.Faults), Reversed: e.Reversed,
		})
	}
	return json.Marshal(shown)
}

func outcomesQuery(r *http.Request) (q outcomes.Query, err error) {
	invalid := func(code, detail string) error {
		return fault.New(fault.Invalid, "The request breaks a rule.", fault.Fault{Code: code, Detail: detail})
	}
	values, err := url.ParseQuery(r.URL.RawQuery) // URL.Query would begin with the first outcome again
	if err != nil {
		return q, invalid(fault.InvalidFormat, "The query must be after=CURSOR&limit=N&wait=20s, with values in percent-encoding.")
	}
	for name, given := range values { // a cursor that is passed over would begin with the first outcome again
		if len(given) > 1 || !slices.Contains([]string{"after", "limit", "wait"}, name) {
			return q, invalid(fault.InvalidFormat, "The query may have after, limit and wait, in small letters and each once.")
		}
	}
	q.After = values.Get("after")
	limitRule := "limit must be an integer from 1 to " + strconv.Itoa(outcomes.MaxLimit) + "."
	q.Limit, err = strconv.Atoi(cmp.Or(values.Get("limit"), strconv.Itoa(outcomes.DefaultLimit)))
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return q, invalid(fault.InvalidFormat, limitRule)
	}
	if err != nil || q.Limit == 0 { // a Query takes 0 for the default
		return q, invalid(fault.OutOfRange, limitRule)
	}
	if q.Wait, err = time.ParseDuration(cmp.Or(values.Get("wait"), "0s")); err != nil {
		return q, invalid(fault.InvalidFormat, "wait must be a duration, such as 20s.")
	}
	return q, nil
}
