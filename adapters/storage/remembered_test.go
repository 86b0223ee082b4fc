package storage_test

import (
	"database/sql"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/contract"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// What a running store remembers between batches may change under it: an
// operator changes rows, or puts another book behind the same name.

func onEachDatabase(t *testing.T, test func(t *testing.T, s *store.Store, db *sql.DB)) {
	t.Run(testdb.EngineSQLite, func(t *testing.T) {
		t.Parallel()
		file := testdb.SQLite(t)
		test(t, storekit.OpenSQLite(t, file), testdb.Open(t, testdb.EngineSQLite, file))
	})
	t.Run(testdb.EnginePostgres, func(t *testing.T) {
		t.Parallel()
		dsn := testdb.Postgres(t)
		test(t, storekit.OpenPostgres(t, dsn), testdb.Open(t, testdb.EnginePostgres, dsn))
	})
}

func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := db.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

func TestAPriceThatChangedUnderARunningStore(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		b := newBank(t, s, 2)
		balance := func(customer int) int64 {
			return all(t, s.Backoffice.Reader.Accounts(t.Context(), backoffice.Query{CustomerNo: int64(customer)}))[0].Balance.Minor()
		}
		for range 3 { // the price is known now
			b.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1)))
		}
		require.EqualValues(t, 3*250, balance(1))

		execute(t, db, "UPDATE prices SET price = price * 2")
		b.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1)))
		require.EqualValues(t, 3*250+500, balance(1), "at the new price")
		last := all(t, s.Backoffice.Reader.Sales(t.Context(), backoffice.Query{}))[3]
		require.Equal(t, 2*priceOfAFA, last.PerUnit)

		for range 25 { // the optimistic commit is tried again
			b.sell(operation.Completed, order(nextID(), "", sale(1, 2, 2)))
		}
		require.EqualValues(t, 25*500, balance(2))
		execute(t, db, "UPDATE prices SET currency_code = 'USD'")
		o := order(nextID(), "", sale(1, 1, 1))
		b.sell(operation.Failed, o)
		outcome, _ := o.Outcome()
		require.Equal(t, fault.CurrencyMismatch, outcome.Faults[0].Code)
		execute(t, db, "UPDATE prices SET currency_code = 'TRY', holder_corporation_name = 'Another Portfoy'")
		o = order(nextID(), "", sale(1, 1, 1))
		b.sell(operation.Failed, o)
		outcome, _ = o.Outcome()
		require.Equal(t, fault.PriceNotFound, outcome.Faults[0].Code)
	})
}

// refusedWith settles a sale in a batch with another one that is refused.
func (b bank) refusedWith(o *fund.Operation) (operation.Outcome, error) {
	b.t.Helper()
	refused := order(nextID(), "", sale(1, 9, 1))
	require.NoError(b.t, settle(b.t.Context(), b.Store, today, refused, o))
	outcome, err := refused.Outcome()
	require.NoError(b.t, err)
	require.Equal(b.t, fault.HoldingNotFound, outcome.Faults[0].Code)
	return o.Outcome()
}

// refusesOften settles so many batches with a refused sale that no batch is assumed to complete.
func (b bank) refusesOften() {
	b.t.Helper()
	for range 5 {
		_, err := b.refusedWith(order(nextID(), "", sale(1, 2, 2)))
		require.NoError(b.t, err)
	}
}

// Batches with refused sales check the prices that the store knows, too.
func TestPricesThatChangedBeforeABatchWithRefusals(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		b := newBank(t, s, 2)
		completed := func() {
			t.Helper()
			outcome, err := b.refusedWith(order(nextID(), "", sale(1, 1, 1)))
			require.NoError(t, err)
			require.Equal(t, operation.Completed, outcome.State, "%v", outcome.Faults)
		}
		failed := func(code string, terms fund.Terms) {
			t.Helper()
			outcome, err := b.refusedWith(order(nextID(), "", terms))
			require.NoError(t, err)
			require.Equal(t, operation.Failed, outcome.State)
			require.Len(t, outcome.Faults, 1)
			require.Equal(t, code, outcome.Faults[0].Code)
		}
		balance := func() int64 {
			return all(t, s.Backoffice.Reader.Accounts(t.Context(), backoffice.Query{CustomerNo: 1}))[0].Balance.Minor()
		}
		for range 5 { // no batch is assumed to complete any more
			completed()
		}
		require.EqualValues(t, 5*250, balance())

		execute(t, db, "UPDATE prices SET price = price * 2")
		completed()
		require.EqualValues(t, 5*250+500, balance(), "at the new price")
		completed()

		seed(t, s, contract.Seed{Prices: []fund.Price{{ID: 2, Fund: afa, PerUnit: priceOfAFA, Currency: lira, ValidFrom: today}}})
		failed(fault.PriceNotCurrent, sale(1, 1, 1))
		newest := sale(1, 1, 1)
		newest.PriceID = 2
		outcome, err := b.refusedWith(order(nextID(), "", newest))
		require.NoError(t, err)
		require.Equal(t, operation.Completed, outcome.State, "%v", outcome.Faults)
		failed(fault.PriceNotCurrent, sale(1, 1, 1))
		unknown := sale(1, 1, 1)
		unknown.PriceID = 3
		failed(fault.PriceNotFound, unknown)
	})
}

// A book that is restored from a time before the schema fitted is not written
// to by rules that are not its own. One with a later schema is: it only adds.
func TestAnotherBookBehindTheSameName(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		b := newBank(t, s, 1)
		b.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1)))
		again := func() error { return settle(t.Context(), s, today, order(nextID(), "", sale(1, 1, 1))) }

		execute(t, db, "ALTER TABLE sales RENAME TO sales_of_later", "UPDATE schema_1 SET version_id = 0 WHERE version_id > 0")
		require.Error(t, again(), "the table is missing")
		err := again()
		require.Equal(t, fault.Unavailable, fault.KindOf(err))
		require.ErrorContains(t, err, "Somebody has changed the table schema_1: the tables of a book are there")

		execute(t, db, "ALTER TABLE sales_of_later RENAME TO sales", "UPDATE schema_1 SET version_id = "+strconv.Itoa(store.SchemaVersion)+" WHERE version_id = 0")
		require.NoError(t, again())
	})
}

// A question for the version that fails for another reason than a missing
// schema is that failure, and no version 0.
func TestAVersionThatCannotBeRead(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		execute(t, db, "ALTER TABLE schema_1 RENAME COLUMN version_id TO something_else")
		_, err := s.Schema.Status(t.Context())
		require.Error(t, err)
		err = settle(t.Context(), s, today, order(nextID(), "", sale(1, 1, 1)))
		require.Error(t, err)
		require.NotContains(t, err.Error(), "version 0")

		execute(t, db, "ALTER TABLE schema_1 RENAME TO elsewhere")
		err = settle(t.Context(), s, today, order(nextID(), "", sale(1, 1, 1)))
		require.ErrorContains(t, err, "Somebody has changed the table schema_1: the tables of a book are there")
	})
}

// An assertion that fails has a name, which the documentation explains.
func TestAssertionsHaveNames(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]string{
		"bankingapi_price_is_current 0": "UPDATE prices SET price = price + 1",
		"bankingapi_rules_are_same 0":   "UPDATE properties SET value = 'others' WHERE name = 'rules'",
		"bankingapi_holding_exists 1":   "DELETE FROM holdings WHERE customer_no = 1",
		"bankingapi_account_exists 1":   "DELETE FROM accounts WHERE customer_no = 1",
		"holdings_units_check":          "UPDATE holdings SET units = 0",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s, w := watched(t)
			newBank(t, s, 2)
			rules, err := backoffice.BeginRules(t.Context(), s.Backoffice.RuleBook, audit.Acts{NewID: nextID, Now: time.Now}, fund.DefaultRules())
			require.NoError(t, err)
			sell := func() error {
				first, second := order(nextID(), "", sale(1, 1, 1)), order(nextID(), "", sale(1, 2, 2))
				first.Rules, second.Rules = rules.String(), rules.String()
				return settle(t.Context(), s, today, first, second)
			}
			for range 3 {
				require.NoError(t, sell())
			}
			_, err = s.Pools["all"]().ExecContext(t.Context(), change)
			require.NoError(t, err)
			w.errors = nil
			require.NoError(t, sell())
			require.Len(t, w.errors, 1)
			native, ok := errors.AsType[*pgconn.PgError](w.errors[0])
			require.True(t, ok)
			require.Contains(t, native.Message+native.ConstraintName, want)
		})
	}
}
