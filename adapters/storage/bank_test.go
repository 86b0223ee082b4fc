package storage_test

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/test/contract"
	"bankingapi/test/kit/testdb"
)

var (
	lira  = currency("TRY")
	today = mustDay("2026-11-20")
	now   = time.Date(2026, time.November, 20, 9, 0, 0, 0, time.UTC)
	afa   = fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy"}
)

func mustDay(text string) day.Day {
	d, err := day.Parse(text)
	if err != nil {
		panic(err)
	}
	return d
}

func currency(code string) money.Currency {
	c, ok := money.ParseCurrency(code)
	if !ok {
		panic(code)
	}
	return c
}

// bank is a store with some customers, from 1 on: each has a holding of AFA
// and a lira account. Price 1 is 2.50 lira.
type bank struct {
	*store.Store
	t testing.TB
}

const (
	unitsAtFirst fund.Units = 1_000_000 * 1_000_000
	priceOfAFA              = fund.UnitPrice(250_000_000)
)

func newBank(t testing.TB, store *store.Store, customers int) bank {
	t.Helper()
	s := contract.Seed{Prices: []fund.Price{{ID: 1, Fund: afa, PerUnit: priceOfAFA, Currency: lira, ValidFrom: today.Plus(-1)}}}
	for i := range customers {
		s.Holdings = append(s.Holdings, fund.Holding{Key: holdingOf(i + 1), Units: unitsAtFirst})
		s.Accounts = append(s.Accounts, fund.Account{Key: accountOf(i + 1), Balance: money.New(0, lira)})
	}
	seed(t, store, s)
	return bank{store, t}
}

// stock gives the customers from 2 on a holding of that many units each.
func (b bank) stock(holdings, units int) {
	b.t.Helper()
	var s contract.Seed
	for i := range holdings {
		s.Holdings = append(s.Holdings, fund.Holding{Key: holdingOf(i + 2), Units: fund.Units(units * 1_000_000)})
	}
	seed(b.t, b.Store, s)
}

// isSoldOut requires that nothing is left of the stock.
func (b bank) isSoldOut(holdings int) {
	b.t.Helper()
	for i := range holdings {
		left := all(b.t, b.Backoffice.Reader.Holdings(b.t.Context(), backoffice.Query{CustomerNo: int64(i + 2)}))
		require.Zero(b.t, left[0].Units)
	}
}

func holdingOf(customer int) fund.HoldingKey {
	return fund.HoldingKey{CustomerNo: int64(customer), Fund: afa}
}

func accountOf(customer int) fund.AccountKey {
	return fund.AccountKey{CustomerNo: int64(customer), BranchCode: 7, AccountSuffix: 1, Currency: lira}
}

// sale is of whole units, from one customer's holding into one's account.
func sale(units int64, from, to int) fund.Terms {
	return fund.Terms{Holding: holdingOf(from), Units: fund.Units(units * 1_000_000), Account: accountOf(to), PriceID: 1}
}

// on is the sale recorded for a day.
func on(d day.Day, t fund.Terms) fund.Terms {
	t.SelectedDay = d
	return t
}

func order(id operation.ID, callerID string, terms ...fund.Terms) *fund.Operation {
	o := &fund.Operation{Envelope: operation.Envelope{ID: id, Subscription: "shop", Header: operation.Header{CallerID: callerID}, ReceivedAt: now}}
	for _, t := range terms {
		o.Sales = append(o.Sales, fund.RestoreSale(t))
	}
	return o
}

// settle carries out a batch on that day.
func settle(ctx context.Context, s *store.Store, on day.Day, batch ...*fund.Operation) error {
	at := on.Start(time.UTC).Add(9 * time.Hour)
	return s.Books.Update(ctx, fund.NewLockSet(batch, on), func(b *fund.Book) {
		for _, o := range batch {
			if terms := o.Sales[0].Terms(); o.Due && terms.Holding.Fund == afa {
				b.LoadCurrentPrice(fund.PriceDay{Fund: afa, Day: terms.SelectedDay}, priceOn(terms.SelectedDay))
			}
		}
		b.Settle(batch, at, on)
	})
}

// price imports a price of AFA for a later day, at which a Buyer settles the sales of that day.
func (b bank) price(d day.Day) {
	b.t.Helper()
	p := priceOn(d)
	p.ID = 50
	require.NoError(b.t, importPrices(b.t.Context(), b.Store, lines(p), quiet))
}

// priceOn returns the price of AFA as that of a later day. A due sale is settled only at the
// price of its day, and which price counts is a rule of package fund.
func priceOn(d day.Day) fund.Price {
	return fund.Price{ID: 1, Fund: afa, PerUnit: priceOfAFA, Currency: lira, ValidFrom: d}
}

// sell carries out one operation, which must end in that state.
func (b bank) sell(want operation.State, o *fund.Operation) {
	b.t.Helper()
	require.NoError(b.t, settle(b.t.Context(), b.Store, today, o))
	outcome, err := o.Outcome()
	require.NoError(b.t, err)
	require.Equal(b.t, want, outcome.State, "%v", outcome.Faults)
}

// isSQLite says which words its SQL needs.
func (b bank) isSQLite() bool { return strings.HasSuffix(b.t.Name(), "/"+testdb.EngineSQLite) }

// holds proves the book.
func (b bank) holds() backoffice.Proof {
	b.t.Helper()
	proof, found := b.findings()
	require.Empty(b.t, found)
	return proof
}

func (b bank) findings() (proof backoffice.Proof, found []string) {
	b.t.Helper()
	proof, err := backoffice.Verify(b.t.Context(), b.Backoffice.Evidence, nil, backoffice.Watch{Found: func(f backoffice.Finding) { found = append(found, f.Text) }})
	require.NoError(b.t, err)
	require.EqualValues(b.t, len(found), proof.Findings)
	return proof, found
}

// all reads an export to its end.
func all[T any](t testing.TB, rows iter.Seq2[T, error]) []T {
	t.Helper()
	var found []T
	for row, err := range rows {
		require.NoError(t, err)
		found = append(found, row)
	}
	return found
}

func quiet(int64) {}

// lines is a checked file; the line numbers begin below a header.
func lines[T any](values ...T) backoffice.Lines[T] {
	return func(yield func(int64, T) error) error {
		for i, v := range values {
			if err := yield(int64(i+2), v); err != nil {
				return err
			}
		}
		return nil
	}
}

// nextID is an ID that no suite uses.
func nextID() operation.ID {
	n := lastID.Add(1)
	return operation.ID{0xff, byte(n >> 16), byte(n >> 8), byte(n)}
}

var lastID atomic.Uint32

func importPrices(ctx context.Context, s *store.Store, lines backoffice.Lines[fund.Price], done func(int64)) error {
	_, err := s.Backoffice.Imports.Prices(ctx, lines, backoffice.ImportOptions{Progress: done})
	return err
}

func importHoldings(ctx context.Context, s *store.Store, id operation.ID, lines backoffice.Lines[fund.Holding], done func(int64)) error {
	_, err := s.Backoffice.Imports.Holdings(ctx, lines, backoffice.ImportOptions{ID: id, Progress: done})
	return err
}

func importAccounts(ctx context.Context, s *store.Store, id operation.ID, lines backoffice.Lines[fund.Account], done func(int64)) error {
	_, err := s.Backoffice.Imports.Accounts(ctx, lines, backoffice.ImportOptions{ID: id, Progress: done})
	return err
}

func keys[T, K any](rows []T, of func(T) K) (found []K) {
	for _, r := range rows {
		found = append(found, of(r))
	}
	return found
}
