package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An open page says that the service is gone, that it answers with errors, and that it
// is well again. Nobody has to reload it.
func TestAnOpenPageNoticesThatTheServiceIsGone(t *testing.T) {
	ctx := browse(t, 1280, 900)
	s := start(t, nil)
	to, err := url.Parse(s.home)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host }}
	var broken, signIns atomic.Int32
	signIn := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Sec-Fetch-Dest") == "document" {
			signIns.Add(1)
		}
	}))
	t.Cleanup(signIn.Close)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch status := int(broken.Load()); status {
		case 0:
			proxy.ServeHTTP(w, r)
		case 1:
			panic(http.ErrAbortHandler) // no answer
		case http.StatusFound:
			http.Redirect(w, r, signIn.URL, status)
		default:
			w.WriteHeader(status)
		}
	}))
	t.Cleanup(front.Close)
	open(ctx, t, strings.Replace(s.currentLink(), s.home, front.URL, 1))
	says := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool {
			return strings.Contains(eval[string](ctx, t, `document.getElementById("health").innerText`), text)
		}, time.Minute, 50*time.Millisecond, text)
	}
	for _, path := range []string{"", "sales"} {
		open(ctx, t, front.URL+"/console/"+path)
		broken.Store(1)
		says("The service has not answered since")
		require.Equal(t, int64(1), eval[int64](ctx, t, `document.querySelectorAll("#health .bad").length`))
		require.Regexp(t, `^\(1\) `, eval[string](ctx, t, `document.title`), "the tab says it too")
		require.Contains(t, eval[string](ctx, t, `document.querySelector("link[rel=icon]").href`), "icon-bad.svg")
		broken.Store(http.StatusBadGateway)
		says("The console has answered 502 since")
		broken.Store(0)
		require.Eventually(t, func() bool { return eval[int64](ctx, t, `document.querySelectorAll("#health .bad").length`) == 0 }, time.Minute, 50*time.Millisecond)
		require.NotRegexp(t, `^\(`, eval[string](ctx, t, `document.title`))
		require.NotContains(t, eval[string](ctx, t, `document.querySelector("link[rel=icon]").href`), "icon-bad.svg")
	}
	broken.Store(http.StatusFound)
	require.Eventually(t, func() bool { return signIns.Load() > 0 }, time.Minute, 50*time.Millisecond, "the identity proxy asks to sign in again")
}
