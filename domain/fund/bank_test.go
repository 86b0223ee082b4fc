package fund_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/value"
)

var number, unitsOf, on, currency = value.Number, value.Units, value.Day, value.Currency

// priceOf is the price with that text.
func priceOf(text string) fund.UnitPrice {
	n, err := number(text).Integer(fund.PriceDecimals)
	if err != nil {
		panic(err)
	}
	return fund.UnitPrice(n)
}

// bank is a whole book in memory: it loads what a batch touches, has it
// settled, and keeps the changes, as storage does.
type bank struct {
	holdings map[fund.HoldingKey]fund.Units
	accounts map[fund.AccountKey]money.Amount
	prices   map[int64]fund.Price
	known    map[idempotency.Key]idempotency.Record
	recorded map[operation.ID]*fund.Operation
	sales    map[string]fund.SaleEntry // by operation and position
}

const (
	demo     = "Demo Portfoy"
	friday   = "2026-11-20"
	saturday = "2026-11-21"
	sunday   = "2026-11-22"
)

var now = time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)

// newBank has one customer, 1001, with 1,000 units of AFA and accounts in TRY,
// USD, JPY and KWD, all empty. AFA costs 1.25 TRY (price 1, from the 19th), GAF
// 2.5 USD (price 2), and tomorrow AFA costs 1.5 TRY (price 3).
func newBank() *bank {
	b := &bank{
		holdings: map[fund.HoldingKey]fund.Units{},
		accounts: map[fund.AccountKey]money.Amount{},
		prices:   map[int64]fund.Price{},
		known:    map[idempotency.Key]idempotency.Record{},
		recorded: map[operation.ID]*fund.Operation{},
		sales:    map[string]fund.SaleEntry{},
	}
	b.hold("1000", "AFA")
	for _, code := range []string{"TRY", "USD", "JPY", "KWD"} {
		b.open(code)
	}
	b.price(1, "AFA", "1.25", "TRY", "2026-11-19")
	b.price(2, "GAF", "2.5", "USD", "2026-11-19")
	b.price(3, "AFA", "1.5", "TRY", saturday)
	return b
}

func (b *bank) hold(units, imkbCode string) {
	b.holdings[holdingOf(imkbCode)] = unitsOf(units)
}

func (b *bank) open(code string) { b.accounts[accountIn(code)] = money.New(0, currency(code)) }

func (b *bank) price(id int64, imkbCode, perUnit, code, from string) {
	b.prices[id] = fund.Price{ID: id, Fund: fundOf(imkbCode), PerUnit: priceOf(perUnit), Currency: currency(code), ValidFrom: on(from)}
}

func (b *bank) clone() *bank {
	return &bank{
		holdings: maps.Clone(b.holdings), accounts: maps.Clone(b.accounts), prices: maps.Clone(b.prices), known: maps.Clone(b.known),
		recorded: maps.Clone(b.recorded), sales: maps.Clone(b.sales),
	}
}

// current is the price of a fund on a day: the newest whose ValidFrom is not
// after the day, of several from one day that with the highest ID.
func (b *bank) current(f fund.Fund, on day.Day) (fund.Price, bool) {
	var current fund.Price
	for _, p := range b.prices {
		if p.Fund != f || p.ValidFrom.After(on) {
			continue
		}
		if p.ValidFrom.After(current.ValidFrom) || p.ValidFrom == current.ValidFrom && p.ID > current.ID {
			current = p
		}
	}
	return current, current.ID != 0
}

// load is the book with what the operations touch, and nothing else. Operations
// that have not arrived yet arrive today.
func (b *bank) load(operations []*fund.Operation, today day.Day) *fund.Book {
	for _, o := range operations {
		if !o.Due && o.Today.IsNone() {
			arrive(today, o)
		}
	}
	return b.loadSet(fund.NewLockSet(operations, today), len(operations))
}

func (b *bank) loadSet(touched fund.LockSet, n int) *fund.Book {
	book := fund.NewBook(n)
	for _, key := range touched.Callers {
		if k, ok := b.known[key]; ok {
			book.Register.Load(k)
		}
	}
	for _, o := range touched.Due {
		if b.recorded[o.ID] != nil {
			book.LoadClaim(o.ID)
		}
	}
	for _, key := range touched.Holdings {
		if units, ok := b.holdings[key]; ok {
			book.LoadHolding(fund.Holding{Key: key, Units: units})
		}
	}
	for _, key := range touched.Accounts {
		if balance, ok := b.accounts[key]; ok {
			book.LoadAccount(fund.Account{Key: key, Balance: balance})
		}
	}
	for _, id := range touched.PriceIDs {
		if p, ok := b.prices[id]; ok {
			book.LoadPrice(p)
		}
	}
	for _, of := range touched.PriceDays {
		if p, ok := b.current(of.Fund, of.Day); ok {
			book.LoadCurrentPrice(of, p)
		}
	}
	return book
}

// keep writes what the book left to be written.
func (b *bank) keep(book *fund.Book) {
	changes := book.Changes()
	for _, h := range changes.Holdings {
		b.holdings[h.Key] = h.Units
	}
	for _, a := range changes.Accounts {
		b.accounts[a.Key] = a.Balance
	}
	for _, s := range slices.Concat(changes.Sales, changes.Settled) {
		b.sales[fmt.Sprint(s.ID, " ", s.Index)] = s
		if s.State != operation.Recorded {
			delete(b.recorded, s.ID)
			continue
		}
		if s.Index == 0 {
			b.recorded[s.ID] = &fund.Operation{Envelope: s.Envelope}
		}
		b.recorded[s.ID].Sales = append(b.recorded[s.ID].Sales, fund.RestoreSale(s.Terms))
	}
	for _, k := range slices.Concat(book.Register.NewRecords(), book.Register.ChangedRecords()) {
		b.known[k.Key] = *k
	}
}

// settle decides a batch on a day and keeps it.
func (b *bank) settle(today string, operations ...*fund.Operation) fund.Changes {
	book := b.load(operations, on(today))
	book.Settle(operations, now, on(today))
	b.keep(book)
	return book.Changes()
}

// arrive checks the days of an operation, as its use case does.
func arrive(today day.Day, o *fund.Operation) *fund.Operation {
	fields := make([]fund.SaleFields, len(o.Sales))
	for i, s := range o.Sales {
		fields[i] = s.Terms().Fields()
	}
	r := fund.NewRequest(fields, len(fields), today)
	o.Today, o.DayFaults = r.Today, r.DayFaults
	return o
}

// due is a recorded operation as storage lists it once its day has come.
func due(recorded *fund.Operation) *fund.Operation {
	return &fund.Operation{
		Envelope: recorded.Envelope,
		Sales:    recorded.Sales, Due: true,
	}
}

func (b *bank) units(imkbCode string) string { return b.holdings[holdingOf(imkbCode)].String() }

func (b *bank) balance(code string) string { return b.accounts[accountIn(code)].String() }

// The values of the examples.

func fundOf(imkbCode string) fund.Fund {
	return fund.Fund{IMKBCode: imkbCode, HolderCorporationName: demo}
}

func holdingOf(imkbCode string) fund.HoldingKey {
	return fund.HoldingKey{CustomerNo: 1001, Fund: fundOf(imkbCode)}
}

func accountIn(code string) fund.AccountKey {
	return fund.AccountKey{CustomerNo: 1001, BranchCode: 1, AccountSuffix: 7, Currency: currency(code)}
}

// asked is a sale of 100 units of AFA at price 1 into the TRY account, with
// the given changes.
func asked(changes ...func(*fund.SaleFields)) fund.SaleFields {
	f := fund.SaleFields{
		CustomerNo:      number("1001"),
		TransactionType: number("2"),
		FundAmount:      number("100"),
		DestinationAccount: &fund.AccountFields{
			BranchCode: number("1"), CustomerNo: number("1001"), AccountSuffix: number("7"), CurrencyCode: "TRY",
		},
		FundToProcess: &fund.FundFields{IMKBCode: "AFA", HolderCorporationName: demo, PriceID: number("1")},
	}
	for _, change := range changes {
		change(&f)
	}
	return f
}

type change = func(*fund.SaleFields)

func selling(units string) change { return func(f *fund.SaleFields) { f.FundAmount = number(units) } }

func of(imkbCode string) change {
	return func(f *fund.SaleFields) { f.FundToProcess.IMKBCode = imkbCode }
}

func at(priceID string) change {
	return func(f *fund.SaleFields) { f.FundToProcess.PriceID = number(priceID) }
}

func into(code string) change {
	return func(f *fund.SaleFields) { f.DestinationAccount.CurrencyCode = code }
}

func intoSuffix(suffix string) change {
	return func(f *fund.SaleFields) { f.DestinationAccount.AccountSuffix = number(suffix) }
}

func expecting(amount string) change {
	return func(f *fund.SaleFields) { f.Amount = number(amount) }
}

func onDay(text string) change {
	return func(f *fund.SaleFields) { f.SelectedTransactionDate = text }
}

func sale(changes ...change) fund.Sale {
	s, faults := fund.NewSale(asked(changes...))
	if len(faults) > 0 {
		panic(faults)
	}
	return s
}

// request is an operation of these sales, without a CallerId.
func request(id byte, sales ...fund.Sale) *fund.Operation {
	return &fund.Operation{Envelope: operation.Envelope{ID: operation.ID{id}, Subscription: "mobile", ReceivedAt: now}, Sales: sales}
}

// named is request with a CallerId.
func named(id byte, callerID string, sales ...fund.Sale) *fund.Operation {
	o := request(id, sales...)
	o.Header.CallerID = callerID
	return o
}

// result is how an operation ended, in a line: the state, or the error, with
// every code and its pointer.
func result(o *fund.Operation) string {
	outcome, err := o.Outcome()
	words := []string{outcome.State.String()}
	if outcome.Replayed {
		words = append(words, "again")
	}
	faults := outcome.Faults
	if err != nil {
		words, faults = []string{fault.KindOf(err).String()}, fault.Of(err)
	}
	for _, f := range faults {
		words = append(words, f.Code+" "+strings.TrimPrefix(f.Pointer, "/Parameters/"))
	}
	return strings.Join(words, "; ")
}

func requireResult(t require.TestingT, want string, o *fund.Operation) {
	require.Equal(t, want, result(o))
}

func requireNothingChanged(t require.TestingT, c fund.Changes) {
	require.Empty(t, c.Holdings)
	require.Empty(t, c.Accounts)
	require.Empty(t, c.Sales)
}
