package testdb_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/test/testdb"
)

func TestEach(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, _ string, store *storage.Store) {
		require.NoError(t, store.CheckSchema(t.Context()))
	})
}
