package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/trail"
	"bankingapi/application/operator"
	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/testdb"
)

func TestSeed(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	seed := func(body string) answer { return p.send(http.MethodPost, "/_sandbox/seed", body) }
	got := seed(`{"prices":[{"PriceID":70,"IMKBCode":"NEW","HolderCorporationName":"My, Fund","Price":3.5,"CurrencyCode":"EUR","ValidFrom":"2026-01-01"}],
		"holdings":[{"CustomerNo":7,"IMKBCode":"NEW","HolderCorporationName":"My, Fund","Units":"10"}],
		"accounts":[{"BranchCode":1,"CustomerNo":7,"AccountSuffix":1,"CurrencyCode":"EUR","Balance":0}]}`)
	require.JSONEq(t, `{"prices":1,"holdings":1,"accounts":1}`, got.body)
	sale := `{"CustomerNo":7,"TransactionType":2,"FundAmount":2,"DestinationAccount":{"BranchCode":1,"CustomerNo":7,"AccountSuffix":1,"CurrencyCode":"EUR"},` +
		`"FundToProcess":{"IMKBCode":"NEW","HolderCorporationName":"My, Fund","PriceID":70}}`
	require.Equal(t, 2, p.sell("", sale).state())

	got = seed("CustomerNo,IMKBCode,HolderCorporationName,Units\n8,NEW,X,5\n9,NEW,X,5\n")
	require.JSONEq(t, `{"holdings":2}`, got.body)
	require.JSONEq(t, `{"calendar":1}`, seed("Day,Reason\n"+p.day(3)+",Holiday\n").body)
	require.Equal(t, []string{"day-closed"}, p.sell("", on(p.day(3), demoSale)).codes(), "it counts at once")
	require.JSONEq(t, `{"calendar":0}`, seed(`{"calendar":[]}`).body)
	require.Equal(t, 1, p.sell("", on(p.day(3), demoSale)).state(), "the calendar is replaced by an empty one")

	for body, where := range map[string]string{
		`{"holdings":[{"CustomerNo":8,"IMKBCode":"NEW","HolderCorporationName":"X","Units":1},{"CustomerNo":8,"IMKBCode":"lower","HolderCorporationName":"X","Units":1}]}`: `"pointer":"/holdings/1/IMKBCode"`,
		`{"holdings":[{"Customer":8}]}`:    `"pointer":"/holdings/0/Customer"`,
		`{"holdings":[{"CustomerNo":{}}]}`: `"pointer":"/holdings/0/CustomerNo"`,
		`{"holdings":[]}`:                  `"code":"required"`,
		`{"holdings":[{"CustomerNo":8,"IMKBCode":"NEW","HolderCorporationName":"X","Units":1},{"CustomerNo":8,"IMKBCode":"NEW","HolderCorporationName":"X","Units":2}]}`: `"pointer":"/holdings/1"`,
		`{"prices":[{"PriceID":1,"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy","Price":9,"CurrencyCode":"TRY","ValidFrom":"2024-01-01"}]}`:                     `"pointer":"/prices/0/Price"`,
		`{"calendar":[{"Day":"2026-13-01","Reason":"X"}]}`: `"pointer":"/calendar/0/Day"`,
		`{"sales":[{}]}`: `"pointer":"/sales"`,
		`{"holdings":[{"CustomerNo":8,"CustomerNo":9}]}`: `"code":"duplicate-member"`,
		`{`:  `"code":"invalid-json"`,
		`{}`: `"code":"required"`,
		"CustomerNo,IMKBCode,HolderCorporationName,Units\n8,NEW,X,-5\n": `Line 2, Units`,
		"a,b\n": `"code":"invalid-format"`,
	} {
		got := seed(body)
		require.Equal(t, http.StatusBadRequest, got.status, body)
		require.Contains(t, got.body, where, body)
		require.NotContains(t, got.body, `"State"`, "it is no operation")
	}
}

// The endpoints read a body as strictly as the operations do, and say where it is wrong.
func TestBodiesAreReadStrictly(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	for _, wrong := range []struct{ path, body, pointer, code string }{
		{"clock", `{"Advance":"1h"}`, "/Advance", "unknown-member"},
		{"clock", `{"advance":"1h","by":1}`, "/by", "unknown-member"},
		{"clock", `{"advance":"1h","advance":"2h"}`, "/advance", "duplicate-member"},
		{"clock", `{"advance":24}`, "/advance", "wrong-type"},
		{"clock", `[]`, "", "wrong-type"},
		{"clock", `{"advance":"1h"} {}`, "", "invalid-json"},
		{"clock", ``, "", "invalid-json"},
		{"faults", `[{"Fault":"internal"}]`, "/0/Fault", "unknown-member"},
		{"faults", `[{"fault":"internal","fault":"overloaded"}]`, "/0/fault", "duplicate-member"},
		{"faults", `[{"fault":"internal","count":1.5}]`, "/0/count", "wrong-type"},
		{"faults", `{"fault":"internal"}`, "", "wrong-type"},
	} {
		got := p.send(http.MethodPut, "/_sandbox/"+wrong.path, wrong.body)
		require.Equal(t, http.StatusBadRequest, got.status, wrong.body)
		require.Contains(t, got.body, `"errors":[{"pointer":"`+wrong.pointer+`","code":"`+wrong.code+`"`, wrong.body)
	}
}

func TestRequestsAreKept(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	p.send(http.MethodPost, sellPath, `{"Header":{"AppKey":"very-secret","CallerId":"`+p.bank.Key+`"},"Parameters":[`+demoSale+`]}`)
	p.sell("lost", demoSale, "Sandbox-Fault", "cut-after")
	p.send(http.MethodGet, "/BankingApiV01/"+p.bank.Key, "")
	got := p.send(http.MethodGet, "/_sandbox/requests", "")
	require.NotContains(t, got.body, p.bank.Key)
	require.NotContains(t, got.body, "very-secret")

	var kept struct{ Requests []operator.SandboxRequest } // names in any case
	require.NoError(t, json.Unmarshal([]byte(got.body), &kept))
	require.Len(t, kept.Requests, 3, "without those of the sandbox itself")
	lost, first := kept.Requests[1], kept.Requests[2]
	require.Equal(t, "cut-after", lost.Fault)
	require.True(t, lost.Answer.Lost)
	require.Equal(t, `{"Data":{"State":2}}`, lost.Answer.Body, "the answer that the partner did not get")
	require.Equal(t, http.StatusOK, first.Answer.Status)
	require.Contains(t, first.Body, `"CustomerNo":1001`)
	require.Equal(t, []string{"***"}, first.Header["Ocp-Apim-Subscription-Key"])

	got = p.send(http.MethodGet, "/_sandbox/requests?after=2", "")
	require.Equal(t, 1, strings.Count(got.body, `"number"`))
	require.Equal(t, http.StatusBadRequest, p.send(http.MethodGet, "/_sandbox/requests?after=x", "").status)
	for _, wrong := range []string{"requests?After=2", "requests?after=2&after=3", "book?Customer=1001", "book?customer=1001&limit=1"} {
		require.Equal(t, []string{"invalid-format"}, p.send(http.MethodGet, "/_sandbox/"+wrong, "").codes(), wrong)
	}
}

// A book that grows without a bound must not use up the memory of the sandbox.
func TestAnAnswerWithTheBookIsBounded(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	content := strings.Repeat("x", 10_000)
	for array := range 2 {
		var messages []string
		for n := range 250 {
			messages = append(messages, fmt.Sprintf(`{"ExternalApplicationCode":"A","UserId":"u","PushId":"p-%d-%d","Platform":65,"Content":"%s","SendStatus":1}`, array, n, content))
		}
		require.Equal(t, 2, p.send(http.MethodPost, pushPath, `{"Header":{},"Parameters":[`+strings.Join(messages, ",")+`]}`).state())
	}
	got := p.send(http.MethodGet, "/_sandbox/book", "")
	require.Equal(t, http.StatusBadRequest, got.status)
	require.Contains(t, got.body, "The book is larger than 4 MiB.")
	require.Equal(t, http.StatusOK, p.send(http.MethodPost, "/_sandbox/reset", "").status)
	require.NotEmpty(t, p.book()["holdings"])
}

func TestTheLastThousandRequestsAreKept(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	for range 1010 {
		w := httptest.NewRecorder()
		p.bank.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, sellPath, nil))
	}
	kept := p.bank.Controls.Requests(0)
	require.Len(t, kept, 1000)
	require.EqualValues(t, 1010, kept[0].Number)
	require.EqualValues(t, 11, kept[999].Number)
}

func TestEveryAnswerHasTheClock(t *testing.T) {
	t.Parallel()
	settings := settingsIn(t.TempDir())
	settings.HTTP.Docs = true
	p := partnerOf(t, settings)
	p.moveClock(`{"advance":"100h"}`)
	for _, got := range []answer{
		p.sell("", demoSale), p.send(http.MethodGet, sellPath, ""), p.send(http.MethodGet, "/nothing", ""), p.send(http.MethodGet, "/docs", ""),
		p.send(http.MethodHead, "/docs", ""), p.send(http.MethodHead, "/BankingApiV01/openapi.json", ""),
		p.send(http.MethodGet, "/_sandbox/clock", ""), p.sell("", demoSale, "Ocp-Apim-Subscription-Key", ""), p.sell("", demoSale, "Sandbox-Fault", "internal"),
		p.send(http.MethodPut, "/_sandbox/clock", `{"advance":"1s"}`),
	} {
		clock, err := time.Parse(time.RFC3339, got.header.Get("Sandbox-Clock"))
		require.NoError(t, err, got.body)
		require.WithinDuration(t, now().Add(100*time.Hour), clock, time.Minute)
	}
}

// The endpoints need the key.
func TestEndpointsNeedTheKey(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	before := p.book()
	for path, method := range endpoints {
		got := p.send(method, path, `{"advance":"24h"}`, "Ocp-Apim-Subscription-Key", "other")
		require.Equal(t, []string{"key-invalid"}, got.codes(), path)
	}
	require.Equal(t, before, p.book())
	require.Equal(t, http.StatusMethodNotAllowed, p.send(http.MethodDelete, "/_sandbox/clock", "").status)
	require.Equal(t, "GET, PUT", p.send(http.MethodDelete, "/_sandbox/clock", "").header.Get("Allow"))
}

var endpoints = map[string]string{
	"/_sandbox/clock": http.MethodPut, "/_sandbox/reset": http.MethodPost, "/_sandbox/seed": http.MethodPost,
	"/_sandbox/requests": http.MethodGet, "/_sandbox/book": http.MethodGet, "/_sandbox/faults": http.MethodPut,
}

// A service that is not a sandbox has no sandbox endpoints and ignores the
// header and the reserved values.
func TestABankHasNoSandbox(t *testing.T) {
	t.Parallel()
	settings := settingsIn(t.TempDir())
	bank, err := bootstrap.Open(t.Context(), settings, drivers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bank.Close(context.WithoutCancel(t.Context()))) })
	demo, err := bank.LoadDemo(t.Context())
	require.NoError(t, err)
	send := func(method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Ocp-Apim-Subscription-Key", demo.Key)
		r.Header.Set("Sandbox-Fault", "internal")
		w := httptest.NewRecorder()
		bank.Handler().ServeHTTP(w, r)
		require.Empty(t, w.Header().Get("Sandbox-Clock"))
		return w
	}
	for path, method := range endpoints {
		require.Equal(t, http.StatusNotFound, send(method, path, "{}").Code, path)
	}
	sold := send(http.MethodPost, sellPath, `{"Header":{"CallerId":"sandbox-internal"},"Parameters":[`+demoSale+`]}`)
	require.JSONEq(t, `{"Data":{"State":2}}`, sold.Body.String())
}

// A book of a bank is never opened as a sandbox, and a sandbox never as a bank.
func TestBankAndSandboxAreApart(t *testing.T) {
	t.Parallel()
	for engine, dsn := range map[string]func(*testing.T) string{
		bootstrap.SQLite:   func(t *testing.T) string { return filepath.Join(t.TempDir(), "bank.db") },
		bootstrap.Postgres: func(t *testing.T) string { return testdb.Postgres(t) },
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			settings := func(dsn string) bootstrap.Settings {
				s := settingsIn(t.TempDir())
				s.Storage.Driver, s.Storage.DSN, s.Storage.Migrate = engine, bootstrap.Secret(dsn), true
				s.Storage.AllowUnsafe = true // a temporary server has no fsync
				return s
			}
			ofBank := settings(dsn(t))
			ofBank.Trail.Enabled = false // no key is expected of it
			bank, err := bootstrap.Open(t.Context(), ofBank, drivers)
			require.NoError(t, err)
			manager, err := bank.Manager(t.Context())
			require.NoError(t, err)
			_, _, err = manager.Create(t.Context(), subscription.Subscription{Name: "partner"})
			require.NoError(t, err)
			_, err = bootstrap.OpenSandbox(t.Context(), ofBank, drivers)
			require.ErrorContains(t, err, "it is the book of a bank: a sandbox needs an empty database")
			require.NoError(t, bank.Ready(t.Context()))
			require.NoError(t, bank.Close(t.Context()))
			folder := filepath.Dir(string(ofBank.Storage.DSN))
			if engine == bootstrap.Postgres {
				folder = t.TempDir()
			}
			ofBank.Trail.Enabled = true
			_, err = bootstrap.OpenSandbox(t.Context(), ofBank, drivers, bootstrap.WithDataFolder(folder))
			require.ErrorContains(t, err, "it is the book of a bank")
			keys, err := filepath.Glob(filepath.Join(folder, "*.key"))
			require.NoError(t, err)
			require.Empty(t, keys, "a refused sandbox leaves no key")

			ofSandbox, place := settings(dsn(t)), bootstrap.WithDataFolder(t.TempDir())
			box, err := bootstrap.OpenSandbox(t.Context(), ofSandbox, drivers, place)
			require.NoError(t, err)
			_, err = bootstrap.OpenSandbox(t.Context(), ofSandbox, drivers, place)
			require.ErrorContains(t, err, "another process uses")
			require.NoError(t, box.Close(t.Context()))
			for _, migrate := range []bool{true, false} {
				ofSandbox.Storage.Migrate = migrate
				_, err = bootstrap.Open(t.Context(), ofSandbox, drivers)
				require.ErrorContains(t, err, "it is a sandbox: use 'bankingapi serve --sandbox'")
			}
			_, err = bootstrap.MigrateUp(t.Context(), ofSandbox, drivers)
			require.ErrorContains(t, err, "it is a sandbox")
		})
	}
}

// TestReceipts guards against this defect: after a partner had moved the clock of a sandbox, no
// answer had a receipt: batches of the trail had IDs of the real time.
func TestReceipts(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, settings bootstrap.Settings) {
		p := partnerOf(t, settings)
		world := p.with(p.makeKey())
		for _, send := range []func(string, string, string, ...string) answer{p.send, world} {
			for _, advance := range []string{"0s", "0s", "4000h"} { // a receipt also of what follows a moved clock
				require.Equal(t, http.StatusOK, send(http.MethodPut, "/_sandbox/clock", `{"advance":"`+advance+`"}`).status)
				got := send(http.MethodPost, sellPath, `{"Header":{"CallerId":"a"},"Parameters":[`+demoSale+`]}`, "Want-Receipt", "1")
				require.Equal(t, 2, got.state())
				var public struct{ Key string }
				require.NoError(t, json.Unmarshal([]byte(send(http.MethodGet, "/_sandbox/receipt-key", "").body), &public))
				facts, err := trail.CheckFile([]byte(got.header.Get("Receipt")), public.Key)
				require.NoError(t, err)
				require.Contains(t, strings.Join(facts, "\n"), got.header.Get("Operation-Id"))
				require.Equal(t, http.StatusOK, send(http.MethodPost, "/_sandbox/reset", "").status)
			}
		}
	})
}

// TestReceiptsHaveTheSizesOfThePage: 10 sales or 100 push messages of a request have a receipt of
// at most 12 KiB, and one sale has one of about 2 kB.
func TestReceiptsHaveTheSizesOfThePage(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	receipt := func(path, records string) int {
		got := p.send(http.MethodPost, path, `{"Header":{"CallerId":"0197f6b1-6f0a-7c3e-9a4b-2f1d5c8e7a60"},"Parameters":[`+records+`]}`, "Want-Receipt", "1")
		require.Equal(t, 2, got.state(), got.body)
		require.LessOrEqual(t, len(got.header.Get("Receipt")), 12<<10)
		return len(got.header.Get("Receipt"))
	}
	one := receipt(sellPath, demoSale)
	require.InDelta(t, 2000, one, 500)
	require.Equal(t, http.StatusOK, p.send(http.MethodPost, "/_sandbox/reset", "").status)
	require.InDelta(t, one+9*700, receipt(sellPath, strings.Repeat(demoSale+",", 9)+demoSale), 1000)
	const push = `{"ExternalApplicationCode":"MOBILE","UserId":"user-1001","PushId":"push-0001","Platform":73,"SendStatus":1}`
	require.Positive(t, receipt("/BankingApiV01/AddPushNotificationResponse", strings.Repeat(push+",", 99)+push))
}

// TestAReceiptIsOfTheAnswer guards against this defect: a repeat of a settled sale was answered 2,
// with a receipt that said only that it had been recorded.
func TestAReceiptIsOfTheAnswer(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	var public struct{ Key string }
	require.NoError(t, json.Unmarshal([]byte(p.send(http.MethodGet, "/_sandbox/receipt-key", "").body), &public))
	later := on(p.day(1), demoSale)
	requireReceipt := func(callerID, sale, kind, state string) {
		got := p.sell(callerID, sale, "Want-Receipt", "1")
		facts, err := trail.CheckFile([]byte(got.header.Get("Receipt")), public.Key)
		require.NoError(t, err)
		require.Contains(t, facts, "leaf: "+kind+" "+got.header.Get("Operation-Id"))
		require.Contains(t, facts, `State: "`+state+`"`)
		require.NotContains(t, strings.Join(facts, "\n"), "ReversedAt")
	}
	requireReceipt("later", later, "sale", "recorded")
	now, other := p.sell("now", demoSale), p.sell("other", later)
	require.Equal(t, http.StatusOK, p.send(http.MethodPut, "/_sandbox/clock", `{"advance":"24h"}`).status)
	requireReceipt("later", later, "end", "completed")

	office, err := p.bank.Backoffice(t.Context())
	require.NoError(t, err)
	for _, reversed := range []answer{now, other} { // a reversal changes no answer
		id, err := operation.ParseID(reversed.header.Get("Operation-Id"))
		require.NoError(t, err)
		_, err = office.Corrector().Reverse(audit.By(t.Context(), audit.Who{Actor: "ayse"}), id)
		require.NoError(t, err)
	}
	requireReceipt("now", demoSale, "sale", "completed")
	requireReceipt("other", later, "end", "completed")
}

// A caller that waits for "100 Continue" is answered as by the service.
func TestACallerThatWaitsToSendItsBody(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	sale := `{"Header":{},"Parameters":[` + demoSale + `]}`
	for _, test := range []struct {
		body, header, value string
		status              int
		isAsked             bool
	}{
		{sale, "Content-Type", "application/json", http.StatusOK, true},
		{strings.Replace(sale, "{}", `{"CallerId":"sandbox-internal-1"}`, 1), "Content-Type", "application/json", http.StatusInternalServerError, true},
		{sale, "Content-Type", "text/plain", http.StatusUnsupportedMediaType, false},
		{sale, "Content-Encoding", "br", http.StatusUnsupportedMediaType, false},
		{strings.Repeat(" ", 5<<20), "Content-Type", "application/json", http.StatusRequestEntityTooLarge, false},
		{sale, "Ocp-Apim-Subscription-Key", "wrong", http.StatusUnauthorized, false},
	} {
		isAsked := false
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { isAsked = true }})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+sellPath, strings.NewReader(test.body))
		require.NoError(t, err)
		r.Header.Set("Ocp-Apim-Subscription-Key", p.bank.Key)
		r.Header.Set("Expect", "100-continue")
		r.Header.Set(test.header, test.value)
		patient := http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Hour, DisableKeepAlives: true}}
		answer, err := patient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, test.status, answer.StatusCode, test.value)
		require.Equal(t, test.isAsked, isAsked, test.value)
	}
}

// Ten sandboxes in one process are independent.
func TestTenSideBySide(t *testing.T) {
	t.Parallel()
	partners := make([]partner, 10)
	for i := range partners {
		partners[i] = newPartner(t)
	}
	var all sync.WaitGroup
	for i, p := range partners {
		all.Go(func() {
			for n := range i {
				if got := p.sell(fmt.Sprint(n), demoSale); got.state() != 2 {
					t.Error(got.body)
				}
			}
			if _, err := p.bank.Controls.AdvanceClock(t.Context(), time.Duration(i)*time.Hour); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i, p := range partners {
		require.Equal(t, i, p.sales())
		require.WithinDuration(t, now().Add(time.Duration(i)*time.Hour), p.bank.Controls.Now(), time.Minute)
	}
}

// The document of the sandbox has each of its endpoints, and a sandbox serves it to
// everyone.
func TestTheSandboxDescribesItsEndpoints(t *testing.T) {
	t.Parallel()
	settings := settingsIn(t.TempDir())
	settings.HTTP.Docs = true
	p := partnerOf(t, settings)
	served := p.send(http.MethodGet, "/_sandbox/openapi.json", "", "Ocp-Apim-Subscription-Key", "")
	require.Equal(t, http.StatusOK, served.status)
	document, err := openapi3.NewLoader().LoadFromData([]byte(served.body))
	require.NoError(t, err)
	require.NoError(t, document.Validate(t.Context()))
	var described []string
	for path, item := range document.Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(p.bank.Controls.(operator.SandboxPart).Endpoints())), described)
	file := document.Paths.Value("/_sandbox/seed").Post.RequestBody.Value.Content["text/csv"].Example.(string)
	require.JSONEq(t, `{"holdings":1}`, p.send(http.MethodPost, "/_sandbox/seed", file, "Content-Type", "text/csv").body)

	problem := document.Paths.Value("/_sandbox/clock").Put.Responses.Default().Value.Content["application/problem+json"].Schema.Value
	require.Contains(t, problem.Required, "errors")
	refused := p.send(http.MethodPut, "/_sandbox/clock", `{}`)
	require.Equal(t, http.StatusBadRequest, refused.status)
	var body any
	require.NoError(t, json.Unmarshal([]byte(refused.body), &body))
	require.NoError(t, problem.VisitJSON(body))
	bank, err := openapi3.NewLoader().LoadFromData(openapi.Document())
	require.NoError(t, err)
	for _, name := range []string{"Problem", "Fault", "ErrorInfo", "Data"} {
		require.Equal(t, bank.Components.Schemas[name].Value, document.Components.Schemas[name].Value, "problems are those of the operations")
	}
}
