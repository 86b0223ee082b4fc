package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/domain/fault"
)

func TestAServiceWithAWrongClockIsNotReady(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.November, 20, 9, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		theirs, newest time.Time
		jump           time.Duration
		finding        string
	}{
		"an empty book":                 {},
		"equal":                         {theirs: at, newest: at},
		"nearly equal":                  {theirs: at.Add(-time.Minute), newest: at.Add(time.Minute)},
		"nearly behind":                 {theirs: at.Add(time.Minute)},
		"ahead of the database":         {theirs: at.Add(-48 * time.Hour), finding: "The clock of this machine is 48h0m0s ahead of the clock of the database"},
		"just ahead":                    {theirs: at.Add(-61 * time.Second), finding: "1m1s ahead"},
		"behind the database":           {theirs: at.Add(72 * time.Hour), finding: "The clock of this machine is 72h0m0s behind the clock of the database"},
		"just behind":                   {theirs: at.Add(61 * time.Second), finding: "1m1s behind the clock of the database"},
		"behind everything":             {theirs: at.Add(72 * time.Hour), newest: at.Add(71 * time.Hour), finding: "72h0m0s behind the clock of the database"},
		"set back":                      {newest: at.Add(time.Hour), finding: "1h0m0s after the time of this machine: its clock was set back, or was ahead when the operation was received. Synchronize the clock. If its time is right, storage.allow_unsafe is needed until 2026-11-20T10:00:00Z."},
		"another replica was ahead":     {theirs: at, newest: at.Add(time.Hour), finding: "received at 2026-11-20T10:00:00Z, 1h0m0s after the time of this machine and of the database. Another replica's clock was ahead"},
		"the newest is a day old":       {newest: at.Add(-24 * time.Hour)},
		"the newest is older here":      {theirs: at, newest: at.Add(-24 * time.Hour)},
		"jumped ahead":                  {newest: at, jump: 48 * time.Hour, finding: "The clock of this machine was set 48h0m0s ahead while the service ran"},
		"jumped back":                   {newest: at, jump: -48 * time.Hour, finding: "was set 48h0m0s back while the service ran"},
		"drifted":                       {jump: time.Minute},
		"jumped to the database's time": {theirs: at, jump: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &store.Store{Clock: func(context.Context) (time.Time, time.Time, error) {
				return test.theirs, test.newest, nil
			}}
			clock := store.Clock{Now: func() time.Time { return at }, Jump: func() time.Duration { return test.jump }}
			warnings, err := s.CheckClock(t.Context(), clock, false)
			require.Empty(t, warnings)
			allowed, allowedErr := s.CheckClock(t.Context(), clock, true)
			require.NoError(t, allowedErr)
			if test.finding == "" {
				require.NoError(t, err)
				require.Empty(t, allowed)
				return
			}
			require.ErrorContains(t, err, test.finding)
			require.Equal(t, fault.Unavailable, fault.KindOf(err))
			require.Len(t, allowed, 1)
			require.Contains(t, allowed[0], test.finding)
		})
	}
}
