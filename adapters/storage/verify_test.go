package storage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// onEachBank runs a test on every engine with a bank, and with a way to run
// SQL behind its back.
func onEachBank(t *testing.T, customers int, test func(t *testing.T, b bank, run func(sql string))) {
	t.Helper()
	for engine, open := range map[string]func(t *testing.T) (*store.Store, string){
		testdb.EngineSQLite: func(t *testing.T) (*store.Store, string) {
			file := testdb.SQLite(t)
			return storekit.OpenSQLite(t, file), file
		},
		testdb.EnginePostgres: func(t *testing.T) (*store.Store, string) {
			dsn := testdb.Postgres(t)
			return storekit.OpenPostgres(t, dsn), dsn
		},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			store, dsn := open(t)
			db := testdb.Open(t, engine, dsn)
			test(t, newBank(t, store, customers), func(sql string) {
				_, err := db.ExecContext(t.Context(), sql)
				require.NoError(t, err, sql)
			})
		})
	}
}

// aDay puts something of everything into the book.
func aDay(b bank) {
	b.sell(operation.Completed, order(operation.ID{1}, "a", sale(10, 1, 1)))
	b.sell(operation.Completed, order(operation.ID{2}, "b", sale(1, 1, 2), sale(2, 2, 1), sale(3, 1, 1)))
	b.sell(operation.Completed, order(operation.ID{3}, "", sale(4, 3, 1)))
	b.sell(operation.Failed, order(operation.ID{4}, "c", sale(2_000_000, 1, 1)))
	b.sell(operation.Recorded, order(operation.ID{5}, "d", on(today.Plus(1), sale(5, 1, 3))))
	b.sell(operation.Recorded, order(operation.ID{6}, "e", on(today.Plus(2), sale(2_000_000, 2, 2)), on(today.Plus(2), sale(1, 1, 1))))
	due := order(operation.ID{6}, "e", on(today.Plus(2), sale(2_000_000, 2, 2)), on(today.Plus(2), sale(1, 1, 1)))
	due.Due = true
	require.NoError(b.t, settle(b.t.Context(), b.Store, today.Plus(2), due))
}

func TestVerify(t *testing.T) {
	t.Parallel()
	onEachBank(t, 3, func(t *testing.T, b bank, _ func(string)) {
		aDay(b)
		proof := b.holds()
		require.Equal(t, backoffice.Proof{
			Holdings: 3, Accounts: 3, Sales: 8, Postings: 16,
			Units: []backoffice.Total{{Of: "AFA Demo Portfoy", Customers: "2999980.000000", Bank: "-2999980.000000"}},
			Money: []backoffice.Total{{Of: "TRY", Customers: "50.00", Bank: "-50.00"}},
		}, proof)
	})
}

// A few thousand operations may have sold many funds on many days. A statement has at most 65,535
// parameters on Postgres, and 32,766 on SQLite.
func TestVerifyReadsMorePricesThanAStatementHasParameters(t *testing.T) {
	t.Parallel()
	onEachBank(t, 1, func(t *testing.T, b bank, run func(string)) {
		const prices = 66_000
		b.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1)))
		const rest = "customer_no, price_id, units, account_customer_no, branch_code, account_suffix, settled_price, proceeds, state, operation_id, currency_code, imkb_code, holder_corporation_name"
		run(fmt.Sprintf("INSERT INTO sales (position, settled_price_id, %[1]s)"+
			" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %[2]d) SELECT i, i + 1, %[1]s FROM sales, n", rest, prices-1))
		proof, found := b.findings()
		require.EqualValues(t, prices, proof.Sales)
		require.GreaterOrEqual(t, len(found), prices-1, "only price 1 is known")
	})
}

// What verify reads comes from every table. The rules have their table in package backoffice, and
// TestEveryChangeOfARowIsFound changes every value of a row.
func TestVerifyFinds(t *testing.T) {
	t.Parallel()
	const (
		first  = "01000000-0000-0000-0000-000000000000"
		second = "02000000-0000-0000-0000-000000000000"
		third  = "03000000-0000-0000-0000-000000000000"
		fifth  = "05000000-0000-0000-0000-000000000000"
		sixth  = "06000000-0000-0000-0000-000000000000"
		totals = "AFA Demo Portfoy: customers have "
	)
	var noPrice []string
	for _, sale := range []string{first + "/0 of customer 1", second + "/0 of customer 1", second + "/1 of customer 2", second + "/2 of customer 1", third + "/0 of customer 3"} {
		noPrice = append(noPrice, "sale "+sale+": was not settled at a price of its fund and currency")
	}
	for name, c := range map[string]struct {
		damage []string
		want   []string
	}{
		"a holding vanishes": {
			[]string{"DELETE FROM holdings WHERE customer_no = 3"},
			[]string{
				`holding 3 AFA "Demo Portfoy": does not exist but has 2 postings`,
				totals + `1999984.000000 and the bank -2999980.000000, which is not zero together`,
			},
		},
		"postings are as large as they can be": {
			[]string{"UPDATE adjustments SET quantity = 9223372036854775807 WHERE kind = 2 AND leg = 1"},
			[]string{
				totals + `2999980.000000 and the bank -27670116110544.327421, which is not zero together`,
				`holding 1 AFA "Demo Portfoy": is 999986.000000, but its postings sum to 9223372036840.775807`,
				`holding 2 AFA "Demo Portfoy": is 999998.000000, but its postings sum to 9223372036852.775807`,
				`holding 3 AFA "Demo Portfoy": is 999996.000000, but its postings sum to 9223372036850.775807`,
			},
		},
		"a completed sale vanishes": {
			[]string{"DELETE FROM sales WHERE operation_id = @2"},
			[]string{
				totals + "2999980.000000 and the bank -2999986.000000, which is not zero together",
				"TRY: customers have 50.00 and the bank -35.00, which is not zero together",
				"account 7-1-1 TRY: is 47.50, but its postings sum to 35.00",
				"account 7-2-1 TRY: is 2.50, but its postings sum to 0.00",
				`holding 1 AFA "Demo Portfoy": is 999986.000000, but its postings sum to 999990.000000`,
				`holding 2 AFA "Demo Portfoy": is 999998.000000, but its postings sum to 1000000.000000`,
				"operation " + second + ": was answered, but it has no sales",
			},
		},
		"the price changes": {
			[]string{"UPDATE prices SET price = price * 2"},
			noPrice,
		},
		"an outcome vanishes": {
			[]string{"UPDATE properties SET value = '2' WHERE name = 'outcomes'"},
			[]string{"outcomes 1 to 2: some are missing"},
		},
		"a sale is in an unknown currency": {
			[]string{"UPDATE sales SET currency_code = 'QQQ' WHERE operation_id = @1"},
			[]string{
				"QQQ: customers have 0 and the bank -2500, which is not zero together",
				"TRY: customers have 50.00 and the bank -25.00, which is not zero together",
				"account 7-1-1 QQQ: does not exist but has 1 postings",
				"account 7-1-1 TRY: is 47.50, but its postings sum to 22.50",
				"operation " + first + `: this version does not know the stored currency "QQQ"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachBank(t, 3, func(t *testing.T, b bank, run func(string)) {
				aDay(b)
				for _, statement := range c.damage {
					run(withIDs(b, statement))
				}
				_, found := b.findings()
				slices.Sort(found)
				require.Equal(t, slices.Sorted(slices.Values(c.want)), found)
			})
		})
	}
}

// Each posting is of a known kind, and either of units or of money.
func TestVerifyFindsEveryWrongShape(t *testing.T) {
	t.Parallel()
	shapes := []struct {
		name string
		leg  int
		set  string
	}{
		{"an unknown kind", 1, "kind = 5"},
		{"no kind", 2, "kind = 0"},
		{"an absurd kind", 2, "kind = 257"},
		{"an unknown leg", 2, "leg = 3"},
		{"units of a currency", 1, "currency_code = 'TRY'"},
		{"money of a fund", 2, "imkb_code = 'AFA', holder_corporation_name = 'Demo Portfoy'"},
		{"units of nothing", 1, "imkb_code = '', holder_corporation_name = ''"},
		{"money of nothing", 2, "currency_code = ''"},
		{"units on leg 2", 1, "leg = 2"},
		{"money on leg 1", 2, "leg = 1"},
	}
	onEachBank(t, len(shapes), func(t *testing.T, b bank, run func(string)) {
		var accounts []fund.Account // each customer has an opening of units, and an adjustment of money
		for i := range shapes {
			accounts = append(accounts, fund.Account{Key: accountOf(i + 1), Balance: money.New(100, lira)})
		}
		require.NoError(t, importAccounts(t.Context(), b.Store, nextID(), lines(accounts...), quiet))
		for i, shape := range shapes {
			run(fmt.Sprintf("UPDATE adjustments SET %s WHERE customer_no = %d AND leg = %d AND quantity <> 0", shape.set, i+1, shape.leg))
		}
		_, found := b.findings()
		wrong := slices.DeleteFunc(found, func(text string) bool {
			return !strings.HasSuffix(text, ": its kind is unknown, or it is not either of units or of money")
		})
		require.Len(t, wrong, len(shapes))
		for i, shape := range shapes {
			require.Contains(t, strings.Join(wrong, "\n"), fmt.Sprintf("of customer %d: ", i+1), shape.name)
		}
	})
}

// withIDs puts operation IDs for @1, @2 and @5.
func withIDs(b bank, statement string) string {
	literal := func(n string) string { return "'0" + n + "000000-0000-0000-0000-000000000000'" }
	if b.isSQLite() {
		literal = func(n string) string { return "x'0" + n + strings.Repeat("0", 30) + "'" }
	}
	return strings.NewReplacer("@1", literal("1"), "@2", literal("2"), "@5", literal("5")).Replace(statement)
}

// Sums are exact, also where 64 bits are too few for them.
func TestVerifyAddsUpWithoutEnd(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		b := bank{s, t}
		var most, none []fund.Account
		for i := range 3 {
			most = append(most, fund.Account{Key: accountOf(i + 1), Balance: money.New(1<<63-1, lira)})
			none = append(none, fund.Account{Key: accountOf(i + 1), Balance: money.New(0, lira)})
		}
		for range 2 {
			require.NoError(t, importAccounts(t.Context(), s, nextID(), lines(most...), quiet))
			require.Equal(t, []backoffice.Total{{Of: "TRY", Customers: "276701161105643274.21", Bank: "-276701161105643274.21"}}, b.holds().Money)
			require.NoError(t, importAccounts(t.Context(), s, nextID(), lines(none...), quiet))
			require.Equal(t, []backoffice.Total{{Of: "TRY", Customers: "0.00", Bank: "0.00"}}, b.holds().Money)
		}
	})
}
