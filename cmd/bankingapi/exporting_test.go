package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap"
)

func TestMomentIsADayOfTheBankOrAnInstant(t *testing.T) {
	t.Parallel()
	bank := bootstrap.DefaultSettings().Bank
	for _, test := range []struct{ text, start, end string }{
		{"2026-11-20", "2026-11-19T21:00:00Z", "2026-11-20T21:00:00Z"},
		{"2026-11-20T09:30:00+03:00", "2026-11-20T06:30:00Z", "2026-11-20T06:30:00Z"},
		{"2026-11-20T09:30:00.5Z", "2026-11-20T09:30:00.5Z", "2026-11-20T09:30:00.5Z"},
	} {
		start, end, err := moment(bank, "since", test.text)
		require.NoError(t, err)
		require.Equal(t, test.start, start.UTC().Format(time.RFC3339Nano))
		require.Equal(t, test.end, end.UTC().Format(time.RFC3339Nano))
	}
	start, end, err := moment(bank, "since", "")
	require.NoError(t, err)
	require.True(t, start.IsZero() && end.IsZero())
}
