package testdb_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/test/kit/testdb"
)

func TestEach(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, _ string, store *store.Store) {
		require.NoError(t, store.Schema.Require(t.Context()))
	})
}
