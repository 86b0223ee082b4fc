package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// Lines is a checked file.
type Lines[T any] = backoffice.Lines[T]

// chunk is the number of lines in one round trip.
const chunk = 1000

// imports is backoffice.Imports.
type imports struct {
	leafMaker
	now func() time.Time
}

// Prices is as backoffice.Imports promises.
func (i imports) Prices(ctx context.Context, lines Lines[fund.Price], written func(int64)) (imported backoffice.Imported, err error) {
	var changed backoffice.ChangedPrices
	err = i.Transact(ctx, func(session batch.Session) error {
		changed, imported = backoffice.ChangedPrices{}, backoffice.Imported{}
		err := inChunks(ctx, i.database, session, lines, written, func(part []numbered[fund.Price]) error {
			existing := make(map[int]bool)
			found := i.findImported(part, func(key int, _ fund.Price) { existing[key] = true })
			compared := i.findImported(part, func(key int, p fund.Price) { changed.Compare(part[key].line, p, part[key].value) })
			if err := session.Exchange(ctx, found, i.addPrices(part), compared); err != nil {
				return err
			}
			imported.New += int64(len(part) - len(existing))
			imported.Unchanged += int64(len(existing))
			return session.Exchange(ctx, batch.NonEmpty(i.priceEntryWrite(part, existing))...)
		})
		if err != nil {
			return err
		}
		if changed.Lines > 0 {
			return &changed
		}
		return i.commit(ctx, session, imported)
	})
	if changed.Lines > 0 {
		return imported, &changed
	}
	return imported, ended(err)
}

// commit ends an import: it writes the act, unless nothing is to be written.
func (i imports) commit(ctx context.Context, session batch.Session, imported backoffice.Imported, posted ...batch.Request) error {
	if backoffice.ImportOptionsOf(ctx).DryRun {
		return backoffice.ErrDryRun
	}
	return session.Commit(ctx, append(i.actWrites(ctx, nil, imported.String()), posted...)...)
}

// ended is nil for an import that was to write nothing.
func ended(err error) error {
	if errors.Is(err, backoffice.ErrDryRun) {
		return nil
	}
	return err
}

func (i imports) addPrices(part []numbered[fund.Price]) batch.Request {
	request := i.prices.add.Request(convert(part, func(p numbered[fund.Price]) PriceRow { return newPriceRow(p.value) }))
	request.Settled = true
	return request
}

// priceEntryWrite writes the entries of the prices that did not exist.
func (i imports) priceEntryWrite(part []numbered[fund.Price], existing map[int]bool) batch.Request {
	recording := i.trail.on.Load()
	var entries []trail.Entry
	for k := range part {
		if recording != nil && !existing[k] {
			row := newPriceRow(part[k].value)
			entries = append(entries, i.prices.leaves.entry(&row))
		}
	}
	return i.trail.request(recording, entries)
}

func (i imports) findImported(part []numbered[fund.Price], found func(int, fund.Price)) batch.Request {
	return i.findPrices(convert(part, func(p numbered[fund.Price]) int64 { return p.value.ID }), found)
}

// Holdings is as backoffice.Imports promises.
func (i imports) Holdings(ctx context.Context, id operation.ID, lines Lines[fund.Holding], written func(int64)) (backoffice.Imported, error) {
	return importPositions(ctx, i, lines, written, positions[fund.Holding]{
		id: id, table: i.holdings.Name, leg: unitLeg, key: "customer_no, imkb_code, holder_corporation_name",
		find: func(part []numbered[fund.Holding], found func(int, int64)) batch.Request {
			keys := convert(part, func(n numbered[fund.Holding]) HoldingRow { return holdingKey(n.value.Key) })
			return i.holdings.find.Request(keys, func(key int, row *HoldingRow) error {
				found(key, row.Units)
				return nil
			})
		},
		first: func(found func()) batch.Request {
			return anyRow(i.holdings.Table, HoldingRow{CustomerNo: math.MinInt64}, found)
		},
		quantity: func(h *fund.Holding) int64 { return int64(h.Units) },
		posting: func(kind fund.PostingKind, line int64, h *fund.Holding, by int64) fund.Posting {
			return fund.UnitPosting(kind, id, int(line), h.Key, fund.Units(by))
		},
		add: func(h []fund.Holding) batch.Request { return i.holdings.add.Request(convert(h, NewHoldingRow)) },
		put: func(h []fund.Holding) batch.Request { return i.holdings.put.Request(convert(h, NewHoldingRow)) },
	})
}

// Accounts is as backoffice.Imports promises.
func (i imports) Accounts(ctx context.Context, id operation.ID, lines Lines[fund.Account], written func(int64)) (backoffice.Imported, error) {
	return importPositions(ctx, i, lines, written, positions[fund.Account]{
		id: id, table: i.accounts.Name, leg: moneyLeg, key: "customer_no, branch_code, account_suffix, currency_code",
		find: func(part []numbered[fund.Account], found func(int, int64)) batch.Request {
			keys := convert(part, func(n numbered[fund.Account]) AccountRow { return accountKey(n.value.Key) })
			return i.accounts.find.Request(keys, func(key int, row *AccountRow) error {
				found(key, row.Balance)
				return nil
			})
		},
		first: func(found func()) batch.Request {
			return anyRow(i.accounts.Table, AccountRow{CustomerNo: math.MinInt64}, found)
		},
		quantity: func(a *fund.Account) int64 { return a.Balance.Minor() },
		posting: func(kind fund.PostingKind, line int64, a *fund.Account, by int64) fund.Posting {
			return fund.MoneyPosting(kind, id, int(line), a.Key, by)
		},
		add: func(a []fund.Account) batch.Request { return i.accounts.add.Request(convert(a, NewAccountRow)) },
		put: func(a []fund.Account) batch.Request { return i.accounts.put.Request(convert(a, NewAccountRow)) },
	})
}

// numbered is a line of a file.
type numbered[T any] struct {
	line  int64
	value T
}

// positions says how holdings or accounts are read and written.
type positions[T any] struct {
	id    operation.ID
	table string
	// key are the columns that name a position in its postings of that leg.
	key  string
	leg  int
	find func(part []numbered[T], found func(key int, quantity int64)) batch.Request
	// first finds one position, if there are any.
	first    func(found func()) batch.Request
	quantity func(*T) int64
	posting  func(kind fund.PostingKind, line int64, of *T, by int64) fund.Posting
	add, put func([]T) batch.Request
}

func importPositions[T any](ctx context.Context, i imports, lines Lines[T], written func(int64), p positions[T]) (imported backoffice.Imported, err error) {
	now := i.now()
	hasRoom := i.engine.LeaveRoom != nil && !backoffice.ImportOptionsOf(ctx).DryRun
	var sold *backoffice.SoldSince
	transaction := func(session batch.Session) error {
		imported, sold = backoffice.Imported{}, nil
		var last []batch.Request
		if hasRoom {
			var err error
			if last, err = i.engine.LeaveRoom(ctx, session, p.table); err != nil {
				return errors.Join(errNoRoom, err)
			}
		}
		posted := make(chan []PostingRow)
		a := attempt{i.database, session, now, &imported, true, posted}
		if err := session.Exchange(ctx, p.first(func() { a.isEmpty = false })); err != nil {
			return err
		}
		sum := i.trail.sum()
		summed := aside(func() error { // while the database writes the rows
			defer func() { // after a panic too: the writer must not wait for ever
				for range posted {
				}
			}()
			for rows := range posted {
				for k := range rows {
					i.sum(sum, &rows[k])
				}
			}
			return nil
		})
		write := func() error {
			defer close(posted)
			return inChunks(ctx, i.database, session, lines, written, func(part []numbered[T]) error {
				return importChunk(ctx, &a, part, &p)
			})
		}
		if err := cmp.Or(write(), summed()); err != nil {
			return err
		}
		if sold, err = i.soldSince(ctx, session, p.id, p.leg, p.key); err != nil {
			return err
		}
		if sold != nil {
			return sold
		}
		return i.commit(ctx, session, imported, append(last, i.trail.importEntryWrite(p.id, sum)...)...)
	}
	if err = i.Transact(ctx, transaction); errors.Is(err, errNoRoom) {
		hasRoom = false
		err = i.Transact(ctx, transaction)
	}
	if sold != nil {
		return imported, sold
	}
	return imported, ended(err)
}

var errNoRoom = errors.New("the table leaves no room for changes")

// soldSince finds the first position that the import has changed and that a sale
// or a reversal has changed since the moment of the file. All of them are locked,
// so that no further sale comes between.
func (i imports) soldSince(ctx context.Context, session batch.Session, id operation.ID, leg int, key string) (sold *backoffice.SoldSince, err error) {
	since := backoffice.ImportOptionsOf(ctx).AsOf
	if since.IsZero() {
		return nil, nil //nolint:nilnil // nothing was sold, as far as was asked
	}
	first := i.postings.Lookup("find sales since", batch.Lookup{
		Select: i.postings.Select("position"),
		Where:  []batch.Condition{{Column: i.postings.Select("operation_id")[0], Operator: "="}},
		And: fmt.Sprintf("t.leg = %[1]d AND t.kind = %[2]d AND (%[3]s) IN (SELECT %[3]s FROM %[4]s AS p WHERE leg = %[1]d AND kind IN (%[5]d, %[6]d) AND posted_at >= '%[7]s')",
			leg, fund.AdjustmentPosting, key, i.postings.all.Name, fund.SalePosting, fund.ReversalPosting, microsecond(since).Format(batch.TextLayout)),
		Order: "t.position",
	})
	find := first.Request([]PostingRow{{OperationID: batch.UUID(id)}}, func(_ int, row *PostingRow) error {
		sold = &backoffice.SoldSince{Line: row.Position}
		return nil
	})
	err = session.Exchange(ctx, find)
	return sold, err
}

// attempt is one attempt of an import.
type attempt struct {
	*database
	session  batch.Session
	now      time.Time
	imported *backoffice.Imported
	// isEmpty says that there were no positions. Then none is looked up, which
	// saves a fifth of the time. If another import adds some meanwhile, this one
	// loses the race and is retried.
	isEmpty bool
	// posted receives the postings for the trail.
	posted chan<- []PostingRow
}

// importChunk reads and locks the existing positions and writes the
// differences. If two imports add one position at the same moment, the second
// one loses the race and is retried.
func importChunk[T any](ctx context.Context, a *attempt, part []numbered[T], p *positions[T]) error {
	before := make([]int64, len(part))
	there := make([]bool, len(part))
	if !a.isEmpty {
		find := p.find(part, func(key int, quantity int64) { before[key], there[key] = quantity, true })
		if err := a.session.Exchange(ctx, find); err != nil {
			return err
		}
	}
	var added, changed []T
	var postings []fund.Posting
	for i := range part {
		of := &part[i].value
		by := p.quantity(of) - before[i] // both are from 0 on: no wrap
		kind := fund.AdjustmentPosting
		switch {
		case !there[i]:
			kind = fund.OpeningPosting
			added = append(added, *of)
		case by != 0:
			changed = append(changed, *of)
		}
		if by != 0 {
			postings = append(postings, p.posting(kind, part[i].line, of, by))
		}
	}
	a.imported.New += int64(len(added))
	a.imported.Changed += int64(len(changed))
	a.imported.Unchanged += int64(len(part) - len(added) - len(changed))
	units, money := postingRows(postings, a.now)
	for _, rows := range [][]PostingRow{units, money} {
		if len(rows) > 0 {
			a.posted <- rows
		}
	}
	writes := batch.NonEmpty(p.add(added), p.put(changed), a.postings.add.Request(units), a.postings.add.Request(money))
	if len(writes) == 0 {
		return nil
	}
	return a.session.Exchange(ctx, writes...)
}

// inChunks hands the lines on in chunks, in a transaction that may take its
// time. The next chunk is read while one is written.
func inChunks[T any](ctx context.Context, d *database, session batch.Session, lines Lines[T], done func(int64), write func([]numbered[T]) error) error {
	for _, statement := range d.Dialect.Prepare(batch.Import) {
		if err := session.Exchange(ctx, batch.Request{Name: "prepare the import", SQL: statement}); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := make(chan []numbered[T], 1)
	read := aside(func() error {
		defer close(parts)
		var part []numbered[T]
		flush := func() error {
			select {
			case parts <- part:
				part = nil
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		err := lines(func(line int64, value T) error {
			if part == nil {
				part = make([]numbered[T], 0, chunk)
			}
			if part = append(part, numbered[T]{line, value}); len(part) < chunk {
				return nil
			}
			return flush()
		})
		if err != nil || part == nil {
			return err
		}
		return flush()
	})
	total := int64(0)
	for part := range parts {
		if err := write(part); err != nil {
			cancel()
			_ = read() // it must not go on
			return err
		}
		total += int64(len(part))
		done(total)
	}
	return read()
}

// anyRow finds a row of the table, if there are any. No customer is before that of
// the key.
func anyRow[R any](t *batch.Table[R], key R, found func()) batch.Request {
	first := t.Select("customer_no")
	query := t.Lookup("find any row", batch.Lookup{Select: first, Where: []batch.Condition{{Column: first[0], Operator: ">="}}})
	return query.Request([]R{key}, func(int, *R) error {
		found()
		return nil
	})
}

// aside runs work in a goroutine of its own. wait returns its error, or panics as
// it did.
func aside(work func() error) (wait func() error) {
	err := errors.New("the goroutine has ended")
	var panicked any
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { panicked = recover() }()
		err = work()
	}()
	return func() error {
		<-ended
		if panicked != nil {
			panic(panicked)
		}
		return err
	}
}
