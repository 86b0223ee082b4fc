package storage_test

import (
	"cmp"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/test/contract"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// column is what both dialects have of a column.
type column struct {
	Table, Name, Kind string
	Required          bool
	Default           string
	Key               int // place in the primary key, from 1; 0 for the others
}

// kinds are the types that stand for each other.
var kinds = map[string]string{
	"bigint": "integer", "integer": "integer", "smallint": "integer", "INTEGER": "integer", "text": "text", "TEXT": "text",
	"bytea": "bytes", "uuid": "bytes", "BLOB": "bytes",
	"date": "text", "timestamp with time zone": "text", // a text whose order is that of the times
}

// The schemas of both dialects are one: table by table, column by column, key
// by key.
func TestSchemasAreOne(t *testing.T) {
	t.Parallel()
	file, dsn := testdb.SQLite(t), testdb.Postgres(t)
	storekit.OpenSQLite(t, file)
	storekit.OpenPostgres(t, dsn)
	onSQLite, onPostgres := testdb.Open(t, testdb.EngineSQLite, file), testdb.Open(t, testdb.EnginePostgres, dsn)

	onSQLiteColumns, onPostgresColumns := columns(t, onSQLite, sqliteColumns), columns(t, onPostgres, postgresColumns)
	require.Empty(t, without(onSQLiteColumns, onPostgresColumns), "only SQLite has these columns: its migrations and those of Postgres differ")
	require.Empty(t, without(onPostgresColumns, onSQLiteColumns), "only Postgres has these columns: its migrations and those of SQLite differ")
	require.Len(t, slices.Compact(keys(onSQLiteColumns, func(c column) string { return c.Table })), 15, "a new table is counted here and in partitioned")

	for _, c := range onSQLiteColumns {
		if c.Key > 0 {
			require.True(t, c.Required, "%v", c)
		}
	}
	require.Equal(t,
		statementsOf(t, onSQLite, `SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name NOT IN `+notOurs),
		statementsOf(t, onPostgres, `SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND indexname NOT LIKE '%_pkey' AND indexdef NOT LIKE '%USING brin%' AND tablename NOT IN `+notOurs))
	// How rows are looked up is each engine's own.
	require.Equal(t, []string{"notifications_push", "notifications_user", "operations_request", "sales_customer"},
		statementsOf(t, onPostgres, `SELECT indexname FROM pg_indexes WHERE schemaname = 'public' AND indexdef LIKE '%USING brin%'`))
	require.Equal(t, checks(statementsOf(t, onSQLite, `SELECT sql FROM sqlite_schema WHERE type = 'table' AND tbl_name NOT IN `+notOurs)),
		checks(statementsOf(t, onPostgres, `SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace`)))
}

const (
	notOurs       = "('lookup_runs', 'lookup_entries', 'schema_1', 'schema_lock', 'sqlite_sequence')"
	sqliteColumns = `SELECT m.name, c.name, c.type, c."notnull", COALESCE(c.dflt_value, ''), c.pk FROM sqlite_schema m, pragma_table_info(m.name) c
WHERE m.type = 'table' AND m.name NOT IN ` + notOurs
	postgresColumns = `SELECT c.table_name, c.column_name, c.data_type, c.is_nullable = 'NO',
 COALESCE(replace(c.column_default, '::text', ''), ''), COALESCE((SELECT k.ordinal_position FROM information_schema.key_column_usage k
  WHERE k.table_schema = 'public' AND k.table_name = c.table_name AND k.column_name = c.column_name), 0)
FROM information_schema.columns c JOIN pg_tables t ON t.schemaname = c.table_schema AND t.tablename = c.table_name
WHERE c.table_schema = 'public' AND c.table_name NOT IN ` + notOurs
)

func columns(t *testing.T, db *sql.DB, query string) []column {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer rows.Close()
	var found []column
	for rows.Next() {
		var c column
		require.NoError(t, rows.Scan(&c.Table, &c.Name, &c.Kind, &c.Required, &c.Default, &c.Key))
		require.Contains(t, kinds, c.Kind)
		if c.Kind = kinds[c.Kind]; c.Kind == "bytes" && c.Default != "" { // an empty value, as the engine writes it
			c.Default = "''"
		}
		found = append(found, c)
	}
	require.NoError(t, rows.Err())
	slices.SortFunc(found, func(a, b column) int { return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Name, b.Name)) })
	return found
}

var (
	noise = regexp.MustCompile(`public\.|USING btree |::\w+|[()"]`)
	check = regexp.MustCompile(`CHECK ?\(+(\w+ \S+ \d+)\)+`)
)

// statementsOf are definitions in one spelling, sorted.
func statementsOf(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer rows.Close()
	var found []string
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		if strings.HasPrefix(text, "CREATE INDEX") || strings.HasPrefix(text, "CREATE UNIQUE INDEX") {
			text = strings.Join(strings.Fields(noise.ReplaceAllString(text, " ")), " ")
		}
		found = append(found, text)
	}
	require.NoError(t, rows.Err())
	slices.Sort(found)
	return found
}

func checks(definitions []string) []string {
	var found []string
	for _, d := range definitions {
		for _, match := range check.FindAllStringSubmatch(d, -1) {
			found = append(found, match[1])
		}
	}
	slices.Sort(found)
	return found
}

func TestMigrateUp(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, engine string, s *store.Store) {
		ctx := t.Context()
		files, err := filepath.Glob(engine + "/migrations/*.sql")
		require.NoError(t, err)
		require.EqualValues(t, len(files), int64(store.SchemaVersion), "SchemaVersion (application/store/store.go) is the number of the newest migration")
		require.NoError(t, s.Schema.Require(ctx))
		newBank(t, s, 1).holds()
		again, err := s.Schema.Up(ctx)
		require.NoError(t, err)
		require.Empty(t, again)

		status, err := s.Schema.Status(ctx)
		require.NoError(t, err)
		migrations := status.Migrations
		require.Len(t, migrations, len(files))
		for i, m := range migrations {
			require.EqualValues(t, i+1, m.Version)
			require.Equal(t, filepath.Base(files[i]), m.Name)
			require.False(t, m.Applied.IsZero())
		}
	})
}

// Nothing reads or writes a database without a schema.
func TestNoSchema(t *testing.T) {
	t.Parallel()
	onEmptyDatabase(t, func(t *testing.T, open func(string) *store.Store, _ func(string) []string) {
		s, ctx := open(""), t.Context()
		err := s.Schema.Require(ctx)
		require.Equal(t, fault.Unavailable, fault.KindOf(err))
		require.ErrorContains(t, err, "too old: version 0, this program needs "+strconv.Itoa(store.SchemaVersion))
		require.ErrorContains(t, err, "bankingapi migrate up")
		_, unread := s.Subscriptions.All(ctx)
		require.Equal(t, err, unread)
		_, unread = s.Backoffice.Erasing.ErasedBefore(ctx)
		require.Equal(t, err, unread, "no day is not the same as no answer")
	})
}

// A database of a version that was never released is refused with one sentence, and stays as it
// is.
func TestAnUnreleasedDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	onEmptyDatabase(t, func(t *testing.T, open func(string) *store.Store, query func(string) []string) {
		s := up(t, open(""))
		newBank(t, s, 1)
		require.NoError(t, storage.Exec(t.Context(), s, "ALTER TABLE schema_1 RENAME TO schema_version"))
		s, ctx := open(""), t.Context()
		_, failed := s.Schema.Up(ctx)
		_, unread := s.Schema.Status(ctx)
		for _, err := range []error{s.Schema.Require(ctx), failed, unread, due(s), settle(ctx, s, today, order(nextID(), "", sale(1, 1, 1)))} {
			require.Equal(t, fault.Unavailable, fault.KindOf(err))
			require.ErrorContains(t, err, "This database was made by an unreleased version."+
				" Export prices, holdings and accounts with that version and import them into a new one.")
		}
		require.Equal(t, []string{"1"}, query("SELECT CAST(COUNT(*) AS text) FROM holdings"))
		require.Empty(t, query("SELECT 'x' FROM sales"))
	})
}

// What must run a migration and what runs it read the table of versions in the same way. Otherwise one
// calls the schema too old, and the other one calls it up to date.
func TestAChangedTableOfVersions(t *testing.T) {
	t.Parallel()
	for change, says := range map[string]string{
		"UPDATE schema_1 SET is_applied = false":                      "is_applied is not true in each row",
		"UPDATE schema_1 SET is_applied = false WHERE version_id > 0": "is_applied is not true in each row",
		"UPDATE schema_1 SET version_id = 0":                          "the tables of a book are there, and it does not say their version",
		"UPDATE schema_1 SET version_id = -3":                         "the tables of a book are there, and it does not say their version",
		"DELETE FROM schema_1 WHERE version_id > 0":                   "the tables of a book are there, and it does not say their version",
		"DELETE FROM schema_1":                                        "the tables of a book are there, and it does not say their version",
		"DROP TABLE schema_1":                                         "the tables of a book are there, and it does not say their version",
	} {
		onEmptyDatabase(t, func(t *testing.T, open func(string) *store.Store, _ func(string) []string) {
			s := up(t, open(""))
			newBank(t, s, 1)
			require.NoError(t, storage.Exec(t.Context(), s, change))
			s, ctx := open(""), t.Context()
			_, failed := s.Schema.Up(ctx)
			_, unread := s.Schema.Status(ctx)
			for _, err := range []error{s.Schema.Require(ctx), failed, unread, due(s)} {
				require.Equal(t, fault.Unavailable, fault.KindOf(err), change)
				require.ErrorContains(t, err, "Somebody has changed the table schema_1: "+says, change)
			}
			if change != "UPDATE schema_1 SET is_applied = false" {
				return
			}
			require.NoError(t, storage.Exec(ctx, s, "UPDATE schema_1 SET is_applied = true")) // as the sentence says
			newBank(t, s, 1).holds()
		})
	}
}

// A host may have a table of this name for itself.
func TestASchemaVersionOfAHost(t *testing.T) {
	t.Parallel()
	onEmptyDatabase(t, func(t *testing.T, open func(string) *store.Store, _ func(string) []string) {
		s := open("")
		require.NoError(t, storage.Exec(t.Context(), s, "CREATE TABLE schema_version (host int)"))
		newBank(t, up(t, s), 1).holds()
	})
}

// Who finds a later version does nothing by rules that may be old; who runs when
// it comes goes on.
func TestSchemaOfALaterVersion(t *testing.T) {
	t.Parallel()
	for engine, open := range map[string]func(t *testing.T) (*store.Store, *store.Store, string, *sql.DB){
		testdb.EngineSQLite: func(t *testing.T) (*store.Store, *store.Store, string, *sql.DB) {
			file := testdb.SQLite(t)
			return storekit.OpenSQLite(t, file), storekit.OpenSQLite(t, file), "1", testdb.Open(t, testdb.EngineSQLite, file)
		},
		testdb.EnginePostgres: func(t *testing.T) (*store.Store, *store.Store, string, *sql.DB) {
			dsn := testdb.Postgres(t)
			return storekit.OpenPostgres(t, dsn), storekit.OpenPostgres(t, dsn), "true", testdb.Open(t, testdb.EnginePostgres, dsn)
		},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			running, starting, yes, db := open(t)
			ctx := t.Context()
			b := newBank(t, running, 1)
			_, err := db.ExecContext(ctx, "INSERT INTO schema_1 (version_id, is_applied) VALUES (99, "+yes+")")
			require.NoError(t, err)

			for _, err := range []error{
				starting.Schema.Require(ctx),
				starting.Schema.Require(ctx),
				settle(ctx, starting, today, order(nextID(), "", sale(1, 1, 1))),
				due(starting),
			} {
				require.Equal(t, fault.Unavailable, fault.KindOf(err))
				require.ErrorContains(t, err, "too new: version 99")
			}

			require.NoError(t, running.Schema.Require(ctx))
			b.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1)))
			b.holds()
		})
	}
}

func due(s *store.Store) error {
	_, err := s.Books.Due(context.Background(), buyfund.Due{Until: today}, nil, 1)
	return err
}

// Replicas that start at the same moment migrate once.
func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(dsn string) (storage.Engine, error){
		testdb.EngineSQLite: func(dsn string) (storage.Engine, error) {
			return storekit.Started(sqlite.NewEngine(storage.Options{DSN: dsn, StatementTimeout: statementTimeout}))
		},
		testdb.EnginePostgres: func(dsn string) (storage.Engine, error) {
			return storekit.Started(postgres.NewEngine(storage.Options{DSN: dsn}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.SQLite(t)
			if name == testdb.EnginePostgres {
				dsn = testdb.Postgres(t)
			}
			var done sync.WaitGroup
			applied := make([]int, 4)
			errs := make([]error, len(applied))
			for i := range applied {
				engine, err := open(dsn)
				require.NoError(t, err)
				s := bind(t, engine, "")
				t.Cleanup(func() { require.NoError(t, s.Close()) })
				done.Go(func() {
					up, err := s.Schema.Up(context.WithoutCancel(t.Context()))
					applied[i], errs[i] = len(up), err
				})
			}
			done.Wait()
			total := 0
			for i := range applied {
				require.NoError(t, errs[i])
				total += applied[i]
			}
			require.EqualValues(t, int64(store.SchemaVersion), total)
		})
	}
}

// Two instances live in one database beside each other and beside a host's own
// tables.
func TestTablePrefix(t *testing.T) {
	t.Parallel()
	dsn, file := testdb.Postgres(t), testdb.SQLite(t)
	for name, open := range map[string]func(o storage.Options) (storage.Engine, error){
		testdb.EngineSQLite: func(o storage.Options) (storage.Engine, error) {
			o.DSN = file
			return storekit.Started(sqlite.NewEngine(o))
		},
		testdb.EnginePostgres: func(o storage.Options) (storage.Engine, error) {
			o.DSN = dsn
			return storekit.Started(postgres.NewEngine(o))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var banks []bank
			for _, prefix := range []string{"one_", "two_", ""} {
				engine, err := open(storage.Options{StatementTimeout: statementTimeout, TablePrefix: prefix})
				require.NoError(t, err)
				s := bind(t, engine, prefix)
				t.Cleanup(func() { require.NoError(t, s.Close()) })
				_, err = s.Schema.Up(t.Context())
				require.NoError(t, err)
				require.NoError(t, s.Schema.Require(t.Context()))
				banks = append(banks, newBank(t, s, 2))
			}
			for i, b := range banks {
				for range i {
					b.sell(2, order(nextID(), nextID().String(), sale(1, 1, 2)))
				}
			}
			for i, b := range banks {
				require.EqualValues(t, i, b.holds().Sales)
			}
		})
	}
}

var table = regexp.MustCompile(`(?s)CREATE TABLE (\w+) \(\s*(.*?PRIMARY KEY \((\w+).*?\))\s*\)[^;]*;`)

// partitioned is the Postgres schema with every table split by the hash of the
// first column of its key, as distributed engines split them. Postgres itself
// refuses a unique key without that column.
func partitioned(t *testing.T) (statements []string) {
	t.Helper()
	files, err := filepath.Glob("postgres/migrations/*.sql")
	require.NoError(t, err)
	tables := 0
	for _, name := range files {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		schema := strings.ReplaceAll(string(content), "{{prefix}}", "")
		schema = strings.Replace(schema, "CREATE UNIQUE INDEX operations_identity ON operations (identity) WHERE caller_id <> '';", "CREATE INDEX operations_id ON operations (operation_id);", 1)
		statements = append(statements, table.ReplaceAllStringFunc(schema, func(definition string) string {
			tables++
			parts := table.FindStringSubmatch(definition)
			if parts[1] == "operations" { // a distributed table has no unique key without the column by which it is split
				parts[2], parts[3] = strings.Replace(parts[2], "PRIMARY KEY (operation_id)", "PRIMARY KEY (identity)", 1), "identity"
			}
			split := "CREATE TABLE " + parts[1] + " (" + parts[2] + ") PARTITION BY HASH (" + parts[3] + ");\n"
			for i := range 4 {
				n := strconv.Itoa(i)
				split += "CREATE TABLE " + parts[1] + "_" + n + " PARTITION OF " + parts[1] + " FOR VALUES WITH (MODULUS 4, REMAINDER " + n + ");\n"
			}
			return split
		}))
	}
	require.Equal(t, 15, tables, "a new table is counted here and in TestSchemasAreOne")
	return append(statements, "CREATE TABLE schema_1 AS SELECT "+strconv.Itoa(store.SchemaVersion)+" AS version_id, true AS is_applied")
}

func TestHashPartitions(t *testing.T) {
	t.Parallel()
	schema := partitioned(t)
	open := func(t *testing.T) (*store.Store, contract.Trouble) {
		dsn := testdb.Postgres(t)
		script(t, dsn, schema...)
		engine, err := storekit.Started(postgres.NewEngine(storage.Options{DSN: dsn, StatementTimeout: statementTimeout}))
		require.NoError(t, err)
		store := bind(t, engine, "")
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		return store, contract.Trouble{}
	}
	if longForm() {
		contract.Books(t, func(t *testing.T) contract.BooksUnderTest { return booksUnderTest(open(t)) })
		contract.Inboxes(t, func(t *testing.T) contract.InboxesUnderTest { return inboxesUnderTest(open(t)) })
	}
	t.Run("everything", func(t *testing.T) {
		t.Parallel()
		store, _ := open(t)
		everything(t, store)
	})
	t.Run("verify", func(t *testing.T) {
		t.Parallel()
		store, _ := open(t)
		b := newBank(t, store, 3)
		aDay(b)
		b.holds()
	})
}

// Nothing of the schema is what distributed engines lack, or what would decide
// beside the domain.
func TestSchemaIsPlain(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/migrations/*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	foreign := regexp.MustCompile(`(?i)\b(SERIAL|BIGSERIAL|GENERATED|AUTOINCREMENT|SEQUENCE|TRIGGER|REFERENCES|TEMP|TEMPORARY|FUNCTION|PROCEDURE|REAL|FLOAT|DOUBLE|NUMERIC|DECIMAL)\b`)
	comment := regexp.MustCompile(`(?m)--.*$`)
	for _, name := range files {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		sql := comment.ReplaceAllString(string(content), "")
		require.Empty(t, foreign.FindAllString(sql, -1), name)
	}
}

// While a service runs, a later version adds a column. No statement of the service fails once on
// each of its connections.
func TestAColumnThatIsAddedEndsNoPreparedStatement(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := storekit.OpenPostgres(t, dsn)
	b := newBank(t, s, 1)
	use := func() {
		_, err := s.Subscriptions.All(t.Context())
		require.NoError(t, err)
		_, err = s.Backoffice.OperationOf(t.Context(), idempotency.Key{CallerID: "first", Subscription: "shop", Operation: operation.BuyFundFromCustomer})
		require.NoError(t, err)
		_, err = s.Backoffice.Outcomes.Outcomes(t.Context(), "", 0, 1)
		require.NoError(t, err)
		_, err = s.Trail.Log.State(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Ping(t.Context()))
		all(t, s.Backoffice.Reader.ClosedDays(t.Context()))
	}
	b.sell(operation.Completed, order(nextID(), "first", sale(1, 1, 1)))
	use()
	for _, table := range storage.Tables(s) {
		script(t, dsn, "ALTER TABLE "+table+" ADD COLUMN later text NOT NULL DEFAULT ''")
	}
	script(t, dsn, "ALTER TABLE properties ADD COLUMN later text NOT NULL DEFAULT ''")
	use()
}

// A server in another time zone says when a migration was applied, too.
func TestWhenAMigrationWasApplied(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	admin(t, dsn, "ALTER DATABASE "+database(t, dsn)+" SET timezone = 'Pacific/Kiritimati'")
	status, err := storekit.OpenPostgres(t, dsn).Schema.Status(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, status.Migrations)
	for _, m := range status.Migrations {
		require.WithinDuration(t, clock.Now(), m.Applied, time.Hour, m.Name)
	}
}
