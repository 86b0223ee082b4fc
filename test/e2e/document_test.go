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
	// passed are exchanges that are right: those of a load differ in their ids
	// only, and to look at one costs more than to answer it.
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
	IncludeResponseStatus: true, // a status that is not described is an error
	AuthenticationFunc: func(_ context.Context, in *openapi3filter.AuthenticationInput) error {
		scheme := in.SecurityScheme
		if scheme.In != "header" || in.RequestValidationInput.Request.Header.Get(scheme.Name) == "" {
			return errors.New("the key is missing")
		}
		return nil
	},
}

// request is a request to one of the operations, for the document to judge.
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

// accepts is nil when the document allows the body, and says why when not.
func (d *document) accepts(path string, body []byte) error {
	in, err := d.request(context.Background(), path, http.Header{"Ocp-Apim-Subscription-Key": {"any"}}, body)
	if err != nil {
		return err
	}
	return openapi3filter.ValidateRequest(context.Background(), in)
}

// checked looks at every request and answer of a test.
type checked struct {
	t        testing.TB
	document *document
	next     http.RoundTripper
}

// RoundTrip is http.RoundTripper. What is wrong with an answer is an error of
// the test and not of the caller.
func (c checked) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		copied := *r // the length stays what it was: a test may want the body in chunks
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
	exchange := fmt.Sprint(r.Method, r.URL, r.Header, response.StatusCode, string(loadID.ReplaceAll(sent, nil)), header(response), string(got))
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

// loadID is the CallerId or the PushId of a load's request.
var loadID = regexp.MustCompile(`"load-[^"]*"`)

// header has the names of an answer's header, and the values that are not of
// this one answer alone.
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

var sane = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// check holds an answer, and the request if it was taken, against the document
// and against what every answer has.
func (d *document) check(r *http.Request, sent []byte, response *http.Response, got []byte) error {
	if response.Header.Get("X-Content-Type-Options") != "nosniff" {
		return errors.New("the answer has no X-Content-Type-Options: nosniff")
	}
	if !strings.HasPrefix(r.URL.Path, "/BankingApiV01/") && response.StatusCode == http.StatusOK {
		return nil // a page
	}
	id := response.Header.Get("X-Request-Id")
	if given := r.Header.Values("X-Request-Id"); !sane.MatchString(id) || (len(given) == 1 && sane.MatchString(given[0]) && id != given[0]) {
		return fmt.Errorf("the answer has the X-Request-Id %q", id)
	}
	path := r.URL.Path
	if path != addPush && path != buyFund {
		path = addPush // other paths are answered like this one
	}
	in, err := d.request(r.Context(), path, r.Header, sent)
	if err != nil {
		return err
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: response.StatusCode, Header: response.Header, Options: documentOptions}
	out.SetBodyBytes(got)
	if err := openapi3filter.ValidateResponse(r.Context(), out); err != nil {
		return fmt.Errorf("the document does not describe the answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil
	}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
		return fmt.Errorf("the document forbids what the service takes: %w", err)
	}
	return nil
}

// TestRoutesAreThoseOfTheDocument compares both ways: what the document
// describes is served, and no operation is served that it does not describe.
func TestRoutesAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	var served, described []string
	for _, name := range operation.Names {
		served = append(served, "POST "+httpapi.Path(name))
	}
	for path, item := range theDocument(t).Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	require.ElementsMatch(t, served, described)

	s := newBank(t, "sqlite").serve(t, "--demo")
	for path := range theDocument(t).Paths.Map() {
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
	require.JSONEq(t, newBank(t, "sqlite").Must(t, "openapi"), got.body, "the service shows what the command prints")
}
