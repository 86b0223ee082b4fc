package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/domain/fault"
)

func TestAServiceWithAWrongClockDoesNotSettle(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.November, 20, 9, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		theirs, newest time.Time
		unsafe         bool
		fails, warns   string
	}{
		"an empty book":                 {},
		"equal":                         {theirs: at, newest: at},
		"nearly equal":                  {theirs: at.Add(-time.Minute), newest: at.Add(time.Minute)},
		"ahead of the database":         {theirs: at.Add(-48 * time.Hour), fails: "The clock of this machine is 48h0m0s ahead of the clock of the database"},
		"ahead, and unsafe":             {theirs: at.Add(-48 * time.Hour), unsafe: true, warns: "48h0m0s ahead"},
		"behind the database":           {theirs: at.Add(time.Hour), warns: "1h0m0s behind the clock of the database"},
		"set back":                      {newest: at.Add(time.Hour), fails: "1h0m0s after the time of this machine"},
		"set back, and allowed":         {newest: at.Add(time.Hour), unsafe: true, warns: "1h0m0s after the time of this machine"},
		"another replica was ahead":     {theirs: at, newest: at.Add(time.Hour), warns: "The newest sale was received at 2026-11-20T10:00:00Z"},
		"the newest sale is a day old":  {newest: at.Add(-24 * time.Hour)},
		"the newest sale is older here": {theirs: at, newest: at.Add(-24 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &store.Store{Clock: func(_ context.Context, zone string) (time.Time, time.Time, error) {
				require.Equal(t, "UTC", zone)
				return test.theirs, test.newest, nil
			}}
			warnings, err := s.CheckClock(t.Context(), func() time.Time { return at }, time.UTC, test.unsafe)
			if test.fails != "" {
				require.ErrorContains(t, err, test.fails)
				require.Equal(t, fault.Unavailable, fault.KindOf(err))
				return
			}
			require.NoError(t, err)
			if test.warns == "" {
				require.Empty(t, warnings)
				return
			}
			require.Len(t, warnings, 1)
			require.Contains(t, warnings[0], test.warns)
		})
	}
}
