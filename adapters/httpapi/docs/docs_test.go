package docs_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/docs"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/domain/fault"

	"bankingapi/test/kit/golden"
)

var pages = func() map[string]http.Handler {
	pages, err := docs.Pages(openapi.Guide{})
	if err != nil {
		panic(err)
	}
	maps.DeleteFunc(pages, func(path string, _ http.Handler) bool { return !strings.HasPrefix(path, "/docs") }) // package openapi tests its own
	return pages
}()

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
		require.Regexp(t, "^default-src '(self|none)';", policy, path)
		require.NotContains(t, policy, "unsafe", path)
		require.Contains(t, policy, "frame-ancestors 'none'", path)
		require.Contains(t, policy, "object-src 'none'", path)
		require.Contains(t, policy, "base-uri 'none'", path)
		require.Contains(t, policy, "form-action 'none'", path)
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
		"/docs":                    "text/html; charset=utf-8",
		"/docs/":                   "text/html; charset=utf-8",
		"/docs/try":                "text/html; charset=utf-8",
		"/docs/errors/":            "text/html; charset=utf-8",
		"/docs/errors/required":    "text/html; charset=utf-8",
		"/docs/index.md":           "text/markdown; charset=utf-8",
		"/docs/errors/required.md": "text/markdown; charset=utf-8",
		"/docs/style.css":          "text/css; charset=utf-8",
		"/docs/llms.txt":           "text/plain; charset=utf-8",
	} {
		require.Equal(t, want, ask(http.MethodGet, path).Header().Get("Content-Type"), path)
	}
}

func TestPathsAndMethods(t *testing.T) {
	t.Parallel()
	want := []string{
		"/docs", "/docs/", "/docs/index.md", "/docs/style.css", "/docs/llms.txt", "/docs/llms-full.txt", "/docs/errors", "/docs/errors/", "/docs/errors/index.md",
	}
	for _, slug := range []string{"recipes", "sandbox", "repeats", "values", "settled", "limits", "keys", "versions", "changelog", "try"} {
		want = append(want, "/docs/"+slug, "/docs/"+slug+".md")
	}
	for _, code := range fault.Codes() {
		want = append(want, "/docs/errors/"+code.Name, "/docs/errors/"+code.Name+".md")
	}
	require.ElementsMatch(t, want, slices.Collect(maps.Keys(pages)))
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		got := ask(method, "/docs")
		require.Equal(t, http.StatusMethodNotAllowed, got.Code, method)
		require.Equal(t, "GET, HEAD", got.Header().Get("Allow"), method)
	}
}

var (
	htmlLink     = regexp.MustCompile(`(?:href|src)="([^"]+)"`)
	markdownLink = regexp.MustCompile(`\]\(([^)]+)\)`)
	id           = regexp.MustCompile(` id="([^"]+)"`)
	heading      = regexp.MustCompile(`<h([1-6])`)
)

// Every link of every page, as HTML and as Markdown and under a prefix, leads to
// something that is served, and to an anchor that exists there.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	t.Parallel()
	followed := 0
	for at, page := range pages {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, at, nil))
		var links [][]string
		switch kind := w.Header().Get("Content-Type"); {
		case strings.HasPrefix(kind, "text/html"):
			links = htmlLink.FindAllStringSubmatch(w.Body.String(), -1)
			require.GreaterOrEqual(t, len(links), 6, at)
		case strings.HasPrefix(kind, "text/markdown"):
			links = markdownLink.FindAllStringSubmatch(w.Body.String(), -1)
		}
		base, err := url.Parse("https://bank.example/prefix" + at)
		require.NoError(t, err)
		for _, found := range links {
			if found[1] == "data:," {
				continue
			}
			target, err := base.Parse(found[1])
			require.NoError(t, err)
			require.Equal(t, "bank.example", target.Host, found[1])
			inside, ok := strings.CutPrefix(target.Path, "/prefix")
			require.True(t, ok, found[1])
			followed++
			if inside == openapi.Path || inside == openapi.Path30 {
				continue
			}
			got := ask(http.MethodGet, inside)
			require.Equal(t, http.StatusOK, got.Code, "%s from %s", found[1], at)
			if target.Fragment != "" && strings.HasPrefix(got.Header().Get("Content-Type"), "text/html") {
				require.Contains(t, got.Body.String(), ` id="`+target.Fragment+`"`, "%s from %s", found[1], at)
			}
			if strings.HasSuffix(at, ".md") {
				require.Regexp(t, `\.md$`, inside, "a program that reads Markdown goes on in Markdown")
			}
		}
	}
	require.Greater(t, followed, 1000)
}

// Anchors are unique, headings leave out no level, and the first one is the
// title.
func TestHeadingsAndAnchors(t *testing.T) {
	t.Parallel()
	for at := range pages {
		got := ask(http.MethodGet, at)
		if !strings.HasPrefix(got.Header().Get("Content-Type"), "text/html") {
			continue
		}
		page := got.Body.String()
		require.NotContains(t, page, "raw HTML omitted", "%s needs a backslash before a <", at)
		anchors := map[string]bool{}
		for _, found := range id.FindAllStringSubmatch(page, -1) {
			require.False(t, anchors[found[1]], "%s has the anchor %s twice", at, found[1])
			anchors[found[1]] = true
		}
		level := "0"
		for _, found := range heading.FindAllStringSubmatch(page, -1) {
			require.LessOrEqual(t, found[1][0], level[0]+1, at)
			level = found[1]
		}
		require.Equal(t, 1, strings.Count(page, "<h1"), at)
	}
	index := ask(http.MethodGet, "/docs").Body.String()
	first, reference := strings.Index(index, `id="BuyFundFromCustomer"`), strings.Index(index, `id="what-to-do"`)
	require.Positive(t, first)
	require.Less(t, first, reference, "operations come first")
}

// statusRow is a row of the table of answers. It is read from the recorded answer to the example.
var statusRow = regexp.MustCompile(`\| [2-5][0-9]{2} \| [0-9]{4} \| (8|absent): `)

// What the pages say comes from the program: its fields, codes and limits.
func TestPagesSayWhatTheProgramDoes(t *testing.T) {
	t.Parallel()
	if *golden.Update {
		t.Skip("SKIPPED: -update writes examples that this program does not have yet: run the test again without it")
	}
	index := ask(http.MethodGet, "/docs/index.md").Body.String()
	for _, name := range []string{"FundSale", "PushNotification", "Header", "DestinationAccount", "FundToProcess", "TranDataItem"} {
		require.Contains(t, index, "### "+name)
	}
	require.Contains(t, index, "| `FundAmount` | number, required | above 0, to 1,000,000,000,000 | Fund quantity")
	require.Contains(t, index, "| `Platform` | integer, required | 65 Android, 73 IOS, 79 Other | Platform of the push. |")
	require.Contains(t, index, "| `UserId` | string, required | 1 to 200 characters |")

	catalogue := ask(http.MethodGet, "/docs/errors/index.md").Body.String()
	for _, code := range fault.Codes() {
		require.Contains(t, catalogue, "[`"+code.Name+"`]("+"../errors/"+code.Name+".md)")
		page := ask(http.MethodGet, "/docs/errors/"+code.Name+".md").Body.String()
		require.True(t, strings.HasPrefix(page, "# "+code.Name+"\n"), code.Name)
		for _, text := range []string{code.Meaning, code.Action, code.Example, code.Provoke} {
			require.Contains(t, page, text, code.Name)
		}
		require.True(t, statusRow.MatchString(page), "%s has no example: see TestExamplesAreRealAnswers", code.Name)
	}
	for code, repeat := range map[string]string{
		fault.Required:            "Yes, but it fails in the same way.",
		fault.KeyInvalid:          "Yes, but it fails in the same way.",
		fault.CallerIDReused:      "Yes, but it fails in the same way.",
		fault.HoldingInsufficient: "Yes, with the same CallerId: it gets the same answer.",
		fault.RateLimitExceeded:   "Yes, with or without a CallerId. It may succeed.",
		fault.Overloaded:          "Yes, with or without a CallerId. It may succeed.",
		fault.ShuttingDown:        "Yes, with or without a CallerId. It may succeed.",
		fault.StorageUnavailable:  "Yes, with or without a CallerId. It may succeed.",
		fault.InternalError:       "Only with the same CallerId.",
		fault.OutcomeUnknown:      "Only with the same CallerId.",
	} {
		require.Contains(t, ask(http.MethodGet, "/docs/errors/"+code+".md").Body.String(), repeat, code)
	}

	other, err := docs.Pages(openapi.Guide{BodyLimit: 2048, ParametersLimit: 7, TimeZone: "Asia/Tokyo"})
	require.NoError(t, err)
	for page, want := range map[string]string{
		"/docs/limits.md": "| body | 2,048 bytes |", "/docs/index.md": "has 1 to 7 records", "/docs/values.md": "of the bank: Asia/Tokyo",
	} {
		w := httptest.NewRecorder()
		other[page].ServeHTTP(w, httptest.NewRequest(http.MethodGet, page, nil))
		require.Contains(t, w.Body.String(), want)
	}
}

// What a page shows is text: markup in a source or in an example stays text.
func TestMarkupIsEscaped(t *testing.T) {
	t.Parallel()
	for at := range pages {
		got := ask(http.MethodGet, at)
		if strings.HasPrefix(got.Header().Get("Content-Type"), "text/html") {
			_, ours, _ := strings.Cut(got.Body.String(), "<script>")
			ours, _, _ = strings.Cut(ours, "</script>")
			sum := sha256.Sum256([]byte(ours))
			require.Contains(t, got.Header().Get("Content-Security-Policy"), "script-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
			require.NotRegexp(t, `<(script|style|iframe|img)|\son[a-z]+=|javascript:| style=`, strings.Replace(got.Body.String(), "<script>"+ours, "", 1), at)
		}
	}
}

func TestCompression(t *testing.T) {
	t.Parallel()
	const bundle = "/docs/llms-full.txt"
	plain := ask(http.MethodGet, bundle).Body.String()
	for _, accepts := range []string{"gzip", "br, GZIP;q=0.5", "identity;q=0.1, gzip; q=1"} {
		got := ask(http.MethodGet, bundle, "Accept-Encoding", accepts)
		require.Equal(t, "gzip", got.Header().Get("Content-Encoding"), accepts)
		require.Equal(t, "Accept-Encoding", got.Header().Get("Vary"))
		require.Less(t, got.Body.Len(), len(plain)/2)
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

// TestNoCellOfATableVanishes compares the tables of every page with their source.
func TestNoCellOfATableVanishes(t *testing.T) {
	t.Parallel()
	pages, err := docs.Pages(openapi.Guide{})
	require.NoError(t, err)
	bars := regexp.MustCompile("`[^`]*`")
	row := regexp.MustCompile(`(?s)<tr>.*?</tr>`)
	cell := regexp.MustCompile(`<t[hd][ >]`)
	text := func(path string) string {
		w := httptest.NewRecorder()
		pages[path].ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Body.String()
	}
	rows := 0
	for path := range pages {
		page, isSource := strings.CutSuffix(path, ".md")
		if !isSource {
			continue
		}
		page = strings.TrimSuffix(page, "index")
		var want, got []int
		for line := range strings.Lines(text(path)) {
			if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|---") {
				want = append(want, strings.Count(bars.ReplaceAllString(line, ""), "|")-1)
			}
		}
		for _, each := range row.FindAllString(text(page), -1) {
			got = append(got, len(cell.FindAllString(each, -1)))
		}
		require.Equal(t, want, got, path)
		rows += len(want)
	}
	require.Greater(t, rows, 200)
}

// The list for language models has every page, and the full text too: the search of
// the guide reads it.
func TestListsForLanguageModels(t *testing.T) {
	t.Parallel()
	list, full := ask(http.MethodGet, "/docs/llms.txt").Body.String(), ask(http.MethodGet, "/docs/llms-full.txt").Body.String()
	for path := range pages {
		if slug, ok := strings.CutSuffix(strings.TrimPrefix(path, "/docs/"), ".md"); ok {
			require.Contains(t, list, "]("+slug+".md)\n")
			require.Contains(t, full, "Source: "+slug+".md\n\n# ")
		}
	}
	for _, document := range []string{openapi.Path, openapi.Path30} {
		require.Contains(t, list, "](.."+document+")\n")
	}
	require.NotContains(t, list, openapi.SandboxPath)
	ofSandbox, err := docs.Pages(openapi.Guide{Sandbox: true})
	require.NoError(t, err)
	w := httptest.NewRecorder()
	ofSandbox["/docs/llms.txt"].ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/docs/llms.txt", http.NoBody))
	require.Contains(t, w.Body.String(), "](.."+openapi.SandboxPath+")\n")
}

// The guide of a sandbox begins with a key of this sandbox: its reader has no folder of the service.
func TestTheGuideOfASandboxBeginsWithItsKey(t *testing.T) {
	t.Parallel()
	ofSandbox, err := docs.Pages(openapi.Guide{Sandbox: true})
	require.NoError(t, err)
	w := httptest.NewRecorder()
	ofSandbox["/docs/index.md"].ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/docs/index.md", http.NoBody))
	require.NotContains(t, w.Body.String(), "demo.key")
	require.Contains(t, w.Body.String(), "export KEY=$(curl -sS -X POST \"$BANK/_sandbox/keys\" | cut -d '\"' -f 4)\n")
	require.Contains(t, ask(http.MethodGet, "/docs/index.md").Body.String(), "export KEY=$(cat data/demo.key) CURL_CA_BUNDLE=data/tls.crt")
}

// The answers of the error pages speak of the days of their requests: they are recorded on another day.
func TestAnswersHaveTheDaysOfTheirRequests(t *testing.T) {
	t.Parallel()
	guide, err := docs.Pages(openapi.Guide{Day: "2027-05-28", TimeZone: "Europe/London"})
	require.NoError(t, err)
	for code, says := range map[string]string{
		"after-cut-off":    "The next open day is 2027-05-29.",
		"day-closed":       "The next open day is 2027-06-18.",
		"date-in-the-past": "which is 2026-11-29 in the time zone Europe/London.",
		"cancelled":        "\nIdempotent-Replayed: true\n",
	} {
		path := "/docs/errors/" + code + ".md"
		w := httptest.NewRecorder()
		guide[path].ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		require.Contains(t, w.Body.String(), says, path)
	}
}

// TestPagesAnswerThePartner holds the pages to what partners looked for and did not find.
func TestPagesAnswerThePartner(t *testing.T) {
	t.Parallel()
	for _, page := range []struct{ path, says string }{
		{"/docs/errors/holding-insufficient", "A new try needs a new <code>CallerId</code>"},
		{"/docs/errors/key-invalid", "without it every key is invalid"},
		{"/docs/keys", "The bank may bind your keys to your certificate."},
		{"/docs/versions", "are not under the versioned path, and follow the same rules"},
		{"/docs/changelog", "First release"},
		{"/docs/settled", "At most 100 requests of a subscription may wait"},
		{"/docs/limits", "At most 100 requests of a subscription may wait"},
		{"/docs/repeats", "send at most 10 sales or 100 push messages"},
		{"/docs/sandbox", "at most ten years ahead of the real time"},
		{"/docs/values", "0 is the same as absent"},
		{"/docs/repeats", "An empty text is no <code>CallerId</code>"},
		{"/docs", "is plain text or empty"},
		{"/docs/sandbox", "the sandbox ignores the header there"},
		{"/docs/repeats", "Leaving a field out and sending its defined value are two contents."},
		{"/docs/repeats", "The bank may erase the texts of a message"},
		{"/docs/repeats", "<code>12500000</code> is 12.5 units"},
		{"/docs/keys", "Your keys may have a last day."},
		{"/docs/keys", "Sales that you recorded for a later day are still settled."},
		{"/docs/errors/key-invalid", "if its key was changed or has ended"},
		{"/docs/limits", "Otherwise the connection is closed without an answer"},
		{"/docs", "may belong to another customer"},
		{"/docs/repeats", "Repeats of an operation share it"},
		{"/docs/limits", "more than 16 MiB"},
		{"/docs/repeats", "In the first 90 seconds of a day"},
		{"/docs/repeats", "No receipt tells that the bank reversed the operation later"},
	} {
		require.Contains(t, ask(http.MethodGet, page.path).Body.String(), page.says, page.path)
	}
	for _, code := range fault.Codes() {
		if code.Remedy == fault.NewOperation {
			require.Contains(t, ask(http.MethodGet, "/docs/errors/"+code.Name).Body.String(), "A new try needs a new", code.Name)
		}
	}
}
