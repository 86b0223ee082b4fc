package clock_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
)

// Operations are listed and settled in the order of their IDs, also within a
// millisecond of a sandbox.
func TestIDsOfATimeAreInItsOrder(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 1, 15, 12, 0, 0, 999_000_000, time.UTC)
	newID := clock.IDs(func() time.Time { return at })
	before := newID()
	require.Equal(t, uuid.Version(7), uuid.UUID(before).Version())
	for range 2000 {
		at = at.Add(time.Microsecond)
		id := newID()
		require.Less(t, before.String(), id.String(), at)
		require.Equal(t, at.UnixMilli()*1e6, func() int64 { s, ns := uuid.UUID(id).Time().UnixTime(); return s*1e9 + ns }()/1e6*1e6)
		before = id
	}
	for range 2000 { // while it stands still
		id := newID()
		require.Less(t, before.String(), id.String())
		before = id
	}
	at = at.Add(-time.Hour) // a sandbox is reset
	require.Less(t, newID().String(), before.String())
}
