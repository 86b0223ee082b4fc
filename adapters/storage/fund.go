package storage

import (
	"context"
	"fmt"
	"time"

	"bankingapi/application/buyfund"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

var _ buyfund.Books = (*Store)(nil)

// Update is buyfund.Books. On Postgres it is one round trip where everything is
// as presumed (presume.go), else two more: one to read and lock, one to write
// and commit.
func (s *Store) Update(ctx context.Context, touched fund.Touched, settle func(*fund.Book)) error {
	if done, err := s.updateAtOnce(ctx, &touched, settle); done {
		return err
	}
	return s.transact(ctx, func(session Session) error {
		book := fund.NewBook(len(touched.Holdings))
		if reads := s.load(&touched, book); len(reads) > 0 {
			if err := session.Exchange(ctx, reads...); err != nil {
				return err
			}
		}
		settle(book)
		return session.Commit(ctx, s.changes(book)...)
	})
}

// load are the look-ups of everything touched, in the order of locking.
func (s *Store) load(touched *fund.Touched, book *fund.Book) []Request {
	return some(
		s.claim(touched.Due, book),
		s.findHoldings(touched.Holdings, func(i int, units int64) {
			book.LoadHolding(fund.Holding{Key: touched.Holdings[i], Units: fund.Units(units)})
		}),
		s.findAccounts(touched.Accounts, func(i int, balance int64) {
			key := touched.Accounts[i]
			book.LoadAccount(fund.Account{Key: key, Balance: money.New(balance, key.Currency)})
		}),
		s.findPrices(touched.PriceIDs, func(_ int, p fund.Price) {
			s.presumed.remember(p)
			book.LoadPrice(p)
		}),
		s.findCurrentPrices(touched.PriceDays, book),
		s.findOperations(touched.Callers, &book.Register),
	)
}

// claim locks the sales of due operations that are still recorded. An
// operation is claimed when all its sales are.
func (s *Store) claim(due []*fund.Operation, book *fund.Book) Request {
	type sale struct {
		customer int64
		of       *fund.Operation
		position int
	}
	var sales []sale
	for _, o := range due {
		for i := range o.Sales {
			sales = append(sales, sale{o.Sales[i].Terms().Holding.CustomerNo, o, i})
		}
	}
	rows := newRows(s.statements.claimSale.columns, len(sales))
	for _, each := range sales {
		rows.int(each.customer).id(each.of.ID).int(int64(each.position))
	}
	claimed := make(map[*fund.Operation]int, len(due))
	return s.request(s.statements.claimSale, rows, func(scan Scan) error {
		var position int64
		key, err := scan(&position)
		if err != nil {
			return err
		}
		of := sales[key].of
		if claimed[of]++; claimed[of] == len(of.Sales) {
			book.LoadClaim(of.ID)
		}
		return nil
	})
}

// findHoldings looks holdings up and locks them; found gets the number of the
// key and the units.
func (s *Store) findHoldings(keys []fund.HoldingKey, found func(key int, units int64)) Request {
	rows := newRows(s.statements.findHolding.columns, len(keys))
	for i := range keys {
		k := &keys[i]
		rows.int(k.CustomerNo).text(k.IMKBCode).text(k.HolderCorporationName)
	}
	return s.findQuantities(s.statements.findHolding, rows, found)
}

// findAccounts looks accounts up and locks them; found gets the number of the
// key and the balance.
func (s *Store) findAccounts(keys []fund.AccountKey, found func(key int, balance int64)) Request {
	rows := newRows(s.statements.findAccount.columns, len(keys))
	for i := range keys {
		k := &keys[i]
		rows.int(k.CustomerNo).int(k.BranchCode).int(k.AccountSuffix).text(k.Currency.Code())
	}
	return s.findQuantities(s.statements.findAccount, rows, found)
}

func (s *Store) findQuantities(st *statement, rows *Rows, found func(key int, quantity int64)) Request {
	return s.request(st, rows, func(scan Scan) error {
		var quantity int64
		key, err := scan(&quantity)
		if err == nil {
			found(key, quantity)
		}
		return err
	})
}

// findPrices looks prices up by ID; found gets the number of the ID and the
// price.
func (s *Store) findPrices(ids []int64, found func(key int, p fund.Price)) Request {
	rows := newRows(s.statements.findPrice.columns, len(ids))
	for _, id := range ids {
		rows.int(id)
	}
	return s.request(s.statements.findPrice, rows, func(scan Scan) error {
		var p priceRow
		key, err := scan(&p.IMKBCode, &p.HolderCorporationName, &p.Price, &p.CurrencyCode, &p.ValidFrom)
		if err != nil {
			return err
		}
		p.PriceID = ids[key]
		price, err := p.price()
		if err == nil {
			found(key, price)
		}
		return err
	})
}

func (s *Store) findCurrentPrices(of []fund.PriceDay, book *fund.Book) Request {
	rows := newRows(s.statements.findCurrentPrice.columns, len(of))
	for i := range of {
		rows.text(of[i].Fund.IMKBCode).text(of[i].Fund.HolderCorporationName).text(of[i].Day.String())
	}
	return s.request(s.statements.findCurrentPrice, rows, func(scan Scan) error {
		var p priceRow
		key, err := scan(&p.PriceID, &p.Price, &p.CurrencyCode, &p.ValidFrom)
		if err != nil {
			return err
		}
		p.IMKBCode, p.HolderCorporationName = of[key].Fund.IMKBCode, of[key].Fund.HolderCorporationName
		price, err := p.price()
		if err == nil {
			s.presumed.rememberCurrent(of[key], price)
			book.LoadCurrentPrice(of[key], price)
		}
		return err
	})
}

// priceRow is a row of the table prices.
type priceRow struct {
	PriceID               int64
	IMKBCode              string
	HolderCorporationName string
	Price                 int64
	CurrencyCode          string
	ValidFrom             string
}

func (r *priceRow) price() (fund.Price, error) {
	currency, err := restoreCurrency(r.CurrencyCode)
	if err != nil {
		return fund.Price{}, err
	}
	validFrom, err := day.Parse(r.ValidFrom)
	if err != nil {
		return fund.Price{}, fmt.Errorf("price %d: %w", r.PriceID, err)
	}
	return fund.Price{
		ID:        r.PriceID,
		Fund:      fund.Fund{IMKBCode: r.IMKBCode, HolderCorporationName: r.HolderCorporationName},
		PerUnit:   fund.UnitPrice(r.Price),
		Currency:  currency,
		ValidFrom: validFrom,
	}, nil
}

func restoreCurrency(code string) (money.Currency, error) {
	currency, ok := money.ParseCurrency(code)
	if !ok {
		return currency, fmt.Errorf("a stored currency is unknown to this version: %q", code)
	}
	return currency, nil
}

// changes are the writes of everything that settling changed.
func (s *Store) changes(book *fund.Book) []Request {
	c := book.Changes()
	inserted, changed := s.sales(c.Sales)
	added, settled := s.writeOperations(&book.Register)
	return some(
		s.writeHoldings(s.statements.putHolding, c.Holdings),
		s.writeAccounts(s.statements.putAccount, c.Accounts),
		added,
		settled,
		inserted,
		changed,
		s.insertPostings(c.Postings, unitLeg, postedAt(c.Sales)),
		s.insertPostings(c.Postings, moneyLeg, postedAt(c.Sales)),
	)
}

func postedAt(sales []fund.SaleRecord) *time.Time {
	for i := range sales {
		if !sales[i].SettledAt.IsZero() {
			return &sales[i].SettledAt // one batch, one time
		}
	}
	return &time.Time{}
}

// writeHoldings puts holdings, or adds them.
func (s *Store) writeHoldings(st *statement, holdings []fund.Holding) Request {
	rows := newRows(st.columns, len(holdings))
	for i := range holdings {
		k := &holdings[i].Key
		rows.int(k.CustomerNo).text(k.IMKBCode).text(k.HolderCorporationName).int(int64(holdings[i].Units))
	}
	return s.request(st, rows, nil)
}

// writeAccounts puts accounts, or adds them.
func (s *Store) writeAccounts(st *statement, accounts []fund.Account) Request {
	rows := newRows(st.columns, len(accounts))
	for i := range accounts {
		k := &accounts[i].Key
		rows.int(k.CustomerNo).int(k.BranchCode).int(k.AccountSuffix).text(k.Currency.Code()).int(accounts[i].Balance.Minor())
	}
	return s.request(st, rows, nil)
}

// sales splits the records into those to be inserted and those of due
// operations, which are there already.
func (s *Store) sales(records []fund.SaleRecord) (inserted, changed Request) {
	due := 0
	for i := range records {
		if records[i].Operation.Due {
			due++
		}
	}
	insert := newRows(s.statements.insertSale.columns, len(records)-due)
	change := newRows(s.statements.changeSale.columns, due)
	for i := range records {
		r := &records[i]
		o, t := r.Operation, r.Terms()
		if o.Due {
			change.int(t.Holding.CustomerNo).id(o.ID).int(int64(r.Position))
			addSettled(change, r)
			continue
		}
		insert.int(t.Holding.CustomerNo).id(o.ID).int(int64(r.Position))
		addHeader(insert, o.Subscription, &o.Header)
		insert.text(t.Holding.IMKBCode).text(t.Holding.HolderCorporationName).int(t.PriceID).int(int64(t.Units)).
			int(t.Account.CustomerNo).int(t.Account.BranchCode).int(t.Account.AccountSuffix).text(t.Account.Currency.Code()).
			int(t.ControlTotal).text(t.SelectedDay.String()).instant(&o.ReceivedAt)
		addSettled(insert, r)
	}
	return s.request(s.statements.insertSale, insert, nil), s.request(s.statements.changeSale, change, nil)
}

// addSettled adds the columns that settling sets.
func addSettled(rows *Rows, r *fund.SaleRecord) {
	rows.int(int64(r.State))
	if r.State == operation.Completed {
		price, perUnit, proceeds := r.Price.ID, int64(r.Price.PerUnit), r.Proceeds.Minor()
		rows.optional(&price).optional(&perUnit).optional(&proceeds)
	} else {
		rows.optional(nil).optional(nil).optional(nil)
	}
	rows.text(r.Refusal).instant(&r.SettledAt)
}

func addHeader(rows *Rows, subscription string, h *operation.Header) {
	rows.text(subscription).text(h.AppKey).text(h.Channel).text(h.TellerName).
		text(h.CallerID).text(h.ChannelSessionID).text(h.ChannelRequestID)
}

// The legs of a posting in the table postings.
const (
	unitLeg  = 1
	moneyLeg = 2
)

// insertPostings writes the postings of one leg: those of a leg have the same
// columns.
func (s *Store) insertPostings(postings []fund.Posting, leg int64, at *time.Time) Request {
	rows := newRows(s.statements.insertPosting.columns, len(postings))
	for i := range postings {
		if postings[i].IsMoney() == (leg == moneyLeg) {
			addPosting(rows, &postings[i], leg, at)
		}
	}
	return s.request(s.statements.insertPosting, rows, nil)
}

func addPosting(rows *Rows, p *fund.Posting, leg int64, at *time.Time) {
	rows.int(p.CustomerNo()).id(p.OperationID).int(int64(p.Position)).int(leg).
		int(int64(p.Kind)).text(p.Holding.IMKBCode).text(p.Holding.HolderCorporationName).
		int(p.Account.BranchCode).int(p.Account.AccountSuffix).text(p.Account.Currency.Code()).
		int(p.Quantity).instant(at)
}
