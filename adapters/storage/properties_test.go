package storage_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

func TestTheClockOfTheStorageAndTheNewestSale(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, engine string, s *store.Store) {
		_, newest, err := s.Clock(t.Context())
		require.NoError(t, err)
		require.Zero(t, newest)
		b := newBank(t, s, 2)
		b.sell(2, order(v7(), "", sale(1, 1, 2)))
		theirs, newest, err := s.Clock(t.Context())
		require.NoError(t, err)
		require.Equal(t, now, newest)
		if engine == testdb.EngineSQLite {
			require.Zero(t, theirs)
		} else {
			require.WithinDuration(t, time.Now(), theirs, time.Minute)
		}
	})
}
