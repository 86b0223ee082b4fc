package docs_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/docs"
)

var pages = docs.Pages()

// ask is a router that knows the exact paths.
func ask(method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	page, ok := pages[path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return w
	}
	page.ServeHTTP(w, r)
	return w
}

func TestEveryAnswerIsLockedDown(t *testing.T) {
	t.Parallel()
	for path := range pages {
		got := ask(http.MethodGet, path)
		require.Equal(t, http.StatusOK, got.Code, path)
		require.NotEmpty(t, got.Body.String(), path)
		require.NotEmpty(t, got.Header().Get("Content-Type"), path)
		policy := got.Header().Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'self'", path)
		require.NotContains(t, policy, "unsafe", path)
		require.Equal(t, "nosniff", got.Header().Get("X-Content-Type-Options"), path)
		require.Equal(t, "DENY", got.Header().Get("X-Frame-Options"), path)
		require.Equal(t, "no-referrer", got.Header().Get("Referrer-Policy"), path)
		require.Equal(t, "no-store", got.Header().Get("Cache-Control"), path)

		head := ask(http.MethodHead, path)
		require.Equal(t, http.StatusOK, head.Code, path)
		require.Empty(t, head.Body.String(), path)
		require.Equal(t, got.Header(), head.Header(), path)
	}
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/docs":                                  "text/html; charset=utf-8",
		"/docs/":                                 "text/html; charset=utf-8",
		"/docs/swagger-ui-bundle.js":             "text/javascript; charset=utf-8",
		"/docs/initializer.js":                   "text/javascript; charset=utf-8",
		"/docs/swagger-ui.css":                   "text/css; charset=utf-8",
		"/docs/LICENSE":                          "text/plain; charset=utf-8",
		"/docs/NOTICE":                           "text/plain; charset=utf-8",
		"/docs/swagger-ui-bundle.js.LICENSE.txt": "text/plain; charset=utf-8",
	} {
		require.Equal(t, want, ask(http.MethodGet, path).Header().Get("Content-Type"), path)
	}
}

func TestPathsAndMethods(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, []string{
		"/docs", "/docs/", "/docs/initializer.js", "/docs/page.css", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css",
		"/docs/LICENSE", "/docs/NOTICE", "/docs/swagger-ui-bundle.js.LICENSE.txt",
	}, slices.Collect(maps.Keys(pages)))
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		got := ask(method, "/docs")
		require.Equal(t, http.StatusMethodNotAllowed, got.Code, method)
		require.Equal(t, "GET, HEAD", got.Header().Get("Allow"), method)
	}
}

// The page is the same for a reader at /docs, at /docs/ and under a prefix:
// what it links to resolves to something that is served.
func TestLinksOfThePageAreServed(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`(?:href|src)="([^"]+)"`)
	for _, at := range []string{"/docs", "/docs/"} {
		page := ask(http.MethodGet, at).Body.String()
		base, err := url.Parse("https://bank.example/prefix" + at)
		require.NoError(t, err)
		links := link.FindAllStringSubmatch(page, -1)
		require.GreaterOrEqual(t, len(links), 7)
		for _, found := range links {
			if found[1] == "data:," {
				continue
			}
			target, err := base.Parse(found[1])
			require.NoError(t, err)
			require.Equal(t, "bank.example", target.Host, found[1])
			inside, ok := strings.CutPrefix(target.Path, "/prefix")
			require.True(t, ok, found[1])
			if inside == "/BankingApiV01/openapi.json" {
				continue
			}
			require.Equal(t, http.StatusOK, ask(http.MethodGet, inside).Code, "%s from %s", inside, at)
		}
	}
}

func TestPageNamesNoOtherHostAndHasNoInlineScript(t *testing.T) {
	t.Parallel()
	external := regexp.MustCompile(`(?i)(https?:)?//[a-z]`)
	comments := regexp.MustCompile(`(?m)(^| )// .*$`)
	for _, path := range []string{"/docs", "/docs/", "/docs/initializer.js", "/docs/page.css"} {
		text := comments.ReplaceAllString(ask(http.MethodGet, path).Body.String(), "")
		require.NotRegexp(t, external, text, path)
	}
	page := ask(http.MethodGet, "/docs").Body.String()
	require.NotRegexp(t, `<script[^>]*>[^<]`, page)
	require.NotRegexp(t, `(?i)<style|\sstyle=|\son[a-z]+=|javascript:`, page)

	settings := ask(http.MethodGet, "/docs/initializer.js").Body.String()
	require.Contains(t, settings, "validatorUrl: null")
	require.Contains(t, settings, "persistAuthorization: false")
	require.Contains(t, settings, "tryItOutEnabled: true")
}

func TestCompression(t *testing.T) {
	t.Parallel()
	const bundle = "/docs/swagger-ui-bundle.js"
	plain := ask(http.MethodGet, bundle).Body.String()
	for _, accepts := range []string{"gzip", "br, GZIP;q=0.5", "identity;q=0.1, gzip; q=1"} {
		got := ask(http.MethodGet, bundle, "Accept-Encoding", accepts)
		require.Equal(t, "gzip", got.Header().Get("Content-Encoding"), accepts)
		require.Equal(t, "Accept-Encoding", got.Header().Get("Vary"))
		require.Less(t, got.Body.Len(), 600_000)
		reader, err := gzip.NewReader(got.Body)
		require.NoError(t, err)
		body, err := io.ReadAll(reader)
		require.NoError(t, err)
		require.Equal(t, plain, string(body))
	}
	for _, accepts := range []string{"", "br", "gzip;q=0", "gzip;q=0.000", "x-gzip", "*;q=0"} {
		got := ask(http.MethodGet, bundle, "Accept-Encoding", accepts)
		require.Empty(t, got.Header().Get("Content-Encoding"), accepts)
		require.Equal(t, plain, got.Body.String())
	}
}

// The embedded files are those of swagger-ui-dist 5.35.0 on npm.
func TestSwaggerUIIsWhatItsMakersDelivered(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"LICENSE":                          "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
		"NOTICE":                           "0d20d1adef18aee3f40dd258172155521ce702ac445cb5f7b7d60ed32dad2fb2",
		"swagger-ui-bundle.js":             "e6a898692f2d768e807c3ba4626068a69a2c5dd960dd6c76f3e4d3a3de180af2",
		"swagger-ui-bundle.js.LICENSE.txt": "37eb6e7e59aed57b2c1acf076574b818ea07b74265717e0bd67b59e0baf9abbb",
		"swagger-ui.css":                   "5ed08757e53da3e026d6cbecc61fe5d43585c9560b302d534ad56692519a273d",
	}
	entries, err := os.ReadDir("swagger-ui")
	require.NoError(t, err)
	got := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join("swagger-ui", entry.Name()))
		require.NoError(t, err)
		digest := sha256.Sum256(content)
		got[entry.Name()] = hex.EncodeToString(digest[:])
	}
	require.Equal(t, want, got)
}
