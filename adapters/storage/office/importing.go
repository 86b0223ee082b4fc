package office

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/book"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/proof"
)

// imports implements backoffice.Imports.
type imports struct {
	db      *tables.Database
	journal journal.Journal
}

func (i imports) Prices(ctx context.Context, lines backoffice.Lines[fund.Price], o backoffice.ImportOptions) (imported backoffice.Imported, err error) {
	act, _ := audit.From(ctx)
	err = i.transact(ctx, o, func(session batch.Session) error {
		changed := new(backoffice.Faults)
		imported = backoffice.Imported{}
		seen := make(map[fund.Fund]bool)
		err := inChunks(ctx, i.db, session, lines, o.TellProgress, func(part []numbered[fund.Price]) error {
			rows := tables.Convert(part, func(p numbered[fund.Price]) tables.PriceRow {
				row := tables.NewPriceRow(p.value)
				row.ActID = batch.UUID(act.ID)
				return row
			})
			unseen := unseenFunds(part, seen)
			isKnown := make([]bool, len(unseen))
			findFunds := i.db.FindCurrentPrice.Request(unseen, func(key int, _ *tables.PriceRow) error {
				isKnown[key] = true
				return nil
			})
			ids := tables.Convert(rows, func(r tables.PriceRow) int64 { return r.PriceID })
			existing := make(map[int]bool)
			findExisting := book.FindPrices(i.db, ids, func(key int, _ fund.Price) { existing[key] = true })
			add := i.db.Prices.Add.Request(rows)
			add.Decides = true
			compared := book.FindPrices(i.db, ids, func(key int, p fund.Price) { changed.ComparePrice(part[key].line, p, part[key].value) })
			requests := []batch.Request{findFunds, findExisting, add, compared}
			if o.PriceChangeLimit > 0 { // the new prices are already in the book, so the prices of a file are also compared with each other
				requests = append(requests, i.db.FindEarlierPrice.Request(rows, func(key int, row *tables.PriceRow) error {
					before, err := row.ToPrice()
					if err != nil {
						return err
					}
					if !existing[key] {
						changed.CompareBefore(part[key].line, before, part[key].value, o.PriceChangeLimit)
					}
					return nil
				}))
			}
			if err := session.Exchange(ctx, requests...); err != nil {
				return err
			}
			for k := range unseen {
				if !isKnown[k] {
					imported.NewFunds = append(imported.NewFunds, fund.Fund{IMKBCode: unseen[k].IMKBCode, HolderCorporationName: unseen[k].HolderCorporationName})
				}
			}
			imported.New += int64(len(part) - len(existing))
			imported.Unchanged += int64(len(existing))
			var entries []proof.Entry
			for k := range rows {
				if !existing[k] && i.journal.Keys() != nil {
					l := proof.OfPrice(&part[k].value)
					entries = append(entries, l.Entry())
				}
			}
			return session.Exchange(ctx, batch.NonEmpty(i.journal.Write(entries...))...)
		})
		if err != nil {
			return err
		}
		if changed.Lines > 0 {
			return batch.FailureError{Failure: batch.Refused, Cause: changed}
		}
		return i.commit(ctx, session, o, imported, nil)
	})
	return imported, err
}

// unseenFunds returns keys that find any price of the funds of a part that no earlier part had.
func unseenFunds(part []numbered[fund.Price], seen map[fund.Fund]bool) (keys []tables.PriceRow) {
	for k := range part {
		of := part[k].value.Fund
		if seen[of] {
			continue
		}
		seen[of] = true
		keys = append(keys, tables.NewCurrentPriceRow(fund.PriceDay{Fund: of, Day: day.Last}, fund.Price{}))
	}
	return keys
}

// transact is Transact. A dry run needs its own transaction: a host would commit its changes.
func (i imports) transact(ctx context.Context, o backoffice.ImportOptions, work func(batch.Session) error) error {
	if o.DryRun && i.db.DB.IsInside() {
		return fault.New(fault.Invalid, "A dry run is not possible in a transaction of a host, which would keep what it writes.")
	}
	return i.db.Transact(ctx, work)
}

// commit ends an import and writes the act. After a dry run, everything is rolled back.
func (i imports) commit(ctx context.Context, session batch.Session, o backoffice.ImportOptions, imported backoffice.Imported, adjusted *proof.Sum, last ...batch.Request) error {
	if o.DryRun {
		return nil
	}
	acts := i.journal.ActWrites(ctx, journal.Changes{ID: o.ID, Adjusted: adjusted}, imported.String())
	return session.Commit(ctx, append(acts, last...)...)
}

func (i imports) Holdings(ctx context.Context, lines backoffice.Lines[fund.Holding], o backoffice.ImportOptions) (backoffice.Imported, error) {
	return importPositions(ctx, i, lines, o, positions[fund.Holding, tables.HoldingRow]{
		table: i.db.Holdings, leg: tables.UnitLeg,
		row:      tables.NewHoldingRow,
		quantity: func(r *tables.HoldingRow) int64 { return r.Units },
		posting: func(kind fund.PostingKind, line int64, h *fund.Holding, change int64) fund.Posting {
			return fund.UnitPosting(kind, o.ID, int(line), h.Key, fund.Units(change))
		},
	})
}

func (i imports) Accounts(ctx context.Context, lines backoffice.Lines[fund.Account], o backoffice.ImportOptions) (backoffice.Imported, error) {
	return importPositions(ctx, i, lines, o, positions[fund.Account, tables.AccountRow]{
		table: i.db.Accounts, leg: tables.MoneyLeg,
		row:      tables.NewAccountRow,
		quantity: func(r *tables.AccountRow) int64 { return r.Balance },
		posting: func(kind fund.PostingKind, line int64, a *fund.Account, change int64) fund.Posting {
			return fund.MoneyPosting(kind, o.ID, int(line), a.Key, change)
		},
	})
}

// numbered is a line of a file.
type numbered[T any] struct {
	line  int64
	value T
}

// positions describes how holdings or accounts are read and written.
type positions[T, R any] struct {
	table    tables.Statements[R]
	leg      int
	row      func(T) R
	quantity func(*R) int64
	posting  func(kind fund.PostingKind, line int64, value *T, change int64) fund.Posting
}

func importPositions[T, R any](ctx context.Context, i imports, lines backoffice.Lines[T], o backoffice.ImportOptions, p positions[T, R]) (imported backoffice.Imported, err error) {
	now := i.db.Now()
	hasRoom := !o.DryRun && !i.db.DB.IsInside() // an error would end the transaction of the host
	transaction := func(session batch.Session) error {
		imported = backoffice.Imported{}
		var last []batch.Request
		if hasRoom {
			var err error
			if last, err = i.db.Engine.LeaveRoom(ctx, session, p.table.Name); err != nil {
				return errors.Join(errNoRoom, err)
			}
		}
		customer := p.table.Select("customer_no")
		anyRow := p.table.Lookup("find any row", batch.Lookup{Select: customer, Where: []batch.Condition{{Column: customer[0], Operator: ">"}}})
		existing, err := tables.LookUp(ctx, session, anyRow, *new(R)) // customer numbers start at 1
		if err != nil {
			return err
		}
		a := attempt[T, R]{i, p, session, &imported, existing == nil, i.journal.NewSum()}
		err = inChunks(ctx, i.db, session, lines, o.TellProgress, func(part []numbered[T]) error { return a.write(ctx, now, part) })
		if err != nil {
			return err
		}
		if err := i.checkSoldSince(ctx, session, o, p.leg, strings.Join(p.table.Keys, ", ")); err != nil {
			return err
		}
		return i.commit(ctx, session, o, imported, a.sum, last...)
	}
	if err = i.transact(ctx, o, transaction); errors.Is(err, errNoRoom) {
		hasRoom = false
		err = i.db.Transact(ctx, transaction)
	}
	return imported, err
}

var errNoRoom = errors.New("the table leaves no room for changes")

// checkSoldSince rejects an import that changed a position if a sale or a reversal has also
// changed this position since the moment of the file, or could have been in flight then. The
// error names the first such line. The changed positions are locked, so no new sale can come in
// between. key has the columns that name a position in its postings of this leg.
func (i imports) checkSoldSince(ctx context.Context, session batch.Session, o backoffice.ImportOptions, leg int, key string) error {
	if o.AsOf.IsZero() {
		return nil
	}
	columns := i.db.Adjustments.Select("line", "act_id", "posted_at")
	first := i.db.Adjustments.Lookup("find sales since", batch.Lookup{
		Select: columns[:1],
		Where:  []batch.Condition{{Column: columns[1], Operator: "="}, {Column: columns[2]}},
		And: fmt.Sprintf("t.leg = %[1]d AND t.kind = %[2]d AND (%[3]s) IN (SELECT %[3]s FROM %[4]s AS p WHERE leg = %[1]d AND kind IN (%[5]d, %[6]d) AND posted_at >= {posted_at})",
			leg, fund.AdjustmentPosting, key, i.db.AllPostings.Name, fund.SalePosting, fund.ReversalPosting),
		Order: "t.line",
	})
	sold, err := tables.LookUp(ctx, session, first, tables.AdjustmentRow{ActID: batch.UUID(o.ID), PostedAt: batch.Instant{Time: tables.Microsecond(o.AsOf.Add(-backoffice.InFlight))}})
	if err != nil {
		return err
	}
	if sold != nil {
		return batch.FailureError{Failure: batch.Refused, Cause: &backoffice.SoldSince{Line: sold.Line}}
	}
	return nil
}

// attempt is one attempt of an import.
type attempt[T, R any] struct {
	imports
	positions[T, R]
	session  batch.Session
	imported *backoffice.Imported
	// isEmpty: there were no positions. Then lookups are skipped, which saves a fifth of the
	// time. If another import adds positions meanwhile, this attempt loses the race and is
	// retried.
	isEmpty bool
	sum     *proof.Sum // sum of the postings
}

// write reads and locks the existing positions and writes the differences. If two imports add
// one position at the same moment, the second one loses the race and is retried.
func (a *attempt[T, R]) write(ctx context.Context, now time.Time, part []numbered[T]) error {
	rows := tables.Convert(part, func(n numbered[T]) R { return a.row(n.value) })
	before := make([]int64, len(part))
	exists := make([]bool, len(part))
	if !a.isEmpty {
		find := a.table.Find.Request(rows, func(key int, row *R) error {
			before[key], exists[key] = a.quantity(row), true
			return nil
		})
		if err := a.session.Exchange(ctx, find); err != nil {
			return err
		}
	}
	var added, changed []R
	var postings []fund.Posting
	for i := range part {
		change := a.quantity(&rows[i]) - before[i] // both are at least 0: no overflow
		kind := fund.AdjustmentPosting
		switch {
		case !exists[i]:
			kind = fund.OpeningPosting
			added = append(added, rows[i])
		case change != 0:
			changed = append(changed, rows[i])
		}
		if change != 0 {
			postings = append(postings, a.posting(kind, part[i].line, &part[i].value, change))
		}
	}
	a.imported.New += int64(len(added))
	a.imported.Changed += int64(len(changed))
	a.imported.Unchanged += int64(len(part) - len(added) - len(changed))
	writes := batch.NonEmpty(a.table.Add.Request(added), a.table.Put.Request(changed), a.db.Adjustments.Add.Request(tables.AdjustmentRows(postings, now)))
	if len(writes) == 0 {
		return nil
	}
	summed := tables.Aside(func() error { // runs while the database writes the rows
		for k := range postings {
			a.sum.Adjustment(&fund.PostingEntry{Posting: postings[k], PostedAt: now})
		}
		return nil
	})
	return cmp.Or(a.session.Exchange(ctx, writes...), summed())
}

// inChunks passes the lines to write in chunks, in a transaction that may take long. It reads
// the next chunk while write runs.
func inChunks[T any](ctx context.Context, d *tables.Database, session batch.Session, lines backoffice.Lines[T], done func(int64), write func([]numbered[T]) error) error {
	for _, statement := range d.DB.Prepare(batch.Import) {
		if err := session.Exchange(ctx, batch.Request{Name: "prepare the import", SQL: statement}); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := make(chan []numbered[T], 1)
	var part []numbered[T]
	send := func() error {
		select {
		case parts <- part:
			part = make([]numbered[T], 0, tables.Chunk)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	wait := tables.Aside(func() error {
		defer close(parts)
		err := lines(func(line int64, value T) error {
			if part = append(part, numbered[T]{line, value}); len(part) < tables.Chunk {
				return nil
			}
			return send()
		})
		if err != nil || len(part) == 0 {
			return err
		}
		return send()
	})
	total := int64(0)
	for part := range parts {
		if err := write(part); err != nil {
			cancel()
			_ = wait() // wait until the reader has stopped
			return err
		}
		total += int64(len(part))
		done(total)
	}
	return wait()
}
