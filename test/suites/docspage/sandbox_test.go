package docspage_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/sandbox"
	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
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
			box := openSandbox(t)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			for i, fault := range sandbox.Faults() {
				box.ask(t, http.MethodPut, "/_sandbox/faults", `[{"fault":"`+fault.Header+`"}]`)
				recipe := exec.CommandContext(ctx, command[0], append(command[1:], "12.5")...)
				recipe.Env = append(os.Environ(), "BANK_URL="+box.url, "BANK_KEY="+box.key)
				out, err := recipe.CombinedOutput()
				require.NoError(t, err, "%s\n%s", fault.Header, out)
				require.Regexp(t, `State"?[: ]+2\b`, string(out), fault.Header)
				var book struct {
					Sales []struct {
						State      int
						FundAmount json.Number
					}
				}
				box.askFor(t, "/_sandbox/book", &book)
				sales := 0
				for _, s := range book.Sales {
					if s.State == 2 { // Completed
						require.Equal(t, "12.5", s.FundAmount.String())
						sales++
					}
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
			box := openSandbox(t)
			var bank struct{ Now time.Time }
			kept := filepath.Join(t.TempDir(), "cursor")
			for _, callerIDs := range [][]string{{"first-sale", "second-sale"}, {"third-sale"}} {
				box.askFor(t, "/_sandbox/clock", &bank)
				for _, callerID := range callerIDs {
					sale := `{"Header":{"CallerId":"` + callerID + `"},"Parameters":[{"CustomerNo":1001,"TransactionType":2,"FundAmount":1,` +
						`"SelectedTransactionDate":"` + bank.Now.AddDate(0, 0, 2).Format(time.DateOnly) + `",` +
						`"DestinationAccount":{"BranchCode":1,"CustomerNo":1001,"AccountSuffix":1,"CurrencyCode":"TRY"},` +
						`"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy","PriceID":1}}]}`
					_, answer := box.ask(t, http.MethodPost, "/BankingApiV01/BuyFundFromCustomer", sale)
					require.JSONEq(t, `{"Data":{"State":1}}`, answer)
				}
				box.ask(t, http.MethodPut, "/_sandbox/clock", `{"advance":"48h"}`)
				recipe := exec.CommandContext(t.Context(), command[0], append(command[1:len(command):len(command)], kept)...)
				recipe.Env = append(os.Environ(), "BANK_URL="+box.url, "BANK_KEY="+box.key, "ONCE=1")
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

// box is a sandbox: the released program, as a partner starts it.
type box struct{ url, key string }

// openSandbox starts a sandbox without TLS.
func openSandbox(t *testing.T) box {
	t.Helper()
	bank := service.Open(testdb.EngineSQLite, t.TempDir(), service.Build(t, "bankingapi/cmd/bankingapi")).Set("tls.mode", "off")
	process := bank.Serve(t, "--sandbox")
	key, err := os.ReadFile(filepath.Join(bank.Folder, "sandbox/sandbox.key"))
	require.NoError(t, err)
	return box{url: process.URL, key: strings.TrimSpace(string(key))}
}

// ask sends a request with the key of the sandbox, and reads the answer. The request wants a receipt.
func (b box) ask(t *testing.T, method, path, body string) (header http.Header, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Ocp-Apim-Subscription-Key", b.key)
	r.Header.Set("Want-Receipt", "1")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s %s: %s", method, path, content)
	return response.Header, string(content)
}

// askFor is like ask, and reads members of the answer into what.
func (b box) askFor(t *testing.T, path string, what any) {
	t.Helper()
	_, answer := b.ask(t, http.MethodGet, path, "")
	require.NoError(t, json.Unmarshal([]byte(answer), what))
}
