package httpapi_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// problem is the one error body, as a client reads it.
type problem struct {
	Type       string        `json:"type"`
	Title      string        `json:"title"`
	Status     int           `json:"status"`
	Detail     string        `json:"detail"`
	Instance   string        `json:"instance"`
	Errors     []fault.Fault `json:"errors"`
	StatusCode int           `json:"statusCode"`
	Message    string        `json:"message"`
	Error      failure
	Data       *struct{ State int }
}

// failure is the member Error, as a client of the API's family reads it.
type failure struct {
	Code        int64
	Description string
}

// problemIn reads the body and checks what holds for every one.
func problemIn(t *testing.T, w *httptest.ResponseRecorder) problem {
	t.Helper()
	var p problem
	decoder := json.NewDecoder(strings.NewReader(w.Body.String()))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&p), "%s", w.Body)
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	switch w.Code {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		require.Equal(t, "about:blank", p.Type, "an error of HTTP alone")
	default:
		require.Equal(t, "/docs/errors/"+p.Errors[0].Code, p.Type, "the page of the first fault")
	}
	require.Equal(t, http.StatusText(w.Code), p.Title)
	require.Equal(t, w.Code, p.Status)
	require.Equal(t, w.Code, p.StatusCode)
	require.True(t, strings.HasPrefix(p.Detail, p.Message), "detail begins with the first fault")
	require.Equal(t, strings.TrimPrefix(p.Errors[0].Pointer+": "+p.Errors[0].Detail, ": "), p.Message)
	require.Equal(t, "urn:request:"+w.Header().Get("X-Request-Id"), p.Instance)
	require.NotEmpty(t, p.Errors)
	require.Equal(t, failure{int64(fault.NumberOf(p.Errors[0].Code)), p.Detail}, p.Error)
	for _, f := range p.Errors {
		require.NotEmpty(t, f.Code)
		require.NotEmpty(t, f.Detail)
	}
	return p
}

func codes(t *testing.T, w *httptest.ResponseRecorder) []string {
	t.Helper()
	var codes []string
	for _, f := range problemIn(t, w).Errors {
		codes = append(codes, f.Code)
	}
	return codes
}

func TestProblems(t *testing.T) {
	t.Parallel()
	const secret = "customer 1001"
	fail := func(err error) func(*service) { return func(s *service) { s.err = err } }
	for name, test := range map[string]struct {
		service func(*service)
		request func(*http.Request)
		body    string
	}{
		"unknown-path":       {request: func(r *http.Request) { r.URL.Path = "/nothing" }},
		"method-not-allowed": {request: func(r *http.Request) { r.Method = http.MethodGet }},
		"key-missing":        {request: func(r *http.Request) { r.Header.Del("Ocp-Apim-Subscription-Key") }},
		"key-invalid":        {request: func(r *http.Request) { r.Header.Set("Ocp-Apim-Subscription-Key", "x") }},
		"key-unavailable":    {request: func(r *http.Request) { r.Header.Set("Ocp-Apim-Subscription-Key", "unavailable") }},
		"operation-not-granted": {service: func(s *service) {
			s.callers[key].Operations = []string{"AddPushNotificationResponse"}
		}},
		"rate-limit-exceeded": {service: func(s *service) {
			s.callers[key].RequestsPerSecond = 1
			s.options.Pages = nil
		}},
		"unsupported-media-type":       {request: func(r *http.Request) { r.Header.Set("Content-Type", "text/xml") }},
		"unsupported-content-encoding": {request: func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }},
		"body-too-large":               {body: strings.Repeat(" ", bodyLimit+1)},
		"invalid-json":                 {body: `{"Header":{},"Parameters":[}`},
		"invalid-one":                  {body: strings.Replace(saleBody, "1.5", "0", 1)},
		"invalid-several":              {body: strings.NewReplacer("1.5", `"1.5"`, `"TRY"`, `"XAU"`, `"CallerId"`, `"callerId"`, `"PriceID":1`, `"PriceID":0`).Replace(saleBody)},
		"invalid-many":                 {body: `{"Header":{},"Parameters":[{` + unknownMembers(200) + `}]}`},
		"contradicts-subscription": {
			service: func(s *service) {
				*s.callers[key] = subscription.Subscription{Name: "acme", Operations: operation.AllNames(), Channel: "WEB", TellerName: "t"}
			},
			body: strings.Replace(saleBody, `"CallerId":"c"`, `"Channel":"ATM","TellerName":"x"`, 1),
		},
		"caller-id-reused":    {service: fail(idempotency.ReuseError())},
		"overloaded":          {service: fail(fault.New(fault.Busy, "too many requests are waiting"))},
		"shutting-down":       {service: fail(fault.New(fault.Busy, "", fault.Fault{Code: "shutting-down", Detail: "The service is shutting down. This request changed nothing. Send the same request again. Another instance or the restarted service will answer it."}))},
		"storage-unavailable": {service: fail(fault.Wrap(fault.Unavailable, errors.New(secret), secret))},
		"outcome-unknown":     {service: fail(fault.Wrap(fault.Indeterminate, errors.New(secret), secret))},
		"internal-error":      {service: fail(errors.New(secret))},
		"internal-error-told": {service: fail(fault.New(fault.Internal, secret, fault.Fault{Code: secret, Detail: secret}))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(func(s *service) {
				if test.service != nil {
					test.service(s)
				}
			})
			body := saleBody
			if test.body != "" {
				body = test.body
			}
			r := post(salePath, body)
			if test.request != nil {
				test.request(r)
			}
			if name == "rate-limit-exceeded" {
				s.post(t, salePath, saleBody)
			}
			w := s.do(r)
			requireAnswer(t, name, w)
			p := problemIn(t, w)
			require.NotContains(t, w.Body.String(), secret)
			require.Equal(t, w.Code == http.StatusBadRequest, p.Data != nil, "with every other status an earlier attempt may have succeeded")
			x := s.observed()[len(s.observed())-1]
			require.Equal(t, w.Code >= 500, x.Err != nil, "only what is ours goes into the log as an error")
			if name == "key-unavailable" {
				require.Equal(t, "acme", x.Subscription, "who had the key when subscriptions could last be read")
			}
		})
	}
}

// The limit of records and the CallerId that a subscription must send may have
// changed since an earlier attempt, which may have succeeded.
func TestA400HasAStateOnlyIfItsContentCanNeverHaveBeenAccepted(t *testing.T) {
	t.Parallel()
	const callerID, records, header = `"CallerId":"c"`, `"Parameters":[`, `"Header":{`
	many := records + strings.Repeat("{},", limit)
	required := (&subscription.Subscription{RequireCallerID: true}).Missing(operation.Header{})
	for name, test := range map[string]struct {
		body     *strings.Replacer
		faults   []fault.Fault // of the use case
		hasState bool
	}{
		"more records than the setting allows":   {strings.NewReplacer(records, many), nil, false},
		"no CallerId, which is required now":     {strings.NewReplacer(callerID, ""), required, false},
		"both":                                   {strings.NewReplacer(callerID, "", records, many), nil, false},
		"too many records and an unknown member": {strings.NewReplacer(header, header+`"x":0,`, records, many), nil, true},
		"no CallerId and an unknown member":      {strings.NewReplacer(callerID, `"x":0`), nil, true},
		"no CallerId and another fault": {strings.NewReplacer(callerID, ""),
			[]fault.Fault{required[0], {Pointer: "/Parameters/0/Amount", Code: fault.OutOfRange, Detail: "Too small."}}, true},
		"too many items in a field, whose limit is fixed": {strings.NewReplacer(),
			[]fault.Fault{{Pointer: "/Parameters/0/TranData", Code: fault.TooMany, Detail: "At most 100 items."}}, true},
		"no UserId, which is always required": {strings.NewReplacer(),
			[]fault.Fault{{Pointer: "/Parameters/0/UserId", Code: fault.Required, Detail: "Required."}}, true},
	} {
		s := newService(func(s *service) {
			s.callers[key].RequireCallerID = true
			s.err = fault.New(fault.Invalid, "", test.faults...)
		})
		w := s.post(t, salePath, test.body.Replace(saleBody))
		require.Equal(t, http.StatusBadRequest, w.Code, name)
		require.Equal(t, test.hasState, problemIn(t, w).Data != nil, "%s: %s", name, w.Body)
	}
}

func TestLinksLeadToThePagesOfErrors(t *testing.T) {
	t.Parallel()
	s := newService(func(s *service) { s.options.ErrorPages = "https://api.bank.example/docs/errors/" })
	w := s.post(t, salePath, "")
	require.Contains(t, w.Body.String(), `"type":"https://api.bank.example/docs/errors/invalid-json"`)
	w = s.post(t, "/nothing", "")
	require.Contains(t, w.Body.String(), `"type":"about:blank"`)
}

// A service without pages has no links that lead nowhere. The code stays.
func TestWithoutPagesThereAreNoLinks(t *testing.T) {
	t.Parallel()
	s := newService(func(s *service) { s.options.ErrorPages = "" })
	w := s.post(t, salePath, "")
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), `"type":"about:blank"`)
	require.Contains(t, w.Body.String(), `"code":"invalid-json"`)
	require.NotContains(t, w.Body.String(), "/docs/")
}

func TestACodeWithoutAPageHasNoLink(t *testing.T) {
	t.Parallel()
	s := newService(func(s *service) {
		s.err = fault.New(fault.Invalid, "", fault.Fault{Pointer: "/Parameters/0", Code: "code-of-a-host", Detail: "A rule of the host."})
	})
	w := s.post(t, salePath, saleBody)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), `"type":"about:blank"`)
	require.Contains(t, w.Body.String(), `"message":"/Parameters/0: A rule of the host."`)
}

// The vendor's own client of the API's family takes an answer for a success if Error is
// absent or has no Description. So every answer but State 1 and 2 has both.
func TestAnswersThatAreNoSuccessHaveAnError(t *testing.T) {
	t.Parallel()
	refused := []fault.Fault{fund.Refusal(fault.HoldingInsufficient), fund.Refusal(fault.AmountMismatch)}
	ofHost := []fault.Fault{{Pointer: "/Parameters/0", Code: "code-of-a-host", Detail: "A rule of the host."}}
	for name, test := range map[string]struct {
		outcome operation.Outcome
		turkish bool
		number  int64
	}{
		"refused":            {operation.Outcome{State: operation.Failed, Faults: refused}, false, 2002},
		"refused in Turkish": {operation.Outcome{State: operation.Failed, Faults: refused}, true, 2002},
		"refused by a host":  {operation.Outcome{State: operation.Failed, Faults: ofHost}, false, fault.Unlisted},
		"no reason":          {operation.Outcome{State: operation.Failed}, false, fault.Unlisted},
	} {
		var answer struct {
			Data   struct{ State int }
			Error  failure
			Detail string `json:"detail"`
		}
		require.NoError(t, json.Unmarshal(httpapi.Answer(test.outcome, test.turkish), &answer), name)
		require.Equal(t, 8, answer.Data.State, name)
		require.NotEmpty(t, answer.Error.Description, name)
		require.Equal(t, failure{test.number, answer.Detail}, answer.Error, name)
	}
	require.JSONEq(t, `{"Data":{"State":2}}`, string(httpapi.Answer(operation.Outcome{State: operation.Completed}, false)))
	require.JSONEq(t, `{"Data":{"State":1}}`, string(httpapi.Answer(operation.Outcome{State: operation.Recorded}, false)))
}

func unknownMembers(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = `"x` + strings.Repeat("y", i%20) + string(rune('a'+i%26)) + string(rune('a'+i/26)) + `":0`
	}
	return strings.Join(members, ",")
}
