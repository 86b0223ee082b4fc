package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"bankingapi/application/outcomes"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// OutcomesPath is where callers read how their operations ended (the contract,
// section 10). Its version is part of no prefix: it is no operation of the API.
const OutcomesPath = "/outcomes"

// outcomesPage is the body of an answer.
type outcomesPage struct {
	Outcomes []outcome
	Next     string
}

type outcome struct {
	OperationID string `json:"OperationId"`
	CallerID    string `json:"CallerId"`
	Operation   string
	State       operation.State
	At          time.Time
	Errors      []outcomeError `json:",omitempty"`
	Reversed    bool           `json:",omitzero"`
}

type outcomeError struct {
	Pointer string `json:"pointer"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

// serveOutcomes answers the caller's own outcomes.
func (a *api) serveOutcomes(x *exchange, r *http.Request) {
	caller, refused := a.identify(x, r)
	if refused == nil {
		refused = a.admit(r, caller)
	}
	if refused != nil {
		x.refuse(refused)
		return
	}
	q, err := outcomesQuery(r)
	if err != nil {
		x.refuse(problemOfRead(err))
		return
	}
	q.Subscription = caller.Name
	if a.WriteTimeout > 0 && q.Wait > 0 { // a server that cannot do this closes the connection sooner
		_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(time.Now().Add(a.WriteTimeout + min(q.Wait, outcomes.MaxWait))) //nolint:forbidigo // a connection has the time of the machine
	}
	page, err := a.Outcomes.Page(r.Context(), q)
	if err == nil && r.Context().Err() != nil {
		x.abandon(r.Context().Err())
		return
	}
	var body []byte
	if err == nil {
		body, err = json.Marshal(shownPage(page))
	}
	if err != nil {
		x.refuse(problemOfRead(err))
		return
	}
	x.send(http.StatusOK, jsonType, body)
}

// problemOfRead is the answer to a failed read, which says nothing of an operation.
func problemOfRead(err error) *problem {
	p := problemOf(err)
	p.stateless = true
	return p
}

func outcomesQuery(r *http.Request) (q outcomes.Query, err error) {
	values := r.URL.Query()
	invalid := func(detail string) error {
		return fault.New(fault.Invalid, "The request breaks a rule.", fault.Fault{Code: fault.InvalidFormat, Detail: detail})
	}
	q.After = values.Get("after")
	if text := values.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit == 0 {
			return q, invalid("limit must be an integer from 1 to " + strconv.Itoa(outcomes.MaxLimit) + ".")
		}
	}
	if text := values.Get("wait"); text != "" {
		if q.Wait, err = time.ParseDuration(text); err != nil {
			return q, invalid("wait must be a duration, such as 20s.")
		}
	}
	return q, nil
}

func shownPage(page outcomes.Page) outcomesPage {
	shown := outcomesPage{Outcomes: make([]outcome, len(page.Outcomes)), Next: page.Next}
	for i := range page.Outcomes {
		shown.Outcomes[i] = shownOutcome(&page.Outcomes[i])
	}
	return shown
}

func shownOutcome(e *fund.Ended) outcome {
	o := outcome{
		OperationID: e.OperationID.String(), CallerID: e.CallerID, Operation: operation.BuyFundFromCustomer.String(),
		State: e.State, At: e.At.UTC(), Reversed: e.Reversed,
	}
	for _, f := range e.Faults {
		o.Errors = append(o.Errors, outcomeError{f.Pointer, f.Code, f.Detail})
	}
	return o
}
