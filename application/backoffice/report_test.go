package backoffice_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
)

func TestTheReportOfAnAuditor(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	report := backoffice.Report{
		Book: "SQLite file /bank.db", Schema: 5, Program: "1.2.3", By: "ayse at desk-7", Started: at, Ended: at.Add(time.Minute),
		Proof: backoffice.Proof{
			Holdings: 2, Accounts: 1, Sales: 3, Postings: 9,
			Units: []backoffice.Total{{Of: "AFA Demo", Customers: "10.000000", Bank: "-10.000000"}},
			Trail: backoffice.TrailProof{Reason: "no reason"},
			Money: []backoffice.Total{{Of: "TRY", Customers: "5.00", Bank: "-5.00"}},
		},
	}
	text := report.Text()
	for _, want := range []string{
		"Result             Correct: no rule has a finding", "SQLite file /bank.db", "2026-11-20 12:00:00 UTC", "2026-11-20 12:01:00 UTC", "ayse at desk-7",
		"AFA Demo  10.000000  -10.000000", "TRY       5.00       -5.00", "holding-is-its-postings", "Not compared  no reason",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "trail-")

	report.Proof.Batches, report.Proof.Findings = 4, 1002
	report.Proof.Trail.Compared = backoffice.Compared{Messages: 11, Refusals: 12, Prices: 13, Subscriptions: 14, Acts: 15}
	report.Findings = slices.Repeat([]backoffice.Finding{{Rule: "holding-exists", Text: "holding 1001 is missing"}}, backoffice.MaxFindings)
	text = report.Text()
	require.Contains(t, text, "NOT CORRECT: 1002 findings")
	require.Contains(t, text, "And 2 more.")
	require.Contains(t, text, "Units by fund. Customers and bank must be zero together.", "here they may not be")
	require.Contains(t, text, "Money by currency. Customers and bank must be zero together.")
	for _, row := range [][2]string{{"Messages", "11"}, {"Refusals", "12"}, {"Prices", "13"}, {"Subscriptions", "14"}, {"Acts", "15"}} {
		require.Regexp(t, "\n  "+row[0]+" +"+row[1]+"\n", text)
	}
	require.Equal(t, backoffice.MaxFindings, strings.Count(text, "holding 1001 is missing"))
	for _, rule := range backoffice.Rules() {
		require.Contains(t, text, rule.Name)
	}
	require.Contains(t, (&backoffice.Report{}).Text(), "Empty")
}
