// Package book carries out sales. A batch of them touches prices, holdings, accounts and CallerIds,
// which other replicas change at the same time. So a way loads and locks all of it in a few
// statements, the book is settled in memory, and the way writes the changes and commits. This
// package has the normal way; an engine may add faster ones.
package book

import (
	"context"
	"slices"
	"sync/atomic"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/buyfund"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// Books implements buyfund.Books.
type Books struct {
	db      *tables.Database
	journal journal.Journal
	// Ways returns the ways of a batch, which are tried in this order. The last one works for
	// every batch: it is the normal way, which Ways receives, or a way that contains it. An
	// engine sets Ways: see Ways of storage.Engine.
	Ways func(*fund.LockSet, batch.Way[*fund.Book]) []batch.Way[*fund.Book]
	// Learn receives each current price that is read.
	Learn func(fund.PriceDay, fund.Price)
	// begun is true when it is known that the book has operations.
	begun atomic.Bool
}

var _ buyfund.Books = (*Books)(nil)

// NewBooks returns a Books that only has the normal way.
func NewBooks(d *tables.Database, j journal.Journal) *Books {
	return &Books{
		db: d, journal: j,
		Ways: func(_ *fund.LockSet, normal batch.Way[*fund.Book]) []batch.Way[*fund.Book] {
			return []batch.Way[*fund.Book]{normal}
		},
		Learn: func(fund.PriceDay, fund.Price) {},
	}
}

// HasBegun reports whether it is known that the book has operations. Until then its time zone may
// be changed, so the first sale must lock the rules of the bank: it must not commit beside such a
// change. Only the normal way does so.
func (b *Books) HasBegun() bool { return b.begun.Load() }

// Update implements buyfund.Books.
func (b *Books) Update(ctx context.Context, locks fund.LockSet, settle func(*fund.Book)) error {
	return batch.Update(ctx, b.db.DB, b.Ways(&locks, bookWay{b, &locks}), settle)
}

// bookWay is the normal way: one round trip to read and lock, and one to write and commit.
type bookWay struct {
	*Books
	locks *fund.LockSet
}

func (w bookWay) Load(ctx context.Context, s batch.Session) (*fund.Book, error) {
	book := fund.NewBook(len(w.locks.Holdings))
	reads := w.load(w.locks, book)
	isNew := false
	mayBeNew := w.locks.Rules != "" && !w.HasBegun()
	if mayBeNew {
		// This comes after findRules: it reads the rules again, because it may have waited for a change.
		reads = append(reads, w.lockRules(book, &isNew))
	}
	if len(reads) == 0 {
		return book, nil
	}
	err := s.Exchange(ctx, reads...)
	if err != nil {
		return nil, err
	}
	if mayBeNew && !isNew {
		w.begun.Store(true)
	}
	return book, nil
}

// lockRules locks the rules of the bank if the book has no operations, and loads them. Then isNew
// is true.
func (b *Books) lockRules(book *fund.Book, isNew *bool) batch.Request {
	return b.db.LockRulesOfNewBook.Request([]tables.PropertyRow{tables.RulesKey()}, func(_ int, row *tables.PropertyRow) error {
		*isNew = true
		book.LoadRules(row.Value)
		return nil
	})
}

func (w bookWay) Store(ctx context.Context, s batch.Session, book *fund.Book) error {
	c := book.Changes()
	outcomes, err := writeOutcomes(ctx, w.db, s, c.Ended)
	if err != nil {
		return err
	}
	// After writeOutcomes, so that the leaves have the numbers of the outcomes.
	writes := append(w.Changes(book, &c), outcomes...)
	if len(writes) > 0 { // an act that changed nothing is not recorded
		writes = append(writes, w.journal.ActWrites(ctx, w.adjusted(c.Adjustments))...)
	}
	err = s.Commit(ctx, writes...)
	if err != nil {
		return err
	}
	if len(c.Sales)+len(c.Refusals) > 0 {
		w.begun.Store(true)
	}
	return nil
}

// adjusted returns the sum of the postings of a correction.
func (b *Books) adjusted(postings []fund.PostingEntry) (changes journal.Changes) {
	if len(postings) == 0 {
		return changes
	}
	changes.ID = postings[0].OperationID
	changes.Adjusted = b.journal.NewSum()
	for i := range postings {
		changes.Adjusted.Adjustment(&postings[i])
	}
	return changes
}

// load looks up everything in the lock set, in the order of locking.
func (b *Books) load(locks *fund.LockSet, book *fund.Book) []batch.Request {
	return batch.NonEmpty(
		b.claim(locks.Due, book),
		findHoldings(b.db.Holdings.Find, locks.Holdings, book),
		findAccounts(b.db.Accounts.Find, locks.Accounts, book),
		FindPrices(b.db, locks.PriceIDs, func(_ int, p fund.Price) { book.LoadPrice(p) }),
		findCurrentPrices(b.db, locks.PriceDays, func(i int, p fund.Price) {
			book.LoadCurrentPrice(locks.PriceDays[i], p)
			b.Learn(locks.PriceDays[i], p)
		}),
		tables.FindRecords(b.db, locks.Callers, &book.Register),
		b.db.LockOperation.Request(tables.Convert(locks.Reversed, operationKey), func(i int, row *tables.OperationRow) error {
			if row.ReversalID != (batch.UUID{}) {
				book.LoadReversal(locks.Reversed[i])
			}
			return nil
		}),
		findRules(b.db, locks, book),
	)
}

// findRules loads the rules of the bank, if the operations were prepared by rules of a book.
func findRules(d *tables.Database, locks *fund.LockSet, book *fund.Book) batch.Request {
	var keys []tables.PropertyRow
	if locks.Rules != "" {
		keys = []tables.PropertyRow{tables.RulesKey()}
	}
	return d.FindRules.Request(keys, func(_ int, row *tables.PropertyRow) error {
		book.LoadRules(row.Value)
		return nil
	})
}

// Look loads the holdings and accounts as they are now. It takes no locks, so another transaction may
// change them at once.
func (b *Books) Look(ctx context.Context, s batch.Session, locks *fund.LockSet, book *fund.Book) error {
	return s.Exchange(ctx, batch.NonEmpty(
		findHoldings(b.db.ReadHolding, locks.Holdings, book),
		findAccounts(b.db.ReadAccount, locks.Accounts, book),
	)...)
}

// Snapshot implements buyfund.Books.
func (b *Books) Snapshot(ctx context.Context, touched fund.LockSet) (*fund.Book, error) {
	if err := b.db.Ready(ctx); err != nil {
		return nil, b.db.Translate(err)
	}
	book := fund.NewBook(len(touched.Holdings))
	err := b.db.Snapshot(ctx, func(tx *gorm.DB) error {
		return b.db.Send(ctx, tx, batch.NonEmpty(
			findHoldings(b.db.ReadHolding, touched.Holdings, book),
			findAccounts(b.db.ReadAccount, touched.Accounts, book),
			FindPrices(b.db, touched.PriceIDs, func(_ int, p fund.Price) { book.LoadPrice(p) }),
			findCurrentPrices(b.db, touched.PriceDays, func(i int, p fund.Price) { book.LoadCurrentPrice(touched.PriceDays[i], p) }),
			findRules(b.db, &touched, book),
		)...)
	})
	return book, err
}

// findHoldings loads the holdings that exist into the book.
func findHoldings(find *batch.Query[tables.HoldingRow], keys []fund.HoldingKey, book *fund.Book) batch.Request {
	return find.Request(tables.Convert(keys, holdingKey), func(i int, row *tables.HoldingRow) error {
		book.LoadHolding(fund.Holding{Key: keys[i], Units: fund.Units(row.Units)})
		return nil
	})
}

// findAccounts loads the accounts that exist into the book.
func findAccounts(find *batch.Query[tables.AccountRow], keys []fund.AccountKey, book *fund.Book) batch.Request {
	return find.Request(tables.Convert(keys, accountKey), func(i int, row *tables.AccountRow) error {
		key := keys[i]
		book.LoadAccount(fund.Account{Key: key, Balance: money.New(row.Balance, key.Currency)})
		return nil
	})
}

func holdingKey(k fund.HoldingKey) tables.HoldingRow {
	return tables.NewHoldingRow(fund.Holding{Key: k})
}

func accountKey(k fund.AccountKey) tables.AccountRow {
	return tables.NewAccountRow(fund.Account{Key: k})
}

func operationKey(id operation.ID) tables.OperationRow {
	return tables.OperationRow{OperationID: batch.UUID(id)}
}

// claim locks the due operations that are still recorded and that no other transaction holds.
// Only the transaction that holds an operation changes its sales.
func (b *Books) claim(due []*fund.Operation, book *fund.Book) batch.Request {
	keys := tables.Convert(due, func(o *fund.Operation) tables.OperationRow { return operationKey(o.ID) })
	return b.db.Operations.Find.Request(keys, func(i int, _ *tables.OperationRow) error {
		book.LoadClaim(due[i].ID)
		return nil
	})
}

// Changes returns the requests that write all changes of a settled book.
func (b *Books) Changes(book *fund.Book, c *fund.Changes) []batch.Request {
	return batch.NonEmpty(append([]batch.Request{
		b.db.Holdings.Put.Request(tables.Convert(c.Holdings, tables.NewHoldingRow)),
		b.db.Accounts.Put.Request(tables.Convert(c.Accounts, tables.NewAccountRow)),
	}, b.Records(book, c)...)...)
}

// Records returns the requests that write the operations, sales and adjustments of a settled book,
// and their entries in the trail: all changes except holdings and accounts.
func (b *Books) Records(book *fund.Book, c *fund.Changes) []batch.Request {
	var ended []tables.OperationRow
	for i := range c.Ended {
		if !c.Ended[i].Reversed {
			ended = append(ended, tables.EndedRow(&c.Ended[i]))
		}
	}
	return []batch.Request{
		b.db.Operations.Add.Request(tables.BookOperationRows(c, &book.Register)),
		b.db.Operations.Put.Request(ended),
		b.db.ReverseOperation.Request(tables.Convert(c.Reversals, tables.ReversedRow)),
		b.db.Sales.Add.Request(tables.Convert(slices.Concat(c.Sales, c.RefusedSales), tables.NewSaleRow)),
		b.db.Sales.Put.Request(tables.Convert(c.Settled, tables.NewSaleRow)),
		b.db.Adjustments.Add.Request(tables.Convert(c.Adjustments, tables.NewAdjustmentRow)),
		b.entries(c, &book.Register),
	}
}

// entries returns the request that writes the entries in the trail of what a settled book decided.
func (b *Books) entries(c *fund.Changes, register *idempotency.Register) batch.Request {
	if b.journal.Keys() == nil || len(c.Sales)+len(c.Settled)+len(c.Refusals)+len(c.Reversals) == 0 {
		return batch.Request{} // do not allocate a closure
	}
	return b.journal.WriteLater(func(*proof.Keys) []proof.Entry { return proof.OfBook(c, register) })
}

// writeOutcomes numbers the outcomes and returns the requests that write them. The session
// locks the counter until it has committed. So after a number was visible, no outcome with a
// lower number appears. It locks nothing else afterwards. Sales that end with their answer have
// no outcomes, and do not need this function.
func writeOutcomes(ctx context.Context, d *tables.Database, session batch.Session, ended []fund.Ended) ([]batch.Request, error) {
	if len(ended) == 0 {
		return nil, nil
	}
	counter, err := tables.LookUp(ctx, session, d.Properties.Find, tables.PropertyRow{Name: tables.OutcomesProperty})
	if err != nil {
		return nil, err
	}
	if counter == nil {
		return nil, tables.MissingProperty(tables.OutcomesProperty)
	}
	counter.Name = tables.OutcomesProperty
	last, err := counter.Number()
	if err != nil {
		return nil, err
	}
	rows := make([]tables.OutcomeRow, len(ended))
	for i := range ended {
		ended[i].Number = last + int64(i) + 1
		rows[i] = tables.NewOutcomeRow(&ended[i])
	}
	return []batch.Request{
		d.Properties.Put.Request([]tables.PropertyRow{tables.NumberProperty(tables.OutcomesProperty, last+int64(len(rows)))}),
		d.Outcomes.Add.Request(rows),
	}, nil
}

// FindPrices looks up prices by ID. visit receives the index of the ID.
func FindPrices(d *tables.Database, ids []int64, visit func(i int, p fund.Price)) batch.Request {
	keys := tables.Convert(ids, func(id int64) tables.PriceRow { return tables.PriceRow{PriceID: id} })
	return d.Prices.Find.Request(keys, func(i int, row *tables.PriceRow) error {
		row.PriceID = ids[i]
		price, err := row.ToPrice()
		if err != nil {
			return err
		}
		visit(i, price)
		return nil
	})
}

// findCurrentPrices looks up the current prices of funds. visit receives the index of the fund.
func findCurrentPrices(d *tables.Database, days []fund.PriceDay, visit func(i int, p fund.Price)) batch.Request {
	return d.FindCurrentPrice.Request(tables.Convert(days, currentPriceKey), func(i int, row *tables.PriceRow) error {
		price, err := row.ToPrice()
		if err != nil {
			return err
		}
		visit(i, price)
		return nil
	})
}

func currentPriceKey(priceDay fund.PriceDay) tables.PriceRow {
	return tables.NewCurrentPriceRow(priceDay, fund.Price{})
}
