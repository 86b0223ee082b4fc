package batch_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"
	"gorm.io/gorm/schema"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// shelf has a column of every kind, nullable or not.
type shelf struct {
	Room      int64         `gorm:"primaryKey"`
	Name      string        `gorm:"primaryKey"`
	Owner     batch.UUID    `gorm:"not null"`
	Label     string        `gorm:"not null;default:''"`
	Items     int64         `gorm:"not null"`
	Seal      []byte        `gorm:"not null"`
	Limit     sql.NullInt64 `gorm:"column:most"`
	Built     batch.Day
	SeenAt    batch.Instant `gorm:"not null"`
	EmptiedAt batch.Instant
}

var namer = schema.NamingStrategy{TablePrefix: "own_"}

// under is a dialect with its own table own_shelves.
type under struct {
	dialect batch.Dialect
	db      *sql.DB
}

const sqliteTable = `CREATE TABLE own_shelves (room INTEGER NOT NULL, name TEXT NOT NULL, owner BLOB NOT NULL, label TEXT NOT NULL DEFAULT '',
 items INTEGER NOT NULL CHECK (items >= 0), seal BLOB NOT NULL, most INTEGER, built TEXT, seen_at TEXT NOT NULL, emptied_at TEXT,
 PRIMARY KEY (room, name)) STRICT`

func onEachDialect(t *testing.T, test func(t *testing.T, u under)) {
	for name, open := range map[string]func(t *testing.T) under{
		"sqlite": func(t *testing.T) under {
			file := filepath.Join(t.TempDir(), "shelves.db")
			engine, err := storekit.Started(sqlite.NewEngine(storage.Options{DSN: file, StatementTimeout: time.Minute}))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, engine.Close()) })
			return under{engine.Dialect(), connect(t, testdb.EngineSQLite, file+"?_pragma=busy_timeout(60000)", sqliteTable)}
		},
		"postgres": func(t *testing.T) under {
			dsn := testdb.Postgres(t)
			engine, err := storekit.Started(postgres.NewEngine(storage.Options{DSN: dsn, StatementTimeout: time.Minute}))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, engine.Close()) })
			return under{engine.Dialect(), connect(t, testdb.EnginePostgres, dsn, `CREATE TABLE own_shelves (room bigint NOT NULL, name text NOT NULL, owner uuid NOT NULL,
 label text NOT NULL DEFAULT '', items bigint NOT NULL CHECK (items >= 0), seal bytea NOT NULL, most bigint, built date, seen_at timestamptz NOT NULL,
 emptied_at timestamptz, PRIMARY KEY (room, name))`)}
		},
		"json": func(t *testing.T) under {
			db := connect(t, testdb.EngineSQLite, filepath.Join(t.TempDir(), "shelves.db")+"?_txlock=immediate", sqliteTable)
			return under{jsonDialect{db}, db}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func connect(t *testing.T, engine, dsn, table string) *sql.DB {
	t.Helper()
	db := testdb.Open(t, engine, dsn)
	_, err := db.ExecContext(t.Context(), table)
	require.NoError(t, err)
	return db
}

// transact sends the requests in one transaction.
func (u under) transact(t *testing.T, requests ...batch.Request) error {
	t.Helper()
	return batch.NewDB(u.dialect, batch.Hooks{}).Transact(t.Context(), func(s batch.Session) error {
		return s.Commit(t.Context(), requests...)
	})
}

// all reads the whole table by the scan list that the table makes.
func (u under) all(t *testing.T, table *batch.Table[shelf]) []shelf {
	t.Helper()
	rows, err := u.db.QueryContext(t.Context(), "SELECT "+strings.Join(batch.Names(table.Columns), ", ")+" FROM own_shelves ORDER BY room, name") //nolint:rowserrcheck // Each does it
	require.NoError(t, err)
	var found []shelf
	var row shelf
	into := batch.Targets(&row, table.Columns)
	require.NoError(t, batch.Each(rows, func() error {
		err := rows.Scan(into...)
		found = append(found, row)
		return err
	}))
	return found
}

func number(n int64) sql.NullInt64 { return sql.NullInt64{Int64: n, Valid: true} }

func at(microseconds int) batch.Instant {
	return batch.Instant{Time: time.Date(2026, 11, 20, 9, 0, 0, microseconds*1000, time.UTC)}
}

var (
	full = shelf{
		Room: 1, Name: "a 'b' \"c\" ?", Owner: batch.UUID{1, 2, 15: 255}, Label: "ğ\n{}", Items: 5, Seal: []byte{0, 1, 255},
		Limit: number(0), Built: "2026-02-28", SeenAt: at(1), EmptiedAt: at(999999),
	}
	empty = shelf{Room: 2, Name: "b", Owner: batch.UUID{}, Items: 0, Seal: []byte{9}, SeenAt: at(0)}
)

func TestRowsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	onEachDialect(t, func(t *testing.T, u under) {
		table := batch.NewTable[shelf](u.dialect, namer)
		insert := table.Insert()
		require.NoError(t, u.transact(t, insert.Request([]shelf{full, empty})))
		require.Equal(t, []shelf{full, empty}, u.all(t, table))

		bare := empty // alone it leaves out every column that is empty
		bare.Name = "c"
		require.NoError(t, u.transact(t, insert.Request([]shelf{bare})))
		require.Equal(t, []shelf{full, empty, bare}, u.all(t, table))

		require.Error(t, u.transact(t, insert.Request([]shelf{bare})), "the key exists")
	})
}

// Bytes in the text form are no identifier: no lookup would find their row.
func TestAnIdentifierHasOneForm(t *testing.T) {
	t.Parallel()
	const text = "01935c3e-6d0e-7cc3-8d5e-3f0b8f6f2c11"
	var id batch.UUID
	require.NoError(t, id.Scan(text))
	require.NoError(t, id.Scan(id[:]))
	require.Equal(t, text, id.String())
	require.Error(t, id.Scan([]byte(text)))
}

// A row that is worked out late is written like the others. A panic of the work
// reaches the caller, and nothing is written.
func TestALateRow(t *testing.T) {
	t.Parallel()
	onEachDialect(t, func(t *testing.T, u under) {
		table := batch.NewTable[shelf](u.dialect, namer)
		insert := table.Insert()
		works := 0
		late := insert.Later(func() shelf {
			works++
			return full
		})
		require.True(t, late.Rows.IsLate())
		require.NoError(t, u.transact(t, insert.Request([]shelf{empty}), late))
		require.Equal(t, []shelf{full, empty}, u.all(t, table))
		require.Equal(t, 1, works)

		other := empty
		other.Name = "c"
		require.PanicsWithValue(t, "broken", func() {
			_ = u.transact(t, insert.Request([]shelf{other}), insert.Later(func() shelf { panic("broken") }))
		})
		require.Len(t, u.all(t, table), 2)
		require.NoError(t, u.transact(t, insert.Request([]shelf{other})))
		require.Len(t, u.all(t, table), 3)

		tx, err := u.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		other.Name = "d"
		require.NoError(t, batch.NewDB(u.dialect, batch.Hooks{}).Inside(tx).Attempt(t.Context(), func(s batch.Session) error {
			return s.Commit(t.Context(), insert.Later(func() shelf { return other }))
		}))
		require.NoError(t, tx.Commit())
		require.Len(t, u.all(t, table), 4)
	})
}

func TestInsertOfExistingRows(t *testing.T) {
	t.Parallel()
	onEachDialect(t, func(t *testing.T, u under) {
		table := batch.NewTable[shelf](u.dialect, namer)
		require.NoError(t, u.transact(t, table.Insert().Request([]shelf{full})))
		changed := full
		changed.Items, changed.Label = 7, "other"
		require.NoError(t, u.transact(t, table.Upsert().Request([]shelf{changed, empty})))
		require.Equal(t, []shelf{full, empty}, u.all(t, table), "the existing row stays")

		added := shelf{Room: 3, Name: "d", Seal: []byte{1}, SeenAt: at(2)}
		require.NoError(t, u.transact(t, table.Upsert("items").Request([]shelf{changed, added})))
		changed.Label = full.Label
		require.Equal(t, []shelf{changed, empty, added}, u.all(t, table), "only the column that was named")
	})
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	onEachDialect(t, func(t *testing.T, u under) {
		table := batch.NewTable[shelf](u.dialect, namer)
		require.NoError(t, u.transact(t, table.Insert().Request([]shelf{full, empty})))
		update := table.Update("most", "built", "emptied_at", "label")
		require.NoError(t, u.transact(t, update.Request([]shelf{
			{Room: 1, Name: full.Name},
			{Room: 2, Name: empty.Name, Limit: number(-3), Built: "2024-02-29", EmptiedAt: at(7), Label: "x", Items: 99},
		})))
		first, second := full, empty
		first.Limit, first.Built, first.EmptiedAt, first.Label = sql.NullInt64{}, "", batch.Instant{}, ""
		second.Limit, second.Built, second.EmptiedAt, second.Label = number(-3), "2024-02-29", at(7), "x"
		require.Equal(t, []shelf{first, second}, u.all(t, table))
	})
}

func TestFind(t *testing.T) {
	t.Parallel()
	onEachDialect(t, func(t *testing.T, u under) {
		table := batch.NewTable[shelf](u.dialect, namer)
		require.NoError(t, u.transact(t, table.Insert().Request([]shelf{full, empty})))
		search := func(q *batch.Query[shelf], keys ...shelf) map[int]shelf {
			found := make(map[int]shelf)
			require.NoError(t, batch.NewDB(u.dialect, batch.Hooks{}).Transact(t.Context(), func(s batch.Session) error {
				return s.Exchange(t.Context(), q.Request(keys, func(key int, row *shelf) error {
					found[key] = *row
					return nil
				}))
			}))
			return found
		}
		none := shelf{Room: 1, Name: "none"}
		byKey := search(table.Find(batch.ForUpdate, "", "items", "owner", "most", "built", "emptied_at", "seal"), none, empty, full)
		require.Equal(t, map[int]shelf{
			1: {Seal: empty.Seal},
			2: {Items: 5, Owner: full.Owner, Limit: full.Limit, Built: full.Built, EmptiedAt: full.EmptiedAt, Seal: full.Seal},
		}, byKey, "each by the index of its key")
		require.Equal(t, map[int]shelf{0: {Items: 5}}, search(table.Find(batch.SkipLocked, "t.items > 0", "items"), full, empty))

		newest := table.Lookup("find newest", batch.Lookup{
			Select: table.Select("room", "name"),
			Where:  []batch.Condition{{Column: table.Select("room")[0], Operator: "<="}},
			Order:  "t.room DESC",
		})
		require.Equal(t, map[int]shelf{0: {Room: 2, Name: "b"}, 1: {Room: 1, Name: full.Name}}, search(newest, shelf{Room: 9}, shelf{Room: 1}, shelf{Room: 0}))
	})
}

// misread is a shelf whose label, a text, is read as a number.
type misread struct {
	Room  int64 `gorm:"primaryKey"`
	Label int64
}

func (misread) TableName() string { return "own_shelves" }

func TestARowThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	onEachDialect(t, func(t *testing.T, u under) {
		require.NoError(t, u.transact(t, batch.NewTable[shelf](u.dialect, namer).Insert().Request([]shelf{full})))
		find := batch.NewTable[misread](u.dialect, namer).Find(batch.NoLock, "", "label")
		require.Error(t, u.transact(t, find.Request([]misread{{Room: full.Room}}, func(int, *misread) error {
			t.Error("it is not found with a wrong value")
			return nil
		})))
	})
}

// missing is a row of a table that does not exist.
type missing struct {
	Room  int64 `gorm:"primaryKey"`
	Label string
}

// Many statements travel together, so an error that does not name one helps nobody.
func TestAnErrorNamesItsStatement(t *testing.T) {
	t.Parallel()
	onEachDialect(t, func(t *testing.T, u under) {
		table, gone := batch.NewTable[shelf](u.dialect, namer), batch.NewTable[missing](u.dialect, namer)
		below := full
		below.Items = -1
		for name, requests := range map[string][]batch.Request{
			"insert " + table.Name: {table.Insert().Request([]shelf{empty}), table.Insert().Request([]shelf{below})},
			"update " + gone.Name:  {table.Insert().Request([]shelf{empty}), gone.Update("label").Request([]missing{{Room: 1}})},
			"find " + gone.Name:    {gone.Find(batch.NoLock, "", "label").Request([]missing{{Room: 1}}, func(int, *missing) error { return nil })},
		} {
			err := u.transact(t, requests...)
			require.ErrorContains(t, errors.Unwrap(err), name+": ")

			tx, err := u.db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			err = batch.NewDB(u.dialect, batch.Hooks{}).Inside(tx).Attempt(t.Context(), func(s batch.Session) error {
				return s.Commit(t.Context(), requests...)
			})
			require.ErrorContains(t, err, name+": ")
			require.NoError(t, tx.Rollback())
		}
	})
}

func TestATransactionIsAllOrNothing(t *testing.T) {
	t.Parallel()
	onEachDialect(t, func(t *testing.T, u under) {
		table := batch.NewTable[shelf](u.dialect, namer)
		below := empty
		below.Items = -1
		insert := table.Insert()
		require.Error(t, u.transact(t, insert.Request([]shelf{full}), insert.Request([]shelf{below})), "the CHECK of the table")
		require.Empty(t, u.all(t, table))

		require.NoError(t, batch.NewDB(u.dialect, batch.Hooks{}).Attempt(t.Context(), func(s batch.Session) error {
			return s.Exchange(t.Context(), insert.Request([]shelf{full}))
		}))
		require.Empty(t, u.all(t, table), "without a commit")

		require.NoError(t, batch.NewDB(u.dialect, batch.Hooks{}).Attempt(t.Context(), func(s batch.Session) error {
			if err := s.Exchange(t.Context(), insert.Request([]shelf{full})); err != nil {
				return err
			}
			return s.Commit(t.Context(), insert.Request([]shelf{empty}))
		}))
		require.Len(t, u.all(t, table), 2)
	})
}

func TestInsideATransactionOfTheCaller(t *testing.T) {
	t.Parallel()
	onEachDialect(t, func(t *testing.T, u under) {
		table := batch.NewTable[shelf](u.dialect, namer)
		add := func(tx *sql.Tx, rows ...shelf) {
			attempts := 0
			err := batch.NewDB(u.dialect, batch.Hooks{}).Inside(tx).Transact(t.Context(), func(s batch.Session) error {
				attempts++
				return s.Commit(t.Context(), table.Insert().Request(rows))
			})
			require.NoError(t, err)
			require.Equal(t, 1, attempts)
		}
		tx, err := u.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		add(tx, full)
		var read []shelf
		find := table.Find(batch.ForUpdate, "", "items")
		require.NoError(t, batch.NewDB(u.dialect, batch.Hooks{}).Inside(tx).Attempt(t.Context(), func(s batch.Session) error {
			return s.Exchange(t.Context(), find.Request([]shelf{empty, full}, func(key int, row *shelf) error {
				require.Equal(t, 1, key)
				read = append(read, *row)
				return nil
			}))
		}))
		require.Equal(t, []shelf{{Items: 5}}, read)
		require.NoError(t, tx.Rollback())
		require.Empty(t, u.all(t, table))

		tx, err = u.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		add(tx, full)
		require.NoError(t, tx.Commit())
		require.Len(t, u.all(t, table), 1)
	})
}

// Requests without rows are left out, and the others keep their order.
func TestRequestsWithoutRows(t *testing.T) {
	t.Parallel()
	onEachDialect(t, func(t *testing.T, u under) {
		insert := batch.NewTable[shelf](u.dialect, namer).Insert()
		request := func(name string, rows ...shelf) batch.Request {
			r := insert.Request(rows)
			r.Name = name
			return r
		}
		left := batch.NonEmpty(request("a"), request("b", shelf{Room: 1}), request("c"), request("d", shelf{Room: 2}, shelf{Room: 3}))
		require.Len(t, left, 2)
		require.Equal(t, "b", left[0].Name)
		require.Equal(t, "d", left[1].Name)
		require.Equal(t, 2, left[1].Rows.Len())
		require.Empty(t, batch.NonEmpty(request("a"), request("c")))
	})
}
