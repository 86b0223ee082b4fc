package postgres

import (
	"context"
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
//     with the quantities before the move, and with those of the positions that
//     did not move. The book is settled on these.
//  2. The second one corrects the few positions that should not have moved, adds
//     the records and commits.
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
			request(holdings, b.moves.holding, newHolding, storage.NewHoldingRow, book.LoadHolding),
			request(accounts, b.moves.account, newAccount, storage.NewAccountRow, book.LoadAccount),
		}, b.Lookups(locks, book)...)
		if err := session.Exchange(ctx, batch.NonEmpty(reads...)...); err != nil {
			return err
		}
		settle(book)
		clean = book.CompletedAll()
		changes := book.Changes()
		records := b.Records(book, &changes)
		var ok [2]bool
		changes.Holdings, ok[0] = corrections(holdings, changes.Holdings, holdingQuantity, newHolding)
		changes.Accounts, ok[1] = corrections(accounts, changes.Accounts, accountQuantity, newAccount)
		if !ok[0] || !ok[1] {
			return errNotLocked
		}
		return session.Commit(ctx, batch.NonEmpty(append(b.Positions(&changes), records...)...)...)
	})
	if errors.Is(err, errNotLocked) {
		return clean, false, nil
	}
	done, err = ended(b.db, err)
	return clean, done, err
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
	key    K
	by     int64
	before int64
	moved  bool
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

// request makes the moves. load receives each position that exists, as it was
// before.
func request[K comparable, P, R any](moves []move[K], s *batch.Statement[R], position func(K, int64) P, row func(P) R, load func(P)) batch.Request {
	rows := make([]R, len(moves))
	for i, m := range moves {
		rows[i] = row(position(m.key, m.by))
	}
	r := s.Request(rows)
	r.Found = func(scan batch.Scan) error {
		var before, moved int64
		i, err := scan(&before, &moved)
		if err == nil {
			moves[i].before, moves[i].moved = before, moved != 0
			load(position(moves[i].key, before))
		}
		return err
	}
	return r
}

// corrections returns the positions that have moved to another quantity than the
// book has. ok is false if the book changes one that did not move.
func corrections[K comparable, P any](moves []move[K], changes []P, quantity func(P) (K, int64), position func(K, int64) P) (corrected []P, ok bool) {
	for _, m := range moves {
		now, want := m.before, m.before
		if m.moved {
			now += m.by
		}
		if len(changes) > 0 {
			if changed, q := quantity(changes[0]); changed == m.key {
				want, changes = q, changes[1:]
			}
		}
		if now == want {
			continue
		}
		if !m.moved {
			return nil, false
		}
		corrected = append(corrected, position(m.key, want))
	}
	return corrected, true
}

// moves are the statements of the first round trip.
type moves struct {
	holding *batch.Statement[storage.HoldingRow]
	account *batch.Statement[storage.AccountRow]
}

func newMoveStatements(p *storage.Parts) moves {
	return moves{tryMove(p.Holdings), tryMove(p.Accounts)}
}

// tryMove adds to the quantities of the rows that exist and do not go below zero.
// It returns for each row that exists its number, its quantity before, and
// whether it moved. A row whose quantity is to change by 0 does not move.
func tryMove[R any](t *batch.Table[R]) *batch.Statement[R] {
	quantity := quantityOf(t)
	names := strings.Join(batch.Names(t.Columns), ", ")
	return t.Statement("try to move "+t.Name, t.Columns, statement(func(f form) string {
		return fmt.Sprintf("WITH k AS MATERIALIZED (SELECT %[1]s, n FROM %[2]s),"+
			" moved AS (UPDATE %[3]s t SET %[4]s = t.%[4]s + k.%[4]s FROM k WHERE %[5]s AND k.%[4]s <> 0 AND t.%[4]s >= -k.%[4]s"+
			" RETURNING k.n, t.%[4]s - k.%[4]s AS before)"+
			" SELECT n, before, 1 FROM moved"+
			" UNION ALL SELECT k.n, t.%[4]s, 0 FROM k JOIN %[3]s t ON %[5]s WHERE k.n NOT IN (SELECT n FROM moved)",
			names, f.numbered(t.Columns), t.Name, quantity, matching(t.Columns))
	}))
}
