package storage_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// modelKinds are the types of columns by their kinds, as type kinds has them.
var modelKinds = map[batch.Kind]string{
	batch.Integer: "integer", batch.NullInteger: "integer", batch.Text: "text", batch.Bytes: "bytes",
	batch.Identifier: "bytes", batch.Date: "text", batch.Time: "text",
}

// ofModel are the columns that the model of a table declares. gorm names the table.
func ofModel[R any]() (columns []column) {
	table := batch.NewTable[R](nil, tables.Naming(""))
	for _, c := range table.Columns {
		columns = append(columns, column{Table: table.Name, Name: c.Name, Kind: modelKinds[c.Kind], Required: !c.Nullable})
		if c.Key {
			columns[len(columns)-1].Key = 1
		}
		if c.Sparse && !c.Nullable {
			columns[len(columns)-1].Default = "''"
			if c.Kind == batch.Integer {
				columns[len(columns)-1].Default = "0"
			}
		}
	}
	return columns
}

// without are the columns that others lacks.
func without(columns, others []column) []column {
	return slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return slices.Contains(others, c) })
}

// Each model is its table in the migrated schema of both engines: columns,
// types, NULL, defaults and keys.
func TestModelsAreTheSchema(t *testing.T) {
	t.Parallel()
	models := slices.Concat(
		ofModel[tables.SubscriptionRow](), ofModel[tables.PriceRow](), ofModel[tables.HoldingRow](),
		ofModel[tables.AccountRow](), ofModel[tables.OperationRow](), ofModel[tables.SaleRow](),
		ofModel[tables.AdjustmentRow](), ofModel[tables.NotificationRow](),
		ofModel[tables.AuditRow](), ofModel[tables.PropertyRow](),
		ofModel[tables.OutcomeRow](),
		ofModel[tables.RequestRow](), ofModel[tables.TrailBatchRow](), ofModel[tables.TrailHashRow](),
		ofModel[tables.ReplicaRow](),
	)
	slices.SortFunc(models, func(a, b column) int { return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Name, b.Name)) })
	for engine, migrated := range map[string]func(t *testing.T) []column{
		testdb.EngineSQLite: func(t *testing.T) []column {
			file := testdb.SQLite(t)
			storekit.OpenSQLite(t, file)
			return columns(t, testdb.Open(t, testdb.EngineSQLite, file), sqliteColumns)
		},
		testdb.EnginePostgres: func(t *testing.T) []column {
			dsn := testdb.Postgres(t)
			storekit.OpenPostgres(t, dsn)
			return columns(t, testdb.Open(t, testdb.EnginePostgres, dsn), postgresColumns)
		},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			found := migrated(t)
			for i := range found {
				found[i].Key = min(found[i].Key, 1)
			}
			require.Empty(t, without(found, models), "no row struct of package storage has these columns of the migrated schema; a new struct belongs into models in this test")
			require.Empty(t, without(models, found), "the migrated schema has no such columns: write a migration")
		})
	}
}
