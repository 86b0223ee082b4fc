package docs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/application/backoffice"
	"bankingapi/application/outcomes"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/fake"
	"bankingapi/test/kit/demo"
	"bankingapi/test/kit/golden"
	"bankingapi/test/kit/value"
)

const (
	addPush = "/BankingApiV01/AddPushNotificationResponse"
	buyFund = "/BankingApiV01/BuyFundFromCustomer"

	saleBody = `{
  "Header": { "CallerId": "sale-1" },
  "Parameters": [{
    "CustomerNo": 1001, "TransactionType": 2, "FundAmount": 12.5,
    "DestinationAccount": {
      "BranchCode": 1, "CustomerNo": 1001, "AccountSuffix": 1, "CurrencyCode": "TRY"
    },
    "FundToProcess": {
      "IMKBCode": "AFA", "HolderCorporationName": "Demo Portfoy", "PriceID": 1
    }
  }]
}`
	pushBody = `{
  "Header": {},
  "Parameters": [{
    "ExternalApplicationCode": "MOBILE", "UserId": "user-1001", "PushId": "push-0001",
    "Platform": 73, "SendStatus": 1
  }]
}`
)

// example is a request that gets an error.
type example struct {
	method, path string
	body         string
	shown        string // in place of the body
	header       string // one more line
	noKey        bool
	setup        func(*demo.Setup)
	book         func(*testing.T, *fake.Store)
	twice        string // the body of a request before this one
	between      func(*testing.T, *fake.Store)
	// sandbox is how a reader provokes the code in a sandbox: pairs of texts of the
	// request, old and new. A header is put before the line that it replaces.
	sandbox []string
}

// ordered is the line of the fault that a reader orders.
func (e example) ordered(fault string) example {
	e.sandbox = []string{"Content-Type: ", "Sandbox-Fault: " + fault + "\nContent-Type: "}
	return e
}

// sale is the demo sale with a part of it replaced.
func sale(old, with string) example {
	return example{path: buyFund, body: replaced(saleBody, old, with)}
}

func push(old, with string) example {
	return example{path: addPush, body: replaced(pushBody, old, with)}
}

func replaced(body, old, with string) string {
	if strings.Count(body, old) < 1 {
		panic("the body has no " + old)
	}
	return strings.Replace(body, old, with, 1)
}

func setup(change func(*demo.Setup)) example {
	e := sale("12.5", "12.5")
	e.setup = change
	return e
}

func strike(moment fake.Moment, err error) example {
	return setup(func(s *demo.Setup) {
		s.Strike = func(_ context.Context, at fake.Moment) error {
			if at == moment {
				return err
			}
			return nil
		}
	})
}

func (e example) with(change func(*example)) example {
	change(&e)
	return e
}

// examples has a request for every code of the catalogue.
func examples() map[string]example {
	second := `    "FundToProcess": {
      "IMKBCode": "AFA", "HolderCorporationName": "Demo Portfoy", "PriceID": 1
    }
  }, {
    "CustomerNo": 1001, "TransactionType": 2, "FundAmount": 1, "SelectedTransactionDate": "2026-11-24",
    "DestinationAccount": {
      "BranchCode": 1, "CustomerNo": 1001, "AccountSuffix": 1, "CurrencyCode": "TRY"
    },
`
	last := `    "FundToProcess": {`
	return map[string]example{
		fault.Required:         push(`"UserId": "user-1001", `, ``),
		fault.WrongType:        sale(`"CustomerNo": 1001`, `"CustomerNo": "1001"`),
		fault.UnknownMember:    push(`"UserId"`, `"userId"`),
		fault.DuplicateMember:  sale(`"FundAmount": 12.5,`, `"FundAmount": 12.5, "FundAmount": 1,`),
		fault.TooLong:          push(`"push-0001"`, `"`+strings.Repeat("0123456789", 20)+`1"`),
		fault.TooFew:           {path: buyFund, body: "{\n  \"Header\": { \"CallerId\": \"sale-1\" },\n  \"Parameters\": []\n}"},
		fault.TooMany:          push(`"SendStatus": 1`, `"SendStatus": 1, "TranData": [`+strings.Repeat(`{"Code":"a"},`, 100)+`{"Code":"a"}]`),
		fault.NotAllowed:       sale(`"TransactionType": 2`, `"TransactionType": 1`),
		fault.OutOfRange:       sale(`"FundAmount": 12.5`, `"FundAmount": 0`),
		fault.NotAnInteger:     sale(`"CustomerNo": 1001`, `"CustomerNo": 1001.5`),
		fault.TooManyDecimals:  sale(`"FundAmount": 12.5`, `"FundAmount": 12.5000001`),
		fault.InvalidFormat:    sale(`"AFA"`, `"afa"`),
		fault.InvalidDate:      sale(`"FundAmount": 12.5,`, `"FundAmount": 12.5, "SelectedTransactionDate": "20.11.2026",`),
		fault.DateInThePast:    sale(`"FundAmount": 12.5,`, `"FundAmount": 12.5, "SelectedTransactionDate": "2020-01-01",`),
		fault.DateTooFar:       sale(`"FundAmount": 12.5,`, `"FundAmount": 12.5, "SelectedTransactionDate": "9999-01-01",`),
		fault.DatesDiffer:      sale(last, second+last),
		fault.InvalidURL:       push(`"SendStatus": 1`, `"SendStatus": 1, "DeepLinkUrl": "a deep link"`),
		fault.InvalidCurrency:  sale(`"TRY"`, `"TL"`),
		fault.InvalidCharacter: push(`"SendStatus": 1`, `"SendStatus": 1, "Subject": "a\u0000b"`),
		fault.InvalidJSON:      {path: buyFund, body: `{"Header":{`},
		fault.NestingTooDeep:   push(`"SendStatus": 1`, `"SendStatus": 1, "TranData": `+strings.Repeat("[", 20)+strings.Repeat("]", 20)),

		fault.HoldingNotFound:     sale(`"CustomerNo": 1001`, `"CustomerNo": 999999`),
		fault.HoldingInsufficient: sale(`"FundAmount": 12.5`, `"FundAmount": 1000000000`),
		fault.PriceNotFound:       sale(`"PriceID": 1`, `"PriceID": 999999`),
		fault.PriceNotCurrent: sale(`12.5`, `12.5`).with(func(e *example) {
			e.book = func(t *testing.T, store *fake.Store) { store.PutPrices(price(t, 9002, "1.3")) }
			e.sandbox = []string{`"AFA"`, `"SBXOLD"`, `"PriceID": 1`, `"PriceID": 9001`}
		}),
		fault.AccountNotFound:  sale(`"AccountSuffix": 1`, `"AccountSuffix": 999999`),
		fault.CurrencyMismatch: sale(`"AccountSuffix": 1, "CurrencyCode": "TRY"`, `"AccountSuffix": 2, "CurrencyCode": "USD"`),
		fault.AmountMismatch:   sale(`"FundAmount": 12.5,`, `"FundAmount": 12.5, "Amount": 1,`),
		fault.ProceedsZero:     sale(`"FundAmount": 12.5`, `"FundAmount": 0.000001`),
		fault.ProceedsOutOfRange: sale(`"CustomerNo": 1001, "TransactionType": 2, "FundAmount": 12.5`, `"CustomerNo": 1002, "TransactionType": 2, "FundAmount": 1000000000`).with(func(e *example) {
			e.sandbox = []string{`"CustomerNo": 1002`, `"CustomerNo": 1001`, `1000000000,`, `1000000000000,`, `"AFA"`, `"SBXBIG"`, `"PriceID": 3`, `"PriceID": 9003`}
			e.body = replaced(e.body, `"PriceID": 1`, `"PriceID": 3`)
			e.book = func(t *testing.T, store *fake.Store) { store.PutPrices(price(t, 3, "10000000000")) }
		}),
		fault.BalanceOutOfRange: sale(`12.5`, `12.5`).with(func(e *example) {
			e.sandbox = []string{`"BranchCode": 1, "CustomerNo": 1001`, `"BranchCode": 1, "CustomerNo": 9103`}
			e.book = func(t *testing.T, store *fake.Store) {
				account, faults := fund.NewAccount(fund.AccountFields{
					BranchCode: decimal.Int(1), CustomerNo: decimal.Int(1001), AccountSuffix: decimal.Int(1), CurrencyCode: "TRY",
				}, value.Number("92233720368547758.07"))
				require.Empty(t, faults)
				store.PutAccounts(account)
			}
		}),
		fault.Cancelled: sale(`"FundAmount": 12.5,`, `"FundAmount": 12.5, "SelectedTransactionDate": "2026-11-24",`).with(func(e *example) {
			e.twice = e.body
			e.between = cancelSale
			e.sandbox = []string{`"CustomerNo": 1001, "TransactionType"`, `"CustomerNo": 9104, "TransactionType"`}
		}),
		fault.DayClosed: sale(`"FundAmount": 12.5,`, `"FundAmount": 12.5, "SelectedTransactionDate": "2026-11-29",`).with(func(e *example) {
			e.setup = func(s *demo.Setup) { s.Rules = &fund.Rules{Weekdays: [7]bool{time.Sunday: true}} }
		}),
		fault.AfterCutOff: setup(func(s *demo.Setup) { s.Rules = &fund.Rules{CutOff: day.ClockOf(demo.Today, time.UTC)} }),

		fault.KeyMissing: sale(`12.5`, `12.5`).with(func(e *example) { e.noKey = true }),
		fault.KeyInvalid: sale(`12.5`, `12.5`).with(func(e *example) {
			e.noKey, e.header = true, "Ocp-Apim-Subscription-Key: another text"
		}),
		fault.OperationNotGranted: setup(func(s *demo.Setup) {
			s.Subscription.Operations = []string{"AddPushNotificationResponse"}
		}).with(func(e *example) { e.sandbox = []string{"your key", "your key-push-only"} }),
		fault.ContradictsSubscription: sale(`"CallerId": "sale-1"`, `"CallerId": "sale-1", "Channel": "WEB"`).with(func(e *example) {
			e.setup = func(s *demo.Setup) { s.Subscription.Channel = "MOBILE" }
			e.sandbox = []string{"your key", "your key-mobile"}
		}),
		fault.CallerIDReused: sale(`12.5`, `13`).with(func(e *example) { e.twice = saleBody }),
		fault.RateLimitExceeded: setup(func(s *demo.Setup) { s.Subscription.RequestsPerSecond = 1 }).with(func(e *example) {
			e.twice = saleBody
		}).ordered("rate-limited"),

		fault.UnknownPath:                {path: "/BankingApiV01/Unknown", body: saleBody},
		fault.MethodNotAllowed:           {method: http.MethodGet, path: buyFund},
		fault.BodyTooLarge:               {path: buyFund, body: strings.Repeat(" ", 5<<20), shown: "(5 MiB)"},
		fault.UnsupportedMediaType:       {path: buyFund, body: saleBody, header: "Content-Type: text/plain"},
		fault.UnsupportedContentEncoding: {path: buyFund, body: saleBody, header: "Content-Encoding: gzip"},

		fault.CursorLost: {method: http.MethodGet, path: "/outcomes?after=" + lostCursor()},

		fault.InternalError:      strike(fake.Begin, errors.New("a bug")).ordered("internal"),
		fault.Overloaded:         strike(fake.Begin, fault.New(fault.Busy, "full")).ordered("overloaded"),
		fault.ShuttingDown:       setup(func(s *demo.Setup) { s.Stopping = true }).ordered("shutting-down"),
		fault.StorageUnavailable: strike(fake.Begin, fault.New(fault.Unavailable, "gone")).ordered("unavailable-before"),
		fault.OutcomeUnknown:     strike(fake.Committed, fault.New(fault.Indeterminate, "gone")).ordered("unavailable-after"),
	}
}

// lostCursor returns the cursor of an outcome that the demo book does not have.
func lostCursor() string {
	page, err := outcomes.New(lost{new(fake.Store).Books(nil)}).Page(context.Background(), outcomes.Query{Subscription: demo.Subscription().Name})
	if err != nil {
		panic(err)
	}
	return page.Next
}

type lost struct{ *fake.Books }

func (lost) Outcomes(context.Context, string, int64, int) ([]fund.Ended, error) {
	return []fund.Ended{{Number: 1, State: operation.Completed}}, nil
}

// cancelSale cancels the only sale of the book.
func cancelSale(t *testing.T, store *fake.Store) {
	ports := store.Backoffice(nil, func() time.Time { return demo.Today })
	c := backoffice.New(ports, audit.Acts{NewID: func() operation.ID { return fake.NewID(99) }, Now: func() time.Time { return demo.Today }}, time.UTC)
	require.NoError(t, c.Corrector().Cancel(t.Context(), store.Sales()[0].ID))
}

func price(t *testing.T, id int64, amount string) fund.Price {
	p, faults := fund.NewPrice(fund.PriceFields{
		PriceID: decimal.Int(id), IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy",
		Price: value.Number(amount), CurrencyCode: "TRY", ValidFrom: "2026-01-01",
	})
	require.Empty(t, faults)
	return p
}

// request is the example as a request, and as a reader sees it.
func (e example) request(body string) (*http.Request, string) {
	method := e.method
	if method == "" {
		method = http.MethodPost
	}
	r := httptest.NewRequest(method, e.path, strings.NewReader(body))
	shown := fmt.Sprintf("%s %s HTTP/1.1\n", method, e.path)
	set := func(name, value, seen string) {
		r.Header.Set(name, value)
		shown += name + ": " + seen + "\n"
	}
	if !e.noKey {
		set("Ocp-Apim-Subscription-Key", demo.Key, "your key")
	}
	name, value, _ := strings.Cut(e.header, ": ")
	if method == http.MethodPost && name != "Content-Type" {
		set("Content-Type", "application/json", "application/json")
	}
	if name != "" {
		set(name, value, value)
	}
	if e.shown != "" {
		body = e.shown
	}
	if body != "" {
		shown += "\n" + body + "\n"
	}
	return r, shown
}

// TestExamplesAreRealAnswers sends the example of every code to the service.
func TestExamplesAreRealAnswers(t *testing.T) {
	t.Parallel()
	all := examples()
	for _, code := range fault.Codes() {
		t.Run(code.Name, func(t *testing.T) {
			t.Parallel()
			e, ok := all[code.Name]
			require.True(t, ok, "%s: add a request that gets this code to examples in examples_test.go", code.Name)
			// Of its own, so that a reader can send the requests of all pages.
			callerID := strings.NewReplacer("sale-1", "error-"+code.Name)
			e.body, e.twice = callerID.Replace(e.body), callerID.Replace(e.twice)
			s := demo.Setup{Subscription: demo.Subscription(), RequestID: "0197f6b1-6f0a-7c3e-9a4b-2f1d5c8e7a60"}
			if e.setup != nil {
				e.setup(&s)
			}
			api, store := demo.Start(t, s)
			if e.book != nil {
				e.book(t, store)
			}
			if e.twice != "" {
				r, _ := e.request(e.twice)
				api.ServeHTTP(httptest.NewRecorder(), r)
			}
			if e.between != nil {
				e.between(t, store)
			}
			r, shown := e.request(e.body)
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			var got struct {
				Type   string
				Errors []fault.Fault
			}
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
			require.Equal(t, code.Name, got.Errors[0].Code, w.Body.String())
			if got.Type != "" && got.Type != "about:blank" {
				page := ask(http.MethodGet, got.Type)
				require.Equal(t, http.StatusOK, page.Code, "the link of the problem leads to a page")
				require.Contains(t, page.Body.String(), "<h1 id=\""+code.Name+"\">")
			}
			file := filepath.Join("examples", code.Name+".http")
			want := e.asShown(code.Name, shown) + "\n\n" + daysOf(code.Name).Replace(answer(t, w))
			if *golden.Update {
				golden.Write(t, file, want)
			}
			recorded, err := os.ReadFile(file)
			require.NoError(t, err, "make generate records it")
			require.Equal(t, want, string(recorded), "make generate records it")
		})
	}
}

// asShown is the request as a reader sends it to a sandbox, after the requests that
// must come before it. A test of the sandbox sends the pages' requests.
func (e example) asShown(code, shown string) string {
	before := ""
	switch code {
	case fault.CallerIDReused:
		_, before = e.request(e.twice)
		before += "\n"
	case fault.Cancelled: // it is recorded, and cancelled before its day
		before = shown + "\nPUT /_sandbox/clock HTTP/1.1\nOcp-Apim-Subscription-Key: your key\n\n{\"advance\":\"4344h\"}\n\n"
	}
	if code == fault.AfterCutOff {
		before = "PUT /_sandbox/clock HTTP/1.1\nOcp-Apim-Subscription-Key: your key\n\n{\"now\":\"DAYT23:59:00+03:00\"}\n\n"
	}
	shown = before + strings.ReplaceAll(shown, "2026-11-29", "CLOSED")
	for i := 0; i < len(e.sandbox); i += 2 {
		shown = strings.ReplaceAll(shown, e.sandbox[i], e.sandbox[i+1])
	}
	return strings.ReplaceAll(shown, "2026-11-24", "DAY") // the page has days that are ahead
}

// daysOf names the days in the answer to an example. The page has those of the request.
func daysOf(code string) *strings.Replacer {
	switch code {
	case fault.AfterCutOff:
		return strings.NewReplacer("2026-11-21", "DAY+1")
	case fault.DayClosed:
		return strings.NewReplacer("2026-11-30", "CLOSED+1")
	case fault.DateInThePast:
		return strings.NewReplacer("2026-11-20 in", "TODAY in")
	}
	return strings.NewReplacer()
}

// answer is what a reader sees of an answer.
func answer(t *testing.T, w *httptest.ResponseRecorder) string {
	text := fmt.Sprintf("HTTP/1.1 %d %s\n", w.Code, http.StatusText(w.Code))
	for _, name := range []string{"Content-Type", "X-Request-Id", "Operation-Id", "Idempotent-Replayed", "Retry-After", "Allow", "Accept", "Accept-Encoding", "Www-Authenticate"} {
		if value := w.Header().Get(name); value != "" {
			text += strings.Replace(name, "Www", "WWW", 1) + ": " + value + "\n"
		}
	}
	var body bytes.Buffer
	require.NoError(t, json.Indent(&body, w.Body.Bytes(), "", "  "))
	text = strings.ReplaceAll(text, "https://example.com", "https://HOST") // the script of the page fills it in
	return text + "\n" + body.String() + "\n"
}

// TestTheDocumentHasTheWordsOfTheService compares the examples of the OpenAPI
// document with what the service answers.
func TestTheDocumentHasTheWordsOfTheService(t *testing.T) {
	t.Parallel()
	var document map[string]any
	require.NoError(t, json.Unmarshal(openapi.Document(), &document))
	compared := 0
	var look func(node any)
	look = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, item := range node {
				look(item)
			}
		case map[string]any:
			code, _ := node["code"].(string)
			if pointer, isFault := node["pointer"]; isFault && pointer == "" && code != "" {
				recorded, err := os.ReadFile(filepath.Join("examples", code+".http"))
				require.NoError(t, err)
				if !strings.Contains(string(recorded), fmt.Sprintf(`"detail": %q`, node["detail"])) {
					t.Errorf("%s: the document says %q, the service answers\n%s", code, node["detail"], recorded)
				}
				compared++
			}
			for _, member := range node {
				look(member)
			}
		}
	}
	document["components"].(map[string]any)["responses"].(map[string]any)["InvalidQuery"] = nil // TestInvalidQueriesOfTheDocumentGetTheirAnswers
	look(document)
	require.Greater(t, compared, 10)
}

// TestInvalidRequestsOfTheDocumentGetTheirAnswers sends a request for each example of a 400 in
// the OpenAPI document, and compares the whole answer with the example.
func TestInvalidRequestsOfTheDocumentGetTheirAnswers(t *testing.T) {
	t.Parallel()
	second := saleBody[strings.Index(saleBody, "{\n    \"CustomerNo\""):strings.LastIndex(saleBody, "]")]
	requests := map[string]map[string]string{
		addPush: {
			"fields":     strings.NewReplacer(`"UserId": "user-1001", `, ``, `73`, `66`, `"SendStatus": 1`, `"SendStatus": 1, "SendDate": "20.11.2026"`).Replace(pushBody),
			"letterCase": replaced(pushBody, `"UserId"`, `"userId"`),
			"json":       `{"Header":{},"Parameters":[x]}`,
		},
		buyFund: {
			"fields": strings.NewReplacer(`"TransactionType": 2`, `"TransactionType": 1`, `12.5`, `12.5000001`, `"TRY"`, `"XXX"`, `"AFA"`, `"afa"`).Replace(saleBody),
			"dates":  replaced(saleBody, "}]", "}, "+replaced(second, `12.5,`, `12.5, "SelectedTransactionDate": "2026-11-24",`)+"]"),
			"quoted": replaced(saleBody, `12.5`, `"12.5"`),
		},
	}
	var document struct {
		Paths map[string]struct {
			Post struct {
				Responses map[string]struct {
					Content map[string]struct {
						Examples map[string]struct{ Value any }
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(openapi.Document(), &document))
	api, _ := demo.Start(t, demo.Setup{Subscription: demo.Subscription(), RequestID: "0197f6b1-6f0a-7c3e-9a4b-2f1d5c8e7a60"})
	for path, bodies := range requests {
		examples := document.Paths[path].Post.Responses["400"].Content["application/problem+json"].Examples
		require.Len(t, examples, len(bodies), path)
		for name, body := range bodies {
			r, _ := example{path: path}.request(body)
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			want, err := json.Marshal(examples[name].Value)
			require.NoError(t, err)
			require.JSONEq(t, string(want), w.Body.String(), "%s %s", path, name)
		}
	}
}

// TestInvalidQueriesOfTheDocumentGetTheirAnswers does the same for requests for outcomes.
func TestInvalidQueriesOfTheDocumentGetTheirAnswers(t *testing.T) {
	t.Parallel()
	var document struct {
		Components struct {
			Responses map[string]struct {
				Content map[string]struct {
					Examples map[string]struct{ Value any }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(openapi.Document(), &document))
	queries := map[string]string{"after": "after=x", "limit": "limit=1001", "wait": "wait=20"}
	examples := document.Components.Responses["InvalidQuery"].Content["application/problem+json"].Examples
	require.Len(t, examples, len(queries))
	api, _ := demo.Start(t, demo.Setup{Subscription: demo.Subscription(), RequestID: "0197f6b1-6f0a-7c3e-9a4b-2f1d5c8e7a60"})
	for name, query := range queries {
		r := httptest.NewRequest(http.MethodGet, "/outcomes?"+query, nil)
		r.Header.Set("Ocp-Apim-Subscription-Key", demo.Key)
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		want, err := json.Marshal(examples[name].Value)
		require.NoError(t, err)
		require.JSONEq(t, string(want), w.Body.String(), name)
	}
}
