package httpapi_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi"
	"bankingapi/domain/operation"
)

// front is a listener on which a bank is put, and then another.
type front struct {
	*httpapi.Server
	handler atomic.Pointer[http.Handler]
}

func newFront(f *testing.F) *front {
	var at front
	long := serverOptions(func(o *options) {
		o.ReadTimeout, o.HeaderTimeout, o.WriteTimeout, o.IdleTimeout = time.Minute, time.Minute, time.Minute, time.Minute
	})
	at.Server = serve(f, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*at.handler.Load()).ServeHTTP(w, r) }), long)
	return &at
}

func (at *front) open(t *testing.T, first trouble) *bank {
	t.Helper()
	b, handler := newBank(t, first)
	at.handler.Store(&handler)
	return b
}

// FuzzBody sends any body over a real connection. The answer must follow the
// contract and agree with the store. A repeat gets the same answer, and a
// request with an identity has no second effect.
func FuzzBody(f *testing.F) {
	for _, test := range hostileJSON() {
		f.Add([]byte(test.body), test.path == salePath, uint8(none))
	}
	for _, body := range []string{
		saleBody,
		strings.Replace(saleBody, `"c"`, `""`, 1),
		strings.Replace(saleBody, `"CallerId":"c"`, `"CallerId":"c","Channel":"branch"`, 1),
		strings.Replace(saleBody, `"FundAmount":1.5`, `"FundAmount":12.5,"Amount":15.43,"SelectedTransactionDate":"2026-11-20"`, 1),
		strings.Replace(saleBody, `"FundAmount":1.5`, `"FundAmount":1e1,"SelectedTransactionDate":"2027-11-21"`, 1),
		strings.Replace(saleBody, `"FundAmount":1.5`, `"FundAmount":1000.000001`, 1),
		strings.Replace(saleBody, `"FundAmount":1.5`, `"FundAmount":1,"SelectedTransactionDate":"2026-11-19"`, 1),
		strings.NewReplacer(`"AFA"`, `"AFB"`, `"PriceID":1`, `"PriceID":2`, `1.5`, `10`).Replace(saleBody), // 0.005: half a kuruş
		strings.NewReplacer(`"AFA"`, `"AFB"`, `"PriceID":1`, `"PriceID":2`, `1.5`, `9.999999`).Replace(saleBody),
		strings.Replace(saleBody, `"TRY"`, `"JPY"`, 1),
		saleBody[:len(saleBody)-2] + "," + saleBody[strings.Index(saleBody, `[`)+1:],
	} {
		for _, first := range []trouble{none, unavailable, indeterminate} {
			f.Add([]byte(body), true, uint8(first))
		}
	}
	for _, body := range []string{
		pushBody,
		strings.Replace(pushBody, `{}`, `{"CallerId":"c","Channel":"web","AppKey":"a","TellerName":"t"}`, 1),
		strings.Replace(pushBody, `"SendStatus":1`, `"SendStatus":0,"PushInteractionId":0,"DeepLinkUrl":"app:x","SendDate":"2024-02-29","TranData":[{"Code":"c","Name":"\u00e7"}]`, 1),
		pushBody[:len(pushBody)-2] + "," + pushBody[strings.Index(pushBody, `[`)+1:],
	} {
		for _, first := range []trouble{none, unavailable, indeterminate} {
			f.Add([]byte(body), false, uint8(first))
		}
	}
	at := newFront(f)
	client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	f.Cleanup(client.CloseIdleConnections)
	f.Fuzz(func(t *testing.T, body []byte, isSale bool, first uint8) {
		planned := trouble(first % 3)
		bank := at.open(t, planned)
		path := pushPath
		if isSale {
			path = salePath
		}
		send := func() (*httptest.ResponseRecorder, operation.State) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at.URL()+path, bytes.NewReader(body))
			require.NoError(t, err)
			request.Header["Ocp-Apim-Subscription-Key"] = []string{key}
			answer, err := client.Do(request)
			require.NoError(t, err)
			w := recorded(t, answer)
			requireNoValue(t, w, body)
			return w, stateIn(t, w)
		}
		requireDone := func(state operation.State, before, now books) {
			switch {
			case state == operation.Failed:
				require.Equal(t, before, now, "what failed left something behind")
			case state != 0 && isSale:
				require.Empty(t, now.notifications)
				requireSold(t, body, state, before, now)
			case state != 0:
				require.Equal(t, operation.Completed, state)
				require.Empty(t, now.sales)
				requirePushed(t, body, now)
			}
		}

		before := bank.books()
		w, state := send()
		now := bank.books()
		struck := planned != none && bank.trouble.Load() == int32(none)
		require.Equal(t, struck, w.Code == http.StatusServiceUnavailable)
		require.Contains(t, []int{200, 400, 403, 413, 503}, w.Code)
		require.False(t, w.Code == http.StatusOK && state == 0)
		if state == 0 && planned != indeterminate {
			require.Equal(t, before, now, "this request was refused")
		}
		require.Empty(t, w.Header().Get("Idempotent-Replayed"))
		requireDone(state, before, now)

		again, stateAgain := send()
		if again.Code != http.StatusOK { // not even the storage's trouble made more of it
			require.Contains(t, []int{400, 403, 413}, again.Code)
			require.Equal(t, now, bank.books())
			if !struck {
				require.Equal(t, w.Code, again.Code)
			}
			return
		}
		hasID := read[struct{}](t, body).Header.CallerID != ""
		happened := !struck || planned == indeterminate
		require.Equal(t, hasID && happened, again.Header().Get("Idempotent-Replayed") == "true")
		if !struck {
			require.Equal(t, http.StatusOK, w.Code)
		}
		switch {
		case hasID && happened, !isSale && happened: // an identity
			require.Equal(t, now, bank.books(), "a repeat had an effect")
			if !struck {
				require.Equal(t, state, stateAgain)
			}
			requireDone(stateAgain, before, now)
		case !happened:
			requireDone(stateAgain, before, bank.books())
		}
	})
}

// FuzzConnection sends any bytes over a connection. Every answer must be one of
// the API with its error body, or one with which net/http closes the
// connection. The store must have exactly what was answered Completed.
func FuzzConnection(f *testing.F) {
	pushHead := strings.Replace(head, salePath, pushPath, 1)
	length := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
	chunked := func(body string) string {
		return fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	}
	plain, twice := head+length(saleBody), pushHead+length(pushBody)
	for _, raw := range []string{
		"", "\r\n\r\n", "GET / HTTP/1.1\r\nHost: bank\r\n\r\n", "GET /", "nonsense", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: bank\r\n\r\n", "CONNECT bank:443 HTTP/1.1\r\nHost: bank\r\n\r\n",
		plain, plain + plain + twice, twice + "GET ", head + chunked(saleBody), pushHead + chunked(pushBody) + plain,
		head + "Expect: 100-continue\r\n" + length(saleBody), head + "Expect: 200-ok\r\n" + length(saleBody),
		head + "Expect: 100-continue\r\nContent-Length: 999999\r\n\r\n",
		strings.Replace(plain, "POST", "HEAD", 1) + plain, strings.Replace(plain, "POST", "GET", 1), strings.Replace(plain, "POST", "PATCH", 1),
		strings.Replace(plain, "HTTP/1.1", "HTTP/1.0", 1), strings.Replace(plain, "HTTP/1.1", "HTTP/1.0\r\nConnection: keep-alive", 1) + plain,
		strings.Replace(plain, "HTTP/1.1", "HTTP/3.0", 1), strings.Replace(plain, "Host: bank\r\n", "", 1), strings.Replace(plain, "Host: bank", "Host: a\r\nHost: b", 1),
		strings.Replace(plain, "/BankingApiV01/", "http://bank/BankingApiV01/", 1), strings.Replace(plain, "Api", "%41pi", 1),
		strings.Replace(plain, "HTTP/1.1", "HTTP/1.1\r\nX-Request-Id: mine", 1) + twice, strings.Replace(plain, key, "0"+key[1:], 1),
		head + "Ocp-Apim-Subscription-Key: " + key + "\r\n" + length(saleBody), head + "Content-Type: text/plain\r\n" + length(saleBody),
		head + "Content-Encoding: gzip\r\n" + length(saleBody), head + "Connection: close\r\n" + length(saleBody) + plain,
		head + "Content-Length: 5\r\n" + chunked(saleBody), head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}", head + "Content-Length: -1\r\n\r\n",
		head + "Content-Length: 99\r\n\r\n{}", head + "Transfer-Encoding: gzip\r\n\r\n{}", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
		head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}", head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nA: b\r\n\r\n",
		head + length("{}") + head + length(strings.Repeat(" ", bodyLimit+1)) + plain, head + "A: \x00\r\n\r\n", head + " A: b\r\n\r\n", head + "A : b\r\n\r\n",
		head + "A: " + strings.Repeat("b", 70_000) + "\r\n\r\n", head + "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
	} {
		f.Add([]byte(raw))
	}
	at := newFront(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		bank := at.open(t, none)
		answers := bufio.NewReader(bytes.NewReader(speak(t, at.Server, raw)))
		answered := bank.answered() // the connection is at its end
		for {
			if _, err := answers.Peek(1); errors.Is(err, io.EOF) {
				break
			}
			answer, err := http.ReadResponse(answers, nil)
			require.NoError(t, err)
			if answer.StatusCode == http.StatusContinue {
				continue
			}
			if answer.Header.Get("X-Request-Id") == "" { // net/http takes this for no request
				require.Contains(t, []int{400, 417, 431, 501, 505}, answer.StatusCode)
				text, err := io.ReadAll(answer.Body)
				require.NoError(t, err)
				require.Less(t, len(text), 100)
				require.True(t, answer.Close)
				_, err = answers.Peek(1)
				require.ErrorIs(t, err, io.EOF)
				break
			}
			require.NotEmpty(t, answered)
			x := answered[0]
			answered = answered[1:]
			require.Less(t, x.Status, 500)
			require.NoError(t, x.Err)
			require.Equal(t, x.Status, answer.StatusCode)
			require.Equal(t, x.RequestID, answer.Header.Get("X-Request-Id"))
			if x.Method == http.MethodHead {
				continue
			}
			w := recorded(t, answer)
			require.Equal(t, x.BytesOut, int64(w.Body.Len()))
			if state := stateIn(t, w); x.Status == http.StatusOK {
				require.Equal(t, x.State, state)
			}
			requireNoValue(t, w, raw[max(0, bytes.IndexByte(raw, '{')):])
		}
		all := bank.answered()
		had := func(route string, states ...operation.State) (had bool) {
			for _, x := range all {
				for _, s := range states {
					had = had || x.Route == route && x.State == s
				}
			}
			return had
		}
		now := bank.books()
		require.Equal(t, had(pushPath, operation.Completed), len(now.notifications) > 0)
		require.Equal(t, had(salePath, operation.Completed, operation.Recorded), len(now.sales) > 0)
		require.Equal(t, had(salePath, operation.Completed), len(now.postings) > 0)
	})
}

// speak writes the bytes on a connection of its own, ends it, and returns all
// that is answered. Where the server ends it first, what it said last may be
// lost on the way.
func speak(t *testing.T, server *httpapi.Server, raw []byte) []byte {
	t.Helper()
	conn := dial(t, server)
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	if _, err := conn.Write(raw); err == nil {
		_ = conn.(interface{ CloseWrite() error }).CloseWrite()
	}
	answers, err := io.ReadAll(conn)
	if err != nil {
		var timedOut interface{ Timeout() bool }
		require.False(t, errors.As(err, &timedOut) && timedOut.Timeout(), "the connection was left open")
	}
	return answers
}
