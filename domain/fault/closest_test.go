package fault_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
)

func TestClosest(t *testing.T) {
	t.Parallel()
	known := slices.Values([]string{"Amount", "FundAmount", "CustomerNo"})
	for _, test := range []struct {
		word  string
		limit int
		want  string
	}{
		{"Amount", 0, "Amount"},
		{"amount", 0, "Amount"},
		{"Amout", 1, "Amount"},
		{"Amout", 0, ""},
		{"fund_amount", 1, "FundAmount"},
		{"FndAmont", 2, "FundAmount"},
		{"FndAmont", 1, ""},
		{"CustomerNumber", 3, ""},
		{"", 5, ""},
		{"", 6, "Amount"},
	} {
		got, found := fault.Closest(test.word, known, test.limit)
		require.Equal(t, test.want, got, test)
		require.Equal(t, test.want != "", found, test)
	}
	_, found := fault.Closest("x", slices.Values([]string(nil)), 9)
	require.False(t, found)
}
