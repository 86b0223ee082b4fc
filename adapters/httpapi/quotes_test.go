package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/subscription"
	"bankingapi/test/kit/demo"
)

const quoteBody = `{"Header":{"CallerId":"c"},"Parameters":[{"CustomerNo":1001,"TransactionType":2,"FundAmount":10,` +
	`"DestinationAccount":{"BranchCode":1,"CustomerNo":1001,"AccountSuffix":1,"CurrencyCode":"TRY"},` +
	`"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy"}}]}`

func quote(t *testing.T, change func(*subscription.Subscription), body string) *httptest.ResponseRecorder {
	t.Helper()
	caller := demo.Subscription()
	change(&caller)
	api, store := demo.Start(t, demo.Setup{Subscription: caller})
	r := httptest.NewRequest(http.MethodPost, "/quotes", strings.NewReader(body))
	r.Header.Set("Ocp-Apim-Subscription-Key", demo.Key)
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	require.Empty(t, store.Sales(), "a quote sells nothing")
	require.NotContains(t, w.Header(), "Operation-Id", "a quote is no operation")
	return w
}

func TestQuotes(t *testing.T) {
	t.Parallel()
	requiring := func(s *subscription.Subscription) { s.RequireCallerID = true }
	for name, test := range map[string]struct {
		body *strings.Replacer
		want string
	}{
		"the current price": {strings.NewReplacer(), `{"State":2,"PriceID":1,"Price":1.25,"CurrencyCode":"TRY","Proceeds":12.50}`},
		"PriceID 0":         {strings.NewReplacer(`Portfoy"`, `Portfoy","PriceID":0`), `{"State":2,"PriceID":1,"Price":1.25,"CurrencyCode":"TRY","Proceeds":12.50}`},
		"without CallerId":  {strings.NewReplacer(`"CallerId":"c"`, ``), `{"State":2,"PriceID":1,"Price":1.25,"CurrencyCode":"TRY","Proceeds":12.50}`},
		"any CallerId":      {strings.NewReplacer(`"c"`, `"`+strings.Repeat("c", 201)+`"`), `{"State":2,"PriceID":1,"Price":1.25,"CurrencyCode":"TRY","Proceeds":12.50}`},
		"a later day": {strings.NewReplacer(`"FundAmount":10`, `"FundAmount":10,"SelectedTransactionDate":"2026-11-24"`),
			`{"State":1,"PriceID":1,"Price":1.25,"CurrencyCode":"TRY","Proceeds":12.50,"Estimate":true}`},
		"refused": {strings.NewReplacer(`"FundAmount":10`, `"FundAmount":1001`),
			`{"State":8,"PriceID":1,"Price":1.25,"CurrencyCode":"TRY","Proceeds":1251.25,` +
				`"errors":[{"pointer":"/Parameters/0/FundAmount","code":"holding-insufficient","detail":"The holding does not have enough units."}]}`},
		"no price": {strings.NewReplacer("AFA", "NONE"),
			`{"State":8,"errors":[{"pointer":"/Parameters/0/FundToProcess","code":"holding-not-found","detail":"The customer has no holding of this fund at this institution."},` +
				`{"pointer":"/Parameters/0/FundToProcess/PriceID","code":"price-not-found","detail":"This fund has no such price at this institution."}]}`},
	} {
		w := quote(t, requiring, test.body.Replace(quoteBody))
		require.Equal(t, http.StatusOK, w.Code, "%s: %s", name, w.Body)
		require.Equal(t, `{"Quotes":[`+test.want+`]}`, w.Body.String(), name)
	}
}

func TestAQuoteHasTheChecksOfASale(t *testing.T) {
	t.Parallel()
	for code, test := range map[string]struct {
		caller func(*subscription.Subscription)
		body   *strings.Replacer
		status int
	}{
		"operation-not-granted":    {func(s *subscription.Subscription) { s.Operations = []string{"AddPushNotificationResponse"} }, strings.NewReplacer(), 403},
		"contradicts-subscription": {func(s *subscription.Subscription) { s.Channel = "WEB" }, strings.NewReplacer(`"CallerId":"c"`, `"Channel":"ATM"`), 403},
		"unknown-member":           {func(*subscription.Subscription) {}, strings.NewReplacer("FundAmount", "fundAmount"), 400},
		"date-in-the-past":         {func(*subscription.Subscription) {}, strings.NewReplacer(`"FundAmount":10`, `"FundAmount":10,"SelectedTransactionDate":"2020-01-01"`), 400},
		"too-few":                  {func(*subscription.Subscription) {}, strings.NewReplacer(quoteBody, `{"Header":{},"Parameters":[]}`), 400},
		"out-of-range":             {func(*subscription.Subscription) {}, strings.NewReplacer(`Portfoy"`, `Portfoy","PriceID":-1`), 400},
		"body-too-large":           {func(*subscription.Subscription) {}, strings.NewReplacer(`{"Header"`, strings.Repeat(" ", 4<<20)+`{"Header"`), 413},
	} {
		w := quote(t, test.caller, test.body.Replace(quoteBody))
		require.Equal(t, test.status, w.Code, "%s: %s", code, w.Body)
		require.Equal(t, code, codes(t, w)[0])
		require.Nil(t, problemIn(t, w).Data, "a quote is no operation")
	}
}
