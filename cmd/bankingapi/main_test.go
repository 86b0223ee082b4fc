package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// outcome is what a user of the program sees.
type outcome struct {
	status   int
	out, err string
}

func bankingapi(t *testing.T, environment []string, args ...string) outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	status := run(t.Context(), append([]string{}, args...), environment, strings.NewReader(""), &out, &errOut)
	return outcome{status, out.String(), errOut.String()}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), got), "go test ./cmd/bankingapi -update accepts it")
}
