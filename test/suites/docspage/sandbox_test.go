package docspage_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"bankingapi/adapters/sandbox"
	"bankingapi/application/backoffice"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/engines"
	"bankingapi/domain/operation"
)

// TestRecipesSurviveTheSandbox runs the programs of the recipes page against a
// sandbox that injects each of its faults in turn. Each program must reach State
// 2, and each run must sell once.
func TestRecipesSurviveTheSandbox(t *testing.T) {
	t.Parallel()
	for name, prepare := range recipes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := prepare(t, t.TempDir())
			box, err := bootstrap.OpenSandbox(t.Context(), bootstrap.SandboxSettings(t.TempDir()), engines.All(), bootstrap.WithLogger(zap.NewNop()))
			require.NoError(t, err)
			defer func() { require.NoError(t, box.Close(context.Background())) }()
			server := httptest.NewServer(box.Handler())
			defer server.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			for i, fault := range sandbox.Faults() {
				require.NoError(t, box.ArmFaults(sandbox.Armed{Fault: fault.Header}))
				recipe := exec.CommandContext(ctx, command[0], append(command[1:], "12.5")...)
				recipe.Env = append(os.Environ(), "BANK_URL="+server.URL, "BANK_KEY="+box.Key)
				out, err := recipe.CombinedOutput()
				require.NoError(t, err, "%s\n%s", fault.Header, out)
				require.Regexp(t, `State"?[: ]+2\b`, string(out), fault.Header)
				sales := 0
				office, err := box.Backoffice(ctx)
				require.NoError(t, err)
				for s, err := range office.Reader.Sales(ctx, backoffice.Query{State: operation.Completed}) {
					require.NoError(t, err)
					require.Equal(t, "12.5", s.Terms.Units.String())
					sales++
				}
				require.Equal(t, i+1, sales, "%s: one sale each", fault.Header)
			}
		})
	}
}
