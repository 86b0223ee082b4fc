package docspage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/docs"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/application/addpush"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
)

const key = "00112233445566778899aabbccddeeff"

// caller recognises the one key.
type caller struct{}

func (caller) Find(_ context.Context, presented string) (*subscription.Subscription, error) {
	if presented != key {
		return nil, nil
	}
	return &subscription.Subscription{
		Name:       "docs",
		Operations: []operation.Name{operation.AddPushNotificationResponse, operation.BuyFundFromCustomer},
	}, nil
}

// service is the API with its pages, over the demo book in memory. Its today is
// the day on which the document's examples were written.
func service(t *testing.T) http.Handler {
	t.Helper()
	store := fake.NewStore()
	for _, fields := range []fund.PriceFields{
		{PriceID: number(t, "1"), IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", Price: number(t, "1.25"), CurrencyCode: "TRY", ValidFrom: "2024-01-01"},
		{PriceID: number(t, "2"), IMKBCode: "GAF.F1", HolderCorporationName: "Demo Portfoy", Price: number(t, "2.5"), CurrencyCode: "USD", ValidFrom: "2024-01-01"},
	} {
		price, faults := fund.NewPrice(fields)
		require.Empty(t, faults)
		store.PutPrices(price)
	}
	for code, units := range map[string]string{"AFA": "1000", "GAF.F1": "250"} {
		holding, faults := fund.NewHolding(fund.HoldingFields{
			CustomerNo: number(t, "1001"), IMKBCode: code, HolderCorporationName: "Demo Portfoy", Units: number(t, units),
		})
		require.Empty(t, faults)
		store.PutHoldings(holding)
	}
	for suffix, currency := range map[string]string{"1": "TRY", "2": "USD"} {
		account, faults := fund.NewAccount(fund.AccountFields{
			BranchCode: number(t, "1"), CustomerNo: number(t, "1001"), AccountSuffix: number(t, suffix), CurrencyCode: currency,
		}, decimal.Int(0))
		require.Empty(t, faults)
		store.PutAccounts(account)
	}
	clock, ids := fake.NewClock(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)), new(fake.IDs)
	limits := commit.Limits{Batch: 100, Queue: 100, Timeout: time.Minute}
	adder := addpush.New(store.Inboxes(nil), addpush.Options{ParametersLimit: 1000, Commit: limits, Now: clock.Now, NewID: ids.Next})
	buyer := buyfund.New(store.Books(nil), buyfund.Options{ParametersLimit: 1000, Commit: limits, Zone: time.UTC, Now: clock.Now, NewID: ids.Next})
	t.Cleanup(func() {
		require.NoError(t, adder.Close(context.Background()))
		require.NoError(t, buyer.Close(context.Background()))
	})
	pages := docs.Pages()
	pages[openapi.Path] = openapi.Handler()
	return httpapi.New(adder, buyer, caller{}, httpapi.Options{
		BodyLimit: 1 << 20, ParametersLimit: 1000, Pages: pages, Now: clock.Now,
	})
}

func number(t *testing.T, text string) decimal.Decimal {
	t.Helper()
	d, err := decimal.Parse(text)
	require.NoError(t, err)
	return d
}

// An integrator sends the examples of the document before anything else: each
// is answered as its summary says, and the answer is one that the document
// describes.
func TestExamplesOfTheDocumentWork(t *testing.T) {
	t.Parallel()
	api := service(t)
	served := httptest.NewRecorder()
	api.ServeHTTP(served, httptest.NewRequest(http.MethodGet, openapi.Path, nil))
	doc, err := openapi3.NewLoader().LoadFromData(served.Body.Bytes())
	require.NoError(t, err)
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	options := &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}

	for path, item := range doc.Paths.Map() {
		for name, example := range item.Post.RequestBody.Value.Content["application/json"].Examples {
			body, err := json.Marshal(example.Value.Value)
			require.NoError(t, err)
			r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Ocp-Apim-Subscription-Key", key)
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			want := `{"Data":{"State":2}}`
			if name == "later" {
				want = `{"Data":{"State":1}}`
			}
			require.Equal(t, want, w.Body.String(), "%s %s", path, name)

			route, parameters, err := router.FindRoute(r)
			require.NoError(t, err)
			answer := &openapi3filter.ResponseValidationInput{
				RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: parameters, Route: route, Options: options},
				Status:                 w.Code, Header: w.Header(), Options: options,
			}
			answer.SetBodyBytes(w.Body.Bytes())
			require.NoError(t, openapi3filter.ValidateResponse(t.Context(), answer))
		}
	}
}
