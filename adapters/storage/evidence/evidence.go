// Package evidence reads the whole book and its log for those who check the bank. Balances can be
// made to fit, so verify compares each row with what follows from others, and with its leaf in the
// log. The same leaves are what adoption adds to the log, and what a proof for a partner shows.
//
// Only this package knows both sides: package office reads what is stored, package journal what
// was logged.
package evidence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/office"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/application/trail"
)

// Fill sets the ports of the trail, and the evidence port of verify.
func Fill(s *store.Store, d *tables.Database, j journal.Journal) {
	s.Trail = &trail.Ports{Writer: j, Log: j.Log(), Finder: finder{d, j}, Origin: origin{d, j}}
	s.Backoffice.Evidence = evidence{d, j}
}

// evidence implements backoffice.Evidence. The database joins and sums. Package backoffice
// decides what the rows mean.
type evidence struct {
	db      *tables.Database
	journal journal.Journal
}

// Read implements backoffice.Evidence.
func (e evidence) Read(ctx context.Context, w backoffice.Witness) error {
	if err := e.db.Ready(ctx); err != nil { // it also reads the key of messages
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	shared := serial{cancel: cancel}
	w.Position, w.Operation, w.Found = oneByOne(&shared, w.Position), oneByOne(&shared, w.Operation), oneByOne(&shared, w.Found)
	w.Batch, w.Head = oneByOne(&shared, w.Batch), oneByOne(&shared, w.Head)
	ctx = tables.SkipUnreadable(ctx, func(u *tables.Unreadable) error {
		return w.Found(backoffice.Unreadable(u.Cause).Of(u.Row))
	})
	err := e.db.Snapshots(ctx, func(transactions []*gorm.DB) error {
		seen := operationSeen(&w)
		parts := []func(*gorm.DB) error{
			func(tx *gorm.DB) error { return office.EachOperation(e.db, tx, seen) },
			func(tx *gorm.DB) error { return e.withoutOperation(tx, &w) },
			func(tx *gorm.DB) error { return e.holdings(tx, &w) },
			func(tx *gorm.DB) error { return e.accounts(tx, &w) },
			func(tx *gorm.DB) error { return e.lookups(tx, &w) },
		}
		if w.Keys == nil {
			return inParallel(ctx, cancel, transactions, parts)
		}
		head, err := e.journal.Head(transactions[0])
		if err != nil {
			return err
		}
		if head.HasBegun {
			parts[0] = func(tx *gorm.DB) error { return newComparison(e, tx, &w).compareAll(&head, seen) }
		}
		if err := inParallel(ctx, cancel, transactions, parts); err != nil {
			return err
		}
		return w.Head(&head)
	})
	if shared.firstErr != nil {
		return shared.firstErr
	}
	return err
}

// operationSeen returns a function for the witness. It reuses the memory of the last operation.
func operationSeen(w *backoffice.Witness) func(*office.StoredOperation) error {
	var o backoffice.Operation
	return func(rows *office.StoredOperation) error {
		if rows.IsPush() {
			return nil
		}
		if err := rows.Operation(&o); err != nil {
			return w.Found(backoffice.Unreadable(err).Of("operation " + rows.ID.String()))
		}
		return w.Operation(&o)
	}
}

// inParallel runs the parts. Each transaction takes the next part when it is free. The first
// error stops all of them.
func inParallel(ctx context.Context, cancel context.CancelCauseFunc, transactions []*gorm.DB, parts []func(*gorm.DB) error) error {
	waiting := make(chan func(*gorm.DB) error, len(parts))
	for _, part := range parts {
		waiting <- part
	}
	close(waiting)
	var readers []func() error
	for _, tx := range transactions {
		readers = append(readers, tables.Aside(func() error {
			for part := range waiting {
				if err := part(tx); err != nil {
					cancel(err)
					break
				}
			}
			return nil
		}))
	}
	var ended error
	for _, wait := range readers {
		ended = errors.Join(ended, wait())
	}
	return cmp.Or(context.Cause(ctx), ended)
}

// serial lets several readers call a witness one at a time. After the first error of the
// witness it cancels the readers. It returns the same error value.
type serial struct {
	mu       sync.Mutex
	firstErr error
	cancel   context.CancelCauseFunc
}

// oneByOne wraps a witness so that several readers can call it.
func oneByOne[R any](s *serial, witness func(R) error) func(R) error {
	return func(row R) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.firstErr == nil {
			s.firstErr = witness(row)
			if s.firstErr != nil {
				s.cancel(s.firstErr)
			}
		}
		return s.firstErr
	}
}

// positions passes every row of the table to the witness, and every position with postings but no
// row. A position is what adjustments added, less what completed sales took from it, and more
// what their reversals returned; of accounts it is the opposite. It reads them into p and the
// fields of its key, which are in these columns.
//
// The sum of the postings is read as two sums, of the upper and the lower halves of the
// quantities. A half is a signed 32-bit integer: low is stored minus 2^31. Postgres sums such
// integers in 64 bits. It sums larger integers in 128 bits, which takes twice as long.
func (e evidence) positions(tx *gorm.DB, w *backoffice.Witness, of *positionsOf, p *backoffice.Position, key ...any) error {
	posted := func(columns, quantity, from string) string {
		return fmt.Sprintf("\n UNION ALL\n SELECT %[1]s, NULL, 0, 1, CAST((%[2]s) >> 32 AS integer), CAST(((%[2]s) & 4294967295) - 2147483648 AS integer) FROM %[3]s",
			columns, quantity, from)
	}
	sales := e.db.Sales.Name + " s"
	completed := " WHERE s.state = 2"
	reversals := e.db.Operations.Name + " o JOIN " + sales + " ON s.operation_id = o.operation_id" + completed + " AND o.reversal_id IS NOT NULL"
	rows, err := tx.Raw(fmt.Sprintf("SELECT %[1]s, COALESCE(MAX(held), 0), CAST(SUM(present) AS bigint), CAST(SUM(posted) AS bigint),"+
		" CAST(SUM(high) AS bigint), CAST(SUM(low) AS bigint)\nFROM (\n SELECT %[1]s, %[2]s AS held, 1 AS present, 0 AS posted, 0 AS high, 0 AS low FROM %[3]s",
		of.columns, of.held, of.table) +
		posted(of.columns, "quantity", fmt.Sprintf("%s WHERE leg = %d", e.db.Adjustments.Name, of.leg)) +
		posted(of.sold, of.by, sales+completed) +
		posted(of.sold, of.back, reversals) +
		"\n) p GROUP BY " + of.columns).Rows() // Each checks its error
	if err != nil {
		return err
	}
	var high, low int64
	targets := append(key, &p.Quantity, &p.Exists, &p.Postings, &high, &low)
	return batch.Each(rows, func() error {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		// The sum is high * 2^32 + low + 2^31 for each posting. 2^32 is 4 * 10^9 + 294,967,296.
		const billion, rest = 1_000_000_000, 294_967_296
		p.Posted.High = 4*high + high/billion*rest
		p.Posted.Low = high%billion*rest + low + p.Postings<<31
		return w.Position(p)
	})
}

// positionsOf are holdings or accounts.
type positionsOf struct {
	table, columns, held string
	leg                  int
	sold                 string // the columns of the key in the table sales
	by, back             string // what a sale and its reversal add
}

func (e evidence) holdings(tx *gorm.DB, w *backoffice.Witness) error {
	var p backoffice.Position
	of := positionsOf{
		table: e.db.Holdings.Name, columns: "customer_no, imkb_code, holder_corporation_name", held: "units", leg: tables.UnitLeg,
		sold: "s.customer_no, s.imkb_code, s.holder_corporation_name", by: "-s.units", back: "s.units",
	}
	return e.positions(tx, w, &of, &p, &p.Holding.CustomerNo, &p.Holding.IMKBCode, &p.Holding.HolderCorporationName)
}

func (e evidence) accounts(tx *gorm.DB, w *backoffice.Witness) error {
	p := backoffice.Position{IsMoney: true}
	of := positionsOf{
		table: e.db.Accounts.Name, columns: "customer_no, branch_code, account_suffix, currency_code", held: "balance", leg: tables.MoneyLeg,
		sold: "s.account_customer_no, s.branch_code, s.account_suffix, s.currency_code", by: "COALESCE(s.proceeds, 0)", back: "-COALESCE(s.proceeds, 0)",
	}
	return e.positions(tx, w, &of, &p, &p.Account.CustomerNo, &p.Account.BranchCode, &p.Account.AccountSuffix, &p.Account.CurrencyCode)
}

// withoutOperation reads the rows that no range of operations includes: adjustments of a wrong
// shape, and outcomes.
func (e evidence) withoutOperation(tx *gorm.DB, w *backoffice.Witness) error {
	shape := tx.Where("t.kind NOT IN (2, 3) OR t.leg NOT IN (1, 2) OR (t.leg = 1) <> (t.currency_code = '') OR (t.leg = 2) <> (t.imkb_code = '')")
	err := tables.Each(shape, e.db.Adjustments.Table, func(row *tables.AdjustmentRow) error {
		name := fmt.Sprintf("posting %s/%d/%d of customer %d", row.ActID, row.Line, row.Leg, row.CustomerNo)
		return w.Found(backoffice.WrongShape.Of(name))
	})
	if err != nil {
		return err
	}
	if err := e.outcomes(tx, w); err != nil {
		return err
	}
	return e.rules(tx, w)
}

// lookups reports what searches by customer or request do not find, although it is there.
func (e evidence) lookups(tx *gorm.DB, w *backoffice.Witness) error {
	lost, err := e.db.Engine.Unfound(tx, e.db.Prefix)
	if err != nil {
		return err
	}
	for _, search := range slices.Sorted(maps.Keys(lost)) {
		err = w.Found(backoffice.NotFound(lost[search]).Of("searches of " + search))
		if err != nil {
			return err
		}
	}
	return nil
}

// rules compares the rules of the bank with the newest act that wrote rules. The trail shows
// whether this act is as it was written.
func (e evidence) rules(tx *gorm.DB, w *backoffice.Witness) error {
	stored, err := e.db.PropertyIn(tx, tables.RulesProperty)
	if err != nil {
		return err
	}
	newest, err := e.db.RulesActIn(tx)
	if err != nil {
		return err
	}
	acted := ""
	if newest != nil {
		acted = newest.Object
	}
	if stored == acted {
		return nil
	}
	return w.Found(backoffice.RulesOfNoAct(stored, acted).Of("the rules of the bank"))
}

// outcomes compares the outcomes with the results of their operations. Every end of a recorded
// operation has an outcome, and every reversal.
func (e evidence) outcomes(tx *gorm.DB, w *backoffice.Witness) error {
	var totals struct{ Count, Oldest, Newest int64 }
	t := &e.db.Outcomes
	operations := &e.db.Operations
	err := tx.Model(&tables.OutcomeRow{}).Select("COUNT(*) AS count, COALESCE(MIN(number), 1) AS oldest, COALESCE(MAX(number), 0) AS newest").Scan(&totals).Error
	if err != nil {
		return err
	}
	counter := tables.PropertyRow{Name: tables.OutcomesProperty}
	if counter.Value, err = e.db.PropertyIn(tx, counter.Name); err != nil {
		return err
	}
	last, wrong := counter.Number()
	if wrong != nil || totals.Oldest != 1 || totals.Newest != last || totals.Count != last {
		err := w.Found(backoffice.OutcomesMissing.Of(fmt.Sprintf("outcomes 1 to %d", max(last, totals.Newest))))
		if err != nil {
			return err
		}
	}
	untrue := tx.Joins("LEFT JOIN " + operations.Name + " o ON o.operation_id = t.operation_id").
		Where("o.state IS NULL OR o.subscription <> t.subscription OR t.reversed NOT IN (0, 1)" +
			" OR t.reversed = 0 AND (o.state = 1 OR o.due_on IS NULL) OR t.reversed = 1 AND o.reversal_id IS NULL" +
			" OR t.number IN (SELECT MAX(number) FROM " + t.Name + " GROUP BY operation_id, reversed HAVING COUNT(*) > 1)") // the same end twice
	err = tables.Each(untrue, t.Table, func(row *tables.OutcomeRow) error {
		return w.Found(backoffice.OutcomeOfNoEnd.Of(fmt.Sprintf("outcome %d of operation %s", row.Number, row.OperationID)))
	})
	if err != nil {
		return err
	}
	for reversed, ended := range []string{"t.due_on IS NOT NULL AND t.state <> 1", "t.reversal_id IS NOT NULL"} {
		without := tx.Where(ended+" AND NOT EXISTS (SELECT 1 FROM "+t.Name+" o WHERE o.operation_id = t.operation_id AND o.reversed = ?)", reversed)
		err := tables.Each(without, operations.Table, func(row *tables.OperationRow) error {
			return w.Found(backoffice.EndWithout.Of("operation " + row.OperationID.String()))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
