package docspage_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"bankingapi/adapters/sandbox"
	"bankingapi/application/backoffice"
	"bankingapi/application/operator"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
	"bankingapi/domain/operation"
)

// TestRecipesSurviveTheSandbox runs the programs of the recipes page against a
// sandbox that injects each of its faults in turn. Each program must reach State
// 2, and each run must sell once.
func TestRecipesSurviveTheSandbox(t *testing.T) {
	t.Parallel()
	for name, prepare := range sellRecipes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := prepare(t, t.TempDir())
			box, url := openSandbox(t)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			for i, fault := range sandbox.Faults() {
				require.NoError(t, box.Controls.ArmFaults(operator.ArmedFault{Fault: fault.Header}))
				recipe := exec.CommandContext(ctx, command[0], append(command[1:], "12.5")...)
				recipe.Env = append(os.Environ(), "BANK_URL="+url, "BANK_KEY="+box.Key)
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

// TestOutcomesOfTheSandbox runs the programs that read outcomes. Each learns that
// sales for a later day ended when the clock moved, and begins behind them the next time.
func TestOutcomesOfTheSandbox(t *testing.T) {
	t.Parallel()
	for name, prepare := range outcomeRecipes("outcomes") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := prepare(t, t.TempDir())
			box, url := openSandbox(t)
			kept := filepath.Join(t.TempDir(), "cursor")
			for _, callerIDs := range [][]string{{"first-sale", "second-sale"}, {"third-sale"}} {
				for _, callerID := range callerIDs {
					sale := `{"Header":{"CallerId":"` + callerID + `"},"Parameters":[{"CustomerNo":1001,"TransactionType":2,"FundAmount":1,` +
						`"SelectedTransactionDate":"` + box.Controls.Now().AddDate(0, 0, 2).Format(time.DateOnly) + `",` +
						`"DestinationAccount":{"BranchCode":1,"CustomerNo":1001,"AccountSuffix":1,"CurrencyCode":"TRY"},` +
						`"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy","PriceID":1}}]}`
					r := httptest.NewRequest(http.MethodPost, "/BankingApiV01/BuyFundFromCustomer", strings.NewReader(sale))
					r.Header.Set("Ocp-Apim-Subscription-Key", box.Key)
					w := httptest.NewRecorder()
					box.Handler().ServeHTTP(w, r)
					require.JSONEq(t, `{"Data":{"State":1}}`, w.Body.String())
				}
				_, err := box.Controls.AdvanceClock(t.Context(), 48*time.Hour)
				require.NoError(t, err)
				recipe := exec.CommandContext(t.Context(), command[0], append(command[1:len(command):len(command)], kept)...)
				recipe.Env = append(os.Environ(), "BANK_URL="+url, "BANK_KEY="+box.Key, "ONCE=1")
				out, err := recipe.CombinedOutput()
				require.NoError(t, err, string(out))
				require.Equal(t, len(callerIDs), strings.Count(string(out), "-sale"), string(out))
				for _, callerID := range callerIDs {
					require.Contains(t, string(out), callerID)
				}
			}
		})
	}
}

// openSandbox returns a sandbox and its URL.
func openSandbox(t *testing.T) (box *bootstrap.Sandbox, url string) {
	t.Helper()
	box, err := bootstrap.OpenSandbox(t.Context(), bootstrap.SandboxSettings(t.TempDir()), parts.All(), bootstrap.WithLogger(zap.NewNop()))
	require.NoError(t, err)
	server := httptest.NewServer(box.Handler())
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, box.Close(context.Background()))
	})
	return box, server.URL
}
