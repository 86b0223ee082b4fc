package bookfile

import (
	"slices"
	"testing"

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
