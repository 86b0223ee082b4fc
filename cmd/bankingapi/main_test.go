package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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

// An operator who sets the collector gets what the Go runtime documents.
func TestBallastLeavesTheCollectorToTheOperator(t *testing.T) {
	t.Parallel()
	require.Len(t, newBallast(func(string) string { return "" }), ballastSize)
	for _, set := range []string{"GOGC", "GOMEMLIMIT"} {
		require.Empty(t, newBallast(func(name string) string {
			if name == set {
				return "off"
			}
			return ""
		}), set)
	}
}
