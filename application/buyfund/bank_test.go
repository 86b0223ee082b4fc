package buyfund_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"bankingapi/application/buyfund"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
	"bankingapi/test/kit/expect"
	"bankingapi/test/kit/memory"
	"bankingapi/test/kit/value"
)

var number = value.Number

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	istanbul = value.Zone("Europe/Istanbul") // UTC+3, all the year
	lira     = value.Currency("TRY")

	// noon is the time at which a bank opens: 15:00 in Istanbul.
	noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

	gold = fund.Fund{IMKBCode: "GLD", HolderCorporationName: "Holder"}
)

// ours is a subscription with nothing defined.
var ours = &subscription.Subscription{Name: "ours"}

// bank is a Buyer over a store of its own, with a clock that stands at noon.
// Customer 1001 has 1,000 units of gold, at 1.25 TRY, and an empty account.
type bank struct {
	*buyfund.Buyer
	t     *testing.T
	store *fake.Store
	clock *fake.Clock
	ids   *fake.IDs
}

// with changes how a bank is opened.
type with struct {
	strike  fake.Strike
	books   func(buyfund.Books) buyfund.Books
	options func(*buyfund.Options)
	// unpriced leaves out the prices of the next three days, on which recorded sales are settled.
	unpriced bool
}

func openBank(t *testing.T, w with) *bank {
	t.Helper()
	b := &bank{t: t, store: fake.NewStore(), clock: fake.NewClock(noon), ids: new(fake.IDs)}
	b.store.PutPrices(fund.Price{ID: 1, Fund: gold, PerUnit: 125_000_000, Currency: lira, ValidFrom: today(-1)})
	for n := 1; n <= 3 && !w.unpriced; n++ { // with the same ID, so that requests of these days can name it
		b.store.PutPrices(fund.Price{ID: 1, Fund: gold, PerUnit: 125_000_000, Currency: lira, ValidFrom: today(n)})
	}
	b.store.PutHoldings(fund.Holding{Key: holding(1001, gold), Units: 1000_000_000})
	b.store.PutAccounts(fund.Account{Key: account(1001), Balance: money.New(0, lira)})
	b.Buyer = b.replica(w)
	return b
}

// replica is one more Buyer over the same store.
func (b *bank) replica(w with) *buyfund.Buyer {
	b.t.Helper()
	var books buyfund.Books = b.store.Books(w.strike)
	if w.books != nil {
		books = w.books(books)
	}
	kit := memory.Bank{Store: b.store, Clock: b.clock, IDs: b.ids}
	return kit.Buyer(b.t, books, func(o *buyfund.Options) {
		o.ParametersLimit = 3
		o.Rules = buyfund.FixedRules(fund.Rules{Zone: istanbul}, nil, o.Now)
		if w.options != nil {
			w.options(o)
		}
	})
}

// buy is Buy for our subscription.
func (b *bank) buy(callerID string, parameters ...fund.SaleFields) (operation.Outcome, error) {
	return b.Buy(b.t.Context(), ours, operation.Header{CallerID: callerID}, parameters)
}

// mustBuy is buy where nothing is wrong with the request.
func (b *bank) mustBuy(callerID string, parameters ...fund.SaleFields) operation.Outcome {
	b.t.Helper()
	outcome, err := b.buy(callerID, parameters...)
	require.NoError(b.t, err)
	return outcome
}

// sold checks how many units of gold customer 1001 sold, and that the account
// got what they are worth.
func (b *bank) sold(units int64) {
	b.t.Helper()
	require.Equal(b.t, fund.Units((1000-units)*1_000_000), b.store.Holdings()[0].Units)
	require.Equal(b.t, units*125, b.store.Accounts()[0].Balance.Minor())
	var moved [2]int64
	for _, p := range b.store.Postings() {
		if p.IsMoney() {
			moved[1] += p.Quantity
		} else {
			moved[0] += p.Quantity
		}
	}
	require.Equal(b.t, [2]int64{-units * 1_000_000, units * 125}, moved)
}

// states lists the states of all sales, by operation and position.
func (b *bank) states() (all []operation.State) {
	for _, s := range b.store.Sales() {
		all = append(all, s.State)
	}
	return all
}

// sale is a request's record: customer 1001 sells units of gold.
func sale(units string, changes ...func(*fund.SaleFields)) fund.SaleFields {
	f := fund.SaleFields{
		CustomerNo:      decimal.Int(1001),
		TransactionType: decimal.Int(2),
		FundAmount:      number(units),
		DestinationAccount: &fund.AccountFields{
			BranchCode: decimal.Int(1), CustomerNo: decimal.Int(1001), AccountSuffix: decimal.Int(1), CurrencyCode: "TRY",
		},
		FundToProcess: &fund.FundFields{IMKBCode: gold.IMKBCode, HolderCorporationName: gold.HolderCorporationName, PriceID: decimal.Int(1)},
	}
	for _, change := range changes {
		change(&f)
	}
	return f
}

func on(d day.Day) func(*fund.SaleFields) {
	return func(f *fund.SaleFields) { f.SelectedTransactionDate = d.String() }
}

func atPrice(id int64) func(*fund.SaleFields) {
	return func(f *fund.SaleFields) { f.FundToProcess.PriceID = decimal.Int(id) }
}

func ofCustomer(n int64) func(*fund.SaleFields) {
	return func(f *fund.SaleFields) { f.CustomerNo = decimal.Int(n) }
}

func holding(customer int64, f fund.Fund) fund.HoldingKey {
	return fund.HoldingKey{CustomerNo: customer, Fund: f}
}

func account(customer int64) fund.AccountKey {
	return fund.AccountKey{CustomerNo: customer, BranchCode: 1, AccountSuffix: 1, Currency: lira}
}

// today is the bank's day n days after noon.
func today(n int) day.Day { return day.Of(noon, istanbul).Plus(n) }

// midnight is when that day begins in Istanbul.
func midnight(n int) time.Time { return today(n).Start(istanbul) }

// refused checks that the bank refused for these reasons.
func refused(t *testing.T, outcome operation.Outcome, reasons ...string) {
	t.Helper()
	require.Equal(t, operation.Failed, outcome.State)
	require.Equal(t, reasons, expect.Described(outcome.Faults))
}

var (
	completed = operation.Outcome{State: operation.Completed}
	recorded  = operation.Outcome{State: operation.Recorded}
)

func replayed(o operation.Outcome) operation.Outcome {
	o.Replayed = true
	return o
}

// gate is a Strike that holds transactions at their beginning while it is
// shut. It is of the bubble it was made in.
type gate struct {
	mu   sync.Mutex
	open chan struct{}
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) strike(_ context.Context, m fake.Moment) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if m == fake.Begin {
		<-open
	}
	return nil
}

// together has all the calls arrive, in their order, while an earlier
// transaction is held up, so that they share the next batch; meanwhile is what
// happens while they wait. It has to be called in a bubble.
func (b *bank) together(g *gate, meanwhile func(), calls ...func()) {
	b.t.Helper()
	g.shut()
	var done sync.WaitGroup
	first := sale("1", ofCustomer(9))
	calls = append([]func(){func() { refused(b.t, b.mustBuy("", first), "holding-not-found /Parameters/0/FundToProcess") }}, calls...)
	for _, call := range calls {
		done.Go(call)
		synctest.Wait()
	}
	meanwhile()
	close(g.open)
	done.Wait()
}
