package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/client"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/test/kit/demo"
	"bankingapi/test/kit/value"
)

const (
	completed   = `{"Data":{"State":2}}`
	recorded    = `{"Data":{"State":1}}`
	refused     = `{"Data":{"State":8},"Error":{"Code":2002,"Description":"y"},"title":"x","detail":"y","errors":[{"pointer":"/Parameters/0/FundAmount","code":"holding-insufficient","detail":"z"}]}`
	noEffect    = `{"status":503,"detail":"busy","errors":[{"pointer":"","code":"overloaded","detail":"busy"}],"Data":{"State":8}}`
	notKnown    = `{"status":503,"detail":"lost","errors":[{"pointer":"","code":"outcome-unknown","detail":"lost"}]}`
	invalid     = `{"status":400,"errors":[{"pointer":"/Parameters/0/Amount","code":"out-of-range","detail":"z"}],"Data":{"State":8}}`
	gatewayPage = `<html>502</html>`
)

var errCut = errors.New("connection reset by peer")

// exchange is what the service does with one request.
type exchange struct {
	status int // 0: the connection is cut
	body   string
	header string // Name: value
	err    error
}

// script is a service that plays its exchanges one after the other.
type script struct {
	exchanges []exchange
	bodies    []string
	at        []time.Time
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	s.bodies, s.at = append(s.bodies, string(body)), append(s.at, time.Now())
	next := s.exchanges[0]
	s.exchanges = s.exchanges[1:]
	if next.status == 0 {
		return nil, next.err
	}
	response := &http.Response{StatusCode: next.status, Header: http.Header{"Date": {"Fri, 20 Nov 2026 09:00:00 GMT"}}, Body: io.NopCloser(strings.NewReader(next.body)), Request: r}
	if name, value, ok := strings.Cut(next.header, ": "); ok {
		response.Header.Set(name, value)
	}
	return response, nil
}

func newClient(t *testing.T, url string, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(url, demo.Key, o)
	require.NoError(t, err)
	return c
}

func sale(t testing.TB, units string) fund.Sale {
	t.Helper()
	s, faults := fund.NewSale(fund.SaleFields{
		CustomerNo:         decimal.Int(1001),
		TransactionType:    decimal.Int(fund.SaleTransaction),
		FundAmount:         value.Number(units),
		DestinationAccount: &fund.AccountFields{BranchCode: decimal.Int(1), CustomerNo: decimal.Int(1001), AccountSuffix: decimal.Int(1), CurrencyCode: "TRY"},
		FundToProcess:      &fund.FundFields{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", PriceID: decimal.Int(1)},
	})
	require.Empty(t, faults)
	return s
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	cut := exchange{err: errCut}
	dial := exchange{err: &net.OpError{Op: "dial", Err: errCut}}
	proxy := exchange{err: &net.OpError{Op: "proxyconnect", Err: errCut}}
	for name, test := range map[string]struct {
		exchanges []exchange
		state     operation.State // 0: an error
		refused   bool
		unknown   bool
		code      string
		status    int
	}{
		"completed":                           {exchanges: []exchange{{status: 200, body: completed}}, state: operation.Completed},
		"recorded":                            {exchanges: []exchange{{status: 200, body: recorded}}, state: operation.Recorded},
		"cut, then completed":                 {exchanges: []exchange{cut, {status: 200, body: completed}}, state: operation.Completed},
		"busy, then completed":                {exchanges: []exchange{{status: 503, body: noEffect}, {status: 200, body: completed}}, state: operation.Completed},
		"not known, then completed":           {exchanges: []exchange{{status: 503, body: notKnown}, {status: 200, body: completed}}, state: operation.Completed},
		"a gateway's page, then done":         {exchanges: []exchange{{status: 502, body: gatewayPage}, {status: 200, body: completed}}, state: operation.Completed},
		"half an answer, then done":           {exchanges: []exchange{{status: 200, body: completed[:9]}, {status: 200, body: completed}}, state: operation.Completed},
		"refused":                             {exchanges: []exchange{{status: 200, body: refused}}, refused: true, code: "holding-insufficient", status: 200},
		"cut, then refused":                   {exchanges: []exchange{cut, {status: 200, body: refused}}, refused: true, code: "holding-insufficient", status: 200},
		"invalid":                             {exchanges: []exchange{{status: 400, body: invalid}}, code: fault.OutOfRange, status: 400},
		"cut, then invalid":                   {exchanges: []exchange{cut, {status: 400, body: invalid}}, code: fault.OutOfRange, status: 400},
		"a page of another server":            {exchanges: []exchange{{status: 404, body: gatewayPage}}, status: 404},
		"a redirect is not followed":          {exchanges: []exchange{{status: 307, header: "Location: /elsewhere"}}, unknown: true, status: 307},
		"busy to the end":                     {exchanges: []exchange{{status: 503, body: noEffect}, {status: 503, body: noEffect}, {status: 429, body: noEffect}}, unknown: true, code: "overloaded", status: 429},
		"a key that was changed":              {exchanges: []exchange{{status: 401, body: noEffect}}, code: "overloaded", status: 401},
		"another content":                     {exchanges: []exchange{{status: 422, body: noEffect, header: "Operation-Id: 1"}}, code: "overloaded", status: 422},
		"cut, then a wrong key":               {exchanges: []exchange{cut, {status: 401, body: noEffect}}, unknown: true, code: "overloaded", status: 401},
		"an unknown host":                     {exchanges: []exchange{{err: &net.DNSError{IsNotFound: true}}}},
		"cut once, busy to the end":           {exchanges: []exchange{{status: 503, body: noEffect}, cut, {status: 503, body: noEffect}}, unknown: true, code: "overloaded", status: 503},
		"cut to the end":                      {exchanges: []exchange{cut, cut, cut}, unknown: true},
		"no connection to the end":            {exchanges: []exchange{dial, dial, dial}},
		"no connection to the proxy":          {exchanges: []exchange{proxy, proxy, proxy}},
		"a State of a later version":          {exchanges: []exchange{{status: 200, body: `{"Data":{"State":4}}`}, {status: 200, body: `{"Data":{"State":4}}`}, {status: 200, body: `{"Data":{"State":4}}`}}, unknown: true, status: 200},
		"an answer with members that are new": {exchanges: []exchange{{status: 200, body: `{"Data":{"State":2,"New":1},"new":[]}`}}, state: operation.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				service := &script{exchanges: test.exchanges}
				c := newClient(t, "https://bank.example", client.Options{HTTP: &http.Client{Transport: service}, Attempts: 3})
				order := client.NewBuyFund(sale(t, "1"))
				answer, err := c.BuyFund(t.Context(), order)
				require.Empty(t, service.exchanges, "not every exchange was used")
				for _, body := range service.bodies {
					require.Equal(t, service.bodies[0], body, "a repeat must be the same request")
					require.Contains(t, body, `"CallerId":"`+order.Header.CallerID+`"`)
				}
				if test.state != 0 {
					require.NoError(t, err)
					require.Equal(t, test.state, answer.State)
					return
				}
				var failure *client.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, test.refused, failure.Refused)
				require.Equal(t, test.refused, failure.Number == fault.NumberOf(fault.HoldingInsufficient))
				require.Equal(t, test.unknown, failure.Unknown)
				require.Equal(t, test.status, failure.Status)
				require.Equal(t, order.Header.CallerID, failure.CallerID)
				require.Equal(t, test.code != "", errors.Is(err, client.Code(test.code)))
				require.NotErrorIs(t, err, client.Code("no-such-code"))
				require.NotContains(t, err.Error(), demo.Key)
			})
		})
	}
}

// A date counts from the Date of its answer: the clocks of the two machines may differ.
func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	for header, least := range map[string]time.Duration{
		"Retry-After: 7":   7 * time.Second,
		"Retry-After: -1":  0,
		"Retry-After: x":   0,
		"Retry-After: 100": 100 * time.Second,
		"Retry-After: Fri, 20 Nov 2026 09:00:07 GMT": 7 * time.Second,
		"": 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			service := &script{exchanges: []exchange{{status: 503, body: noEffect, header: header}, {status: 200, body: completed}}}
			c := newClient(t, "https://bank.example", client.Options{HTTP: &http.Client{Transport: service}, Backoff: time.Second})
			_, err := c.BuyFund(t.Context(), client.NewBuyFund(sale(t, "1")))
			require.NoError(t, err)
			waited := service.at[1].Sub(service.at[0])
			require.Greater(t, waited, least, header)
			require.LessOrEqual(t, waited, least+time.Second, header)
		})
	}
}

// A call that would not have the time to wait ends at once.
func TestARetryAfterBeyondThePatienceEndsTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := &script{exchanges: []exchange{{status: 503, body: notKnown, header: "Retry-After: 3600"}}}
		c := newClient(t, "https://bank.example", client.Options{HTTP: &http.Client{Transport: service}})
		began := time.Now()
		_, err := c.BuyFund(t.Context(), client.NewBuyFund(sale(t, "1")))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, time.Since(began))
	})
}

// Names of the service are case-sensitive.
func TestAStateInOtherLetterCaseIsNoState(t *testing.T) {
	t.Parallel()
	service := &script{exchanges: []exchange{{status: 200, body: `{"data":{"state":2}}`}}}
	c := newClient(t, "https://bank.example", client.Options{HTTP: &http.Client{Transport: service}, Attempts: 1})
	_, err := c.BuyFund(t.Context(), client.NewBuyFund(sale(t, "1")))
	var failure *client.Error
	require.ErrorAs(t, err, &failure)
	require.True(t, failure.Unknown)
}

// The waits differ from call to call and grow up to a limit.
func TestBackoffHasJitterAndALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const attempts = 40
		service := &script{}
		for range attempts {
			service.exchanges = append(service.exchanges, exchange{err: errCut})
		}
		c := newClient(t, "https://bank.example", client.Options{HTTP: &http.Client{Transport: service}, Attempts: attempts, Backoff: 10 * time.Millisecond})
		_, err := c.BuyFund(t.Context(), client.NewBuyFund(sale(t, "1")))
		require.ErrorIs(t, err, errCut)
		var longest time.Duration
		waits := map[time.Duration]bool{}
		for i := 1; i < attempts; i++ {
			wait := service.at[i].Sub(service.at[i-1])
			longest, waits[wait] = max(longest, wait), true
			require.LessOrEqual(t, wait, 10*time.Millisecond<<min(i-1, 7))
		}
		require.Greater(t, len(waits), attempts/2)
		require.LessOrEqual(t, longest, time.Second)
		require.Greater(t, longest, 100*time.Millisecond)
	})
}

func TestContextEndsTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := &script{exchanges: []exchange{{status: 503, body: noEffect, header: "Retry-After: 60"}}}
		c := newClient(t, "https://bank.example", client.Options{HTTP: &http.Client{Transport: service}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.BuyFund(ctx, client.NewBuyFund(sale(t, "1")))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, client.Code("overloaded"))
		require.Zero(t, time.Since(start), "a wait that cannot end in time must not begin")
		var failure *client.Error
		require.ErrorAs(t, err, &failure)
		require.True(t, failure.Unknown)

		cancelled, cancelNow := context.WithCancel(t.Context())
		cancelNow()
		_, err = c.BuyFund(cancelled, client.NewBuyFund(sale(t, "1")))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorAs(t, err, &failure)
		require.False(t, failure.Unknown, "nothing was sent")
	})
}

func TestACallEndsAfterItsPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := &script{}
		for range 1000 {
			service.exchanges = append(service.exchanges, exchange{err: errCut})
		}
		c := newClient(t, "https://bank.example", client.Options{HTTP: &http.Client{Transport: service}, Patience: 30 * time.Second})
		began := time.Now()
		order := client.NewBuyFund(sale(t, "1"))
		_, err := c.BuyFund(t.Context(), order)
		require.LessOrEqual(t, time.Since(began), 30*time.Second)
		require.Greater(t, time.Since(began), 15*time.Second, "time counts, not attempts")
		require.ErrorIs(t, err, errCut, "the last cause stays")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, order.Header.CallerID)
	})
}

// An operation of another process may have had an effect, whatever happens now.
func TestAResumedOperationIsUnknownUntilAnAnswerIsCertain(t *testing.T) {
	t.Parallel()
	dial := exchange{err: &net.OpError{Op: "dial", Err: errCut}}
	for _, test := range []struct {
		exchange
		unknown bool
	}{{dial, true}, {exchange{status: 401, body: noEffect}, true}, {exchange{status: 200, body: refused}, false}} {
		service := &script{exchanges: []exchange{test.exchange}}
		c := newClient(t, "https://bank.example", client.Options{HTTP: &http.Client{Transport: service}, Attempts: 1})
		_, err := c.BuyFund(t.Context(), client.ResumeBuyFund("stored", sale(t, "1")))
		var failure *client.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, test.unknown, failure.Unknown)
		for _, body := range service.bodies {
			require.Contains(t, body, `"CallerId":"stored"`)
		}
	}
}

// What an earlier call may have done is not forgotten, although the next call is told only about its request.
func TestALaterCallOfAnOperationKeepsWhatAnEarlierCallMayHaveDone(t *testing.T) {
	t.Parallel()
	cut := exchange{err: errCut}
	dial := exchange{err: &net.OpError{Op: "dial", Err: errCut}}
	denied := exchange{status: 401, body: noEffect}
	for name, test := range map[string]struct {
		first, second exchange
		unknown       bool
	}{
		"cut, then a wrong key":       {cut, denied, true},
		"cut, then no connection":     {cut, dial, true},
		"cut, then refused":           {cut, exchange{status: 200, body: refused}, false},
		"completed, then a wrong key": {exchange{status: 200, body: completed}, denied, true},
		"wrong key, then a wrong key": {denied, denied, false},
		"no connection, then none":    {dial, dial, false},
		"refused, then a wrong key":   {exchange{status: 200, body: refused}, denied, false},
	} {
		service := &script{exchanges: []exchange{test.first, test.second, test.first, test.second}}
		c := newClient(t, "https://bank.example", client.Options{HTTP: &http.Client{Transport: service}, Attempts: 1})
		var failure *client.Error
		order := client.NewBuyFund(sale(t, "1"))
		_, _ = c.BuyFund(t.Context(), order)
		_, err := c.BuyFund(t.Context(), order)
		require.ErrorAs(t, err, &failure, name)
		require.Equal(t, test.unknown, failure.Unknown, name)

		push := client.NewAddPush()
		_, _ = c.AddPush(t.Context(), push)
		_, err = c.AddPush(t.Context(), push)
		require.ErrorAs(t, err, &failure, name)
		require.Equal(t, test.unknown, failure.Unknown, name)
	}
}

// A program that sets the stored CallerId itself has an operation that another process may have sent.
func TestAnOperationWithACallerIDOfTheProgramIsResumed(t *testing.T) {
	t.Parallel()
	set := client.NewBuyFund(sale(t, "1"))
	set.Header.CallerID = "stored"
	literal := &client.BuyFund{Header: operation.Header{CallerID: "stored"}, Sales: []fund.Sale{sale(t, "1")}}
	for _, order := range []*client.BuyFund{set, literal} {
		service := &script{exchanges: []exchange{{status: 401, body: noEffect}}}
		c := newClient(t, "https://bank.example", client.Options{HTTP: &http.Client{Transport: service}})
		_, err := c.BuyFund(t.Context(), order)
		var failure *client.Error
		require.ErrorAs(t, err, &failure)
		require.True(t, failure.Unknown)
	}
}

func TestTextThatIsNotUTF8IsNotSent(t *testing.T) {
	t.Parallel()
	c := newClient(t, "https://bank.example", client.Options{HTTP: &http.Client{Transport: &script{}}})
	note := push.Restore(push.Values{ExternalApplicationCode: "A", UserID: "u", PushID: "p\xff", Platform: push.IOS})
	order := client.NewBuyFund(sale(t, "1"))
	order.Header.Channel = "\xff"
	terms := sale(t, "1").Terms()
	terms.Holding.HolderCorporationName = "Demo\xff"
	_, holderErr := c.BuyFund(t.Context(), client.NewBuyFund(sale(t, "1"), fund.RestoreSale(terms)))
	_, pushErr := c.AddPush(t.Context(), client.NewAddPush(note))
	_, saleErr := c.BuyFund(t.Context(), order)
	for pointer, err := range map[string]error{
		"/Parameters/0/PushId": pushErr, "/Header/Channel": saleErr, "/Parameters/1/FundToProcess/HolderCorporationName": holderErr,
	} {
		require.ErrorIs(t, err, client.Code(fault.InvalidCharacter))
		require.ErrorContains(t, err, pointer)
	}
}

func TestPlainValues(t *testing.T) {
	t.Parallel()
	plain := client.Sale{
		CustomerNo: 1001, Units: "12.5", IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", PriceID: 1,
		BranchCode: 1, AccountSuffix: 1, CurrencyCode: "TRY",
	}
	sales, err := client.NewSales(plain)
	require.NoError(t, err)
	require.Equal(t, []fund.Sale{sale(t, "12.5")}, sales)

	wrong, empty := plain, plain
	wrong.Units, wrong.Amount, empty.Units, empty.Day = "12,5", "x", "", "tomorrow"
	_, err = client.NewSales(plain, wrong, empty)
	var failure *client.Error
	require.ErrorAs(t, err, &failure)
	require.False(t, failure.Unknown)
	var pointers []string
	for _, f := range failure.Faults {
		pointers = append(pointers, f.Pointer)
	}
	require.Equal(t, []string{
		"/Parameters/1/FundAmount", "/Parameters/1/Amount", "/Parameters/2/FundAmount", "/Parameters/2/SelectedTransactionDate",
	}, pointers)
}

func TestABaseURLMayHaveThePrefixOfTheOperations(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"https://bank.example/x", "https://bank.example/x/", "https://bank.example/x/BankingApiV01", "https://bank.example/x/BankingApiV01/", "https://bank.example/x//", "https://bank.example/x/BankingApiV01//"} {
		require.Equal(t, "client of https://bank.example/x/BankingApiV01/", fmt.Sprint(newClient(t, base, client.Options{})))
	}
}

func TestEveryOperationHasACallerIDOfItsOwn(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for range 1000 {
		ids[client.NewBuyFund().Header.CallerID] = true
		ids[client.NewAddPush().Header.CallerID] = true
	}
	require.Len(t, ids, 2000)

	c := newClient(t, "https://bank.example", client.Options{HTTP: &http.Client{Transport: &script{}}})
	_, err := c.BuyFund(t.Context(), &client.BuyFund{Sales: []fund.Sale{sale(t, "1")}})
	require.ErrorContains(t, err, "no CallerId")
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "bank.example", "http://bank.example", "ftp://127.0.0.1", "https://bank.example?a=b", "https://bank.example#x", "https://%zz", "https://bank.example/?", "https://bank.example/#", "https://:443"} {
		_, err := client.New(url, demo.Key, client.Options{})
		require.Error(t, err, url)
	}
	_, err := client.New("https://bank.example", demo.Key+"\n", client.Options{})
	require.ErrorContains(t, err, "line end", "as a file has it")
	_, err = client.New("https://bank.example", "", client.Options{})
	require.Error(t, err)
	for _, url := range []string{"https://bank.example", "https://bank.example/prefix/", "http://127.0.0.1:1", "http://localhost", "http://[::1]:1"} {
		_, err := client.New(url, demo.Key, client.Options{})
		require.NoError(t, err, url)
	}
}

// Amounts arrive as they were given, to the last of 19 digits.
func TestAmountsAreExact(t *testing.T) {
	t.Parallel()
	for _, units := range []string{"1234567.89", "0.000001", "999999999999.999999", "1000000000000", "0.3"} {
		service := &script{exchanges: []exchange{{status: 200, body: completed}}}
		c := newClient(t, "https://bank.example", client.Options{HTTP: &http.Client{Transport: service}})
		_, err := c.BuyFund(t.Context(), client.NewBuyFund(sale(t, units)))
		require.NoError(t, err)
		require.Contains(t, service.bodies[0], `"FundAmount":`+units+`,`)
	}
}

// All fields of both operations arrive in the service as they were given.
func TestTheServiceUnderstandsEveryField(t *testing.T) {
	t.Parallel()
	handler, store := demo.New(t, nil)
	server := httptest.NewServer(handler)
	defer server.Close()
	c := newClient(t, server.URL, client.Options{})

	notification, faults := push.New(push.Fields{
		ExternalApplicationCode: "MOBILE", ExternalTranCode: "SOLD", UserID: "user-1", PushID: "push-1",
		PushInteractionID: value.Number("9223372036854775807"), Platform: decimal.Int(65), Subject: "<Sold> & paid", Content: "Günaydın",
		DeepLinkURL: "bank://sales", SendStatus: decimal.Int(0), SendDate: "2026-11-20", TranData: []push.TranDataItem{{Code: "A", Name: "b"}, {Code: "C"}},
	})
	require.Empty(t, faults)
	answer, err := c.AddPush(t.Context(), client.NewAddPush(notification))
	require.NoError(t, err)
	require.Equal(t, operation.Completed, answer.State)
	require.NotEmpty(t, answer.RequestID)
	require.Equal(t, *notification.Values(), store.Notifications()[0].Values)

	s, faults := fund.NewSale(fund.SaleFields{
		CustomerNo: decimal.Int(1001), TransactionType: decimal.Int(2), FundAmount: value.Number("10.000004"),
		DestinationAccount: &fund.AccountFields{BranchCode: decimal.Int(1), CustomerNo: decimal.Int(1001), AccountSuffix: decimal.Int(2), CurrencyCode: "USD"},
		FundToProcess:      &fund.FundFields{IMKBCode: "GAF.F1", HolderCorporationName: "Demo Portfoy", PriceID: decimal.Int(2)},
		Amount:             value.Number("25"), SelectedTransactionDate: "2026-11-20",
	})
	require.Empty(t, faults)
	order := client.NewBuyFund(s)
	answer, err = c.BuyFund(t.Context(), order)
	require.NoError(t, err)
	require.False(t, answer.Replayed)
	require.NotEmpty(t, answer.OperationID)
	again, err := c.BuyFund(t.Context(), order)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, answer.OperationID, again.OperationID)
	require.Len(t, store.Sales(), 1)
	require.Equal(t, s.Terms(), store.Sales()[0].Terms)

	_, err = c.BuyFund(t.Context(), client.NewBuyFund(sale(t, "5000")))
	require.ErrorIs(t, err, client.Code(fault.HoldingInsufficient))
	var failure *client.Error
	require.ErrorAs(t, err, &failure)
	code, ok := failure.Code()
	require.True(t, ok)
	require.Equal(t, fault.NewOperation, code.Remedy)
	require.Equal(t, "the bank refused the operation: holding-insufficient at /Parameters/0/FundAmount (The holding does not have enough units.), CallerId "+
		failure.CallerID+", X-Request-Id "+failure.RequestID, err.Error())
}

func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	handler, _ := demo.New(t, nil)
	connections := 0
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections++
		}
	}
	server.Start()
	defer server.Close()
	c := newClient(t, server.URL, client.Options{})
	for i := range 20 {
		units := []string{"1", "5000"}[i%2] // answers with and without errors
		_, _ = c.BuyFund(t.Context(), client.NewBuyFund(sale(t, units)))
	}
	require.Equal(t, 1, connections)
}

func TestTheKeyIsInNoText(t *testing.T) {
	t.Parallel()
	c := newClient(t, "https://bank.example", client.Options{})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		require.NotContains(t, fmt.Sprintf(verb, c), demo.Key, verb)
		require.NotContains(t, fmt.Sprintf(verb, *c), demo.Key, verb)
	}

	// The base URL may have the password of a gateway.
	require.NotContains(t, fmt.Sprint(newClient(t, "https://me:secret@bank.example", client.Options{})), "secret")
	_, err := client.New("https://me:secret%zz@bank.example", demo.Key, client.Options{})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}
