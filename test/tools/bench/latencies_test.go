package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantiles(t *testing.T) {
	t.Parallel()
	var l, other latencies
	require.Zero(t, l.quantile(0.99), "nothing recorded")
	for us := 10; us > 0; us-- {
		l.record(time.Duration(us) * time.Microsecond)
	}
	require.Equal(t, 5*time.Microsecond, l.quantile(0.5))
	require.Equal(t, 10*time.Microsecond, l.quantile(0.99))
	require.Equal(t, 1*time.Microsecond, l.quantile(0))
	for range 90 {
		other.record(20 * time.Microsecond)
	}
	l.merge(other)
	require.Len(t, l, 100)
	require.Equal(t, 20*time.Microsecond, l.quantile(0.5))
	require.Equal(t, 10*time.Microsecond, l.quantile(0.1))
}
