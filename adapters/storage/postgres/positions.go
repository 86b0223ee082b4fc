package postgres

import (
	"fmt"
	"math"
	"slices"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
)

// positions are the holdings or the accounts, and the statements that add to their
// quantities. A row of these statements has the difference where a row of the table has
// the quantity.
type positions[K comparable, P, R any] struct {
	// assumed is a quantity that lets sales of any size complete. The database undoes
	// those that should not have completed.
	assumed  int64
	load     func(book *fund.Book, key K, quantity int64)
	quantity func(P) (K, int64)
	row      func(key K, by int64) R
	// add adds to rows, or ends the transaction if one does not exist or goes below
	// zero.
	add *batch.Statement[R]
}

func newHoldings(t *batch.Table[tables.HoldingRow]) positions[fund.HoldingKey, fund.Holding, tables.HoldingRow] {
	holding := func(key fund.HoldingKey, quantity int64) fund.Holding {
		return fund.Holding{Key: key, Units: fund.Units(quantity)}
	}
	return positions[fund.HoldingKey, fund.Holding, tables.HoldingRow]{
		math.MaxInt64,
		func(b *fund.Book, key fund.HoldingKey, quantity int64) { b.LoadHolding(holding(key, quantity)) },
		func(h fund.Holding) (fund.HoldingKey, int64) { return h.Key, int64(h.Units) },
		func(key fund.HoldingKey, by int64) tables.HoldingRow { return tables.NewHoldingRow(holding(key, by)) },
		addTo(t, "holding_exists"),
	}
}

func newAccounts(t *batch.Table[tables.AccountRow]) positions[fund.AccountKey, fund.Account, tables.AccountRow] {
	account := func(key fund.AccountKey, minor int64) fund.Account {
		return fund.Account{Key: key, Balance: money.New(minor, key.Currency)}
	}
	return positions[fund.AccountKey, fund.Account, tables.AccountRow]{
		0,
		func(b *fund.Book, key fund.AccountKey, minor int64) { b.LoadAccount(account(key, minor)) },
		func(a fund.Account) (fund.AccountKey, int64) { return a.Key, a.Balance.Minor() },
		func(key fund.AccountKey, by int64) tables.AccountRow { return tables.NewAccountRow(account(key, by)) },
		addTo(t, "account_exists"),
	}
}

// addAll adds the differences between the changed positions and the assumed quantity.
func (p *positions[K, P, R]) addAll(changes []P) batch.Request {
	rows := make([]R, 0, len(changes))
	for _, changed := range changes {
		if key, quantity := p.quantity(changed); quantity != p.assumed {
			rows = append(rows, p.row(key, quantity-p.assumed))
		}
	}
	return p.add.Request(rows)
}

// quantityOf is the column of a position outside its key.
func quantityOf[R any](t *batch.Table[R]) string {
	i := slices.IndexFunc(t.Columns, func(c batch.Column) bool { return !c.Key })
	return t.Columns[i].Name
}

// addTo is positions.add. The table's own condition is that a quantity does not go below
// zero.
func addTo[R any](t *batch.Table[R], assertion string) *batch.Statement[R] {
	return t.Statement("move "+t.Name, t.Columns, statement(func(f form) string {
		return fmt.Sprintf("WITH moved AS (UPDATE %[1]s t SET %[2]s = t.%[2]s + k.%[2]s FROM %[3]s WHERE %[4]s RETURNING 1) SELECT %[5]s FROM moved",
			t.Name, quantityOf(t), f.rows(t.Columns), matching(t.Columns), assert(assertion, f))
	}))
}
