package storage_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// BenchmarkUpdate is one batch of sales, from the book's look-up to the commit:
// what a lane does one of at a time.
func BenchmarkUpdate(b *testing.B) {
	const customers = 10_000
	for engine, open := range map[string]func() *store.Store{
		testdb.EngineSQLite:   func() *store.Store { return storekit.OpenSQLite(b, testdb.SQLite(b)) },
		testdb.EnginePostgres: func() *store.Store { return storekit.OpenPostgres(b, testdb.Postgres(b)) },
	} {
		b.Run(engine, func(b *testing.B) {
			store := newBank(b, open(), customers).Store
			for i, size := range []int{1, 32, 256, 1, 32, 256} {
				if i == 3 {
					store.Trail.Writer.Use(trailKeys, v7)
				}
				b.Run(fmt.Sprintf("trail=%v/sales=%d", i >= 3, size), func(b *testing.B) {
					for b.Loop() {
						batch := make([]*fund.Operation, size)
						for i := range batch {
							id := uuid.Must(uuid.NewV7())
							from := 1 + rand.IntN(customers)
							batch[i] = order(operation.ID(id), id.String(), sale(1, from, from))
						}
						require.NoError(b, settle(b.Context(), store, today, batch...))
					}
				})
			}
		})
	}
}
