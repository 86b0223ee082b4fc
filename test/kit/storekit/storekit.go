// Package storekit opens the storage for tests, on databases of package testdb. What only starts
// the program needs no storage of its own, so it links none.
package storekit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/store"
	"bankingapi/test/kit/testdb"
)

// Each runs a test on every engine, in parallel, with an empty store that has its schema.
func Each(t *testing.T, test func(t *testing.T, engine string, store *store.Store)) {
	t.Helper()
	t.Run(testdb.EngineSQLite, func(t *testing.T) {
		t.Parallel()
		test(t, testdb.EngineSQLite, OpenSQLite(t, testdb.SQLite(t)))
	})
	t.Run(testdb.EnginePostgres, func(t *testing.T) {
		t.Parallel()
		test(t, testdb.EnginePostgres, OpenPostgres(t, testdb.Postgres(t)))
	})
}

// options are what the stores are opened with.
func options(dsn string) storage.Options {
	return storage.Options{DSN: dsn, StatementTimeout: 20 * time.Second}
}

// Started opens the database of an engine: storekit.Started(sqlite.NewEngine(options)).
func Started(engine storage.Engine, err error) (storage.Engine, error) {
	if err == nil {
		err = engine.Start(context.Background())
	}
	if err != nil {
		return nil, err
	}
	return engine, nil
}

// With is an engine with another dialect.
func With(engine storage.Engine, dialect batch.Dialect) storage.Engine {
	return withDialect{engine, dialect}
}

type withDialect struct {
	storage.Engine
	dialect batch.Dialect
}

func (w withDialect) Dialect() batch.Dialect { return w.dialect }

// OpenSQLite opens the file with the schema in place, and closes it after the test.
func OpenSQLite(t testing.TB, file string) *store.Store {
	t.Helper()
	if _, err := os.Stat(file); os.IsNotExist(err) {
		WriteBook(t, file)
	}
	engine, err := Started(sqlite.NewEngine(options(file)))
	require.NoError(t, err)
	return open(t, engine)
}

// WriteBook writes an empty SQLite book with the schema in place.
func WriteBook(t testing.TB, file string) {
	t.Helper()
	book, err := emptyBook()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, book, 0o600))
}

// emptyBook is a file with the schema in place. To migrate takes longer than most tests.
var emptyBook = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "bankingapi-book-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "bankingapi.db")
	engine, err := Started(sqlite.NewEngine(options(file)))
	if err != nil {
		return nil, err
	}
	made, err := storage.Open(engine, storage.Options{Now: clock.Now})
	if err == nil {
		_, err = made.Schema.Up(context.Background())
		err = errors.Join(err, made.Close())
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// OpenPostgres opens the database with the schema in place, and closes it after the test.
func OpenPostgres(t testing.TB, dsn string) *store.Store {
	t.Helper()
	engine, err := Started(postgres.NewEngine(options(dsn)))
	require.NoError(t, err)
	return open(t, engine)
}

func open(t testing.TB, engine storage.Engine) *store.Store {
	t.Helper()
	store, err := storage.Open(engine, storage.Options{Now: clock.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	_, err = store.Schema.Up(t.Context())
	require.NoError(t, err)
	return store
}
