package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi"
	"bankingapi/application/commit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// attempt is a request that can be broken in many places at once.
type attempt struct {
	method, path, key, contentType, contentEncoding string
	header, trailing                                string
	padding                                         int
	caller                                          func(*subscription.Subscription)
	err                                             error
}

func (a attempt) send(t *testing.T) (*httptest.ResponseRecorder, *service) {
	t.Helper()
	s := newService(func(s *service) {
		s.callers[key] = caller(a.caller)
		s.err = a.err
	})
	if s.callers[key].RequestsPerSecond == 1 { // its only request of this second is taken
		require.Equal(t, http.StatusOK, s.post(t, pushPath, pushBody).Code)
	}
	body := strings.Replace(pushBody, "{}", "{"+a.header+"}", 1) + a.trailing + strings.Repeat(" ", a.padding)
	r := httptest.NewRequest(a.method, a.path, strings.NewReader(body))
	for name, value := range map[string]string{
		"Ocp-Apim-Subscription-Key": a.key, "Content-Type": a.contentType, "Content-Encoding": a.contentEncoding,
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return s.do(r), s
}

func TestChecksComeInTheOrderOfTheContract(t *testing.T) {
	t.Parallel()
	checks := []struct {
		code   string
		status int
		fail   func(*attempt)
	}{
		{"unknown-path", 404, func(a *attempt) { a.path += "s" }},
		{"method-not-allowed", 405, func(a *attempt) { a.method = http.MethodPut }},
		{"key-missing", 401, func(a *attempt) { a.key = "" }},
		{"operation-not-granted", 403, func(a *attempt) {
			before := a.caller
			a.caller = func(s *subscription.Subscription) {
				before(s)
				s.Operations, s.RequestsPerSecond = []string{"BuyFundFromCustomer"}, 0
			}
		}},
		{"rate-limit-exceeded", 429, func(a *attempt) {
			before := a.caller
			a.caller = func(s *subscription.Subscription) {
				s.RequestsPerSecond = 1
				before(s)
			}
		}},
		{"unsupported-media-type", 415, func(a *attempt) { a.contentType = "text/plain" }},
		{"unsupported-content-encoding", 415, func(a *attempt) { a.contentEncoding = "gzip" }},
		{"body-too-large", 413, func(a *attempt) { a.padding = bodyLimit }},
		{"invalid-json", 400, func(a *attempt) { a.trailing = "!" }},
		{"contradicts-subscription", 403, func(a *attempt) {
			before := a.caller
			a.header = `"Channel":"other"`
			a.caller = func(s *subscription.Subscription) {
				before(s)
				s.Channel = "defined"
			}
		}},
		{"caller-id-reused", 422, func(a *attempt) { a.err = idempotency.ReuseError() }},
	}
	fresh := func() attempt {
		return attempt{method: http.MethodPost, path: pushPath, key: key, contentType: "application/json", caller: func(*subscription.Subscription) {}}
	}
	w, _ := func() (*httptest.ResponseRecorder, *service) { a := fresh(); return a.send(t) }()
	require.Equal(t, http.StatusOK, w.Code, "nothing broken")

	for i, first := range checks {
		for j := i; j < len(checks); j++ {
			// The rate limit's set-up sends a request, which must pass until then.
			if first.code == "rate-limit-exceeded" && checks[j].code == "caller-id-reused" {
				continue
			}
			name := first.code
			if j > i {
				name += " before " + checks[j].code
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				a := fresh()
				checks[j].fail(&a)
				if j > i {
					first.fail(&a)
				}
				w, s := a.send(t)
				require.Equal(t, first.status, w.Code)
				require.Equal(t, []string{first.code}, codes(t, w))
				observed := s.observed()
				require.Equal(t, first.status, observed[len(observed)-1].Status)
				require.Equal(t, []string{first.code}, observed[len(observed)-1].Codes)
			})
		}
	}
}

func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	s := newService()
	for _, path := range []string{
		"/", "//", "/BankingApiV01", "/BankingApiV01/", pushPath + "/", "/" + pushPath, "/." + pushPath,
		"/bankingapiv01/AddPushNotificationResponse", "/BankingApiV01/addpushnotificationresponse",
		"/BankingApiV01//AddPushNotificationResponse", "/BankingApiV01/./AddPushNotificationResponse",
		"/BankingApiV01/x/../AddPushNotificationResponse", "/BankingApiV01%2FAddPushNotificationResponse",
		"/BankingApiV01/%41ddPushNotificationResponse", "/BankingApiV01/AddPushNotificationResponse%20",
		"/BankingApiV01/AddPushNotificationResponse;v=1", "/BankingApiV01/AddPushNotificationResponse%00",
		"/BankingApiV02/AddPushNotificationResponse", "/BankingApiV01/GetCustomerList", "/docs", "/BankingApiV01/openapi.json",
	} {
		w := s.do(post(path, pushBody))
		require.Equal(t, http.StatusNotFound, w.Code, path)
		require.Equal(t, []string{"unknown-path"}, codes(t, w), path)
		require.Empty(t, w.Header().Get("Location"), path)
		isLike := path == pushPath+"/" || path == "/"+pushPath || strings.HasPrefix(strings.ToLower(path), "/bankingapiv01/addpush")
		if isLike && !strings.ContainsAny(path, "%;") {
			require.Contains(t, w.Body.String(), "Did you mean "+pushPath+"?", path)
		}
		const offer = " There is: POST /BankingApiV01/AddPushNotificationResponse, POST /BankingApiV01/BuyFundFromCustomer."
		ofFamily := strings.HasPrefix(strings.ToLower(path), "/bankingapi")
		require.Equal(t, ofFamily, strings.Contains(w.Body.String(), offer), "%s: who asks for another version is told what there is", path)
	}
	for _, path := range []string{
		"/AddPushNotificationResponse", "/addpushnotificationresponse/", "/api/AddPushNotificationResponse",
		"/BankingApiV01/v1/AddPushNotificationResponse", "/BankingApi/AddPushNotificationResponse",
	} { // without the prefix, or with one of its own
		require.Contains(t, s.do(post(path, pushBody)).Body.String(), "Did you mean "+pushPath+"?", path)
	}
	for _, x := range s.observed() {
		require.Empty(t, x.Route)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	s := newService(func(s *service) { s.options.Pages = map[string]http.Handler{"/docs": page} })
	for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "post", "BREW"} {
		for _, path := range []string{pushPath, salePath} {
			w := s.do(httptest.NewRequest(method, path, nil))
			require.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
			require.Equal(t, "POST", w.Header().Get("Allow"))
		}
	}
	require.Equal(t, "OTHER", s.observed()[len(s.observed())-1].Method)
	w := s.do(httptest.NewRequest(http.MethodPost, "/docs", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	w = s.do(httptest.NewRequest(http.MethodGet, "/docs", nil))
	require.Equal(t, "page", w.Body.String())
	require.Equal(t, requestID, w.Header().Get("X-Request-Id"))
	require.Equal(t, "/docs", s.observed()[len(s.observed())-1].Route)
	require.Equal(t, int64(4), s.observed()[len(s.observed())-1].BytesOut)
}

// A person who types the bare address into a browser is led to the docs, also
// below a prefix of a host. Programs get 404 as everywhere.
func TestTheBareAddressInABrowser(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	documented := newService(func(s *service) { s.options.Pages = map[string]http.Handler{"/docs": page} })
	browser := func(method, path string) *http.Request {
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		return r
	}
	w := documented.do(browser(http.MethodGet, "/"))
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Equal(t, "docs", w.Header().Get("Location"))
	for name, w := range map[string]*httptest.ResponseRecorder{
		"a program":    documented.do(httptest.NewRequest(http.MethodGet, "/", nil)),
		"a POST":       documented.do(browser(http.MethodPost, "/")),
		"another path": documented.do(browser(http.MethodGet, "/index.html")),
		"without docs": newService().do(browser(http.MethodGet, "/")),
	} {
		require.Equal(t, http.StatusNotFound, w.Code, name)
	}
}

func TestMountedUnderAPrefix(t *testing.T) {
	t.Parallel()
	s := newService()
	host := http.NewServeMux()
	host.Handle("/bank/", http.StripPrefix("/bank", s))
	for path, status := range map[string]int{"/bank" + pushPath: 200, "/bank" + salePath: 200, "/bank/nothing": 404} {
		w := httptest.NewRecorder()
		host.ServeHTTP(w, post(path, map[bool]string{true: pushBody, false: saleBody}[strings.HasSuffix(path, "Response")]))
		require.Equal(t, status, w.Code, path)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		keys []string
		code string
	}{
		"none":          {nil, "key-missing"},
		"empty":         {[]string{""}, "key-missing"},
		"unknown":       {[]string{strings.Repeat("f", 32)}, "key-invalid"},
		"other case":    {[]string{strings.ToUpper(key)}, "key-invalid"},
		"in quotes":     {[]string{`"` + key + `"`}, "key-invalid"},
		"given twice":   {[]string{key, key}, "key-invalid"},
		"joined":        {[]string{key + ", " + key}, "key-invalid"},
		"empty and one": {[]string{"", key}, "key-invalid"},
		"long":          {[]string{strings.Repeat(key, 1000)}, "key-invalid"},
		"not UTF-8":     {[]string{"\xff\xfe"}, "key-invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService()
			w := s.do(post(pushPath, pushBody, func(r *http.Request) {
				r.Header["Ocp-Apim-Subscription-Key"] = test.keys
			}))
			require.Equal(t, http.StatusUnauthorized, w.Code)
			require.Equal(t, []string{test.code}, codes(t, w))
			require.NotContains(t, w.Body.String()+fmt.Sprint(w.Header()), key)
			require.Zero(t, s.calls)
		})
	}
}

func TestRealmRepeatsOnlySaneHosts(t *testing.T) {
	t.Parallel()
	s := newService()
	for host, realm := range map[string]string{
		"bank.example":           "bank.example",
		"bank.example:8443":      "bank.example:8443",
		"[::1]:8443":             "[::1]:8443",
		"":                       "localhost",
		`a",evil="b`:             "localhost",
		"a b":                    "localhost",
		"a\r\nSet-Cookie: x":     "localhost",
		"bänk":                   "localhost",
		strings.Repeat("a", 255): strings.Repeat("a", 255),
		strings.Repeat("a", 256): "localhost",
	} {
		w := s.do(post(pushPath, pushBody, func(r *http.Request) {
			r.Host = host
			r.Header.Del("Ocp-Apim-Subscription-Key")
		}))
		require.Equal(t, `AzureApiManagementKey realm="https://`+realm+`/BankingApiV01",name="Ocp-Apim-Subscription-Key",type="header"`,
			w.Header().Get("WWW-Authenticate"))
	}
}

func TestRealmUnderAPrefix(t *testing.T) {
	t.Parallel()
	s := newService(func(s *service) { s.options.Mounted = "/bank" })
	w := s.do(post(pushPath, pushBody, func(r *http.Request) { r.Header.Del("Ocp-Apim-Subscription-Key") }))
	require.Contains(t, w.Header().Get("WWW-Authenticate"), `realm="https://example.com/bank/BankingApiV01"`)
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	s := newService()
	for _, accepted := range [][]string{
		nil, {""}, {"application/json"}, {"Application/JSON"}, {"application/json; charset=utf-8"}, {"application/json;charset=UTF-8"},
		{`application/json; charset="utf-8"`}, {"application/json; CHARSET=Utf-8"}, {"application/json;"}, {" application/json "}, {`application/json; charset="UTF-8"`},
	} {
		w := s.do(post(pushPath, pushBody, func(r *http.Request) { r.Header["Content-Type"] = accepted }))
		require.Equal(t, http.StatusOK, w.Code, accepted)
	}
	for _, none := range [][]string{{""}, {"identity"}, {"Identity"}, {"identity, identity"}, {"identity", ""}} {
		w := s.do(post(pushPath, pushBody, func(r *http.Request) { r.Header["Content-Encoding"] = none }))
		require.Equal(t, http.StatusOK, w.Code, none)
	}
	for _, refused := range [][]string{
		{"text/json"}, {"text/plain"}, {"application/xml"}, {"application/problem+json"}, {"application/jsonx"}, {"application/*"}, {"*/*"}, {"json"},
		{"application/json; charset=utf-16"}, {"application/json; charset=iso-8859-9"}, {"application/json; charset="}, {"application/json; charset"},
		{"application/json; charset=utf-8; charset=latin1"}, {"application/json, text/plain"}, {"application/json", "application/json"},
		{"application/x-www-form-urlencoded"}, {"multipart/form-data; boundary=x"}, {"application/json; version=1"}, {"application/json; charset=utf-8; version=1"}, {";"}, {"/"}, {"\x00"},
	} {
		w := s.do(post(pushPath, pushBody, func(r *http.Request) { r.Header["Content-Type"] = refused }))
		require.Equal(t, http.StatusUnsupportedMediaType, w.Code, refused)
		require.Equal(t, "application/json", w.Header().Get("Accept"))
		require.Empty(t, w.Header().Get("Accept-Encoding"))
	}
	for _, refused := range [][]string{{"gzip"}, {"br, gzip"}, {"x"}, {"identity, gzip"}, {"identity", "gzip"}} {
		w := s.do(post(pushPath, pushBody, func(r *http.Request) { r.Header["Content-Encoding"] = refused }))
		require.Equal(t, http.StatusUnsupportedMediaType, w.Code, refused)
		require.Equal(t, "identity", w.Header().Get("Accept-Encoding"))
		require.Empty(t, w.Header().Get("Accept"))
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	full := pushBody + strings.Repeat(" ", bodyLimit-len(pushBody))
	for name, length := range map[string]func(*http.Request){
		"with Content-Length": func(*http.Request) {},
		"chunked":             func(r *http.Request) { r.ContentLength = -1 },
	} {
		s := newService()
		require.Equal(t, http.StatusOK, s.do(post(pushPath, full, length)).Code, name)
		w := s.do(post(pushPath, full+" ", length))
		require.Equal(t, http.StatusRequestEntityTooLarge, w.Code, name)
		require.Equal(t, []string{"body-too-large"}, codes(t, w), name)
		require.Equal(t, 1, s.calls)

		hosted, w := http.MaxBytesHandler(s, int64(len(pushBody))), httptest.NewRecorder() // the limit of a host, which is lower
		hosted.ServeHTTP(w, post(pushPath, pushBody+" ", length))
		require.Equal(t, http.StatusRequestEntityTooLarge, w.Code, w.Body)
		require.Contains(t, w.Body.String(), "at most "+strconv.Itoa(len(pushBody))+" bytes")
	}
	s := newService()
	untouched := post(pushPath, "", func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(brokenReader{errors.New("was read")}), 1<<40
	})
	require.Equal(t, http.StatusRequestEntityTooLarge, s.do(untouched).Code, "a promise of 1 TiB is refused unread")
	waits := post(pushPath, "", func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(brokenReader{errors.New("was read")}), bodyLimit+1
		r.Header.Set("Expect", "100-continue")
	})
	require.Equal(t, http.StatusRequestEntityTooLarge, s.do(waits).Code, "who asks first is answered unread")
}

type brokenReader struct{ err error }

func (b brokenReader) Read([]byte) (int, error) { return 0, b.err }

func TestBodyThatCannotBeRead(t *testing.T) {
	t.Parallel()
	t.Run("the caller is gone: nothing happens and nothing is sent", func(t *testing.T) {
		t.Parallel()
		for _, gone := range []error{io.ErrUnexpectedEOF, context.DeadlineExceeded, fmt.Errorf("read: %w", timeout{})} {
			s := newService()
			w := httptest.NewRecorder()
			require.PanicsWithValue(t, http.ErrAbortHandler, func() {
				s.ServeHTTP(w, post(pushPath, "", func(r *http.Request) {
					r.Body, r.ContentLength = io.NopCloser(brokenReader{gone}), 10
				}))
			})
			require.Empty(t, w.Body.String())
			require.Zero(t, s.calls)
			require.Equal(t, httpapi.StatusClientGone, s.observed()[0].Status)
			require.ErrorIs(t, s.observed()[0].Err, gone)
		}
	})
	t.Run("the caller broke HTTP", func(t *testing.T) {
		t.Parallel()
		s := newService()
		w := s.do(post(pushPath, "", func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(brokenReader{errors.New("malformed chunked encoding")}), -1
		}))
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Equal(t, []string{"invalid-json"}, codes(t, w))
		require.NotContains(t, w.Body.String(), "malformed")
		require.NotContains(t, w.Body.String(), `"Data"`, "an earlier attempt may have succeeded")
	})
	t.Run("the caller leaves while waiting", func(t *testing.T) {
		t.Parallel()
		s := newService(func(s *service) {
			s.err = fault.Wrap(fault.Unavailable, context.Canceled, "the caller left before its turn")
		})
		ctx, leave := context.WithCancel(t.Context())
		s.during = func(context.Context) { leave() }
		require.PanicsWithValue(t, http.ErrAbortHandler, func() {
			s.ServeHTTP(httptest.NewRecorder(), post(pushPath, pushBody).WithContext(ctx))
		})
		require.Equal(t, httpapi.StatusClientGone, s.observed()[0].Status)
	})
}

type timeout struct{}

func (timeout) Error() string   { return "i/o timeout" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

func TestACallerWhoHasLeftIsObservedAsGone(t *testing.T) {
	t.Parallel()
	s := newService()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	s.do(post(pushPath, pushBody, func(r *http.Request) { r.Header.Del("Ocp-Apim-Subscription-Key") }).WithContext(ctx))
	s.do(post(pushPath, pushBody))
	require.True(t, s.observed()[0].Gone)
	require.False(t, s.observed()[1].Gone)
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	s := newService()
	for _, sane := range []string{"a", "A-z_0.9:", strings.Repeat("x", 128)} {
		w := s.do(post(pushPath, pushBody, func(r *http.Request) { r.Header.Set("X-Request-Id", sane) }))
		require.Equal(t, []string{sane}, w.Header()["X-Request-Id"])
		require.Equal(t, sane, s.observed()[len(s.observed())-1].RequestID)
	}
	for _, other := range [][]string{{""}, {"a b"}, {"ä"}, {"a\nb"}, {`"`}, {"a/b"}, {strings.Repeat("x", 129)}, {"a", "b"}} {
		w := s.do(post(pushPath, pushBody, func(r *http.Request) { r.Header["X-Request-Id"] = other }))
		require.Equal(t, []string{requestID}, w.Header()["X-Request-Id"])
	}
	own := newService(func(s *service) { s.options.NewRequestID = nil })
	id, err := uuid.Parse(own.post(t, pushPath, pushBody).Header().Get("X-Request-Id"))
	require.NoError(t, err)
	require.Equal(t, uuid.Version(7), id.Version())
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for state, body := range map[operation.State]string{
		operation.Completed: `{"Data":{"State":2}}`,
		operation.Recorded:  `{"Data":{"State":1}}`,
	} {
		for _, isReplayed := range []bool{false, true} {
			s := newService(func(s *service) {
				s.outcome = operation.Outcome{State: state, Replayed: isReplayed}
			})
			for path, request := range map[string]string{pushPath: pushBody, salePath: saleBody} {
				w := s.post(t, path, request)
				require.Equal(t, http.StatusOK, w.Code)
				require.Equal(t, body, w.Body.String())
				require.Equal(t, "application/json", w.Header().Get("Content-Type"))
				require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
				if isReplayed {
					require.Equal(t, "true", w.Header().Get("Idempotent-Replayed"))
				} else {
					require.NotContains(t, w.Header(), "Idempotent-Replayed")
				}
				x := s.observed()[len(s.observed())-1]
				require.Equal(t, state, x.State)
				require.Equal(t, isReplayed, x.Replayed)
				require.Equal(t, path, x.Route)
				require.Equal(t, int64(len(request)), x.BytesIn)
				require.Equal(t, int64(len(body)), x.BytesOut)
				require.Equal(t, "acme", x.Subscription)
			}
		}
	}
}

func TestOperationID(t *testing.T) {
	t.Parallel()
	id := operation.ID{0x01, 0x97, 0xf6, 15: 0x42}
	for state := range map[operation.State]bool{operation.Recorded: true, operation.Completed: true, operation.Failed: true} {
		for _, isReplayed := range []bool{false, true} {
			s := newService(func(s *service) { s.outcome = operation.Outcome{ID: id, State: state, Replayed: isReplayed} })
			w := s.post(t, salePath, saleBody)
			require.Equal(t, []string{"0197f600-0000-0000-0000-000000000042"}, w.Header()["Operation-Id"])
			require.Equal(t, w.Header()["Operation-Id"], w.Header()["X-Request-Id"], "an ID that is kept")
		}
	}
	s := newService(func(s *service) { s.err = fault.New(fault.Unavailable, "") })
	require.NotContains(t, s.post(t, salePath, saleBody).Header(), "Operation-Id", "nothing was decided")
}

func TestAnUnknownStateIsOurDefect(t *testing.T) {
	t.Parallel()
	s := newService(func(s *service) { s.outcome = operation.Outcome{State: 3} })
	w := s.post(t, pushPath, pushBody)
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.Error(t, s.observed()[0].Err)
	require.Zero(t, s.observed()[0].State)
}

func TestFieldsArriveAsSent(t *testing.T) {
	t.Parallel()
	s := newService()
	body := `{"Parameters":[{"TranData":[{"Name":"n1","Code":"c1"},{"Code":"\ud83d\ude00"}],"SendDate":"2026-11-20","SendStatus":1,"DeepLinkUrl":"bank://x",
	"Content":" \t\\ \u0041\n\"","Subject":"İ ","Platform":7.9e1,"PushInteractionId":-9223372036854775808,"PushId":"p","UserId":"u","ExternalTranCode":null,"ExternalApplicationCode":"A"}],
	"Header":{"ChannelRequestId":"r","ChannelSessionId":"s","CallerId":"c","TellerName":"t","Channel":"ch","AppKey":"k"}}`
	body = strings.ReplaceAll(body, "\n\"", "\\n\\\"")
	w := s.post(t, pushPath, body)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Equal(t, operation.Header{AppKey: "k", Channel: "ch", TellerName: "t", CallerID: "c", ChannelSessionID: "s", ChannelRequestID: "r"}, s.header)
	require.Len(t, s.pushes, 1)
	p := s.pushes[0]
	require.Equal(t, " \t\\ A\n\"", p.Content)
	require.Equal(t, "İ ", p.Subject)
	require.Equal(t, "😀", p.TranData[1].Code)
	require.Equal(t, "n1", p.TranData[0].Name)
	require.Empty(t, p.ExternalTranCode)
	x := s.observed()[0]
	require.Equal(t, "s", x.ChannelSessionID)
	require.Equal(t, "r", x.ChannelRequestID)
}

// texts must not change under a request that keeps them.
func TestTextsOutliveTheRequest(t *testing.T) {
	t.Parallel()
	s := newService()
	require.Equal(t, http.StatusOK, s.post(t, pushPath, strings.Replace(pushBody, `"u"`, `"first"`, 1)).Code)
	first := s.pushes
	for range 50 {
		require.Equal(t, http.StatusOK, s.post(t, pushPath, strings.Replace(pushBody, `"u"`, `"other"`, 1)).Code)
	}
	require.Equal(t, "first", first[0].UserID)
}

func TestChannelIDsTooLongForLogsStayOut(t *testing.T) {
	t.Parallel()
	s := newService()
	w := s.post(t, pushPath, strings.Replace(pushBody, "{}", `{"ChannelRequestId":"`+strings.Repeat("x", 201)+`"}`, 1))
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Empty(t, s.observed()[0].ChannelRequestID)
}

func TestPanicsAreAnswered(t *testing.T) {
	t.Parallel()
	const secret = "customer 1001"
	for name, value := range map[string]any{
		"text": secret, "error": errors.New(secret), "number": 1001, "out of range": nil,
		"in a batch": &commit.Panic{Value: secret, Stack: []byte("goroutine 1 [running]:\npanic({0x1001, 0x1002})\n\t/go/src/runtime/panic.go:8\nmain.f(0x1001)\n\t/home/me/storage/store.go:12 +0x1d\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService()
			s.during = func(context.Context) {
				if value == nil {
					value = len(s.pushes[1].UserID) // out of range
				}
				panic(value)
			}
			w := s.post(t, salePath, saleBody)
			require.Equal(t, http.StatusInternalServerError, w.Code)
			require.Equal(t, []string{"internal-error"}, codes(t, w))
			require.NotContains(t, w.Body.String(), `"Data"`, "the effect is not known")
			x := s.observed()[0]
			require.ErrorContains(t, x.Err, "panic of type")
			require.NotContains(t, x.Err.Error(), "1001")
			if name == "in a batch" {
				require.ErrorContains(t, x.Err, "storage/store.go:12")
			} else {
				require.ErrorContains(t, x.Err, "router_test.go:")
			}
		})
	}
	t.Run("a connection that is cut has no 200", func(t *testing.T) {
		t.Parallel()
		s := newService(func(s *service) {
			s.options.Check = func(*http.Request) (time.Duration, error) { panic(http.ErrAbortHandler) } // as a sandbox does
		})
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { s.post(t, salePath, saleBody) })
		require.Equal(t, httpapi.StatusClientGone, s.observed()[0].Status)
	})
	t.Run("half an answer is cut", func(t *testing.T) {
		t.Parallel()
		s := newService(func(s *service) {
			s.options.Pages = map[string]http.Handler{"/docs": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "half")
				panic(secret)
			})}
		})
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { s.do(httptest.NewRequest(http.MethodGet, "/docs", nil)) })
		require.Error(t, s.observed()[0].Err)
	})
}

// TestRateLimit guards against this defect: a clock that was set back blocked the rate limit.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	now := today
	s := newService(func(s *service) {
		s.options.Now = func() time.Time { return now }
		s.callers["slow"] = caller(func(s *subscription.Subscription) { s.Name, s.RequestsPerSecond = "slow", 2 })
		s.callers["other"] = caller(func(s *subscription.Subscription) { s.Name, s.RequestsPerSecond = "other", 1 })
	})
	send := func(as string) int {
		w := s.do(post(pushPath, pushBody, func(r *http.Request) { r.Header.Set("Ocp-Apim-Subscription-Key", as) }))
		if w.Code == http.StatusTooManyRequests {
			require.Equal(t, "1", w.Header().Get("Retry-After"))
		}
		observed := s.observed()
		require.Equal(t, w.Code == http.StatusOK, observed[len(observed)-1].Admitted)
		return w.Code
	}
	require.Equal(t, []int{200, 200, 429, 429}, []int{send("slow"), send("slow"), send("slow"), send("slow")})
	require.Equal(t, []int{200, 429}, []int{send("other"), send("other")}, "each has a limit of its own")
	require.Equal(t, 200, send(key), "no limit")
	now = now.Add(500 * time.Millisecond)
	require.Equal(t, []int{200, 429}, []int{send("slow"), send("slow")})
	now = now.Add(time.Hour)
	require.Equal(t, []int{200, 200, 429}, []int{send("slow"), send("slow"), send("slow")}, "what was not used is not saved up")

	now = now.Add(-time.Hour)
	require.Equal(t, []int{200, 200, 429}, []int{send("slow"), send("slow"), send("slow")}, "the clock was set back")
	now = now.Add(500 * time.Millisecond)
	require.Equal(t, []int{200, 429}, []int{send("slow"), send("slow")})

	s.callers["slow"] = caller(func(s *subscription.Subscription) { s.Name, s.RequestsPerSecond = "slow", 5 })
	now = now.Add(time.Second)
	granted := 0
	for range 10 {
		if send("slow") == http.StatusOK {
			granted++
		}
	}
	require.LessOrEqual(t, granted, 5)
	require.Greater(t, granted, 1, "a changed limit holds at once")
	now = now.Add(time.Second)
	for range 5 {
		require.Equal(t, http.StatusOK, send("slow"))
	}
	s.callers["slow"] = caller(func(s *subscription.Subscription) { s.Name = "slow" })
	for range 20 {
		require.Equal(t, http.StatusOK, send("slow"), "no limit any more")
	}
}

// quoter quotes nothing.
type quoter struct{}

func (quoter) Quote(context.Context, *subscription.Subscription, operation.Header, []fund.SaleFields) ([]fund.Quote, error) {
	return nil, nil
}
func (quoter) QuoteBusy(*subscription.Subscription) error { return nil }

func (quoter) QuoteFaults(operation.Header, []fund.SaleFields) []fault.Fault { return nil }

// A quote counts against the rate of its caller, as the operations do.
func TestQuotesHaveTheRateOfTheirCaller(t *testing.T) {
	t.Parallel()
	s := newService(func(s *service) {
		s.options.Now = func() time.Time { return today }
		s.options.Quoter = quoter{}
		s.callers[key].RequestsPerSecond = 2
	})
	require.Equal(t, http.StatusOK, s.post(t, httpapi.QuotesPath, saleBody).Code)
	require.Equal(t, http.StatusOK, s.post(t, pushPath, pushBody).Code)
	require.Equal(t, []string{"rate-limit-exceeded"}, codes(t, s.post(t, httpapi.QuotesPath, saleBody)))
	require.Equal(t, []string{"rate-limit-exceeded"}, codes(t, s.post(t, pushPath, pushBody)))
}

// A host may count a request as one too many, or answer it with an error. It is not asked
// about a request that the rate of the subscription refuses.
func TestTheCheckOfAHost(t *testing.T) {
	t.Parallel()
	asked, wait, failure := 0, time.Duration(0), error(nil)
	s := newService(func(s *service) {
		s.options.Check = func(*http.Request) (time.Duration, error) {
			asked++
			return wait, failure
		}
		s.callers[key].RequestsPerSecond = 3
	})
	require.Equal(t, http.StatusOK, s.post(t, pushPath, pushBody).Code)
	wait = 4*time.Second + 1
	refused := s.post(t, pushPath, pushBody)
	require.Equal(t, []string{"rate-limit-exceeded"}, codes(t, refused))
	require.Equal(t, "5", refused.Header().Get("Retry-After"), "whole seconds, and not too few")
	require.Contains(t, refused.Body.String(), "Try again in 5 seconds.")
	wait, failure = 0, fault.New(fault.Unavailable, "")
	require.Equal(t, http.StatusServiceUnavailable, s.post(t, pushPath, pushBody).Code)
	require.Equal(t, 3, asked)
	require.Equal(t, []string{"rate-limit-exceeded"}, codes(t, s.post(t, pushPath, pushBody)))
	require.Equal(t, 3, asked)
	require.Equal(t, 1, s.calls, "the operation ran for the first request only")
}

// A required CallerId is reported with the faults of the JSON.
func TestARequiredCallerIDIsReportedWithAllOtherFaults(t *testing.T) {
	t.Parallel()
	s := newService(func(s *service) {
		s.callers[key] = caller(func(s *subscription.Subscription) { s.RequireCallerID = true })
	})
	w := s.post(t, pushPath, `{"Header":{},"Parameters":[{"UserId":1}]}`)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), `{"pointer":"/Parameters/0/UserId","code":"wrong-type"`)
	require.Contains(t, w.Body.String(), `{"pointer":"/Header/CallerId","code":"required"`)
	w = s.post(t, pushPath, `{"Header":{"CallerId":1},"Parameters":[]}`)
	require.NotContains(t, w.Body.String(), `"/Header/CallerId","code":"required"`)
}

func TestObservedDurations(t *testing.T) {
	t.Parallel()
	now := today
	s := newService(func(s *service) {
		s.options.Now = func() time.Time { return now }
		s.during = func(context.Context) { now = now.Add(3 * time.Millisecond) }
	})
	s.post(t, pushPath, pushBody)
	s.during = func(context.Context) { now = now.Add(-time.Hour) }
	s.post(t, pushPath, pushBody)
	require.Equal(t, today, s.observed()[0].Start)
	require.Equal(t, 3*time.Millisecond, s.observed()[0].Duration)
	require.Zero(t, s.observed()[1].Duration, "a clock that steps back")
}

func TestRefusalsOfTheBank(t *testing.T) {
	t.Parallel()
	s := newService(func(s *service) {
		s.outcome = operation.Outcome{State: operation.Failed, Replayed: true, Faults: append(
			operation.UnderParameter(0, []fault.Fault{fund.Refusal(fault.HoldingInsufficient), fund.Refusal(fault.PriceNotCurrent)}),
			operation.UnderParameter(2, []fault.Fault{fund.Refusal(fault.HoldingInsufficient)})...)}
	})
	requireAnswer(t, "refused", s.post(t, salePath, saleBody))
	require.Equal(t, []string{fault.HoldingInsufficient, fault.PriceNotCurrent}, s.observed()[0].Codes)
	require.Equal(t, operation.Failed, s.observed()[0].State)
	for language, want := range map[string]string{
		"tr":                      `{"Data":{"State":8},"Error":{"Code":2002,"Description":"Fon payınız bu satış için yeterli değil. Hiçbir değişiklik yapılmadı."},"title":"The bank refused the operation","detail":"Fon payınız bu satış için yeterli değil. Hiçbir değişiklik yapılmadı.","errors":[{"pointer":"/Parameters/0/FundAmount","code":"holding-insufficient","detail":"Fon payınız bu satış için yeterli değil."}`,
		"tr-TR,tr;q=0.9,en;q=0.8": `"detail":"Fon payınız bu satış için yeterli değil. Hiçbir değişiklik yapılmadı."`,
		"en,tr;q=0.9":             `"detail":"/Parameters/0/FundAmount: The holding does not have enough units. Nothing was changed.`,
	} {
		r := post(salePath, saleBody)
		r.Header.Set("Accept-Language", language)
		got := s.do(r)
		require.Contains(t, got.Body.String(), want)
		require.Equal(t, strings.HasPrefix(language, "tr"), got.Header().Get("Content-Language") == "tr")
	}
	for language, isTurkish := range map[string]bool{
		"TR": true, " tr-TR ; q=0.1": true, "en;q=0.5, tr": true, "en;q=0,tr;q=0.001": true, "tr,en": true, "*;q=0.1,tr;q=0.2": true,
		"tr;q=0": false, "tr;q=0.000": false, "tr;q=x": false, "tr;q=0.5,en": false, "en,tr": false, "tr;q=0.2,en;q=0.3": false, "trv": false, "*": false, "": false,
	} {
		r := post(salePath, saleBody)
		r.Header.Set("Accept-Language", language)
		require.Equal(t, isTurkish, s.do(r).Header().Get("Content-Language") == "tr", language)
	}
	r := post(salePath, saleBody)
	r.Header["Accept-Language"] = []string{"en;q=0.5", "tr;q=0.6"}
	require.Equal(t, "tr", s.do(r).Header().Get("Content-Language"), "several lines are one list")
	s.outcome.Faults = nil
	r = post(salePath, saleBody)
	r.Header.Set("Accept-Language", "tr")
	require.Equal(t, `{"Data":{"State":8},"Error":{"Code":9999,"Description":"Nothing was changed."},"title":"The bank refused the operation","detail":"Nothing was changed.","errors":[]}`,
		s.do(r).Body.String(), "the operation of a host may give no reason")
}
