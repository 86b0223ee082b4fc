package backoffice_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/domain/operation"
)

func TestFindingsAreGroupedByRule(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	first, last := backoffice.FirstID(at), backoffice.FirstID(at.Add(time.Hour))
	groups := backoffice.GroupFindings([]backoffice.Finding{
		{Rule: "trail-unchanged", Text: "operation " + last.String() + ": its row differs"},
		{Rule: "holding-is-its-postings", Text: "holding 1001 AFA: is 5, but its postings sum to 4"},
		{Rule: "trail-unchanged", Text: "operation " + first.String() + ": its row differs, as that of " + first.String()},
	})
	require.Len(t, groups, 2)
	require.Equal(t, "holding-is-its-postings", groups[0].Name)
	require.True(t, groups[0].First.IsZero())
	require.Contains(t, groups[0].Next, "reconcile")
	require.NotEmpty(t, groups[0].Proves)
	require.Len(t, groups[1].Findings, 2)
	require.Equal(t, at, groups[1].First.UTC())
	require.Equal(t, at.Add(time.Hour), groups[1].Last.UTC())
	require.Equal(t, []operation.ID{first}, groups[1].Findings[1].Operations())
	for _, rule := range backoffice.Rules() {
		require.NotEmpty(t, backoffice.GroupFindings([]backoffice.Finding{{Rule: rule.Name}})[0].Next)
	}
}
