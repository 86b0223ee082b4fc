package bookfile

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/push"
)

// A member that a later version adds is the last column of a file: a reader that counts columns
// goes on working.
func TestANewMemberIsTheLastColumn(t *testing.T) {
	t.Parallel()
	names := func(columns []Column[push.Entry]) (all []string) {
		for _, c := range columns {
			all = append(all, c.Name)
		}
		return all
	}
	added := push.Member{Name: "Language", Value: func(*push.Values) string { return "" }}
	require.Equal(t,
		append(names(memberColumns(push.Members)), "Language"),
		names(memberColumns(append(slices.Clone(push.Members), added))))
}

// The zero row tells which columns have times.
func TestColumnsOfTheConsoleAcceptTheZeroRow(t *testing.T) {
	t.Parallel()
	require.Contains(t, zoneNames(FundPrices, time.UTC), "Imported (UTC)")
	require.Contains(t, zoneNames(Statement, time.UTC), "PostedAt (UTC)")
	require.Contains(t, zoneNames(Refusals, time.UTC), "ReceivedAt (UTC)")
	require.Equal(t, []string{"Rule", "Finding"}, zoneNames(Findings, time.UTC))
}
