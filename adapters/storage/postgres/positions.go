package postgres

import (
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
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
	// zero. try adds to those that it can, and returns the others.
	add, try *batch.Statement[R]
}

func newHoldings(t *batch.Table[storage.HoldingRow]) positions[fund.HoldingKey, fund.Holding, storage.HoldingRow] {
	holding := func(key fund.HoldingKey, quantity int64) fund.Holding {
		return fund.Holding{Key: key, Units: fund.Units(quantity)}
	}
	return positions[fund.HoldingKey, fund.Holding, storage.HoldingRow]{
		math.MaxInt64,
		func(b *fund.Book, key fund.HoldingKey, quantity int64) { b.LoadHolding(holding(key, quantity)) },
		func(h fund.Holding) (fund.HoldingKey, int64) { return h.Key, int64(h.Units) },
		func(key fund.HoldingKey, by int64) storage.HoldingRow { return storage.NewHoldingRow(holding(key, by)) },
		addTo(t, "holding_exists"), tryToAddTo(t),
	}
}

func newAccounts(t *batch.Table[storage.AccountRow]) positions[fund.AccountKey, fund.Account, storage.AccountRow] {
	account := func(key fund.AccountKey, minor int64) fund.Account {
		return fund.Account{Key: key, Balance: money.New(minor, key.Currency)}
	}
	return positions[fund.AccountKey, fund.Account, storage.AccountRow]{
		0,
		func(b *fund.Book, key fund.AccountKey, minor int64) { b.LoadAccount(account(key, minor)) },
		func(a fund.Account) (fund.AccountKey, int64) { return a.Key, a.Balance.Minor() },
		func(key fund.AccountKey, by int64) storage.AccountRow { return storage.NewAccountRow(account(key, by)) },
		addTo(t, "account_exists"), tryToAddTo(t),
	}
}

// difference is what is added to a position.
type difference[K comparable] struct {
	key K
	by  int64
	// stays says that nothing could be added. The position then has the quantity,
	// unless it is missing.
	stays, missing bool
	quantity       int64
}

// differences are those of all keys of a lock set, after a book was settled in which
// each position had the assumed quantity. The changes have the order of the keys.
func (p *positions[K, P, R]) differences(keys []K, changes []P) []difference[K] {
	all := make([]difference[K], len(keys))
	for i, key := range keys {
		all[i].key = key
		if len(changes) > 0 {
			if changed, quantity := p.quantity(changes[0]); changed == key {
				all[i].by, changes = quantity-p.assumed, changes[1:]
			}
		}
	}
	return all
}

// addAll adds the differences.
func (p *positions[K, P, R]) addAll(all []difference[K]) batch.Request {
	var rows []R
	for i := range all {
		if all[i].by != 0 {
			if rows == nil {
				rows = make([]R, 0, len(all)-i)
			}
			rows = append(rows, p.row(all[i].key, all[i].by))
		}
	}
	return p.add.Request(rows)
}

// tryAll adds the differences that it can, and finds the others.
func (p *positions[K, P, R]) tryAll(all []difference[K]) batch.Request {
	rows := make([]R, len(all))
	for i := range all {
		rows[i] = p.row(all[i].key, all[i].by)
	}
	r := p.try.Request(rows)
	r.Found = func(scan batch.Scan) error {
		var quantity sql.NullInt64
		i, err := scan(&quantity)
		if err == nil {
			all[i].stays, all[i].missing, all[i].quantity = true, !quantity.Valid, quantity.Int64
		}
		return err
	}
	return r
}

// loadTried puts the positions that exist into the book. Those that have moved have the
// assumed quantity.
func (p *positions[K, P, R]) loadTried(book *fund.Book, all []difference[K]) {
	for i := range all {
		d := &all[i]
		if !d.stays {
			d.quantity = p.assumed
		}
		if !d.missing {
			p.load(book, d.key, d.quantity)
		}
	}
}

// correct adds what the book changes and what was not added. ok is false if the book
// changes a position that stayed.
func (p *positions[K, P, R]) correct(all []difference[K], changes []P) (r batch.Request, ok bool) {
	for i := range all {
		d := &all[i]
		d.by = -d.by // it moves back, unless the book changes it too
		if d.stays {
			d.by = 0
		}
		if len(changes) > 0 {
			if changed, quantity := p.quantity(changes[0]); changed == d.key {
				d.by, changes = d.by+quantity-d.quantity, changes[1:]
			}
		}
		if d.by != 0 && d.stays {
			return r, false
		}
	}
	return p.addAll(all), true
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

// tryToAddTo is positions.try. It returns the number of each row that did not move, and its
// quantity or NULL if it does not exist. A row whose quantity is to change by 0 does not
// move.
func tryToAddTo[R any](t *batch.Table[R]) *batch.Statement[R] {
	return t.Statement("try to move "+t.Name, t.Columns, statement(func(f form) string {
		return fmt.Sprintf("WITH k AS MATERIALIZED (SELECT %[1]s, n FROM %[2]s),"+
			" moved AS (UPDATE %[3]s t SET %[4]s = t.%[4]s + k.%[4]s FROM k WHERE %[5]s AND k.%[4]s <> 0 AND t.%[4]s >= -k.%[4]s"+
			" RETURNING k.n)"+
			" SELECT k.n, t.%[4]s FROM k LEFT JOIN %[3]s t ON %[5]s WHERE k.n NOT IN (SELECT n FROM moved)",
			strings.Join(batch.Names(t.Columns), ", "), f.numbered(t.Columns), t.Name, quantityOf(t), matching(t.Columns))
	}))
}
