package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestHistogramQuantiles(t *testing.T) {
	t.Parallel()
	var h, other histogram
	require.Zero(t, h.quantile(0.99), "nothing recorded")

	for us := 1; us <= 10; us++ {
		h.record(time.Duration(us) * time.Microsecond)
	}
	require.Equal(t, 5*time.Microsecond, h.quantile(0.5))
	require.Equal(t, 10*time.Microsecond, h.quantile(0.99))
	require.Equal(t, 1*time.Microsecond, h.quantile(0))

	for range 90 {
		other.record(20 * time.Microsecond)
	}
	h.merge(&other)
	require.Equal(t, 100, h.total)
	require.Equal(t, 20*time.Microsecond, h.quantile(0.5))
	require.Equal(t, 10*time.Microsecond, h.quantile(0.1))
}

func TestHistogramNeverShowsLessAndAtMostThreePercentMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		took := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "took")).Truncate(time.Microsecond)
		shown := upperBound(bucketOf(took))
		require.GreaterOrEqual(t, shown, took)
		require.LessOrEqual(t, shown, took+took/32)
	})
}

func TestHistogramKeepsWhatIsTooLong(t *testing.T) {
	t.Parallel()
	var h histogram
	h.record(1000 * time.Hour)
	h.record(-time.Second)
	require.Equal(t, 2, h.total)
	require.Greater(t, h.quantile(1), time.Hour)
}
