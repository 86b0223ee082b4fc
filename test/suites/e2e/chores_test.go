package e2e_test

import (
	"encoding/csv"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/test/kit/testdb"
)

// TestChores runs every command of the page "An operator's chores" on a book in which each
// question comes up, and looks for what the page says of the answer.
func TestChores(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../cmd/bankingapi/CHORES.md")
	require.NoError(t, err)
	chores := regexp.MustCompile(`(?m)^## \d+\. `).Split(string(page), -1)[1:]
	require.Len(t, chores, 12)
	commands := regexp.MustCompile("(?s)```sh\n(.*?)```")
	answers := []string{
		"State         2 completed", `AFA "Demo Portfoy"     985`, "holding-insufficient", "0 would complete, 0 would fail, 1 waits for a price",
		"Reversed by ", "Adjusted by 12.50: ", "Imported 2 prices: 2 new, 0 changed, 0 unchanged.", "The file and the book say the same: 3 equal, 0 different",
		"The book is correct.", "", "key was leaked", "The copy is correct.",
	}
	onEachEngine(t, func(t *testing.T, b bank) {
		later := clock.Now().AddDate(0, 0, 9).Format("2006-01-02")
		s := b.serve(t, "--demo")
		sell := func(callerID string, customer int, units, day string, header ...string) string {
			r, err := http.NewRequest(http.MethodPost, s.URL+buyFund, strings.NewReader(sale(callerID, customer, units, day)))
			require.NoError(t, err)
			r.Header.Set("Ocp-Apim-Subscription-Key", s.key)
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			got, err := do(s.client, r)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, got.status, got.body)
			return got.header.Get("Operation-Id")
		}
		first, second := sell("demo-sale-1", 1001, "12.5", "", "X-Request-Id", "4711"), sell("second", 1001, "2.5", "")
		waiting := sell("later", 1002, "1", later)
		sell("refused", 1002, "99999", "")
		b.Subscribe(t, "mobile-app")
		s.Stop(t)

		folder := t.TempDir()
		file := func(name, content string) string {
			path := filepath.Join(folder, name)
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			return path
		}
		prices := file("prices.csv", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom\n"+
			"70,AFA,Demo Portfoy,1.3,TRY,"+later+"\n71,AFA,Demo Portfoy,1.35,TRY,"+later+"\n")
		for i, chore := range chores {
			if i == 11 && b.Engine == testdb.EnginePostgres {
				continue // pg_dump
			}
			completed := first
			if i == 6 {
				completed = second // the first one is reversed by then
			}
			on := strings.NewReplacer("01a208ab-4b7d-714e-9473-679674007b9e", completed, "01a208ab-4c56-70be-b36e-d38b3122d9c1", waiting,
				"2026-11-23", clock.Now().AddDate(0, 0, -1).Format("2006-01-02"), "2026-12-04", later, "prices.csv", prices, "--price-id 7", "--price-id 70", "core-bank.csv",
				file("core-bank.csv", b.Must(t, "export", "holdings")), "/backup/", folder+"/", "bank-2026-11-20.txt", folder+"/report.txt")
			var printed strings.Builder
			for _, block := range commands.FindAllStringSubmatch(chore, -1) {
				for line := range strings.Lines(block[1]) {
					words := csv.NewReader(strings.NewReader(on.Replace(line)))
					words.Comma = ' '
					arguments, err := words.Read()
					require.NoError(t, err)
					require.Equal(t, "bankingapi", arguments[0])
					got := b.Run(t, arguments[1:]...)
					require.Zero(t, got.Status, "%s%s%s", line, got.Out, got.Err)
					printed.WriteString(got.Out + got.Err)
				}
			}
			require.Contains(t, printed.String(), answers[i], chore)
		}
		require.Equal(t, []string{"2", "2", "8", "8"}, column(b.Export(t, "operations", "--subscription", "demo"), "State"))
		require.Contains(t, b.Must(t, "show", "operation", waiting), "cancelled")
	})
}
