package sandbox_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/sandbox"
	"bankingapi/application/operator"
	"bankingapi/bootstrap"
	"bankingapi/domain/subscription"
)

// outcomes are the status of each fault and whether the sale happened.
var outcomes = map[string]struct {
	status, state int
	done          bool
}{
	"unavailable-before": {503, 0, false},
	"unavailable-after":  {503, 0, true},
	"cut-before":         {0, 0, false},
	"cut-after":          {0, 0, true},
	"slow":               {200, 2, true},
	"rate-limited":       {429, 0, false},
	"internal":           {500, 0, false},
	"overloaded":         {503, 0, false},
	"shutting-down":      {503, 0, false},
	"cut-middle":         {0, 0, true},
	"bad-gateway":        {502, 0, true},
}

// TestFaults injects each fault in each way. A repeat with the same CallerId
// gets the true outcome, and the sale happens once.
func TestFaults(t *testing.T) {
	t.Parallel()
	require.Len(t, sandbox.Faults(), len(outcomes))
	for _, f := range sandbox.Faults() {
		want := outcomes[f.Name()]
		customer := strings.Replace(demoSale, `"CustomerNo":1001`, fmt.Sprintf(`"CustomerNo":%d`, f.CustomerNo), 1)
		for name, way := range map[string]func(p partner) answer{
			"header":   func(p partner) answer { return p.sell("a", demoSale, "Sandbox-Fault", f.Header) },
			"CallerId": func(p partner) answer { return p.sell("sandbox-"+f.Name()+"-1", demoSale) },
			"customer": func(p partner) answer { return p.sell("a", customer) },
		} {
			t.Run(f.Name()+" by "+name, func(t *testing.T) {
				t.Parallel()
				p := newPartner(t)
				begun := time.Now()
				got := way(p)
				if f.Name() == "slow" {
					require.GreaterOrEqual(t, time.Since(begun), 2*time.Second)
				}
				require.Equal(t, want.status, got.status, got.body)
				require.Equal(t, want.state, got.state(), got.body)
				done := 0
				if want.done {
					done = 1
				}
				require.Equal(t, done, p.sales())

				var repeat answer
				switch name {
				case "header":
					repeat = p.sell("a", demoSale)
				default:
					repeat = way(p)
				}
				require.Equal(t, 2, repeat.state(), repeat.body)
				replayed := repeat.header.Get("Idempotent-Replayed")
				require.Equal(t, want.done, replayed == "true")
				require.Equal(t, 1, p.sales())
			})
		}
	}
}

// TestFaultsOverHTTP2 sends the faults that lose the answer over HTTP/2, whose answers are sent before
// the handler returns. The log of requests has the body of a request that was refused unread.
func TestFaultsOverHTTP2(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	server := httptest.NewUnstartedServer(p.bank.Handler())
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	sell := func(header ...string) (status int, body string, err error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+sellPath, strings.NewReader(`{"Header":{},"Parameters":[`+demoSale+`]}`))
		require.NoError(t, err)
		r.Header.Set("Ocp-Apim-Subscription-Key", p.bank.Key)
		r.Header.Set(header[0], header[1])
		w, err := server.Client().Do(r)
		if err != nil {
			return 0, "", err
		}
		defer w.Body.Close()
		require.Equal(t, 2, w.ProtoMajor)
		content, err := io.ReadAll(w.Body)
		return w.StatusCode, string(content), err
	}
	status, body, err := sell("Sandbox-Fault", "bad-gateway")
	require.NoError(t, err)
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, body, "502 Bad Gateway")
	status, _, err = sell("Sandbox-Fault", "cut-after")
	require.Error(t, err)
	require.Zero(t, status, "no header is sent")
	status, body, err = sell("Sandbox-Fault", "cut-middle")
	require.Error(t, err)
	require.Equal(t, http.StatusOK, status)
	require.NotEmpty(t, body)
	require.Equal(t, 3, p.sales())

	status, _, err = sell("Content-Type", "text/plain")
	require.NoError(t, err)
	require.Equal(t, http.StatusUnsupportedMediaType, status)
	require.Equal(t, 4, strings.Count(p.send(http.MethodGet, "/_sandbox/requests", "").body, "Demo Portfoy"))
}

func TestFaultsOfPushMessages(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	message := `{"Header":{},"Parameters":[{"ExternalApplicationCode":"APP","UserId":"sandbox-cut-after","PushId":"p","Platform":65,"SendStatus":1}]}`
	require.Zero(t, p.send(http.MethodPost, pushPath, message).status)
	require.Len(t, p.book()["notifications"], 1)
	require.Equal(t, 2, p.send(http.MethodPost, pushPath, message).state())
	require.Len(t, p.book()["notifications"], 1)
}

const takesValue = "Only slow takes a value: a duration of at most 60s, such as slow=2s."

func TestUnknownFault(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	for name, detail := range map[string]string{
		"explode": "Must be one of unavailable-before, ", "slo": "Did you mean slow?",
		"slow=-1s": takesValue, "slow=70s": takesValue, "slow=2h": takesValue, "slow=x": takesValue, "slow=": takesValue, "cut-after=2s": takesValue, "": "",
	} {
		got := p.sell("", demoSale, "Sandbox-Fault", name)
		if name == "" {
			require.Equal(t, 2, got.state())
			continue
		}
		require.Equal(t, http.StatusBadRequest, got.status, name)
		require.Equal(t, []string{"not-allowed"}, got.codes())
		require.Contains(t, got.body, detail, name)
		require.Contains(t, got.body, "The header Sandbox-Fault: ", name)
	}
	require.Equal(t, 1, p.sales())

	require.Equal(t, 2, p.sell("done", demoSale).state())
	got := p.sell("done", demoSale, "Sandbox-Fault", "explode")
	require.NotContains(t, got.body, `"Data"`, "the sale was carried out")
}

// A request that breaks a rule gets its 400, and not the fault.
func TestFaultsDoNotHideFaultsOfTheRequest(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	invalid := strings.Replace(demoSale, `"FundAmount":12.5`, `"FundAmount":0`, 1)
	require.NotEqual(t, demoSale, invalid)
	before := map[string]int{"cut-before": 0, "rate-limited": http.StatusTooManyRequests} // the body is read
	for _, f := range sandbox.Faults() {
		want, is := before[f.Name()]
		if !is {
			want = http.StatusBadRequest
		}
		header := strings.Replace(f.Header, "=2s", "=1ms", 1)
		require.Equal(t, want, p.send(http.MethodPost, sellPath, `{}`, "Sandbox-Fault", header).status, f.Header)
		require.Equal(t, want, p.sell("invalid", invalid, "Sandbox-Fault", header).status, f.Header)
		require.Equal(t, want, p.send(http.MethodPost, "/quotes", `{"Header":{},"Parameters":[`+invalid+`]}`, "Sandbox-Fault", header).status, f.Header)
	}
	require.Equal(t, http.StatusOK, p.sell("used", demoSale).status)
	other := strings.Replace(demoSale, `"CustomerNo":1001`, `"CustomerNo":1002`, 1)
	require.Equal(t, http.StatusUnprocessableEntity, p.sell("used", other, "Sandbox-Fault", "cut-after").status, "nothing was done")
	got := p.sell("", demoSale, "Sandbox-Fault", "internal", "Ocp-Apim-Subscription-Key", "other")
	require.Equal(t, http.StatusUnauthorized, got.status)
}

// Nor do they hide what a subscription asks of its caller.
func TestFaultsDoNotHideWhatASubscriptionAsks(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	manager, err := p.bank.Manager(t.Context())
	require.NoError(t, err)
	strict, _, err := manager.Create(t.Context(), subscription.Subscription{Name: "strict", RequireCallerID: true})
	require.NoError(t, err)
	mobile, _, err := manager.Create(t.Context(), subscription.Subscription{Name: "mobile", Channel: "MOBILE"})
	require.NoError(t, err)
	for _, header := range []string{"overloaded", "shutting-down", "unavailable-before", "internal"} {
		got := p.with(strict.Reveal())(http.MethodPost, sellPath, `{"Header":{},"Parameters":[`+demoSale+`]}`, "Sandbox-Fault", header)
		require.Equal(t, http.StatusBadRequest, got.status, header)
		got = p.with(mobile.Reveal())(http.MethodPost, sellPath, `{"Header":{"Channel":"WEB"},"Parameters":[`+demoSale+`]}`, "Sandbox-Fault", header)
		require.Equal(t, http.StatusForbidden, got.status, header)
		got = p.with(mobile.Reveal())(http.MethodPost, "/quotes", `{"Header":{"Channel":"WEB"},"Parameters":[`+demoSale+`]}`, "Sandbox-Fault", header)
		require.Equal(t, http.StatusForbidden, got.status, header)
	}
}

// An armed fault hits the next requests, also those of other callers.
func TestFaultsOfTheNextRequests(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	require.NoError(t, p.bank.Controls.ArmFaults(operator.ArmedFault{Fault: "rate-limited", Count: 2}))
	require.Equal(t, http.StatusServiceUnavailable, p.sell("a", demoSale, "Sandbox-Fault", "overloaded").status)
	for _, want := range []int{http.StatusTooManyRequests, http.StatusTooManyRequests, http.StatusOK} {
		require.Equal(t, want, p.sell("a", demoSale).status)
	}
	require.Error(t, p.bank.Controls.ArmFaults(operator.ArmedFault{Fault: "explode"}))
	require.NoError(t, p.bank.Controls.ArmFaults(operator.ArmedFault{Fault: "cut-after"}))
	require.NoError(t, p.bank.Controls.ArmFaults())
	require.Equal(t, http.StatusOK, p.sell("b", demoSale).status)
	require.NoError(t, p.bank.Controls.ArmFaults(operator.ArmedFault{Fault: "cut-after"}))
	require.NoError(t, p.bank.Controls.Reset(t.Context()))
	require.Equal(t, http.StatusOK, p.sell("b", demoSale).status)
}

// Faults are armed for operations, in an order. A request takes the first that is for
// its operation.
func TestArmedFaults(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	arm := func(body string) answer { return p.send(http.MethodPut, "/_sandbox/faults", body) }
	push := `{"Header":{},"Parameters":[{"ExternalApplicationCode":"APP","UserId":"u","PushId":"p","Platform":65,"SendStatus":1}]}`
	got := arm(`[{"operation":"BuyFundFromCustomer","fault":"unavailable-after","count":2},{"fault":"bad-gateway"}]`)
	require.JSONEq(t, `[{"operation":"BuyFundFromCustomer","fault":"unavailable-after","count":2},{"fault":"bad-gateway","count":1}]`, got.body)
	require.Equal(t, http.StatusUnauthorized, p.sell("a", demoSale, "Ocp-Apim-Subscription-Key", "other").status, "this request meets no fault")
	require.Equal(t, http.StatusServiceUnavailable, p.sell("a", demoSale).status)
	gateway := p.send(http.MethodPost, pushPath, push)
	require.Equal(t, http.StatusBadGateway, gateway.status)
	require.Equal(t, "text/html", gateway.header.Get("Content-Type"))
	require.Contains(t, gateway.body, "<h1>502 Bad Gateway</h1>")
	require.JSONEq(t, `[{"operation":"BuyFundFromCustomer","fault":"unavailable-after","count":1}]`, p.send(http.MethodGet, "/_sandbox/faults", "").body)
	require.Equal(t, 2, p.send(http.MethodPost, pushPath, push).state())
	require.JSONEq(t, `[]`, p.send(http.MethodDelete, "/_sandbox/faults", "").body)
	require.Equal(t, 2, p.sell("a", demoSale).state())
	require.Equal(t, 1, p.sales())

	for body, where := range map[string]string{
		`[{"fault":"cut-aftr"}]`:                              `Did you mean cut-after?`,
		`[{"fault":"cut-after","operation":"Buy"}]`:           `"pointer":"/0/operation"`,
		`[{"fault":"cut-after"},{"fault":"slow","count":-1}]`: `"pointer":"/1/count"`,
		`[{"fault":"cut-after","count":0}]`:                   `"pointer":"/0/count"`,
		`[{"fault":"cut-after","count":1001}]`:                `Must be from 1 to 1000.`,
		`[{"fault":"cut-after","times":2}]`:                   `"pointer":"/0/times"`,
		`[] x`:                                                `"code":"invalid-json"`,
		`{}`:                                                  `"code":"wrong-type"`,
	} {
		got := arm(body)
		require.Equal(t, http.StatusBadRequest, got.status, body)
		require.Contains(t, got.body, where, body)
	}
}

// A reserved value with a typo would be an ordinary sale.
func TestAReservedValueWithATypoIsRefused(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	got := p.sell("sandbox-cut-aftr-17", demoSale)
	require.Equal(t, http.StatusBadRequest, got.status)
	require.Equal(t, []string{"not-allowed"}, got.codes())
	require.Contains(t, got.body, `"pointer":"/Header/CallerId"`)
	require.Contains(t, got.body, "Did you mean sandbox-cut-after?")
	got = p.send(http.MethodPost, pushPath, `{"Header":{},"Parameters":[{"ExternalApplicationCode":"APP","UserId":"sandbox-explode","PushId":"p","Platform":65,"SendStatus":1}]}`)
	require.Contains(t, got.body, `"pointer":"/Parameters/0/UserId"`)
	require.Zero(t, p.sales())
}

// A slow operation is done, also if its caller gives up before, or if the service may
// not write the answer any more.
func TestASlowOperationIsDoneAfterItsCallerGaveUp(t *testing.T) {
	t.Parallel()
	t.Run("the caller gives up", func(t *testing.T) {
		t.Parallel()
		p := newPartner(t)
		ctx, giveUp := context.WithCancel(t.Context())
		hasty := p
		hasty.ctx = ctx
		require.Equal(t, http.StatusOK, p.send(http.MethodPut, "/_sandbox/faults", `[{"fault":"slow=5s","count":1}]`).status)
		answered := make(chan answer)
		go func() { answered <- hasty.sell("hasty", demoSale) }()
		// The request that meets the fault takes it off the list.
		require.Eventually(t, func() bool { return p.send(http.MethodGet, "/_sandbox/faults", "").body == "[]" }, time.Minute, 10*time.Millisecond)
		giveUp()
		require.Zero(t, (<-answered).status)
		require.Eventually(t, func() bool { return p.sales() == 1 }, time.Minute, 20*time.Millisecond)
		repeat := p.sell("hasty", demoSale)
		require.Equal(t, 2, repeat.state())
		require.Equal(t, "true", repeat.header.Get("Idempotent-Replayed"))
	})
	t.Run("too late for an answer", func(t *testing.T) {
		t.Parallel()
		settings := bootstrap.SandboxSettings(t.TempDir())
		settings.HTTP.WriteTimeout, settings.HTTP.ReadTimeout, settings.Storage.StatementTimeout = 6*time.Second, 6*time.Second, 2900*time.Millisecond
		p := partnerOf(t, settings)
		require.NoError(t, p.bank.Start(t.Context()))
		p.url = p.bank.URL()
		require.Zero(t, p.sell("late", demoSale, "Sandbox-Fault", "slow=6500ms").status)
		require.Eventually(t, func() bool { return p.sales() == 1 }, time.Minute, 20*time.Millisecond)
		require.Equal(t, "true", p.sell("late", demoSale).header.Get("Idempotent-Replayed"))
	})
}

// Quotes meet the faults of the header and those that are armed for them, and none of the
// reserved values of sales. They are in the log of requests.
func TestFaultsOfQuotes(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	body := `{"Header":{"CallerId":"sandbox-cut-after-1"},"Parameters":[` + demoSale + `]}`
	quote := func(header ...string) answer { return p.send(http.MethodPost, "/quotes", body, header...) }
	require.Contains(t, quote().body, `"State":2`)
	for _, f := range sandbox.Faults() {
		if f.Name() == "slow" {
			require.Contains(t, quote("Sandbox-Fault", "slow=1ms").body, `"State":2`)
			continue
		}
		got := quote("Sandbox-Fault", f.Header)
		require.Equal(t, outcomes[f.Name()].status, got.status, f.Header)
		require.NotContains(t, got.body, `"Data"`, f.Header)
	}
	require.Equal(t, http.StatusOK, p.send(http.MethodPut, "/_sandbox/faults", `[{"fault":"internal","operation":"quotes"},{"fault":"overloaded"}]`).status)
	require.Equal(t, http.StatusInternalServerError, quote().status)
	require.Equal(t, http.StatusOK, quote().status, "the other fault is one of operations")
	require.Equal(t, http.StatusServiceUnavailable, p.sell("a", demoSale).status)
	require.Zero(t, p.sales())
	require.Contains(t, p.send(http.MethodGet, "/_sandbox/requests", "").body, `"path":"/quotes"`)
	require.Equal(t, http.StatusOK, p.send(http.MethodGet, "/outcomes", "", "Sandbox-Fault", "internal").status, "outcomes meet no faults")
}
