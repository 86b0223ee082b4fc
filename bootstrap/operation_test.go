package bootstrap_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/docs"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/httpapi/strictjson"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/bootstrap"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/testdb"
)

// consent is a record of the operation that this host adds.
type consent struct{ UserID string }

// A host adds an operation beside ours and gets for it what ours have: the
// caller, the limits, the error body, the metrics and the log line.
func TestAHostAddsAnOperation(t *testing.T) {
	t.Parallel()
	var recorded []string
	record := httpapi.Operation[consent]{
		Name:    "RecordConsent",
		Members: []strictjson.Member[consent]{strictjson.Text("UserId", func(c *consent) *string { return &c.UserID })},
		Do: func(_ context.Context, caller *subscription.Subscription, header operation.Header, consents []consent) (operation.Outcome, error) {
			if faults := append(header.Faults(), operation.CountFaults(len(consents), 10)...); len(faults) > 0 {
				return operation.Outcome{}, fault.New(fault.Invalid, "", faults...)
			}
			if _, err := caller.Complete(header); err != nil {
				return operation.Outcome{}, err
			}
			for _, c := range consents {
				recorded = append(recorded, caller.Name+" "+c.UserID)
			}
			return operation.Outcome{ID: operation.ID{1}, State: operation.Completed}, nil
		},
		Example: `{"Header":{},"Parameters":[{"UserId":"u"}]}`,
		OpenAPI: `{"operationId":"RecordConsent","responses":{"200":{"description":"Recorded."},"401":{"$ref":"#/components/responses/Unauthorized"}}}`,
	}

	settings := bootstrap.DefaultSettings()
	settings.Storage.DSN = bootstrap.Secret(testdb.SQLite(t))
	registry := prometheus.NewRegistry()
	core, lines := observer.New(zapcore.InfoLevel)
	app, err := bootstrap.Open(t.Context(), settings,
		bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open),
		bootstrap.WithRegistry(registry), bootstrap.WithLogger(zap.New(core)),
		bootstrap.WithOperation(record), bootstrap.WithOperation(nil))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.WithoutCancel(t.Context()))) })
	key := newKey(t, app, subscription.Subscription{Name: "partner", RequestsPerSecond: 2})

	send := func(key, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/BankingApiV01/RecordConsent", strings.NewReader(body))
		r.Header.Set("Ocp-Apim-Subscription-Key", key)
		w := httptest.NewRecorder()
		app.Handler().ServeHTTP(w, r)
		return w
	}
	require.Equal(t, http.StatusUnauthorized, send("no key of ours", record.Example).Code)
	w := send(key, `{"Header":{},"Parameters":[{"UserID":"u"}]}`)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), `Did you mean \"UserId\"?`)
	w = send(key, record.Example)
	require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
	require.Equal(t, `{"Data":{"State":2}}`, w.Body.String())
	require.Equal(t, "01000000-0000-0000-0000-000000000000", w.Header().Get("Operation-Id"))
	require.Equal(t, []string{"partner u"}, recorded)
	require.Equal(t, http.StatusTooManyRequests, send(key, record.Example).Code)

	var codes []string
	for _, line := range lines.FilterMessage("request").All() {
		fields := line.ContextMap()
		require.Equal(t, "RecordConsent", fields["operation"])
		codes = append(codes, strings.Join([]string{fields["state"].(string), fieldText(fields["subscription"])}, " "))
	}
	require.Equal(t, []string{"none ", "none partner", "completed partner", "none partner"}, codes)

	for _, path := range []string{openapi.Path, openapi.Path30} {
		w := httptest.NewRecorder()
		app.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		document, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
		require.NoError(t, err)
		require.NoError(t, document.Validate(t.Context()))
		require.NotNil(t, document.Paths.Value("/BankingApiV01/BuyFundFromCustomer"))
		require.Equal(t, "RecordConsent", document.Paths.Value("/BankingApiV01/RecordConsent").Post.OperationID)
	}

	families, err := registry.Gather()
	require.NoError(t, err)
	outcomes := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "bankingapi_outcomes_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["operation"] == "RecordConsent" && m.GetCounter().GetValue() > 0 {
				outcomes[labels["state"]+" "+labels["code"]] = m.GetCounter().GetValue()
			}
		}
	}
	require.Equal(t, map[string]float64{"none key-invalid": 1, "none unknown-member": 1, "completed none": 1, "none rate-limit-exceeded": 1}, outcomes)
}

// Subscriptions are granted an operation of the host by its name, like those of
// the bank. One that was not granted it is answered 403.
func TestAnOperationOfAHostIsGrantedByName(t *testing.T) {
	t.Parallel()
	settings := bootstrap.DefaultSettings()
	settings.Storage.DSN = bootstrap.Secret(testdb.SQLite(t))
	app := opened(t, settings, bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open), quiet,
		bootstrap.WithOperation(httpapi.Operation[consent]{
			Name:    "RecordConsent",
			Members: []strictjson.Member[consent]{strictjson.Text("UserId", func(c *consent) *string { return &c.UserID })},
			Do: func(context.Context, *subscription.Subscription, operation.Header, []consent) (operation.Outcome, error) {
				return operation.Outcome{ID: operation.ID{1}, State: operation.Completed}, nil
			},
		}))
	manager, err := app.Manager(t.Context())
	require.NoError(t, err)
	var names []string
	for _, ours := range operation.Names {
		names = append(names, ours.String())
	}
	require.Equal(t, append(names, "RecordConsent"), manager.Operations())

	create := func(name string, operations ...string) (key string) {
		wanted := subscription.Subscription{Name: name}
		wanted.Operations = operations
		return newKey(t, app, wanted)
	}
	status := func(key, name string) int {
		r := httptest.NewRequest(http.MethodPost, "/BankingApiV01/"+name, strings.NewReader(`{"Header":{},"Parameters":[{}]}`))
		r.Header.Set("Ocp-Apim-Subscription-Key", key)
		w := httptest.NewRecorder()
		app.Handler().ServeHTTP(w, r)
		return w.Code
	}
	everything, consents, sales := create("everything"), create("consents", "RecordConsent"), create("sales", "BuyFundFromCustomer")
	require.Equal(t, http.StatusOK, status(everything, "RecordConsent"))
	require.Equal(t, http.StatusOK, status(consents, "RecordConsent"))
	require.Equal(t, http.StatusForbidden, status(consents, "BuyFundFromCustomer"))
	require.Equal(t, http.StatusForbidden, status(sales, "RecordConsent"))
	require.Equal(t, http.StatusBadRequest, status(sales, "BuyFundFromCustomer"))

	require.ErrorContains(t, manager.CheckOperations("RecordConsents"), `There is no operation "RecordConsents"`)
	all, err := manager.List(t.Context())
	require.NoError(t, err)
	granted := map[string][]string{}
	for _, s := range all {
		granted[s.Name] = s.Operations
	}
	require.Equal(t, map[string][]string{"everything": manager.Operations(), "consents": {"RecordConsent"}, "sales": {"BuyFundFromCustomer"}}, granted)

	// A program that does not have the operation keeps the grant.
	other := opened(t, settings, bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open), quiet)
	plain, err := other.Manager(t.Context())
	require.NoError(t, err)
	require.NoError(t, plain.Change(t.Context(), "consents", func(s *subscription.Subscription) error {
		wanted := *s
		wanted.RequestsPerSecond = 3
		return s.Revise(wanted)
	}))
	all, err = plain.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, "consents", all[0].Name)
	require.Equal(t, []string{"RecordConsent"}, all[0].Operations)
	require.Equal(t, 3, all[0].RequestsPerSecond)
}

func fieldText(value any) string {
	text, _ := value.(string)
	return text
}

// A host that forgot what its operation does learns it at the start.
func TestAnOperationThatDoesNothingIsAnError(t *testing.T) {
	t.Parallel()
	settings, options := inMemory()
	_, err := bootstrap.Open(t.Context(), settings, options, bootstrap.WithOperation(httpapi.Operation[consent]{Name: "RecordConsent"}))
	require.EqualError(t, err, "the operation RecordConsent has no function Do")
}

// Behind a prefix, http.public_url makes links and the realm of errors lead there.
func TestErrorsUnderAPrefix(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	settings, options := inMemory()
	settings.HTTP.PublicURL = server.URL + "/bank/"
	app := opened(t, settings, options, bootstrap.WithDocs(docs.Pages))
	mux.Handle("/bank/", http.StripPrefix("/bank", app.Handler()))
	answer, err := http.Post(server.URL+"/bank"+httpapi.Path("BuyFundFromCustomer"), "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	require.Contains(t, answer.Header.Get("WWW-Authenticate"), `realm="https://`+strings.TrimPrefix(server.URL, "http://")+`/bank/BankingApiV01"`)
	var problem struct{ Type string }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&problem))
	require.Equal(t, server.URL+"/bank/docs/errors/key-missing", problem.Type)
	page, err := http.Get(problem.Type)
	require.NoError(t, err)
	require.NoError(t, page.Body.Close())
	require.Equal(t, http.StatusOK, page.StatusCode)
}

func TestADescriptionThatIsNotJSONIsAnError(t *testing.T) {
	t.Parallel()
	settings := bootstrap.DefaultSettings()
	settings.Storage.DSN = bootstrap.Secret(testdb.SQLite(t))
	_, err := bootstrap.Open(t.Context(), settings,
		bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open), quiet,
		bootstrap.WithOperation(httpapi.Operation[consent]{Name: "RecordConsent", OpenAPI: "{"}))
	require.ErrorContains(t, err, "RecordConsent is not JSON")
}
