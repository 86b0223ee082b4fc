package storage_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/domain/fault"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// Somebody copies an older file over the file of a running service, as cp does: the same inode gets
// other content. SQLite does not notice this, and would mix both. From then on nothing is
// answered, and the service is not ready, also after a checkpoint.
func TestAFileThatIsCopiedOverTheLiveOne(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]int{"with a few sales between": 3, "with many sales between": 300, "a copy of the same moment": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := testdb.SQLite(t)
			first := storekit.OpenSQLite(t, file)
			b := newBank(t, first, 5)
			sell := func() error { return settle(t.Context(), first, today, order(v7(), "", sale(1, 1, 1))) }
			require.NoError(t, sell())
			require.NoError(t, storage.Exec(t.Context(), first, "PRAGMA wal_checkpoint(TRUNCATE)"))
			old, err := os.ReadFile(file)
			require.NoError(t, err)
			for range between {
				require.NoError(t, sell())
			}
			require.NoError(t, storage.Exec(t.Context(), first, "PRAGMA wal_checkpoint(TRUNCATE)"))
			require.NoError(t, sell())
			require.NoError(t, first.Ping(t.Context()))
			b.holds()

			require.NoError(t, os.WriteFile(file, old, 0o600)) // truncates and writes, as cp does
			for range 3 {
				err := sell()
				require.Equal(t, fault.Unavailable, fault.KindOf(err), "%v", err)
				require.Equal(t, fault.Unavailable, fault.KindOf(first.Ping(t.Context())))
			}
			_ = storage.Exec(t.Context(), first, "PRAGMA wal_checkpoint(TRUNCATE)")
			require.Equal(t, fault.Unavailable, fault.KindOf(sell()))
			require.ErrorContains(t, first.Ping(t.Context()), "was overwritten while the service used it")
		})
	}
}
