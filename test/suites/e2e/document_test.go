package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi"
	"bankingapi/domain/operation"
)

// document is the OpenAPI document that the program prints.
type document struct {
	*openapi3.T
	router routers.Router
	// passed are exchanges that were valid: checking one costs more than answering it.
	passed sync.Map
}

var printed struct {
	sync.Once
	document *document
	err      error
}

func theDocument(t testing.TB) *document {
	t.Helper()
	path := program(t)
	printed.Do(func() { printed.document, printed.err = readDocument(path) })
	require.NoError(t, printed.err)
	return printed.document
}

func readDocument(program string) (*document, error) {
	text, err := exec.Command(program, "openapi").Output()
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	router, err := gorillamux.NewRouter(doc)
	return &document{T: doc, router: router}, err
}

var documentOptions = &openapi3filter.Options{
	IncludeResponseStatus: true, // an undescribed status is an error
	AuthenticationFunc: func(_ context.Context, in *openapi3filter.AuthenticationInput) error {
		scheme := in.SecurityScheme
		if scheme.In != "header" || in.RequestValidationInput.Request.Header.Get(scheme.Name) == "" {
			return errors.New("the key is missing")
		}
		return nil
	},
}

// request returns a request to one of the operations for validation.
func (d *document) request(ctx context.Context, path string, header http.Header, body []byte) (*openapi3filter.RequestValidationInput, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	if r.Header.Get("Content-Type") == "" { // it may be absent; the body is JSON in any case
		r.Header.Set("Content-Type", "application/json")
	}
	route, parameters, err := d.router.FindRoute(r)
	return &openapi3filter.RequestValidationInput{Request: r, PathParams: parameters, Route: route, Options: documentOptions}, err
}

// accepts returns nil if the document allows the body, and otherwise the
// reason.
func (d *document) accepts(path string, body []byte) error {
	in, err := d.request(context.Background(), path, http.Header{"Ocp-Apim-Subscription-Key": {"any"}}, body)
	if err != nil {
		return err
	}
	return openapi3filter.ValidateRequest(context.Background(), in)
}

// checked validates every request and response of a test.
type checked struct {
	t        testing.TB
	document *document
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper. An invalid response fails the test
// and is no error for the caller.
func (c checked) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		copied := *r // keep the length: a test may send the body in chunks
		copied.Body = io.NopCloser(bytes.NewReader(sent))
		r = &copied
	}
	response, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(got))
	exchange := fmt.Sprint(r.Method, r.URL, r.Header, response.StatusCode, string(sent), header(response), string(got))
	if _, known := c.document.passed.Load(exchange); known {
		return response, nil
	}
	if err := c.document.check(r, sent, response, got); err != nil {
		c.t.Errorf("%s %s: %v\n%s\n%s", r.Method, r.URL.Path, err, clip(sent), clip(got))
		return response, nil
	}
	c.document.passed.Store(exchange, true)
	return response, nil
}

// header returns the names in the header of a response, and the values that are
// the same for every response.
func header(response *http.Response) string {
	header := response.Header.Clone()
	for _, name := range []string{"X-Request-Id", "Date"} {
		if len(header[name]) == 1 {
			header[name] = nil
		}
	}
	return fmt.Sprint(header)
}

func clip(body []byte) []byte { return body[:min(len(body), 2000)] }

// sane matches an X-Request-Id that the service repeats.
var sane = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// check validates a response, and the request if it was accepted, against the
// document. It also checks what every response must have.
func (d *document) check(r *http.Request, sent []byte, response *http.Response, got []byte) error {
	if response.Header.Get("X-Content-Type-Options") != "nosniff" {
		return errors.New("the response has no X-Content-Type-Options: nosniff")
	}
	if !strings.HasPrefix(r.URL.Path, "/BankingApiV01/") && response.StatusCode == http.StatusOK {
		return nil // a page
	}
	id := response.Header.Get("X-Request-Id")
	if given := r.Header.Values("X-Request-Id"); !sane.MatchString(id) || (len(given) == 1 && sane.MatchString(given[0]) && id != given[0]) {
		return fmt.Errorf("the response has the X-Request-Id %q", id)
	}
	path := r.URL.Path
	if path != addPush && path != buyFund {
		path = addPush // other paths have the same responses
	}
	in, err := d.request(r.Context(), path, r.Header, sent)
	if err != nil {
		return err
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: response.StatusCode, Header: response.Header, Options: documentOptions}
	out.SetBodyBytes(got)
	if err := openapi3filter.ValidateResponse(r.Context(), out); err != nil {
		return fmt.Errorf("the document does not describe the response: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil
	}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
		return fmt.Errorf("the document forbids a request that the service accepts: %w", err)
	}
	return nil
}

// TestRoutesAreThoseOfTheDocument checks that the service serves every
// operation of the document and no others.
func TestRoutesAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	served, described := []string{"GET " + httpapi.OutcomesPath, "POST " + httpapi.QuotesPath}, []string(nil)
	for _, name := range operation.Names {
		served = append(served, "POST "+httpapi.Path(name.String()))
	}
	for path, item := range theDocument(t).Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	require.ElementsMatch(t, served, described)

	s := newBank(t, "sqlite").serve(t, "--demo")
	for path, item := range theDocument(t).Paths.Map() {
		if item.Post == nil {
			continue
		}
		require.Equal(t, http.StatusUnauthorized, s.post(t, path, "", "{}").status, path)
		r, err := http.NewRequest(http.MethodGet, s.URL+path, nil)
		require.NoError(t, err)
		got, err := do(s.client, r)
		require.NoError(t, err)
		require.Equal(t, http.StatusMethodNotAllowed, got.status, path)
		require.Equal(t, []string{"POST"}, got.header.Values("Allow"), path)
	}
	r, err := http.NewRequest(http.MethodGet, s.URL+"/BankingApiV01/openapi.json", nil)
	require.NoError(t, err)
	got, err := do((&http.Client{Transport: s.client.Transport.(checked).next}), r)
	require.NoError(t, err)
	require.Contains(t, got.body, `"url": "`+s.URL+`"`, "the service names the address that it was asked at")
	shown := strings.Replace(got.body, `"url": "`+s.URL+`"`, `"url": "/"`, 1)
	withoutDays := func(document string) string { // the examples of the service have a day that is to come
		return regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b`).ReplaceAllString(document, "DAY")
	}
	require.JSONEq(t, withoutDays(newBank(t, "sqlite").Must(t, "openapi")), withoutDays(shown), "otherwise it shows what the command prints")
}
