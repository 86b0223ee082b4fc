package httpapi_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write what is answered into the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares an answer, as a reader of the wire sees it, with
// testdata/name.http.
func golden(t *testing.T, name string, w *httptest.ResponseRecorder) {
	t.Helper()
	var got bytes.Buffer
	fmt.Fprintf(&got, "%d %s\n", w.Code, http.StatusText(w.Code))
	for _, header := range slices.Sorted(maps.Keys(w.Header())) {
		fmt.Fprintf(&got, "%s: %s\n", header, strings.Join(w.Header()[header], " | "))
	}
	fmt.Fprintf(&got, "\n%s\n", w.Body)
	file := filepath.Join("testdata", name+".http")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, got.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run the tests with -update once")
	require.Equal(t, string(want), got.String())
}
