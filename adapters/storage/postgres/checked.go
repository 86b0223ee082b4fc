package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
)

// The checked commit is for batches in which some operations do not complete:
// refused, repeated and forward-dated ones. Like the normal way it takes two
// round trips, but it touches each position once instead of twice:
//
//  1. The first round trip moves each position as if all sales completed, if it
//     exists and does not go below zero. This also locks it. The server answers
//     only with the positions that did not move. The book is settled on these,
//     and on the assumption that all others have enough.
//  2. The second one moves back what should not have moved, adds the records and
//     commits.
//
// Prices that an earlier batch has read are not read again. The database checks
// them, as in the optimistic commit.
//
// A position that did not move is not locked. If the book changes one, the batch
// is rolled back and processed the normal way.

// errNotLocked says that a batch must be processed the normal way.
var errNotLocked = errors.New("the batch changes a position that did not move")

// check processes a batch by the checked commit. assumed are the changes if all
// sales complete. clean reports whether they all did. done is false if the
// batch had no effect and must be processed the normal way.
func (b *optimisticBooks) check(ctx context.Context, locks *fund.LockSet, assumed *fund.Changes, settle func(*fund.Book)) (clean, done bool, err error) {
	err = b.db.Attempt(ctx, func(session batch.Session) error {
		book := fund.NewBook(len(locks.Holdings))
		holdings := newMoves(locks.Holdings, assumed.Holdings, holdingQuantity)
		accounts := newMoves(locks.Accounts, assumed.Accounts, accountQuantity)
		reads := append([]batch.Request{
			request(holdings, b.moves.holding, newHolding, storage.NewHoldingRow),
			request(accounts, b.moves.account, newAccount, storage.NewAccountRow),
		}, b.lookups(locks, book)...)
		if err := session.Exchange(ctx, batch.NonEmpty(reads...)...); err != nil {
			return err
		}
		load(holdings, int64(assumedUnits), newHolding, book.LoadHolding)
		load(accounts, 0, newAccount, book.LoadAccount)
		settle(book)
		clean = book.CompletedAll()
		changes := book.Changes()
		records := b.Records(book, &changes)
		backHoldings, ok := corrections(holdings, changes.Holdings, holdingQuantity, newHolding, storage.NewHoldingRow)
		backAccounts, alsoOK := corrections(accounts, changes.Accounts, accountQuantity, newAccount, storage.NewAccountRow)
		if !ok || !alsoOK {
			return errNotLocked
		}
		return session.Commit(ctx, batch.NonEmpty(append([]batch.Request{
			b.moves.holdingBack.Request(backHoldings),
			b.moves.accountBack.Request(backAccounts),
		}, records...)...)...)
	})
	if errors.Is(err, errNotLocked) {
		return clean, false, nil
	}
	done, err = ended(b.db, err)
	return clean, done, err
}

// lookups are Lookups. If all prices are known, they are asserted instead.
func (b *optimisticBooks) lookups(locks *fund.LockSet, book *fund.Book) []batch.Request {
	prices, all := b.assumePrices(locks, book)
	if !all {
		return b.Lookups(locks, book)
	}
	others := *locks
	others.PriceIDs, others.PriceDays = nil, nil
	return append(b.Lookups(&others, book), b.assertions.price.Request(prices))
}

func holdingQuantity(h fund.Holding) (fund.HoldingKey, int64) { return h.Key, int64(h.Units) }

func accountQuantity(a fund.Account) (fund.AccountKey, int64) { return a.Key, a.Balance.Minor() }

func newHolding(key fund.HoldingKey, quantity int64) fund.Holding {
	return fund.Holding{Key: key, Units: fund.Units(quantity)}
}

func newAccount(key fund.AccountKey, quantity int64) fund.Account {
	return fund.Account{Key: key, Balance: money.New(quantity, key.Currency)}
}

// move is the change of one position.
type move[K comparable] struct {
	key K
	by  int64
	// stays says that the position did not move. It then has the quantity, unless
	// it is missing.
	stays, missing bool
	quantity       int64
}

// newMoves returns a move for each key of a lock set. changes are in the order
// of the keys.
func newMoves[K comparable, P any](keys []K, changes []P, quantity func(P) (K, int64)) []move[K] {
	moves := make([]move[K], len(keys))
	for i, key := range keys {
		moves[i].key = key
		if len(changes) > 0 {
			if changed, by := quantity(changes[0]); changed == key {
				moves[i].by, changes = by, changes[1:]
			}
		}
	}
	return moves
}

// request makes the moves, and finds those that cannot be made.
func request[K comparable, P, R any](moves []move[K], s *batch.Statement[R], position func(K, int64) P, row func(P) R) batch.Request {
	rows := make([]R, len(moves))
	for i, m := range moves {
		rows[i] = row(position(m.key, m.by))
	}
	r := s.Request(rows)
	r.Found = func(scan batch.Scan) error {
		var quantity sql.NullInt64
		i, err := scan(&quantity)
		if err == nil {
			moves[i].stays, moves[i].missing, moves[i].quantity = true, !quantity.Valid, quantity.Int64
		}
		return err
	}
	return r
}

// load puts the positions that exist into the book. Those that moved have the
// assumed quantity.
func load[K comparable, P any](moves []move[K], assumed int64, position func(K, int64) P, into func(P)) {
	for i := range moves {
		m := &moves[i]
		if !m.stays {
			m.quantity = assumed
		}
		if !m.missing {
			into(position(m.key, m.quantity))
		}
	}
}

// corrections move back what the book has moved less. ok is false if the book
// changes a position that did not move.
func corrections[K comparable, P, R any](moves []move[K], changes []P, quantity func(P) (K, int64), position func(K, int64) P, row func(P) R) (corrected []R, ok bool) {
	for _, m := range moves {
		moved, want := m.by, int64(0)
		if m.stays {
			moved = 0
		}
		if len(changes) > 0 {
			if changed, q := quantity(changes[0]); changed == m.key {
				want, changes = q-m.quantity, changes[1:]
			}
		}
		switch {
		case moved == want:
		case m.stays:
			return nil, false
		default:
			corrected = append(corrected, row(position(m.key, want-moved)))
		}
	}
	return corrected, true
}

// moves are the statements for positions.
type moves struct {
	holding, holdingBack *batch.Statement[storage.HoldingRow]
	account, accountBack *batch.Statement[storage.AccountRow]
}

func newMoveStatements(p *storage.Parts) moves {
	return moves{tryMove(p.Holdings), moveBack(p.Holdings), tryMove(p.Accounts), moveBack(p.Accounts)}
}

// tryMove adds to the quantities of the rows that exist and do not go below zero.
// It returns each other row: its number, and its quantity or NULL if it does not
// exist. A row whose quantity is to change by 0 does not move.
func tryMove[R any](t *batch.Table[R]) *batch.Statement[R] {
	quantity := quantityOf(t)
	names := strings.Join(batch.Names(t.Columns), ", ")
	return t.Statement("try to move "+t.Name, t.Columns, statement(func(f form) string {
		return fmt.Sprintf("WITH k AS MATERIALIZED (SELECT %[1]s, n FROM %[2]s),"+
			" moved AS (UPDATE %[3]s t SET %[4]s = t.%[4]s + k.%[4]s FROM k WHERE %[5]s AND k.%[4]s <> 0 AND t.%[4]s >= -k.%[4]s"+
			" RETURNING k.n)"+
			" SELECT k.n, t.%[4]s FROM k LEFT JOIN %[3]s t ON %[5]s WHERE k.n NOT IN (SELECT n FROM moved)",
			names, f.numbered(t.Columns), t.Name, quantity, matching(t.Columns))
	}))
}

// moveBack adds to the quantities of rows that have moved.
func moveBack[R any](t *batch.Table[R]) *batch.Statement[R] {
	return t.Statement("move back "+t.Name, t.Columns, statement(func(f form) string {
		return fmt.Sprintf("UPDATE %[1]s t SET %[2]s = t.%[2]s + k.%[2]s FROM %[3]s WHERE %[4]s",
			t.Name, quantityOf(t), f.rows(t.Columns), matching(t.Columns))
	}))
}
