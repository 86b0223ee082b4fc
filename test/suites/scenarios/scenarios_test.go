// Package scenarios_test plays the scenario files in process: on the store in memory, on SQLite and
// on Postgres, over HTTPS, on a clock that the files set. Suite e2e plays those that need no clock
// with the released program.
package scenarios_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/bank"
	"bankingapi/test/kit/golden"
	"bankingapi/test/kit/scenario"
	"bankingapi/test/kit/testdb"
)

// TestScenarios plays each file of testdata on a bank of its own. make generate writes the answers.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.http")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, engine := range []string{bank.Memory, testdb.EngineSQLite, testdb.EnginePostgres} {
		for _, file := range files {
			t.Run(engine+"/"+filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				if *golden.Update && engine != bank.Memory {
					t.Skip("SKIPPED: it writes what the store in memory answers")
				}
				b, c := open(t, engine)
				b.Play(t, file)
				_, err := c.Office(t).Verify(t.Context(), nil, backoffice.Watch{Found: func(f backoffice.Finding) { t.Error(f.Text) }})
				require.NoError(t, err)
			})
		}
	}
}

// clerk is the operator of a bank.
type clerk struct {
	*bank.Bank
	seen map[string]int64 // holdings and accounts, as they were shown last
}

// open opens a bank with the book and several subscriptions, and returns its operator too.
func open(t *testing.T, engine string) (*scenario.Bank, *clerk) {
	t.Helper()
	c := &clerk{Bank: bank.Open(t, engine)}
	for _, kind := range []string{"prices", "holdings", "accounts"} {
		content, err := os.ReadFile("testdata/book/" + kind + ".csv")
		require.NoError(t, err)
		c.Import(t, kind, string(content))
	}
	keys := map[string]string{}
	for _, s := range []subscription.Subscription{
		{Name: "full"}, {Name: "other"}, {Name: "push-only", Operations: []string{"AddPushNotificationResponse"}},
		{Name: "limited", RequestsPerSecond: 1}, {Name: "defined", AppKey: "app-1", Channel: "WEB", TellerName: "Ayşe"},
		{Name: "strict", RequireCallerID: true}, {Name: "suspended"},
	} {
		keys[s.Name] = c.Subscribe(t, s)
	}
	manager, err := c.Manager(t.Context())
	require.NoError(t, err)
	require.NoError(t, manager.SetState(t.Context(), "suspended", subscription.Suspended))
	c.changes(t)
	return &scenario.Bank{
		URL: c.URL(), Client: c.Client, Keys: keys, Zone: c.Rules().Zone, Now: c.Clock.Now, Writes: engine == bank.Memory, Operator: c.do,
	}, c
}

func (c *clerk) do(t *testing.T, does, with, body string) string {
	t.Helper()
	switch does {
	case "clock":
		at, err := time.ParseInLocation("2006-01-02 15:04:05.999999", with, c.Rules().Zone)
		require.NoError(t, err, "clock needs a day and a time, such as {{today 1}} 09:00:00")
		c.Clock.Set(at)
		settled, err := c.Settle(t.Context())
		require.NoError(t, err)
		return fmt.Sprintf("%d completed, %d failed", settled.Completed, settled.Failed)
	case "import":
		return fmt.Sprintf("%d lines", c.Import(t, with, body+"\n").Lines())
	case "rules":
		return c.Rule(t, rules(t, with)).String()
	default:
		return c.changes(t)
	}
}

func rules(t *testing.T, text string) (f fund.RulesFields) {
	t.Helper()
	fields := map[string]*string{"TimeZone": &f.TimeZone, "ClosedWeekdays": &f.ClosedWeekdays, "CutOff": &f.CutOff, "SettleFrom": &f.SettleFrom}
	for each := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(each, "=")
		require.Contains(t, fields, name, "%s is no rule", name)
		*fields[name] = value
	}
	return f
}

// changes lists the holdings and accounts that differ from the last call, and counts new messages.
func (c *clerk) changes(t *testing.T) string {
	t.Helper()
	reader, now, decimals := c.Office(t).Reader, map[string]int64{}, map[string]int{}
	for h, err := range reader.Holdings(t.Context(), backoffice.Query{}) {
		require.NoError(t, err)
		name := fmt.Sprintf("%d %s (%s)", h.Key.CustomerNo, h.Key.Fund.IMKBCode, h.Key.Fund.HolderCorporationName)
		now[name], decimals[name] = int64(h.Units), fund.UnitDecimals
	}
	for a, err := range reader.Accounts(t.Context(), backoffice.Query{}) {
		require.NoError(t, err)
		name := fmt.Sprintf("%d-%d-%d %s", a.Key.BranchCode, a.Key.CustomerNo, a.Key.AccountSuffix, a.Key.Currency.Code())
		now[name], decimals[name] = a.Balance.Minor(), a.Key.Currency.Decimals()
	}
	for _, err := range reader.Notifications(t.Context(), backoffice.Query{}) {
		require.NoError(t, err)
		now["messages"]++
	}
	var changed []string
	for name := range c.seen {
		if _, isThere := now[name]; !isThere {
			changed = append(changed, name+" is gone")
		}
	}
	for name, quantity := range now {
		if difference := quantity - c.seen[name]; difference != 0 {
			changed = append(changed, fmt.Sprintf("%s %s", name, decimal.FormatFixed(difference, decimals[name])))
		}
	}
	c.seen = now
	slices.Sort(changed)
	return fmt.Sprintf("%d changed\n\n%s", len(changed), strings.Join(changed, "\n"))
}
