package client_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/client"
)

func TestOutcomesAreReadToTheEndAndOn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked, early := 0, time.Time{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/outcomes" || r.Header.Get("Ocp-Apim-Subscription-Key") != "key" {
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		asked++
		switch after := r.URL.Query().Get("after"); {
		case asked == 2: // a failure is repeated
			http.Error(w, "", http.StatusServiceUnavailable)
		case asked == 3: // a balancer has lost patience
			http.Error(w, "", http.StatusRequestTimeout)
		case asked == 4:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "", http.StatusTooManyRequests)
			early = time.Now().Add(time.Second)
		case asked == 5 && time.Now().Before(early):
			http.Error(w, "asked too early", http.StatusBadRequest)
		case after == "":
			fmt.Fprint(w, `{"Outcomes":[{"OperationId":"1","CallerId":"a","State":2},{"OperationId":"2","CallerId":"b","State":8,"Errors":[{"code":"cancelled"}]}],"Next":"9"}`)
		case after == "9":
			fmt.Fprint(w, `{"Outcomes":[{"OperationId":"1","CallerId":"a","State":2,"Reversed":true}],"Next":"10"}`)
		default:
			cancel()
			fmt.Fprint(w, `{"Outcomes":[],"Next":"10"}`)
		}
	}))
	defer server.Close()
	c, err := client.New(server.URL, "key", client.Options{Backoff: 1})
	require.NoError(t, err)
	var seen []string
	for o, err := range c.Outcomes(ctx, "") {
		require.NoError(t, err)
		seen = append(seen, fmt.Sprint(o.CallerID, " ", o.State, " ", o.Reversed, " ", len(o.Faults), " after ", o.Cursor))
	}
	require.Equal(t, []string{"a completed false 0 after ", "b failed false 1 after 9", "a completed true 0 after 10"}, seen)

	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	defer gone.Close()
	restored, err := client.New(gone.URL, "key", client.Options{})
	require.NoError(t, err)
	for _, err := range restored.Outcomes(t.Context(), "9") {
		require.ErrorIs(t, err, client.ErrCursorLost)
	}

	wrong, err := client.New(server.URL, "other", client.Options{})
	require.NoError(t, err)
	for _, err := range wrong.Outcomes(t.Context(), "") {
		require.ErrorContains(t, err, "400")
		var failure *client.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, http.StatusBadRequest, failure.Status)
		require.False(t, failure.Unknown)
	}
}

// A repeat does not make a certificate trusted, nor a name exist. Without an error the partner would
// lose the outcomes and not know it.
func TestOutcomesEndIfARepeatCannotHelp(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshake fails
	server.StartTLS()
	defer server.Close()
	c, err := client.New(server.URL, "key", client.Options{})
	require.NoError(t, err)
	count := 0
	for _, err := range c.Outcomes(t.Context(), "") {
		count++
		var failure *client.Error
		require.ErrorAs(t, err, &failure)
		require.ErrorContains(t, err, "certificate")
	}
	require.Equal(t, 1, count)
}

// A page without a cursor is not an answer of the service. It must not begin the outcomes again.
func TestAPageWithoutACursorIsAskedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var asked []string
		service := transport(func(r *http.Request) (*http.Response, error) {
			if asked = append(asked, r.URL.Query().Get("after")); len(asked) == 3 {
				cancel()
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"status":"ok"}`)), Request: r}, nil
		})
		c, err := client.New("https://bank.example", "key", client.Options{HTTP: &http.Client{Transport: service}})
		require.NoError(t, err)
		for range c.Outcomes(ctx, "9") {
			t.Error("there is no outcome")
		}
		require.Equal(t, []string{"9", "9", "9"}, asked)
	})
}

// If an empty page comes at once, the next request waits.
func TestAnEmptyPageThatComesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var asked []time.Time
		service := transport(func(r *http.Request) (*http.Response, error) {
			if asked = append(asked, time.Now()); len(asked) == 3 {
				cancel()
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"Outcomes":[],"Next":"1"}`)), Request: r}, nil
		})
		c, err := client.New("https://bank.example", "key", client.Options{HTTP: &http.Client{Transport: service}})
		require.NoError(t, err)
		for range c.Outcomes(ctx, "") {
			t.Error("there is no outcome")
		}
		require.Len(t, asked, 3)
		for i := range asked[1:] {
			require.GreaterOrEqual(t, asked[i+1].Sub(asked[i]), time.Second)
		}
	})
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
