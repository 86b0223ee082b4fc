package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// load reads and validates the 3.1 document with every example in it.
func load(t *testing.T) *openapi3.T { return loadVersion(t, openapi.Version31) }

func loadVersion(t *testing.T, version string) *openapi3.T {
	t.Helper()
	text, err := openapi.Options{}.Document(version)
	require.NoError(t, err)
	doc, err := openapi3.NewLoader().LoadFromData(text)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(context.Background(), openapi3.EnableExamplesValidation()))
	return doc
}

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	doc := load(t)
	require.True(t, doc.IsOpenAPI31OrLater())
	require.Len(t, doc.Servers, 1)
	paths := []string{"/outcomes", "/quotes"}
	for _, name := range operation.Names {
		paths = append(paths, "/BankingApiV01/"+name.String())
	}
	require.ElementsMatch(t, paths, doc.Paths.Keys())
	require.Equal(t, "mutualTLS", doc.Components.SecuritySchemes["clientCertificate"].Value.Type)
}

// TestTheErrorSuitsTheFamily: the classes of the family's clients in .NET have a long and a
// string.
func TestTheErrorSuitsTheFamily(t *testing.T) {
	t.Parallel()
	for _, version := range []string{openapi.Version30, openapi.Version31} {
		schema := loadVersion(t, version).Components.Schemas["ErrorInfo"].Value
		code, description := schema.Properties["Code"].Value, schema.Properties["Description"].Value
		require.True(t, code.Type.Is("integer"))
		require.Equal(t, "int64", code.Format)
		require.True(t, description.Type.Is("string"))
		require.ElementsMatch(t, []string{"Code", "Description"}, schema.Required)
	}
}

func TestDocumentReturnsACopy(t *testing.T) {
	t.Parallel()
	first := openapi.Document()
	clear(first)
	require.NotEqual(t, first, openapi.Document())
}

// operations are the operations by name. Outcomes and quotes are none.
func operations(doc *openapi3.T) map[string]*openapi3.Operation {
	found := map[string]*openapi3.Operation{}
	for _, item := range doc.Paths.Map() {
		if item.Post != nil && item.Post.OperationID != "Quotes" {
			found[item.Post.OperationID] = item.Post
		}
	}
	return found
}

func TestEveryOperationIsComplete(t *testing.T) {
	t.Parallel()
	statuses := []string{"200", "400", "401", "403", "404", "405", "413", "415", "422", "429", "500", "503", "default"}
	for name, operation := range operations(load(t)) {
		require.NotEmpty(t, operation.Summary, name)
		require.NotEmpty(t, operation.Description, name)
		require.GreaterOrEqual(t, len(operation.RequestBody.Value.Content["application/json"].Examples), 3, name)
		require.ElementsMatch(t, statuses, operation.Responses.Keys(), name)
		for status, response := range operation.Responses.Map() {
			where := name + " " + status
			media := "application/problem+json"
			if status == "200" {
				media = "application/json"
			}
			require.NotEmpty(t, response.Value.Description, where)
			require.Len(t, response.Value.Content, 1, where)
			require.Contains(t, response.Value.Content, media, where)
			if status == "default" { // of a proxy, for example
				continue
			}
			require.NotEmpty(t, response.Value.Content[media].Examples, where)
			require.Contains(t, response.Value.Headers, "X-Request-Id", where)
			require.Contains(t, response.Value.Headers, "Cache-Control", where)
		}
		for status, header := range map[string]string{
			"200": "Idempotent-Replayed", "401": "WWW-Authenticate", "405": "Allow",
			"415": "Accept", "429": "Retry-After", "503": "Retry-After",
		} {
			require.Contains(t, operation.Responses.Value(status).Value.Headers, header, name+" "+status)
		}
		if operation.Parameters.GetByInAndName("header", "Accept-Language") != nil {
			require.Contains(t, operation.Responses.Value("200").Value.Headers, "Content-Language", name)
		}
	}
}

// Every example, as the request or answer it stands for.
func TestExamplesPassAsRealTraffic(t *testing.T) {
	t.Parallel()
	doc := load(t)
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	options := &openapi3filter.Options{
		AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
		IncludeResponseStatus: true,
		MultiError:            true,
	}
	described := operations(doc)
	described["../quotes"] = doc.Paths.Value("/quotes").Post
	for name, operation := range described {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked *openapi3filter.RequestValidationInput
			for example, body := range operation.RequestBody.Value.Content["application/json"].Examples {
				asked = request(t, router, options, path.Join("/BankingApiV01", name), body.Value.Value)
				require.NoError(t, openapi3filter.ValidateRequest(t.Context(), asked), example)
			}
			for status, response := range operation.Responses.Map() {
				for media, content := range response.Value.Content {
					for example, body := range content.Examples {
						answer := &openapi3filter.ResponseValidationInput{
							RequestValidationInput: asked,
							Status:                 statusOf(t, status),
							Header:                 exampleHeaders(response.Value, media),
							Options:                options,
						}
						answer.SetBodyBytes(encode(t, body.Value.Value))
						require.NoError(t, openapi3filter.ValidateResponse(t.Context(), answer), "%s %s", status, example)
					}
				}
			}
		})
	}
}

func request(t *testing.T, router routers.Router, options *openapi3filter.Options, path string, body any) *openapi3filter.RequestValidationInput {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "https://bank.example:8443"+path, bytes.NewReader(encode(t, body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Ocp-Apim-Subscription-Key", "00112233445566778899aabbccddeeff")
	route, parameters, err := router.FindRoute(r)
	require.NoError(t, err)
	return &openapi3filter.RequestValidationInput{Request: r, PathParams: parameters, Route: route, Options: options}
}

func exampleHeaders(response *openapi3.Response, media string) http.Header {
	header := http.Header{"Content-Type": {media}}
	for name, described := range response.Headers {
		if example := described.Value.Example; example != nil {
			header.Set(name, fmt.Sprint(example))
			continue
		}
		if allowed := described.Value.Schema.Value.Enum; len(allowed) > 0 {
			header.Set(name, fmt.Sprint(allowed[0]))
		}
	}
	return header
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	body, err := json.Marshal(value)
	require.NoError(t, err)
	return body
}

func statusOf(t *testing.T, key string) int {
	t.Helper()
	var status int
	_, err := fmt.Sscan(key, &status)
	require.NoError(t, err)
	return status
}

// A problem's example must agree with the status it stands under, and say
// State 8 exactly where the request certainly had no effect.
func TestProblemExamplesAgreeWithThemselves(t *testing.T) {
	t.Parallel()
	for name, operation := range operations(load(t)) {
		for status, response := range operation.Responses.Map() {
			media, isProblem := response.Value.Content["application/problem+json"]
			if !isProblem {
				continue
			}
			for example, ref := range media.Examples {
				where := strings.Join([]string{name, status, example}, " ")
				problem := ref.Value.Value.(map[string]any)
				require.EqualValues(t, statusOf(t, status), problem["status"], where)
				require.Equal(t, problem["status"], problem["statusCode"], where)
				require.Equal(t, http.StatusText(statusOf(t, status)), problem["title"], where)
				first := problem["errors"].([]any)[0].(map[string]any)
				require.Contains(t, problem["message"], first["detail"], where)
				require.Contains(t, problem["detail"], problem["message"], where)
				_, known := fault.Describe(first["code"].(string))
				require.True(t, known, where)
				if status == "400" {
					require.Equal(t, map[string]any{"State": float64(8)}, problem["Data"], where)
				} else {
					require.NotContains(t, problem, "Data", where)
				}
			}
		}
	}
}

// Codes are plain strings, so that a generated client reads those that later
// versions add. The examples are the whole list.
func TestCodesAreExamplesAndNoEnum(t *testing.T) {
	t.Parallel()
	code := load(t).Components.Schemas["Fault"].Value.Properties["code"].Value
	require.Empty(t, code.Enum)
	require.Greater(t, len(code.Examples), 40)
	code = loadVersion(t, openapi.Version30).Components.Schemas["Fault"].Value.Properties["code"].Value
	require.Empty(t, code.Enum)
	require.NotEmpty(t, code.Example)
}

// What generators and gateways stumble over, in both versions.
func TestSchemasSuitGenerators(t *testing.T) {
	t.Parallel()
	for _, version := range []string{openapi.Version30, openapi.Version31} {
		doc := loadVersion(t, version)
		named := make(map[any]*openapi3.Schema)
		require.Empty(t, doc.Info.Summary, "API Management rejects it")
		var look func(name string, ref *openapi3.SchemaRef)
		look = func(name string, ref *openapi3.SchemaRef) {
			schema := ref.Value
			require.Empty(t, schema.OneOf, name)
			require.Empty(t, schema.AnyOf, name)
			switch {
			case schema.Type.Includes("number"):
				require.Equal(t, "double", schema.Format, "%s: without a format some generators choose float", name)
			case schema.Type.Includes("integer"):
				require.Regexp(t, "^int(32|64)$", schema.Format, name)
			}
			if schema.Type.Includes("integer") && len(schema.Enum) > 0 {
				names, _ := schema.Extensions["x-enum-varnames"].([]any)
				require.Len(t, names, len(schema.Enum), name)
				for _, constant := range names {
					require.Contains(t, []*openapi3.Schema{nil, schema}, named[constant], "%s: another schema has %s, so that generators rename both", name, constant)
					named[constant] = schema
				}
			}
			for property, ref := range schema.Properties {
				look(name+"."+property, ref)
			}
			if schema.Items != nil {
				look(name+"[]", schema.Items)
			}
		}
		for name, schema := range doc.Components.Schemas {
			look(name, schema)
		}
	}
}

func TestTheTwinIs30(t *testing.T) {
	t.Parallel()
	text, err := openapi.Options{}.Document(openapi.Version30)
	require.NoError(t, err)
	require.Contains(t, string(text), `"openapi": "3.0.3"`)
	require.NotRegexp(t, `"type": \[|"null"|"examples": \[|"identifier"|"exclusiveMinimum": [0-9]`, string(text))
	require.Contains(t, string(text), `"nullable": true`)
	doc, twin := load(t), loadVersion(t, openapi.Version30)
	require.False(t, twin.IsOpenAPI31OrLater())
	require.Equal(t, doc.Paths.Keys(), twin.Paths.Keys())
	require.Equal(t, doc.Info.Description, twin.Info.Description)
	for name, operation := range operations(doc) {
		require.Equal(t, operation.Responses.Keys(), operations(twin)[name].Responses.Keys())
	}
	amount := twin.Components.Schemas["FundSale"].Value.Properties["FundAmount"].Value
	require.True(t, amount.ExclusiveMin.IsTrue())
	require.Zero(t, *amount.Min)
}

func TestOptions(t *testing.T) {
	t.Parallel()
	o := openapi.Options{
		Server: "https://bank.example/api/", ContactName: "Integration <desk>", ContactURL: "https://bank.example/help",
		ContactEmail: "api@bank.example", TermsURL: "https://bank.example/terms",
	}
	for _, version := range []string{openapi.Version30, openapi.Version31} {
		text, err := o.Document(version)
		require.NoError(t, err)
		require.Contains(t, string(text), "Integration <desk>")
		doc, err := openapi3.NewLoader().LoadFromData(text)
		require.NoError(t, err)
		require.NoError(t, doc.Validate(t.Context()))
		require.Len(t, doc.Servers, 1)
		require.Equal(t, "https://bank.example/api", doc.Servers[0].URL)
		require.Equal(t, "https://bank.example/api/docs", doc.ExternalDocs.URL)
		require.Equal(t, "https://bank.example/help", doc.Info.Contact.URL)
		require.Equal(t, "api@bank.example", doc.Info.Contact.Email)
		require.Equal(t, "https://bank.example/terms", doc.Info.TermsOfService)
	}
	dated, err := openapi.Options{Day: "2031-02-03"}.Document(openapi.Version31)
	require.NoError(t, err)
	require.Contains(t, string(dated), `"SelectedTransactionDate": "2031-02-03"`)
	require.NotContains(t, string(dated), "2027-06-15")
	plain, err := openapi.Options{}.Document(openapi.Version31)
	require.NoError(t, err)
	require.Equal(t, string(openapi.Document()), string(plain))
	_, err = o.Document("2.0")
	require.ErrorContains(t, err, "3.0 or 3.1")
}

func TestPages(t *testing.T) {
	t.Parallel()
	pages, err := openapi.Options{Server: "https://bank.example"}.Pages()
	require.NoError(t, err)
	require.Len(t, pages, 2)
	for path, version := range map[string]string{openapi.Path: `"openapi": "3.1.0"`, openapi.Path30: `"openapi": "3.0.3"`} {
		w := httptest.NewRecorder()
		pages[path].ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, http.StatusOK, w.Code)
		require.Contains(t, w.Body.String(), version)
		require.Contains(t, w.Body.String(), `"url": "https://bank.example"`)
	}
}

// A proxy may add a prefix before the paths.
func TestTheDocumentOfASandboxHasTheServer(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "/", "https://bank.example/api/": "https://bank.example/api"} {
		pages, err := openapi.Options{Server: given}.SandboxPages()
		require.NoError(t, err)
		w := httptest.NewRecorder()
		pages["/_sandbox/openapi.json"].ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/_sandbox/openapi.json", nil))
		doc, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
		require.NoError(t, err)
		require.Len(t, doc.Servers, 1)
		require.Equal(t, want, doc.Servers[0].URL)
	}
}

// Requests are closed: an undescribed member is rejected.
func TestRequestObjectsAreClosed(t *testing.T) {
	t.Parallel()
	doc := load(t)
	for _, name := range []string{
		"AddPushNotificationResponseRequest", "BuyFundFromCustomerRequest", "Header", "PushNotification",
		"TranDataItem", "FundSale", "DestinationAccount", "FundToProcess",
	} {
		schema := doc.Components.Schemas[name].Value
		require.NotNil(t, schema.AdditionalProperties.Has, name)
		require.False(t, *schema.AdditionalProperties.Has, name)
		for field, property := range schema.Properties {
			require.NotEmpty(t, property.Value.Description, "%s.%s", name, field)
		}
	}
}

func TestHandler(t *testing.T) {
	t.Parallel()
	pages, err := openapi.Options{}.Pages()
	require.NoError(t, err)
	ask := func(method, match string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, openapi.Path, nil)
		if match != "" {
			r.Header.Set("If-None-Match", match)
		}
		w := httptest.NewRecorder()
		pages[openapi.Path].ServeHTTP(w, r)
		return w
	}
	got := ask(http.MethodGet, "")
	require.Equal(t, http.StatusOK, got.Code)
	require.Equal(t, strings.Replace(string(openapi.Document()), `"url": "/"`, `"url": "http://example.com"`, 1), got.Body.String(), "its server is the address that it was asked at")
	require.Equal(t, "application/json", got.Header().Get("Content-Type"))
	require.Equal(t, "nosniff", got.Header().Get("X-Content-Type-Options"))
	require.Equal(t, "no-store", got.Header().Get("Cache-Control"))
	require.Regexp(t, `^"[0-9a-f]{32}"$`, got.Header().Get("ETag"))

	head := ask(http.MethodHead, "")
	require.Equal(t, http.StatusOK, head.Code)
	require.Empty(t, head.Body.String())
	require.Equal(t, fmt.Sprint(got.Body.Len()), head.Header().Get("Content-Length"))

	known := ask(http.MethodGet, got.Header().Get("ETag"))
	require.Equal(t, http.StatusNotModified, known.Code)
	require.Empty(t, known.Body.String())
	require.Equal(t, http.StatusOK, ask(http.MethodGet, `"another"`).Code)
	for _, match := range []string{"*", `"another", W/` + got.Header().Get("ETag")} {
		require.Equal(t, http.StatusNotModified, ask(http.MethodGet, match).Code, match)
	}

	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		refused := ask(method, "")
		require.Equal(t, http.StatusMethodNotAllowed, refused.Code, method)
		require.Equal(t, "GET, HEAD", refused.Header().Get("Allow"), method)
	}
}

// largest is a http.ResponseWriter that keeps the largest part that was written, not a copy of it.
type largest struct {
	http.ResponseWriter
	part []byte
}

func (l *largest) Write(b []byte) (int, error) {
	if len(b) > len(l.part) {
		l.part = b
	}
	return len(b), nil
}

// Callers without a key may ask often and never read.
func TestNoRequestGetsACopyOfTheDocument(t *testing.T) {
	t.Parallel()
	pages, err := openapi.Options{}.Pages()
	require.NoError(t, err)
	var answers [2]largest
	for i := range answers {
		r := httptest.NewRequest(http.MethodGet, openapi.Path, nil)
		r.Host = fmt.Sprintf("bank-%d.example", i)
		answers[i].ResponseWriter = httptest.NewRecorder()
		pages[openapi.Path].ServeHTTP(&answers[i], r)
	}
	require.Greater(t, len(answers[0].part), len(openapi.Document())/2)
	require.Same(t, &answers[0].part[0], &answers[1].part[0])
}
