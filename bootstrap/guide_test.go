package bootstrap

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page of the limits says how long an idle connection stays open.
func TestTheGuideKnowsTheIdleTimeout(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../adapters/httpapi/docs/pages/limits.md.tmpl")
	require.NoError(t, err)
	require.Contains(t, string(page), fmt.Sprintf("Idle connections are closed after %.0f seconds.", idleTimeout.Seconds()))
}
