package storage_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// requireNotReady requires that readiness says what is wrong, and that no sale is
// answered until it is mended. It returns the SQL that mends it.
func requireNotReady(t *testing.T, s *store.Store, sentence string) (mend string) {
	t.Helper()
	err := s.Ping(t.Context())
	var known *fault.Error
	require.ErrorAs(t, err, &known)
	require.Equal(t, fault.Unavailable, known.Kind)
	require.Contains(t, known.Detail, sentence)
	for caller := range 2 {
		err = settle(t.Context(), s, today, order(v7(), strings.Repeat("x", caller), sale(1, 1, 2)))
		require.Equal(t, fault.Unavailable, fault.KindOf(err), "a sale: %v", err)
	}
	_, mend, _ = strings.Cut(known.Detail, "Run: ")
	return mend
}

// What the optimistic commit relies on may be gone: a restore left out a key, somebody
// added a trigger. Then no answer is true, and the service is not ready.
func TestWhatThePostgresBookReliesOn(t *testing.T) {
	t.Parallel()
	const swallow = "CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"
	for name, test := range map[string]struct {
		sabotage []string
		sentence string
	}{
		"no key":        {[]string{"ALTER TABLE operations DROP CONSTRAINT operations_pkey"}, "The table operations has no valid key (operation_id)"},
		"another key":   {[]string{"ALTER TABLE accounts DROP CONSTRAINT accounts_pkey", "CREATE UNIQUE INDEX ON accounts (customer_no, branch_code, account_suffix, currency_code, balance)"}, "The table accounts has no valid key"},
		"a partial key": {[]string{"ALTER TABLE adjustments DROP CONSTRAINT adjustments_pkey", "CREATE UNIQUE INDEX ON adjustments (act_id, line, leg) WHERE line > 0"}, "The table adjustments has no valid key"},
		"no condition":  {[]string{"ALTER TABLE holdings DROP CONSTRAINT holdings_units_check"}, "The table holdings lacks the condition units >= 0"},
		"another condition": {[]string{"ALTER TABLE accounts DROP CONSTRAINT accounts_balance_check, ADD CONSTRAINT accounts_balance_check CHECK (balance >= -5)"},
			"The table accounts lacks the condition balance >= 0"},
		"a condition of new rows only": {[]string{"ALTER TABLE holdings DROP CONSTRAINT holdings_units_check, ADD CONSTRAINT holdings_units_check CHECK (units >= 0) NOT VALID"}, "lacks the condition"},
		"unlogged":                     {[]string{"ALTER TABLE adjustments SET UNLOGGED"}, "The table adjustments is UNLOGGED"},
		"a trigger":                    {[]string{strings.ReplaceAll(swallow, "%s", "swallow"), "CREATE TRIGGER swallows BEFORE INSERT ON adjustments FOR EACH ROW EXECUTE FUNCTION swallow()"}, "The table adjustments has the trigger swallows"},
		"a rule":                       {[]string{"CREATE RULE twice AS ON UPDATE TO accounts DO ALSO NOTHING"}, "The table accounts has the rule twice"},
		"a column that needs a value":  {[]string{"ALTER TABLE subscriptions ALTER COLUMN created_at SET NOT NULL"}, "The column created_at of the table subscriptions must not need a value"},
		"no default":                   {[]string{"ALTER TABLE operations ALTER COLUMN faults DROP DEFAULT"}, "The table operations lacks the default of a column"},
		"another unique index":         {[]string{"CREATE UNIQUE INDEX one_each ON sales (customer_no)"}, "The table sales has the unique index one_each"},
		"another unique constraint":    {[]string{"ALTER TABLE audits ADD CONSTRAINT one_each UNIQUE (actor, at)"}, "The table audits has the unique index one_each"},
		"rounded times":                {[]string{"ALTER TABLE operations ALTER COLUMN received_at TYPE timestamptz(0)"}, "The table operations has a column of another type"},
		"times without a zone":         {[]string{"ALTER TABLE audits ALTER COLUMN at TYPE timestamp"}, "The table audits has a column of another type"},
		"padded texts":                 {[]string{"ALTER TABLE operations ALTER COLUMN channel TYPE char(20)"}, "The table operations has a column of another type"},
		"a rounded number":             {[]string{"ALTER TABLE subscriptions ALTER COLUMN requests_per_second TYPE numeric"}, "The table subscriptions has a column of another type"},
		"texts in any letter case":     {[]string{"CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)", "ALTER TABLE operations ALTER COLUMN app_key TYPE text COLLATE ci"}, "The table operations has a column of another type"},
		"another default":              {[]string{"ALTER TABLE sales ALTER COLUMN refusal SET DEFAULT 'amount-mismatch'"}, "The table sales has another default of a column"},
		"a default instead of NULL":    {[]string{"ALTER TABLE operations ALTER COLUMN ended_at SET DEFAULT now()"}, "The table operations has another default of a column"},
		"a table that inherits":        {[]string{"CREATE TABLE archive () INHERITS (accounts)"}, "The table archive inherits from the table accounts"},
		"a new column":                 {[]string{"ALTER TABLE operations ADD COLUMN branch text NOT NULL DEFAULT ''", "ALTER TABLE operations ALTER COLUMN branch DROP DEFAULT"}, "The column branch of the table operations needs a value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Postgres(t)
			s := storekit.OpenPostgres(t, dsn)
			b := newBank(t, s, 2)
			b.sell(2, order(v7(), "", sale(1, 1, 2)))
			require.NoError(t, s.Ping(t.Context()))
			script(t, dsn, test.sabotage...)
			mend := requireNotReady(t, s, test.sentence)
			requireNotReady(t, openAgain(t, dsn), test.sentence)
			script(t, dsn, mend)
			require.NoError(t, s.Ping(t.Context()))
			b.sell(2, order(v7(), "again", sale(1, 1, 2)))
			b.holds()
		})
	}
}

func openAgain(t *testing.T, dsn string) *store.Store {
	t.Helper()
	engine, err := storekit.Started(postgres.NewEngine(storage.Options{DSN: dsn, StatementTimeout: statementTimeout}))
	require.NoError(t, err)
	s, err := storage.Open(engine, storage.Options{Now: clock.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// Nobody can say how to mend a column or a table that is gone.
func TestWhatIsMissingOfPostgresIsNamed(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := storekit.OpenPostgres(t, dsn)
	newBank(t, s, 2)
	for _, test := range []struct{ sabotage, mend, sentence string }{
		{"ALTER TABLE audits RENAME COLUMN details TO notes", "ALTER TABLE audits RENAME COLUMN notes TO details", "The table audits lacks the column details"},
		{"ALTER TABLE requests DROP COLUMN codes", "ALTER TABLE requests ADD COLUMN codes text NOT NULL DEFAULT ''", "The table requests lacks the column codes"},
		{"ALTER TABLE trail_hashes RENAME TO hashes", "ALTER TABLE hashes RENAME TO trail_hashes", "The table trail_hashes is missing"},
		{"ALTER TABLE audits RENAME TO acts", "ALTER TABLE acts RENAME TO audits", "The table audits is missing"},
		{"ALTER TABLE replicas RENAME COLUMN troubles TO t", "ALTER TABLE replicas RENAME COLUMN t TO troubles", "The table replicas lacks the column troubles"},
	} {
		script(t, dsn, test.sabotage)
		requireNotReady(t, s, test.sentence)
		script(t, dsn, test.mend)
		require.NoError(t, s.Ping(t.Context()))
	}
}

// Somebody may write the properties of the book by hand. Then no request is a defect of the service.
func TestAPropertyThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		newBank(t, s, 2)
		require.NoError(t, s.Ping(t.Context()))
		for _, test := range []struct{ sabotage, mend, sentence string }{
			{"UPDATE properties SET value = 'garbage' WHERE name = 'calendar'", "UPDATE properties SET value = '' WHERE name = 'calendar'", "The property calendar of the book has a line"},
			{"DELETE FROM properties WHERE name = 'calendar'", "INSERT INTO properties (name, value) VALUES ('calendar', '')", "The property calendar of the book is missing. Restore this row of the table properties from a backup, and import the calendar again"},
			{"UPDATE properties SET value = '-1' WHERE name = 'outcomes'", "UPDATE properties SET value = '0' WHERE name = 'outcomes'", "The property outcomes of the book is not a count. Write this row of the table properties again: it is the largest number in the table outcomes"},
			{"DELETE FROM properties WHERE name = 'outcomes'", "INSERT INTO properties (name, value) VALUES ('outcomes', '0')", "The property outcomes of the book is missing"},
			{"INSERT INTO properties (name, value) VALUES ('rules', 'garbage')", "DELETE FROM properties WHERE name = 'rules'", "The rules of the book cannot be read"},
		} {
			execute(t, db, test.sabotage)
			err := s.Ping(t.Context())
			require.Equal(t, fault.Unavailable, fault.KindOf(err), "%v", err)
			require.ErrorContains(t, err, test.sentence)
			execute(t, db, test.mend)
			require.NoError(t, s.Ping(t.Context()))
		}
	})
}

// A column that a request, a page or a command needs may be gone, or an index may refuse rows.
func TestAColumnOrAnIndexOfSQLiteIsMissed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ sabotage, mend, sentence string }{
		"a column of audits":      {"ALTER TABLE audits RENAME COLUMN details TO notes", "ALTER TABLE audits RENAME COLUMN notes TO details", "The table audits lacks the column details"},
		"a column of requests":    {"ALTER TABLE requests RENAME COLUMN codes TO code", "ALTER TABLE requests RENAME COLUMN code TO codes", "The table requests lacks the column codes"},
		"a column of replicas":    {"ALTER TABLE replicas RENAME COLUMN troubles TO trouble", "ALTER TABLE replicas RENAME COLUMN trouble TO troubles", "The table replicas lacks the column troubles"},
		"a column of the trail":   {"ALTER TABLE trail_hashes RENAME COLUMN hash TO sum", "ALTER TABLE trail_hashes RENAME COLUMN sum TO hash", "The table trail_hashes lacks the column hash"},
		"a dropped column":        {"ALTER TABLE subscriptions DROP COLUMN client_certificate", "ALTER TABLE subscriptions ADD COLUMN client_certificate TEXT NOT NULL DEFAULT ''", "The table subscriptions lacks the column client_certificate"},
		"no table of acts":        {"ALTER TABLE audits RENAME TO acts", "ALTER TABLE acts RENAME TO audits", "The table audits is missing"},
		"no table of hashes":      {"ALTER TABLE trail_hashes RENAME TO hashes", "ALTER TABLE hashes RENAME TO trail_hashes", "The table trail_hashes is missing"},
		"another default":         {"ALTER TABLE operations DROP COLUMN faults; ALTER TABLE operations ADD COLUMN faults TEXT NOT NULL DEFAULT 'x'", "ALTER TABLE operations DROP COLUMN faults; ALTER TABLE operations ADD COLUMN faults TEXT NOT NULL DEFAULT ''", "The column faults of the table operations has another default"},
		"another unique index":    {"CREATE UNIQUE INDEX one_each ON sales (customer_no)", "", "The table sales has the unique index one_each"},
		"a unique index of texts": {"CREATE UNIQUE INDEX one_each ON audits (lower(actor))", "", "The table audits has the unique index one_each"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := testdb.SQLite(t)
			s := storekit.OpenSQLite(t, file)
			newBank(t, s, 2)
			db := testdb.Open(t, testdb.EngineSQLite, file)
			execute(t, db, "CREATE UNIQUE INDEX harmless ON sales (operation_id, position, units)")
			require.NoError(t, s.Ping(t.Context()))
			execute(t, db, test.sabotage)
			mend := requireNotReady(t, s, test.sentence)
			execute(t, db, cmp.Or(test.mend, mend))
			require.NoError(t, s.Ping(t.Context()))
			require.NoError(t, settle(t.Context(), s, today, order(v7(), "", sale(1, 1, 2))))
		})
	}
}

// Somebody changes a table, and at the same moment a sale comes: nobody has asked since whether the
// tables are right. The sale is refused as unavailable, or done. It is never a defect of the service.
func TestASaleBesideAChangeOfTheSchema(t *testing.T) {
	t.Parallel()
	sellAtOnce := func(t *testing.T, s *store.Store, sabotage func()) {
		newBank(t, s, 2)
		require.NoError(t, settle(t.Context(), s, today, order(v7(), "", sale(1, 1, 2))))
		sabotage()
		for range 3 {
			err := settle(t.Context(), s, today, order(v7(), "", sale(1, 1, 2)))
			if err != nil {
				require.Equal(t, fault.Unavailable, fault.KindOf(err), "%v", err)
			}
		}
	}
	for name, sabotage := range map[string]string{
		"another NOT NULL":     "UPDATE sales SET control_total = 0; ALTER TABLE sales ALTER COLUMN control_total SET NOT NULL",
		"a new column":         "ALTER TABLE sales ADD COLUMN branch text NOT NULL DEFAULT ''; ALTER TABLE sales ALTER COLUMN branch DROP DEFAULT",
		"another condition":    "ALTER TABLE operations ADD CHECK (state <> 2) NOT VALID",
		"a renamed column":     "ALTER TABLE sales RENAME COLUMN units TO amount",
		"a shorter text":       "DROP VIEW postings; ALTER TABLE sales ALTER COLUMN holder_corporation_name TYPE varchar(3) USING 'x'",
		"a smaller number":     "DROP VIEW postings; ALTER TABLE sales ALTER COLUMN units TYPE smallint USING 1",
		"another type":         "DROP VIEW postings; ALTER TABLE holdings DROP CONSTRAINT holdings_units_check, ALTER COLUMN units TYPE text",
		"a plan of another":    "ALTER TABLE prices ALTER COLUMN price TYPE numeric",
		"another unique index": "CREATE UNIQUE INDEX one_each ON sales (customer_no)",
		"no key":               "ALTER TABLE accounts DROP CONSTRAINT accounts_pkey",
		"a foreign key":        "CREATE TABLE customers (no bigint PRIMARY KEY); ALTER TABLE sales ADD FOREIGN KEY (customer_no) REFERENCES customers NOT VALID",
		"a trigger": "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;" +
			"CREATE TRIGGER refuses BEFORE INSERT ON sales FOR EACH ROW EXECUTE FUNCTION refuse()",
	} {
		t.Run("Postgres/"+name, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Postgres(t)
			sellAtOnce(t, storekit.OpenPostgres(t, dsn), func() { script(t, dsn, sabotage) })
		})
	}
	for name, sabotage := range map[string]string{
		"a renamed column":     "ALTER TABLE sales RENAME COLUMN units TO amount",
		"another unique index": "CREATE UNIQUE INDEX one_each ON sales (account_customer_no)",
		"no table":             "DROP TABLE trail_batches",
		"a trigger":            "CREATE TRIGGER refuses BEFORE INSERT ON sales BEGIN SELECT RAISE(ABORT, 'no'); END",
	} {
		t.Run("SQLite/"+name, func(t *testing.T) {
			t.Parallel()
			file := testdb.SQLite(t)
			db := testdb.Open(t, testdb.EngineSQLite, file)
			sellAtOnce(t, storekit.OpenSQLite(t, file), func() { execute(t, db, sabotage) })
		})
	}
}

// A new connection asks before it writes, though nobody asks whether the service is
// ready.
func TestANewConnectionAsksFirst(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	newBank(t, storekit.OpenPostgres(t, dsn), 2)
	script(t, dsn, "ALTER TABLE operations DROP CONSTRAINT operations_pkey")
	err := settle(t.Context(), openAgain(t, dsn), today, order(v7(), "one", sale(1, 1, 2)))
	require.Equal(t, fault.Unavailable, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "no valid key")
}

// Connections that have passed ask again, though nobody asks whether the service is
// ready. From the first refusal on all of them refuse, until it is mended.
func TestConnectionsThatHavePassedAskAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ sabotage, sentence string }{
		"no key":       {"ALTER TABLE operations DROP CONSTRAINT operations_pkey", "The table operations has no valid key"},
		"no condition": {"ALTER TABLE holdings DROP CONSTRAINT holdings_units_check", "The table holdings lacks the condition units >= 0"},
		"unlogged":     {"ALTER TABLE trail_batches SET UNLOGGED", "The table trail_batches is UNLOGGED"},
		"a trigger": {"CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;" +
			"CREATE TRIGGER swallows BEFORE INSERT ON sales FOR EACH ROW EXECUTE FUNCTION swallow()", "The table sales has the trigger swallows"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Postgres(t)
			s := storekit.OpenPostgres(t, dsn)
			script(t, dsn, requireRefusals(t, s, test.sentence, func() { script(t, dsn, test.sabotage) }))
			require.NoError(t, settle(t.Context(), s, today, order(v7(), "", sale(1, 1, 2))))
		})
	}
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		file := testdb.SQLite(t)
		db := testdb.Open(t, testdb.EngineSQLite, file)
		requireRefusals(t, storekit.OpenSQLite(t, file), "The table sales has the trigger swallows", func() {
			execute(t, db, "CREATE TRIGGER swallows BEFORE INSERT ON sales BEGIN SELECT RAISE(IGNORE); END")
		})
	})
}

// requireRefusals requires that soon after the sabotage no connection answers a sale. It
// returns the SQL that mends it.
func requireRefusals(t *testing.T, s *store.Store, sentence string, sabotage func()) (mend string) {
	t.Helper()
	newBank(t, s, 9)
	all := func() (errs []error) {
		var group sync.WaitGroup
		errs = make([]error, 8)
		for i := range errs {
			group.Go(func() { errs[i] = settle(t.Context(), s, today, order(v7(), "", sale(1, 1+i, 2))) })
		}
		group.Wait()
		return errs
	}
	require.NoError(t, errors.Join(all()...))
	sabotage()
	require.Eventually(t, func() bool {
		err := settle(t.Context(), s, today, order(v7(), "", sale(1, 9, 2)))
		return err != nil && strings.Contains(err.Error(), sentence)
	}, time.Minute, time.Millisecond)
	for range 5 {
		for _, err := range all() {
			require.Equal(t, fault.Unavailable, fault.KindOf(err), "a sale: %v", err)
			require.ErrorContains(t, err, sentence)
			_, mend, _ = strings.Cut(err.Error(), "Run: ")
		}
	}
	return mend
}

func TestChecksOfAProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		finding := errors.New("never")
		check := func(context.Context) error { return finding }
		beside, hangs := 0, false
		conn := new(sql.DB)
		c := storage.NewChecks(func(ctx context.Context, on storage.Querier) error {
			if on == conn {
				return check(ctx)
			}
			beside++
			if hangs {
				<-ctx.Done()
				return ctx.Err()
			}
			return finding
		})
		run := func() int64 { round, err := c.Run(t.Context(), conn); require.ErrorIs(t, err, finding); return round }
		due := func(round int64) bool {
			must := c.Due(round)
			synctest.Wait()
			return must
		}
		require.True(t, due(0), "nobody has checked")
		run()
		time.Sleep(time.Second / 2)
		require.True(t, due(0), "an error that is no finding proves nothing")

		finding = nil
		require.False(t, due(run()))
		require.True(t, due(-1), "a new connection")
		require.Zero(t, beside)
		for round := range 10 {
			time.Sleep(time.Second / 2)
			require.False(t, due(0), "a check runs beside the batches")
			require.False(t, due(0))
			require.Equal(t, round+1, beside, "one for all of them")
		}
		hangs = true
		time.Sleep(time.Second / 2)
		require.False(t, due(0))
		time.Sleep(time.Second / 2)
		require.True(t, due(0), "if that check hangs, each must check")
		require.True(t, due(0))
		time.Sleep(time.Second)
		hangs = false

		plain := check
		check = func(context.Context) error {
			check, finding = plain, fault.New(fault.Unavailable, "found")
			run()
			return nil
		}
		_, err := c.Run(t.Context(), conn)
		require.NoError(t, err)
		require.True(t, due(0), "a check that began before the finding clears nothing")
		require.True(t, due(1))
		require.True(t, due(1), "each must check")
		finding = nil
		require.False(t, due(run()), "mended")
		require.True(t, due(0), "what a connection passed before the finding does not count")

		time.Sleep(time.Second / 2)
		finding = fault.New(fault.Unavailable, "found beside")
		require.False(t, due(1))
		require.True(t, due(1), "a finding stops every connection")
	})
}

func TestRowSecurityAndRights(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	newBank(t, storekit.OpenPostgres(t, dsn), 2)
	s := openAgain(t, asGuest(t, dsn, "teller", "SELECT, INSERT, UPDATE, DELETE"))
	require.NoError(t, s.Ping(t.Context()))
	role := "teller_" + database(t, dsn)

	script(t, dsn, "ALTER TABLE holdings ENABLE ROW LEVEL SECURITY")
	script(t, dsn, requireNotReady(t, s, "The table holdings hides rows from the role "+role+" by row level security"))
	require.NoError(t, s.Ping(t.Context()))
	for _, right := range []string{"UPDATE ON sales", "INSERT ON notifications", "UPDATE ON notifications", "INSERT ON adjustments",
		"INSERT ON audits", "SELECT ON audits", "DELETE ON requests", "SELECT ON outcomes", "UPDATE ON subscriptions", "INSERT ON trail_hashes"} {
		script(t, dsn, "REVOKE "+right+" FROM "+role)
		kind, table, _ := strings.Cut(right, " ON ")
		mend := requireNotReady(t, s, "The role "+role+" has no right to "+kind+" on the table "+table)
		require.Equal(t, "GRANT "+right+" TO "+role, mend)
		script(t, dsn, mend)
		require.NoError(t, s.Ping(t.Context()))
	}
	require.NoError(t, settle(t.Context(), s, today, order(v7(), "", sale(1, 1, 2))))
}

// Rights may be granted for columns. Then each column that the program knows needs them.
func TestRightsOfColumns(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	newBank(t, storekit.OpenPostgres(t, dsn), 2)
	s := openAgain(t, asGuest(t, dsn, "teller", "SELECT, INSERT, UPDATE, DELETE"))
	role := "teller_" + database(t, dsn)
	observer := testdb.Open(t, testdb.EnginePostgres, dsn)
	columnsOf := func(table string) (columns []string) {
		t.Helper()
		var list string
		const query = "SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped"
		require.NoError(t, observer.QueryRowContext(t.Context(), query, table).Scan(&list))
		return strings.Split(list, ",")
	}
	for _, right := range []string{"INSERT ON audits", "SELECT ON audits", "INSERT ON requests", "INSERT ON outcomes", "SELECT ON trail_batches", "INSERT ON prices"} {
		kind, table, _ := strings.Cut(right, " ON ")
		columns := columnsOf(table)
		last := len(columns) - 1
		script(t, dsn, "REVOKE "+right+" FROM "+role, "GRANT "+kind+" ("+strings.Join(columns[:last], ",")+") ON "+table+" TO "+role)
		requireNotReady(t, s, "The role "+role+" has no right to "+kind+" on the table "+table)
		script(t, dsn, "GRANT "+kind+" ("+columns[last]+") ON "+table+" TO "+role)
		require.NoError(t, s.Ping(t.Context()), right)
	}
	require.NoError(t, settle(t.Context(), s, today, order(v7(), "", sale(1, 1, 2))))
}

// What fails for a missing right names the SQL that grants it.
func TestAnErrorNamesTheGrant(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	newBank(t, storekit.OpenPostgres(t, dsn), 2)
	s := openAgain(t, asGuest(t, dsn, "auditor", "SELECT, INSERT, UPDATE, DELETE"))
	require.NoError(t, s.Schema.Require(t.Context()))
	script(t, dsn, "REVOKE SELECT ON audits FROM auditor_"+database(t, dsn))
	for _, err := range s.Backoffice.Reader.Acts(t.Context(), backoffice.Query{}) {
		require.ErrorContains(t, err, "Run: GRANT SELECT, INSERT, UPDATE, DELETE ON audits TO the role of storage.dsn")
	}
}

// Readiness takes a transaction ID, as a sale does: a server that has none left refuses that.
func TestReadinessTakesATransactionID(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := storekit.OpenPostgres(t, dsn)
	newBank(t, s, 2)
	observer := testdb.Open(t, testdb.EnginePostgres, dsn)
	next := func() (id int64) {
		require.NoError(t, observer.QueryRowContext(t.Context(), "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&id))
		return id
	}
	before := next()
	require.NoError(t, s.Ping(t.Context()))
	require.Greater(t, next(), before)
}

// Without any of its keys a table may have a row twice.
func TestEveryKeyIsReliedOn(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := storekit.OpenPostgres(t, dsn)
	newBank(t, s, 2)
	keys := testdb.Open(t, testdb.EnginePostgres, dsn)
	rows, err := keys.QueryContext(t.Context(), "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"+
		" WHERE contype = 'p' AND connamespace = 'public'::regnamespace AND conrelid::regclass::text NOT LIKE 'schema%'")
	require.NoError(t, err)
	var all [][3]string
	require.NoError(t, batch.Each(rows, func() error {
		var key [3]string
		err := rows.Scan(&key[0], &key[1], &key[2])
		all = append(all, key)
		return err
	}))
	require.NoError(t, rows.Err())
	require.Greater(t, len(all), 10)
	for _, key := range all {
		script(t, dsn, "ALTER TABLE "+key[0]+" DROP CONSTRAINT "+key[1])
		requireNotReady(t, s, "The table "+key[0]+" has no valid key")
		script(t, dsn, "ALTER TABLE "+key[0]+" ADD CONSTRAINT "+key[1]+" "+key[2])
		require.NoError(t, s.Ping(t.Context()))
	}
}

// A service that begins cannot even read its schema.
func TestRightsOfAServiceThatBegins(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	newBank(t, storekit.OpenPostgres(t, dsn), 2)
	guest := asGuest(t, dsn, "teller", "SELECT, INSERT, UPDATE, DELETE")
	role := "teller_" + database(t, dsn)
	for _, table := range []string{"schema_1", "properties"} {
		right := "SELECT ON " + table
		script(t, dsn, "REVOKE "+right+" FROM "+role)
		s := openAgain(t, guest)
		err := cmp.Or(s.Ping(t.Context()), s.Schema.Require(t.Context()))
		require.ErrorContains(t, err, "The role "+role+" has no right to SELECT on the table "+table+". Run: GRANT "+right+" TO "+role)
		script(t, dsn, "GRANT "+right+" TO "+role)
		require.NoError(t, cmp.Or(s.Ping(t.Context()), s.Schema.Require(t.Context())))
		require.NoError(t, settle(t.Context(), s, today, order(v7(), "", sale(1, 1, 2))))
	}

	// The trail needs this right, and whoever needs another one learns the table.
	script(t, dsn, "REVOKE INSERT ON trail_batches FROM "+role)
	s := openAgain(t, guest)
	require.ErrorContains(t, s.Ping(t.Context()), "The role "+role+" has no right to INSERT on the table trail_batches. Run: GRANT INSERT ON trail_batches TO "+role)
	script(t, dsn, "REVOKE UPDATE ON properties FROM "+role)
	err := openAgain(t, guest).Marker.SetNote(t.Context(), "note")
	require.ErrorContains(t, err, "The database role lacks a right: permission denied for table properties")
}

// A book that search_path or a missing right hides looks like an empty database. To make another
// book there is no help.
func TestAHiddenBookIsSaidToBeHidden(t *testing.T) {
	t.Parallel()
	const sentence = "If there is a book already, it was not found: check storage.dsn and, on Postgres, search_path and the right to USAGE of its schema."
	dsn := testdb.Postgres(t)
	newBank(t, storekit.OpenPostgres(t, dsn), 2)
	guest := asGuest(t, dsn, "teller", "SELECT, INSERT, UPDATE, DELETE")
	script(t, dsn, "REVOKE USAGE ON SCHEMA public FROM PUBLIC, teller_"+database(t, dsn))
	require.ErrorContains(t, openAgain(t, guest).Schema.Require(t.Context()), sentence)
	admin(t, dsn, "ALTER DATABASE "+database(t, dsn)+" SET search_path = nowhere")
	require.ErrorContains(t, openAgain(t, dsn).Schema.Require(t.Context()), sentence)
}

// Whoever makes the tables learns which right is missing, and that there is no schema to make them in.
func TestWhoMayNotMakeTablesIsToldWhy(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	_, err := openAgain(t, asGuest(t, dsn, "teller", "SELECT, INSERT, UPDATE, DELETE")).Schema.Up(t.Context())
	require.ErrorContains(t, err, "permission denied for schema public. Run: GRANT USAGE, CREATE ON SCHEMA public TO the role of storage.dsn")
	admin(t, dsn, "ALTER DATABASE "+database(t, dsn)+" SET search_path = nowhere")
	_, err = openAgain(t, dsn).Schema.Up(t.Context())
	require.ErrorContains(t, err, "The search_path of the database or of its role names no schema that exists")
}

// A book that was moved to another schema may be another book there: only the next start finds it.
func TestAMovedBookNeedsARestart(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := storekit.OpenPostgres(t, dsn)
	newBank(t, s, 2)
	require.NoError(t, s.Ping(t.Context()))
	script(t, dsn, "ALTER SCHEMA public RENAME TO bank", "ALTER DATABASE "+database(t, dsn)+" SET search_path = bank")
	terminate(t, dsn)
	requireNotReady(t, s, "If the tables of the schema bank are this book, restart the program.")
	require.NoError(t, openAgain(t, dsn).Ping(t.Context()))
}

// Another schema on the search_path may have tables of the same name.
func TestTheSearchPathLeadsElsewhere(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := storekit.OpenPostgres(t, dsn)
	newBank(t, s, 2)
	require.NoError(t, s.Ping(t.Context()))
	script(t, dsn, "CREATE SCHEMA other", "CREATE TABLE other.holdings (LIKE holdings INCLUDING ALL)",
		"ALTER DATABASE "+database(t, dsn)+" SET search_path = other, public")
	terminate(t, dsn)
	requireNotReady(t, s, "search_path leads to the table other.holdings, and the book is in the schema public")

	script(t, dsn, "DROP TABLE other.holdings")
	require.NoError(t, s.Ping(t.Context()))
	for _, table := range append(storage.Tables(s), "properties", "trail_batches", "trail_hashes") {
		script(t, dsn, "CREATE TABLE other."+table+" (LIKE public."+table+" INCLUDING ALL)")
	}
	script(t, dsn, "CREATE TABLE other.schema_1 AS SELECT * FROM public.schema_1")
	requireNotReady(t, s, "and the book is in the schema public")
}

// A server that quotes all identifiers writes every condition with quotes, and the name
// of a schema may need some. Neither is a flaw, and what is one is still found.
func TestQuotedNames(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{
		"all identifiers": "quote_all_identifiers = on",
		"a schema":        `search_path = "Bank of Sales"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Postgres(t)
			script(t, dsn, `CREATE SCHEMA "Bank of Sales"`, "ALTER DATABASE "+database(t, dsn)+" SET "+settings)
			s := storekit.OpenPostgres(t, dsn)
			newBank(t, s, 2)
			require.NoError(t, s.Ping(t.Context()))
			require.NoError(t, settle(t.Context(), s, today, order(v7(), "", sale(1, 1, 2))))

			script(t, dsn, "ALTER TABLE holdings DROP CONSTRAINT holdings_units_check")
			script(t, dsn, requireNotReady(t, s, "The table holdings lacks the condition units >= 0"))
			require.NoError(t, s.Ping(t.Context()))
		})
	}
}

// Whatever swallows rows, a sale is not answered with success.
func TestRowsThatAreNotWrittenAreNoticed(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		b := newBank(t, s, 2)
		later := order(v7(), "", on(today.Plus(1), sale(1, 1, 2)))
		b.sell(1, later)
		due, err := s.Books.Due(t.Context(), buyfund.Due{Until: today.Plus(1)}, nil, 10)
		require.NoError(t, err)
		swallow := []string{"CREATE TRIGGER swallows BEFORE UPDATE ON sales BEGIN SELECT RAISE(IGNORE); END"}
		if !b.isSQLite() {
			swallow = []string{"CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
				"CREATE TRIGGER swallows BEFORE UPDATE ON sales FOR EACH ROW EXECUTE FUNCTION swallow()"}
		}
		execute(t, db, swallow...)
		require.Error(t, settle(t.Context(), s, today.Plus(1), due...))
		execute(t, db, map[bool]string{true: "DROP TRIGGER swallows", false: "DROP TRIGGER swallows ON sales"}[b.isSQLite()])
		due, err = s.Books.Due(t.Context(), buyfund.Due{Until: today.Plus(1)}, nil, 10)
		require.NoError(t, err)
		require.Len(t, due, 1, "the sale is still due")
		require.NoError(t, settle(t.Context(), s, today.Plus(1), due...))
		b.holds()
	})
}

// A row that is swallowed while it is inserted: the caller is not told that it is stored. On
// Postgres the commit was sent together with the insert, so the outcome is not known.
func TestInsertsThatAreSwallowedAreNoticed(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"operations", "sales", "trail_batches"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
				s.Trail.Writer.Use(trailKeys, v7)
				b := newBank(t, s, 2)
				b.sell(2, order(v7(), "before", sale(1, 1, 2)))
				swallow := []string{"CREATE TRIGGER swallows BEFORE INSERT ON " + table + " BEGIN SELECT RAISE(IGNORE); END"}
				if !b.isSQLite() {
					swallow = []string{"CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
						"CREATE TRIGGER swallows BEFORE INSERT ON " + table + " FOR EACH ROW EXECUTE FUNCTION swallow()"}
				}
				execute(t, db, swallow...)
				require.Error(t, settle(t.Context(), s, today, order(v7(), "swallowed", sale(1, 1, 2))))
			})
		})
	}
}

// A trigger that was added a moment ago, before any check has seen it: nothing that it swallows or
// doubles is answered with success.
func TestANewTriggerStopsTheNextBatch(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ table, event, sqlite, postgres string }{
		"a message is swallowed": {"notifications", "BEFORE INSERT", "SELECT RAISE(IGNORE);", "RETURN NULL;"},
		"a credit is doubled":    {"accounts", "AFTER UPDATE", "UPDATE accounts SET balance = balance + 1;", "UPDATE accounts SET balance = balance + 1 WHERE pg_trigger_depth() < 2; RETURN NULL;"},
		"an act is swallowed":    {"audits", "BEFORE INSERT", "SELECT RAISE(IGNORE);", "RETURN NULL;"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
				b := newBank(t, s, 2)
				b.sell(2, order(v7(), "before", sale(1, 1, 2)))
				tell := func(callerID string) error {
					o := &push.Operation{Envelope: operation.Envelope{ID: v7(), Subscription: "one", ReceivedAt: now, Header: operation.Header{CallerID: callerID}}}
					o.Notifications = []push.Notification{push.Restore(push.Values{ExternalApplicationCode: "MOBILE", UserID: "1001", PushID: callerID, Platform: push.IOS})}
					return s.Inboxes.Update(t.Context(), push.Keys([]*push.Operation{o}), func(i *push.Inbox) { i.Accept([]*push.Operation{o}) })
				}
				drop := "DROP TRIGGER new_one"
				if b.isSQLite() {
					execute(t, db, "CREATE TRIGGER new_one "+test.event+" ON "+test.table+" BEGIN "+test.sqlite+" END")
				} else {
					execute(t, db, "CREATE FUNCTION new_one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+test.postgres+" END $$",
						"CREATE TRIGGER new_one "+test.event+" ON "+test.table+" FOR EACH ROW EXECUTE FUNCTION new_one()")
					drop += " ON " + test.table
				}
				var err error
				switch test.table {
				case "notifications":
					err = tell("new")
				case "accounts":
					err = settle(t.Context(), s, today, order(v7(), "new", sale(1, 1, 2)))
				case "audits":
					ctx := audit.With(t.Context(), audit.Act{ID: v7(), At: now, Who: audit.Who{Actor: "ann"}, Action: "create", Object: "new"})
					err = s.Subscriptions.Create(ctx, &subscription.Subscription{Name: "new", State: subscription.Active, Operations: operation.AllNames()})
				}
				require.Equal(t, fault.Unavailable, fault.KindOf(err))
				execute(t, db, drop)
				require.NoError(t, s.Ping(t.Context()))
				require.NoError(t, tell("new"))
				b.sell(2, order(v7(), "new", sale(1, 1, 2)))
				b.holds()
			})
		})
	}
}

// A key or a condition that was dropped a moment ago: no repeat sells again, and no holding goes
// below zero.
func TestADroppedKeyStopsTheNextBatch(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ drop, restore string }{
		"the key of repeats":  {"DROP INDEX operations_identity", "CREATE UNIQUE INDEX operations_identity ON operations (identity) WHERE caller_id <> ''"},
		"a condition":         {"ALTER TABLE holdings DROP CONSTRAINT holdings_units_check", "ALTER TABLE holdings ADD CONSTRAINT holdings_units_check CHECK (units >= 0)"},
		"a key of operations": {"ALTER TABLE operations DROP CONSTRAINT operations_pkey", "ALTER TABLE operations ADD PRIMARY KEY (operation_id)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Postgres(t)
			s := storekit.OpenPostgres(t, dsn)
			b := newBank(t, s, 2)
			b.sell(2, order(v7(), "before", sale(1, 1, 2)))
			script(t, dsn, test.drop)
			require.Error(t, settle(t.Context(), s, today, order(v7(), "new", sale(1, 1, 2))))
			script(t, dsn, test.restore)
			require.NoError(t, s.Ping(t.Context()))
			b.sell(2, order(v7(), "new", sale(1, 1, 2)))
			b.holds()
		})
	}
}

func TestWhatTheSQLiteBookReliesOn(t *testing.T) {
	t.Parallel()
	rewrite := func(table, from, to string) []string {
		return []string{"PRAGMA writable_schema = ON", "UPDATE sqlite_schema SET sql = replace(sql, '" + from + "', '" + to + "') WHERE name = '" + table + "'",
			"PRAGMA schema_version = 999", "PRAGMA writable_schema = RESET"}
	}
	for name, test := range map[string]struct {
		sabotage []string
		sentence string
	}{
		"a trigger":    {[]string{"CREATE TRIGGER twice AFTER UPDATE ON accounts BEGIN UPDATE accounts SET balance = balance + 1; END"}, "The table accounts has the trigger twice"},
		"no condition": {rewrite("holdings", "CHECK (units >= 0)", ""), "The table holdings lacks the condition units >= 0"},
		"another key": {rewrite("adjustments", "PRIMARY KEY (act_id, line, leg)", "PRIMARY KEY (act_id, line, leg, kind)"),
			"The table adjustments has no key (act_id, leg, line)"},
		"a column that needs a value": {rewrite("operations", "due_on ", "due_on /**/ TEXT NOT NULL, old "), "The column due_on of the table operations must not need a value"},
		"a new column":                {rewrite("operations", "faults ", "branch TEXT NOT NULL, faults "), "The column branch of the table operations needs a value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := testdb.SQLite(t)
			s := storekit.OpenSQLite(t, file)
			b := newBank(t, s, 2)
			require.NoError(t, s.Ping(t.Context()))
			db := testdb.Open(t, testdb.EngineSQLite, file)
			db.SetMaxOpenConns(1)
			execute(t, db, test.sabotage...)
			mend := requireNotReady(t, s, test.sentence)
			if strings.HasPrefix(mend, "DROP TRIGGER") {
				execute(t, db, mend)
				require.NoError(t, s.Ping(t.Context()))
				b.sell(2, order(v7(), "again", sale(1, 1, 2)))
			}
		})
	}
}

// Each table and each condition of the schema is relied on.
func TestEverythingIsReliedOn(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := storekit.OpenPostgres(t, dsn)
	var tables, conditions []string
	for _, r := range storage.ReliedOn(s) {
		tables = append(tables, r.Table)
		for _, c := range r.Checks {
			conditions = append(conditions, r.Table+" CHECK (("+c+"))")
		}
	}
	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	slices.Sort(tables)
	slices.Sort(conditions)
	require.Equal(t, statementsOf(t, db, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN "+notOurs), tables)
	require.Equal(t, statementsOf(t, db, "SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace"), conditions)
}

// Every commit waits for a standby that is away: no request gets an answer.
func TestNoStandbyIsConnected(t *testing.T) {
	t.Parallel()
	dsn := testdb.Cluster(t)
	s := storekit.OpenPostgres(t, dsn)
	unsafe := func() bool {
		risks, err := s.Risks(t.Context())
		require.NoError(t, err)
		return slices.ContainsFunc(risks, func(r store.Risk) bool {
			return r.Unsafe && strings.Contains(r.Detail, "standby, but none is connected")
		})
	}
	require.False(t, unsafe())
	admin(t, dsn, "ALTER SYSTEM SET synchronous_standby_names = 'nowhere'")
	admin(t, dsn, "SELECT pg_reload_conf()")
	require.Eventually(t, unsafe, time.Minute, 10*time.Millisecond)
}

// TestOnlyWhatIsSetUpCanWait: a server whose commits wait for no standby was set up so, and a
// standby that is away is a fault of now.
func TestOnlyWhatIsSetUpCanWait(t *testing.T) {
	t.Parallel()
	s := storekit.OpenPostgres(t, testdb.Cluster(t, "synchronous_standby_names=nowhere", "synchronous_commit=local", "full_page_writes=off"))
	risks, err := s.Risks(t.Context())
	require.NoError(t, err)
	canWait := map[bool]int{}
	for _, r := range risks {
		require.Equal(t, !strings.Contains(r.Detail, "none is connected") && !r.Unsafe, r.CanWait, r.Detail)
		canWait[r.CanWait]++
	}
	require.Positive(t, canWait[true])
	require.Positive(t, canWait[false])
}
