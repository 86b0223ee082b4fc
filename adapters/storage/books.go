package storage

import (
	"context"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/buyfund"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Books is buyfund.Books.
type Books struct {
	db   leafMaker
	ways func(*fund.LockSet, Way[*fund.Book]) []Way[*fund.Book]
	// Learn receives each current price that is read. It may be nil.
	Learn func(fund.PriceDay, fund.Price)
}

var _ buyfund.Books = (*Books)(nil)

// newBooks returns a Books that only knows the normal way.
func newBooks(d leafMaker) *Books { return &Books{db: d, ways: only[*fund.LockSet, *fund.Book]} }

// Update is buyfund.Books.
func (b *Books) Update(ctx context.Context, locks fund.LockSet, settle func(*fund.Book)) error {
	return update(ctx, b.db.DB, b.ways(&locks, lookAtBook{b, &locks}), settle)
}

// lookAtBook is the normal way: one round trip to read and lock, and one to write and
// commit.
type lookAtBook struct {
	*Books
	locks *fund.LockSet
}

// Load is Way.
func (w lookAtBook) Load(ctx context.Context, s batch.Session) (*fund.Book, error) {
	book := fund.NewBook(len(w.locks.Holdings))
	if reads := w.load(w.locks, book); len(reads) > 0 {
		return book, s.Exchange(ctx, reads...)
	}
	return book, nil
}

// Store is Way.
func (w lookAtBook) Store(ctx context.Context, s batch.Session, book *fund.Book) error {
	c := book.Changes()
	writes := w.changes(book, &c)
	outcomes, err := w.db.outcomes.write(ctx, s, c.Ended)
	if err != nil {
		return err
	}
	writes = append(writes, outcomes...)
	if len(writes) > 0 { // an act that changed nothing is no act
		writes = append(writes, w.db.actWrites(ctx, nil)...)
	}
	return s.Commit(ctx, writes...)
}

// load looks up everything in the lock set, in the order of locking.
func (b *Books) load(locks *fund.LockSet, book *fund.Book) []batch.Request {
	return batch.NonEmpty(
		b.claim(locks.Due, book),
		b.db.holdings.find.Request(convert(locks.Holdings, holdingKey), func(i int, row *HoldingRow) error {
			book.LoadHolding(fund.Holding{Key: locks.Holdings[i], Units: fund.Units(row.Units)})
			return nil
		}),
		b.db.accounts.find.Request(convert(locks.Accounts, accountKey), func(i int, row *AccountRow) error {
			key := locks.Accounts[i]
			book.LoadAccount(fund.Account{Key: key, Balance: money.New(row.Balance, key.Currency)})
			return nil
		}),
		b.db.prices.lookup(locks.PriceIDs, func(_ int, p fund.Price) { book.LoadPrice(p) }),
		b.db.prices.findCurrent.Request(convert(locks.PriceDays, currentPriceKey), func(i int, row *PriceRow) error {
			p, err := row.price()
			if err != nil {
				return err
			}
			book.LoadCurrentPrice(locks.PriceDays[i], p)
			if b.Learn != nil {
				b.Learn(locks.PriceDays[i], p)
			}
			return nil
		}),
		b.db.operations.load(locks.Callers, &book.Register),
		b.db.reversals.load(locks.Reversed, book),
	)
}

func currentPriceKey(of fund.PriceDay) PriceRow { return NewCurrentPriceRow(of, fund.Price{}) }

// claim locks the sales of due operations that are still recorded. An operation
// is claimed when all its sales are locked.
func (b *Books) claim(due []*fund.Operation, book *fund.Book) batch.Request {
	var keys []SaleRow
	var of []*fund.Operation
	for _, o := range due {
		for i := range o.Sales {
			keys = append(keys, SaleRow{
				CustomerNo:  o.Sales[i].Terms().Holding.CustomerNo,
				OperationID: batch.UUID(o.ID),
				Position:    int64(i),
			})
			of = append(of, o)
		}
	}
	locked := make(map[*fund.Operation]int, len(due))
	return b.db.sales.find.Request(keys, func(i int, _ *SaleRow) error {
		if locked[of[i]]++; locked[of[i]] == len(of[i].Sales) {
			book.LoadClaim(of[i].ID)
		}
		return nil
	})
}

// changes writes everything that settling changed.
func (b *Books) changes(book *fund.Book, c *fund.Changes) []batch.Request {
	return batch.NonEmpty(append([]batch.Request{
		b.db.holdings.put.Request(convert(c.Holdings, NewHoldingRow)),
		b.db.accounts.put.Request(convert(c.Accounts, NewAccountRow)),
	}, b.Records(book, c)...)...)
}

// Records writes the operations, sales, postings and refusals of a settled book,
// which are all its changes except those of holdings and accounts, and their
// entries in the trail.
func (b *Books) Records(book *fund.Book, c *fund.Changes) []batch.Request {
	var rows bookRows
	rows.added, rows.answered = operationRows(book.Register.Added()), operationRows(book.Register.Changed())
	rows.sold, rows.settled = convert(c.Sales, newSaleRow), convert(c.Settled, newSaleRow)
	rows.units, rows.money = postingRows(c.Postings, c.PostedAt)
	joined, units, money := transferRows(rows.units, rows.money)
	rows.refused, rows.reversed = convert(c.Refusals, newRefusalRow), convert(c.Reversals, newReversalRow)
	rows.refusedSales = convert(c.RefusedSales, newRefusedSaleRow)
	return []batch.Request{
		b.db.operations.add.Request(rows.added), b.db.operations.put.Request(rows.answered),
		b.db.sales.add.Request(rows.sold), b.db.sales.put.Request(rows.settled),
		b.db.transfers.add.Request(joined), b.db.postings.add.Request(units), b.db.postings.add.Request(money),
		b.db.refusals.add.Request(rows.refused), b.db.refusals.sales.add.Request(rows.refusedSales), b.db.reversals.add.Request(rows.reversed),
		b.db.bookEntryWrite(&rows),
	}
}

// Due is buyfund.Books.
func (b *Books) Due(ctx context.Context, of buyfund.Due, after *fund.Operation, limit int) ([]*fund.Operation, error) {
	if err := b.db.Ready(ctx); err != nil {
		return nil, err
	}
	afterDay, afterID := "0001-01-01", operation.ID{} // before all others
	if after != nil {
		afterDay, afterID = after.Sales[0].Terms().SelectedDay.String(), after.ID
	}
	// Whole operations only: the inner query counts operations, the outer one
	// reads all their sales.
	operations := b.db.reads.WithContext(ctx).Table(b.db.sales.Name).Where(recorded).Select("selected_date, operation_id").
		Group("selected_date, operation_id").Order("selected_date, operation_id").Limit(limit)
	if of.Of == (fund.PriceDay{}) {
		operations = operations.Where("selected_date <= ? AND (selected_date, operation_id) > (?, ?)", of.Until.String(), afterDay, b.db.Dialect.Bind(batch.UUID(afterID)))
	} else {
		operations = operations.Where("selected_date = ? AND imkb_code = ? AND holder_corporation_name = ? AND operation_id > ?",
			of.Of.Day.String(), of.Of.Fund.IMKBCode, of.Of.Fund.HolderCorporationName, b.db.Dialect.Bind(batch.UUID(afterID)))
	}
	var rows []SaleRow
	err := rowsOf(&rows, b.db.reads.WithContext(ctx), b.db.sales.Table, func(tx *gorm.DB) *gorm.DB {
		return tx.Where(recorded).Where("(selected_date, operation_id) IN (?)", operations).Order("selected_date, operation_id, position")
	})()
	if err != nil {
		return nil, b.db.Translate(err)
	}
	due, err := dueOperations(rows)
	return due, b.db.Translate(err)
}

// dueOperations groups the sales by their operation.
func dueOperations(rows []SaleRow) ([]*fund.Operation, error) {
	var due []*fund.Operation
	for i := range rows {
		if i == 0 || rows[i].OperationID != rows[i-1].OperationID {
			due = append(due, rows[i].operation())
		}
		terms, err := rows[i].terms()
		if err != nil {
			return nil, err
		}
		last := due[len(due)-1]
		last.Sales = append(last.Sales, fund.RestoreSale(terms))
	}
	return due, nil
}

// DueFunds is buyfund.Books. The index of the funds that wait has all that it reads.
func (b *Books) DueFunds(ctx context.Context, until day.Day, count bool) ([]buyfund.DueFund, error) {
	if err := b.db.Ready(ctx); err != nil {
		return nil, err
	}
	const of = "selected_date, imkb_code, holder_corporation_name"
	columns := of + ", EXISTS (SELECT 1 FROM " + b.db.prices.Name + " p WHERE p.imkb_code = s.imkb_code" +
		" AND p.holder_corporation_name = s.holder_corporation_name AND p.valid_from = s.selected_date) AS priced"
	due := func() *gorm.DB {
		return b.db.reads.WithContext(ctx).Table(b.db.sales.Name+" AS s").Where(recorded+" AND selected_date <= ?", until.String()).Order(of)
	}
	var rows []dueFundRow
	if count {
		if err := due().Select(columns + ", COUNT(*) AS sales").Group(of).Find(&rows).Error; err != nil {
			return nil, b.db.Translate(err)
		}
	}
	for last := (dueFundRow{SelectedDate: "0001-01-01"}); !count; { // one step in the index for each fund
		var next []dueFundRow
		err := due().Select(columns).Where("("+of+") > (?, ?, ?)", string(last.SelectedDate), last.IMKBCode, last.HolderCorporationName).Limit(1).Find(&next).Error
		if err != nil {
			return nil, b.db.Translate(err)
		}
		if len(next) == 0 {
			break
		}
		last = next[0]
		rows = append(rows, last)
	}
	return appendEntries([]buyfund.DueFund{}, rows, (*dueFundRow).fund)
}

// dueFundRow is a fund and a day of recorded sales.
type dueFundRow struct {
	SelectedDate          batch.Day
	IMKBCode              string
	HolderCorporationName string
	Priced                bool
	Sales                 int64
}

func (r *dueFundRow) fund() (buyfund.DueFund, error) {
	on, err := day.Parse(string(r.SelectedDate))
	return buyfund.DueFund{
		PriceDay: fund.PriceDay{Fund: fund.Fund{IMKBCode: r.IMKBCode, HolderCorporationName: r.HolderCorporationName}, Day: on},
		Priced:   r.Priced, Sales: r.Sales,
	}, err
}
