package money

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheListFitsItsIndex(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, len(currencies), math.MaxUint8+1)
	codes := make([]string, 0, len(currencies))
	for _, c := range currencies {
		codes = append(codes, c.code)
	}
	require.True(t, slices.IsSorted(codes))
	require.Len(t, slices.Compact(codes), len(currencies), "a code is listed twice")
}
