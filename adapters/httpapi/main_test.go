package httpapi_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"bankingapi/test/kit/golden"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares an answer, as a reader of the wire sees it, with
// testdata/name.http.
func requireAnswer(t *testing.T, name string, w *httptest.ResponseRecorder) {
	t.Helper()
	var got bytes.Buffer
	fmt.Fprintf(&got, "%d %s\n", w.Code, http.StatusText(w.Code))
	for _, header := range slices.Sorted(maps.Keys(w.Header())) {
		fmt.Fprintf(&got, "%s: %s\n", header, strings.Join(w.Header()[header], " | "))
	}
	fmt.Fprintf(&got, "\n%s\n", w.Body)
	golden.Equal(t, name+".http", got.String())
}
