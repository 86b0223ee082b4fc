package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAClockThatJumps(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ passed, running, up, jump time.Duration }{
		"nothing":               {time.Hour, time.Hour, time.Hour, 0},
		"ahead":                 {49 * time.Hour, time.Hour, time.Hour, 48 * time.Hour},
		"back":                  {-47 * time.Hour, time.Hour, time.Hour, -48 * time.Hour},
		"the machine slept":     {9 * time.Hour, time.Hour, 9 * time.Hour, 0},
		"slept, and was set":    {10 * time.Hour, time.Hour, 8 * time.Hour, 2 * time.Hour},
		"the clocks drift":      {time.Hour + time.Second, time.Hour, time.Hour - time.Second, time.Second},
		"the uptime is too old": {time.Hour, time.Hour, 0, 0},
	} {
		require.Equal(t, test.jump, jump(test.passed, test.running, test.up), name)
	}
}

// The watch compares with the clock of the machine.
func TestAWatch(t *testing.T) {
	t.Parallel()
	w := NewWatch()
	require.Less(t, w.Jump().Abs(), time.Minute) // a clock of the machine may be set meanwhile
	w.began = w.began.Add(-time.Hour).Round(0)   // without the monotonic clock, as if the clock was set an hour ahead since
	w.booted = uptime()
	require.Less(t, w.Jump().Abs(), 2*time.Hour)
}
