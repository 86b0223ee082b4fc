package office

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

func (i imports) Holdings(ctx context.Context, lines backoffice.Lines[fund.Holding], o backoffice.ImportOptions) (backoffice.Imported, error) {
	return importPositions(ctx, i, holdings{i.db}, lines, o)
}

func (i imports) Accounts(ctx context.Context, lines backoffice.Lines[fund.Account], o backoffice.ImportOptions) (backoffice.Imported, error) {
	return importPositions(ctx, i, accounts{i.db}, backoffice.CheckedAccounts(lines), o)
}

// positions are holdings or accounts: T is one of them, and R its row.
type positions[T, R any] interface {
	table() *tables.Statements[R]
	leg() int // of their postings
	row(position T) R
	quantity(row *R) int64
	posting(kind fund.PostingKind, act operation.ID, line int64, position *T, change int64) fund.Posting
}

type holdings struct{ db *tables.Database }

func (h holdings) table() *tables.Statements[tables.HoldingRow] { return &h.db.Holdings }
func (holdings) leg() int                                       { return tables.UnitLeg }
func (holdings) row(h fund.Holding) tables.HoldingRow           { return tables.NewHoldingRow(h) }
func (holdings) quantity(r *tables.HoldingRow) int64            { return r.Units }

func (holdings) posting(kind fund.PostingKind, act operation.ID, line int64, h *fund.Holding, change int64) fund.Posting {
	return fund.UnitPosting(kind, act, int(line), h.Key, fund.Units(change))
}

type accounts struct{ db *tables.Database }

func (a accounts) table() *tables.Statements[tables.AccountRow] { return &a.db.Accounts }
func (accounts) leg() int                                       { return tables.MoneyLeg }
func (accounts) row(a fund.Account) tables.AccountRow           { return tables.NewAccountRow(a) }
func (accounts) quantity(r *tables.AccountRow) int64            { return r.Balance }

func (accounts) posting(kind fund.PostingKind, act operation.ID, line int64, a *fund.Account, change int64) fund.Posting {
	return fund.MoneyPosting(kind, act, int(line), a.Key, change)
}

// errNoRoom is the error of a table that leaves no room for changes.
var errNoRoom = errors.New("the table leaves no room for changes")

// importPositions leaves room for changes if it can. In the transaction of a host it does not try:
// an error would end that transaction.
func importPositions[T, R any](ctx context.Context, i imports, of positions[T, R], lines backoffice.Lines[T], o backoffice.ImportOptions) (backoffice.Imported, error) {
	err := o.RequireID()
	if err != nil {
		return backoffice.Imported{}, err
	}
	if !o.DryRun && !i.db.DB.IsInside() {
		imported, err := importOnce(ctx, i, of, lines, o, true)
		if !errors.Is(err, errNoRoom) {
			return imported, err
		}
	}
	return importOnce(ctx, i, of, lines, o, false)
}

func importOnce[T, R any](ctx context.Context, i imports, of positions[T, R], lines backoffice.Lines[T], o backoffice.ImportOptions, leaveRoom bool) (imported backoffice.Imported, err error) {
	now := i.db.Now()
	err = i.transact(ctx, o, func(session batch.Session) error {
		p := positionImport[T, R]{imports: i, of: of, options: o, session: session, now: now, sum: i.journal.NewSum()}
		err := p.run(ctx, lines, leaveRoom)
		imported = p.imported
		return err
	})
	return imported, err
}

// positionImport is one attempt to import holdings or accounts.
type positionImport[T, R any] struct {
	imports  imports
	of       positions[T, R]
	options  backoffice.ImportOptions
	session  batch.Session
	now      time.Time
	imported backoffice.Imported
	// isEmpty: there were no positions. Then lookups are skipped, which saves a fifth of the
	// time. If another import adds positions meanwhile, this attempt loses the race and is
	// retried.
	isEmpty bool
	sum     *proof.Sum // sum of the postings; nil while no trail is kept
}

func (p *positionImport[T, R]) run(ctx context.Context, lines backoffice.Lines[T], leaveRoom bool) error {
	var last []batch.Request
	if leaveRoom {
		var err error
		last, err = p.imports.db.Engine.LeaveRoom(ctx, p.session, p.of.table().Name)
		if err != nil {
			return errors.Join(errNoRoom, err)
		}
	}
	isEmpty, err := p.hasNone(ctx)
	if err != nil {
		return err
	}
	p.isEmpty = isEmpty
	err = inChunks(ctx, p.imports.db, p.session, lines, p.options.TellProgress, p.write)
	if err != nil {
		return err
	}
	err = p.checkChangedSince(ctx)
	if err != nil {
		return err
	}
	return p.imports.commit(ctx, p.session, p.options, p.imported, p.sum, last...)
}

// hasNone reports whether the table is empty. Customer numbers start at 1.
func (p *positionImport[T, R]) hasNone(ctx context.Context) (bool, error) {
	t := p.of.table()
	customer := t.Select("customer_no")
	anyRow := t.Lookup("find any row", batch.Lookup{Select: customer, Where: []batch.Condition{{Column: customer[0], Operator: ">"}}})
	var zero R
	existing, err := tables.LookUp(ctx, p.session, anyRow, zero)
	return existing == nil, err
}

// write reads and locks the existing positions and writes the differences. If two imports add
// one position at the same moment, the second one loses the race and is retried.
func (p *positionImport[T, R]) write(ctx context.Context, part []numbered[T]) error {
	rows := tables.Convert(part, func(n numbered[T]) R { return p.of.row(n.value) })
	before := make([]int64, len(part))
	exists := make([]bool, len(part))
	if !p.isEmpty {
		err := p.session.Exchange(ctx, p.of.table().Find.Request(rows, func(i int, row *R) error {
			before[i], exists[i] = p.of.quantity(row), true
			return nil
		}))
		if err != nil {
			return err
		}
	}
	var added, changed []R
	var postings []fund.PostingEntry
	for i := range part {
		change := p.of.quantity(&rows[i]) - before[i] // both are at least 0: no overflow
		kind := fund.AdjustmentPosting
		switch {
		case !exists[i]:
			kind = fund.OpeningPosting
			added = append(added, rows[i])
		case change != 0:
			changed = append(changed, rows[i])
		}
		if change != 0 || !exists[i] { // also an opening of zero: verify knows then that somebody imported it
			posting := p.of.posting(kind, p.options.ID, part[i].line, &part[i].value, change)
			postings = append(postings, fund.PostingEntry{Posting: posting, PostedAt: p.now})
		}
	}
	p.imported.New += int64(len(added))
	p.imported.Changed += int64(len(changed))
	p.imported.Unchanged += int64(len(part) - len(added) - len(changed))
	return p.store(ctx, added, changed, postings)
}

// store writes the rows. It sums the postings while the database works.
func (p *positionImport[T, R]) store(ctx context.Context, added, changed []R, postings []fund.PostingEntry) error {
	t := p.of.table()
	writes := batch.NonEmpty(
		t.Add.Request(added), t.Put.Request(changed),
		p.imports.db.Adjustments.Add.Request(tables.Convert(postings, tables.NewAdjustmentRow)))
	if len(writes) == 0 {
		return nil
	}
	wait := tables.Aside(func() error {
		for i := range postings {
			p.sum.Adjustment(&postings[i])
		}
		return nil
	})
	err := p.session.Exchange(ctx, writes...)
	summed := wait()
	if err != nil {
		return err
	}
	return summed
}

// checkChangedSince rejects an import that changed a position if a sale, a reversal or an adjust
// has also changed this position since the moment of the file, or could have been in flight then.
// The error names the first such line. The changed positions are locked, so no new sale can come
// in between. An adjust has no line of a file: other imports do not count, because a file that
// was wrong is imported again.
func (p *positionImport[T, R]) checkChangedSince(ctx context.Context) error {
	o := &p.options
	d := p.imports.db
	key := strings.Join(p.of.table().Keys, ", ")
	if o.AsOf.IsZero() {
		return nil
	}
	columns := d.Adjustments.Select("line", "act_id", "posted_at")
	first := d.Adjustments.Lookup("find changes since", batch.Lookup{
		Select: columns[:1],
		Where:  []batch.Condition{{Column: columns[1], Operator: "="}, {Column: columns[2]}},
		And: fmt.Sprintf("t.leg = %[1]d AND t.kind = %[2]d AND (%[3]s) IN (SELECT %[3]s FROM %[4]s AS p WHERE leg = %[1]d AND (kind IN (%[5]d, %[6]d) OR kind = %[2]d AND position = 0) AND posted_at >= {posted_at})",
			p.of.leg(), fund.AdjustmentPosting, key, d.AllPostings.Name, fund.SalePosting, fund.ReversalPosting),
		Order: "t.line",
	})
	changed, err := tables.LookUp(ctx, p.session, first, tables.AdjustmentRow{ActID: batch.UUID(o.ID), PostedAt: tables.Microsecond(o.AsOf.Add(-backoffice.InFlight))})
	if err != nil {
		return err
	}
	if changed != nil {
		return batch.FailureError{Failure: batch.Refused, Cause: &backoffice.ChangedSince{Line: changed.Line}}
	}
	return nil
}
