package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/pgproxy"
	"bankingapi/test/kit/testdb"
)

// TestDatabaseIsGoneAndBack: the service lives on, says that it is not ready
// and why, answers that nothing was changed, and goes on by itself.
func TestDatabaseIsGoneAndBack(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EnginePostgres)
	b.Migrate(t)
	d := pgproxy.New(t, withPassword(t, b.DSN, "open-sesame"))
	behind := b.replica(t)
	behind.On(d.DSN)
	s := behind.serve(t, "--demo")
	status, ready := s.Get(t, "/readyz?verbose")
	require.Equal(t, http.StatusOK, status)
	require.Regexp(t, `^\[\+\]database ok\n\[\+\]schema ok\n(\[.\]durability .*\n)+\[\+\]clock ok\n(\[.\]trail .*\n)?\[\+\]certificate ok\n\[\+\]shutdown ok\nreadyz check passed\n$`, ready)
	require.Zero(t, b.Run(t, "healthcheck", "--url", s.Ops+"/readyz").Status)
	body := sale("gone", 1001, "1", "")

	d.Refuse()
	eventually(t, patience, "it is not ready", func() bool { return !s.IsReady() })
	status, ready = s.Get(t, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, ready, "[-]database failed: The storage cannot be reached.\n")
	got := b.Run(t, "healthcheck", "--url", s.Ops+"/readyz")
	require.Equal(t, 1, got.Status)
	require.Contains(t, got.Err, "the service is not ready")
	status, live := s.Get(t, "/livez")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "ok\n", live)
	for range 3 {
		refused := s.post(t, buyFund, s.key, body)
		require.Equal(t, http.StatusServiceUnavailable, refused.status)
		require.Equal(t, []string{"1"}, refused.header.Values("Retry-After"))
		require.Contains(t, refused.body, `"code":"storage-unavailable"`)
		require.NotContains(t, refused.body, "Data")
	}
	s.Await(t, s.Err, `"message":"not ready","check":"database"`)

	d.Accept()
	eventually(t, patience, "it is ready again", s.IsReady)
	require.Equal(t, completed, s.post(t, buyFund, s.key, body).body)
	require.Equal(t, completed, s.post(t, buyFund, s.key, body).body)
	require.Len(t, b.Export(t, "sales"), 1)
	s.Await(t, s.Err, `"message":"ready again","check":"database"`)
	require.NotContains(t, s.Err.String(), "open-sesame")
	b.Verify(t)
}

// numberOf is the value of a metric with these labels, 0 when it is not there.
func (s *running) numberOf(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	status, text := s.Get(t, "/metrics")
	require.Equal(t, http.StatusOK, status)
	sum := 0.0
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		end := strings.LastIndexByte(lines.Text(), ' ')
		series, value := lines.Text()[:end], lines.Text()[end+1:]
		of, has, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		if of != name {
			continue
		}
		matches := true
		for _, label := range labels {
			matches = matches && strings.Contains(","+has+",", ","+label+",")
		}
		if matches {
			n, err := strconv.ParseFloat(value, 64)
			require.NoError(t, err)
			sum += n
		}
	}
	return sum
}

// TestMetricsMove with what happens.
func TestMetricsMove(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s := b.serve(t, "--demo")
		require.Equal(t, completed, s.post(t, addPush, s.key, push("p")).body)
		require.Equal(t, completed, s.post(t, buyFund, s.key, sale("a", 1001, "1", "")).body)
		require.Equal(t, completed, s.post(t, buyFund, s.key, sale("a", 1001, "1", "")).body)
		require.Equal(t, http.StatusOK, s.post(t, buyFund, s.key, sale("b", 1001, "5000", "")).status)
		require.Equal(t, http.StatusUnprocessableEntity, s.post(t, buyFund, s.key, sale("b", 1001, "1", "")).status)
		require.Equal(t, http.StatusBadRequest, s.post(t, buyFund, s.key, "{").status)
		require.Equal(t, http.StatusUnauthorized, s.post(t, buyFund, "", "{}").status)
		require.Equal(t, http.StatusUnauthorized, s.post(t, buyFund, "nobody", "{}").status)
		require.Equal(t, http.StatusNotFound, s.post(t, "/BankingApiV01/Other", s.key, "{}").status)

		// The line and the numbers of a request come right after its answer.
		eventually(t, patience, "all are counted", func() bool { return s.numberOf(t, "bankingapi_http_requests_total") == 9 })
		for series, wanted := range map[string]float64{
			`bankingapi_http_requests_total route="` + addPush + `" status="200"`:                                  1,
			`bankingapi_http_requests_total route="` + buyFund + `" status="200"`:                                  3,
			`bankingapi_http_requests_total route="other" status="404"`:                                            1,
			`bankingapi_http_request_duration_seconds_count route="` + buyFund + `"`:                               7,
			`bankingapi_outcomes_total operation="BuyFundFromCustomer" state="completed"`:                          2,
			`bankingapi_outcomes_total operation="BuyFundFromCustomer" state="failed" code="holding-insufficient"`: 1,
			`bankingapi_outcomes_total operation="BuyFundFromCustomer" state="none" code="caller-id-reused"`:       1,
			`bankingapi_replays_total operation="BuyFundFromCustomer"`:                                             1,
			`bankingapi_refused_keys_total`:                                                                        2,
			`bankingapi_batch_items_count operation="AddPushNotificationResponse"`:                                 1,
			`bankingapi_batch_items_count operation="BuyFundFromCustomer"`:                                         4,
			`bankingapi_build_info storage="` + b.Engine + `"`:                                                     1,
			`bankingapi_settlement_due_operations`:                                                                 0,
		} {
			words := strings.Fields(series)
			require.InDelta(t, wanted, s.numberOf(t, words[0], words[1:]...), 0, series)
		}
		eventually(t, patience, "the first round of settlement has ended", func() bool {
			return s.numberOf(t, "bankingapi_settlement_rounds_total") > 0
		})
		require.Positive(t, s.numberOf(t, "go_goroutines"))
		require.Positive(t, s.numberOf(t, "process_open_fds"))
		for _, page := range []string{"/", "/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/healthz"} {
			status, _ := s.Get(t, page)
			require.Equal(t, http.StatusOK, status, page)
		}
	})
}

// TestLogLevel is changed while the service runs.
func TestLogLevel(t *testing.T) {
	t.Parallel()
	s := newBank(t, testdb.EngineSQLite).serve(t, "--demo")
	level := func(to string) {
		t.Helper()
		r, err := http.NewRequest(http.MethodPut, s.Ops+"/log/level", strings.NewReader(fmt.Sprintf(`{"level":%q}`, to)))
		require.NoError(t, err)
		got, err := do(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, r)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, got.status, got.body)
		_, shown := s.Get(t, "/log/level")
		require.JSONEq(t, fmt.Sprintf(`{"level":%q}`, to), shown)
	}
	send := func(id string) {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, s.URL+addPush, strings.NewReader(push("p")))
		require.NoError(t, err)
		r.Header.Set("Ocp-Apim-Subscription-Key", s.key)
		r.Header.Set("X-Request-Id", id)
		got, err := do(s.client, r)
		require.NoError(t, err)
		require.Equal(t, completed, got.body)
	}
	send("before")
	s.Await(t, s.Err, `"request_id":"before"`)
	level("error")
	send("quiet")
	level("info")
	send("after")
	s.Await(t, s.Err, `"request_id":"after"`)
	require.NotContains(t, s.Err.String(), "quiet")
}

// TestNoOpsListener where its address is empty.
func TestNoOpsListener(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite).with("ops.address", "")
	s := b.serve(t, "--demo")
	require.Equal(t, completed, s.post(t, addPush, s.key, push("p")).body)
	require.NotContains(t, s.Err.String(), "health and metrics")
	require.Equal(t, 2, b.Run(t, "healthcheck").Status)
	s.Stop(t)
}

// TestWebPagesCannotUseTheOpsListener: a browser on the operator's machine
// reaches the listener. A page must neither read it through a name of its own
// nor change anything there.
func TestWebPagesCannotUseTheOpsListener(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	b.Set("ops.hosts", "ops.bank.example")
	s := b.serve(t)
	ask := func(method, path, host string, headers ...string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), method, s.Ops+path, strings.NewReader("level=debug"))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Host = host
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	own := strings.TrimPrefix(s.Ops, "http://")
	for _, path := range []string{"/metrics", "/debug/pprof/heap", "/readyz", "/log/level"} {
		status, body := ask(http.MethodGet, path, "page.evil.example")
		require.Equal(t, http.StatusMisdirectedRequest, status)
		require.Contains(t, body, "ops.hosts")
		for _, host := range []string{own, "localhost", "ops.bank.example:9090"} {
			status, _ = ask(http.MethodGet, path, host)
			require.Equal(t, http.StatusOK, status, host)
		}
	}
	for _, headers := range [][]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}} {
		status, _ := ask(http.MethodPut, "/log/level", own, headers...)
		require.Equal(t, http.StatusForbidden, status)
	}
	_, level := ask(http.MethodGet, "/log/level", own)
	require.JSONEq(t, `{"level":"info"}`, level)
	status, _ := ask(http.MethodPut, "/log/level", own)
	require.Equal(t, http.StatusOK, status)
}
