package docspage_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/docs"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/test/kit/demo"
)

// api is the API with its pages, over the demo book in memory.
func api(t *testing.T) http.Handler {
	t.Helper()
	handler, _ := demo.New(t, pages(t))
	return handler
}

func pages(t *testing.T) map[string]http.Handler {
	t.Helper()
	guide, err := docs.Pages(openapi.Guide{})
	require.NoError(t, err)
	return guide
}

// Integrators send the examples of the document first. Each gets the answer
// that its summary says, and the document describes the answer.
func TestExamplesOfTheDocumentWork(t *testing.T) {
	t.Parallel()
	handler := api(t)
	served := httptest.NewRecorder()
	handler.ServeHTTP(served, httptest.NewRequest(http.MethodGet, openapi.Path, nil))
	doc, err := openapi3.NewLoader().LoadFromData(served.Body.Bytes())
	require.NoError(t, err)
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	options := &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}

	for path, item := range doc.Paths.Map() {
		if item.Post == nil { // outcomes are read
			continue
		}
		for name, example := range item.Post.RequestBody.Value.Content["application/json"].Examples {
			body, err := json.Marshal(example.Value.Value)
			require.NoError(t, err)
			r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Ocp-Apim-Subscription-Key", demo.Key)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			state := "2"
			if name == "later" {
				state = "1"
			}
			if path == "/quotes" {
				require.True(t, strings.HasPrefix(w.Body.String(), `{"Quotes":[{"State":`+state+`,"PriceID":`), "%s %s: %s", path, name, w.Body)
			} else {
				require.Equal(t, `{"Data":{"State":`+state+`}}`, w.Body.String(), "%s %s", path, name)
			}

			route, parameters, err := router.FindRoute(r)
			require.NoError(t, err)
			answer := &openapi3filter.ResponseValidationInput{
				RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: parameters, Route: route, Options: options},
				Status:                 w.Code, Header: w.Header(), Options: options,
			}
			answer.SetBodyBytes(w.Body.Bytes())
			require.NoError(t, openapi3filter.ValidateResponse(t.Context(), answer))
		}
	}
}

// The commands of the guide do what the guide says.
func TestCommandsOfTheGuideWork(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("SKIPPED: no shell on this machine")
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: no curl on this machine; run: apt-get install curl")
	}
	server := httptest.NewServer(api(t))
	defer server.Close()
	page, err := http.Get(server.URL + "/docs/index.md")
	require.NoError(t, err)
	defer page.Body.Close()
	text, err := io.ReadAll(page.Body)
	require.NoError(t, err)
	commands := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, commands, 3)
	require.Equal(t, "export BANK=https://HOST\nexport KEY='your key'\n", commands[0][1])
	for _, found := range commands[1:] {
		command := exec.Command(shell, "-c", found[1])
		command.Env = append(os.Environ(), "BANK="+server.URL, "KEY="+demo.Key)
		out, err := command.Output()
		require.NoError(t, err)
		require.Equal(t, `{"Data":{"State":2}}`, string(out), found[1])
	}
}
