package storage_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/domain/fault"
	"bankingapi/test/kit/testdb"
)

// The first service decides the time zone of a book. Another one neither settles nor
// is ready.
func TestTheZoneOfABookIsKept(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, _ string, s *store.Store) {
		for range 2 {
			_, _, err := s.Clock(t.Context(), "Europe/Istanbul")
			require.NoError(t, err)
		}
		_, _, err := s.Clock(t.Context(), "Asia/Tokyo")
		require.Equal(t, fault.Unavailable, fault.KindOf(err))
		require.ErrorContains(t, err, "Set bank.time_zone to Europe/Istanbul.")
		require.ErrorContains(t, err, "UPDATE properties SET value = 'Asia/Tokyo' WHERE name = 'time_zone'")
	})
}

// Of two services that begin a book with different zones, one decides. A trigger of the
// database plays the faster one.
func TestTheFasterServiceDecidesTheZone(t *testing.T) {
	t.Parallel()
	file := testdb.SQLite(t)
	s := testdb.OpenSQLite(t, file)
	execute(t, connect(t, "sqlite", file), "CREATE TRIGGER faster BEFORE INSERT ON properties WHEN NEW.name = 'time_zone' AND NEW.value <> 'Asia/Tokyo'"+
		" BEGIN INSERT INTO properties VALUES ('time_zone', 'Asia/Tokyo'); END")
	_, _, err := s.Clock(t.Context(), "Europe/Istanbul")
	require.ErrorContains(t, err, "Set bank.time_zone to Asia/Tokyo.")
	_, _, err = s.Clock(t.Context(), "Asia/Tokyo")
	require.NoError(t, err)
}

func TestTheClockOfTheStorageAndTheNewestSale(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string, s *store.Store) {
		_, newest, err := s.Clock(t.Context(), "UTC")
		require.NoError(t, err)
		require.Zero(t, newest)
		b := newBank(t, s, 2)
		b.sell(2, order(v7(), "", sale(1, 1, 2)))
		theirs, newest, err := s.Clock(t.Context(), "UTC")
		require.NoError(t, err)
		require.Equal(t, now, newest)
		if engine == testdb.EngineSQLite {
			require.Zero(t, theirs)
		} else {
			require.WithinDuration(t, time.Now(), theirs, time.Minute)
		}
	})
}
