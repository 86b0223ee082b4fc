package fund_test

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// model is the contract's section 5 and 6 written as plainly as can be, one
// operation after the other, in numbers without limits: what the book has to
// agree with. The simulation has another one for what a caller is answered;
// test/suites/simulation/doc_test.go says why they are not one.
type model struct {
	units    map[fund.HoldingKey]*big.Int
	money    map[fund.AccountKey]*big.Int
	prices   []fund.Price
	answers  map[string]*answer // by subscription and CallerId
	recorded map[operation.ID]bool
}

type answer struct {
	content string
	state   string
	reasons []string
}

func (a answer) line() string { return strings.Join(append([]string{a.state}, a.reasons...), "; ") }

func modelOf(b *bank) *model {
	m := &model{
		units: map[fund.HoldingKey]*big.Int{}, money: map[fund.AccountKey]*big.Int{},
		answers: map[string]*answer{}, recorded: map[operation.ID]bool{},
	}
	for key, units := range b.holdings {
		m.units[key] = big.NewInt(int64(units))
	}
	for key, balance := range b.accounts {
		m.money[key] = big.NewInt(balance.Minor())
	}
	return m
}

// decide is what the operation comes to, in the form of result.
func (m *model) decide(o *fund.Operation, today day.Day) string {
	var sales []fund.Terms
	for _, s := range o.Sales {
		sales = append(sales, s.Terms())
	}
	caller := o.Subscription + "/" + o.Header.CallerID
	if o.Due {
		if !m.recorded[o.ID] || sales[0].SelectedDay.After(today) {
			return "none"
		}
		for _, s := range sales {
			price := m.current(s.Holding.Fund, s.SelectedDay)
			if price == nil || price.ValidFrom != s.SelectedDay {
				return "none"
			}
		}
		delete(m.recorded, o.ID)
		a := m.sell(sales, today, true)
		if known := m.answers[caller]; known != nil {
			known.state, known.reasons = a.state, a.reasons
		}
		return a.line()
	}
	today = o.Today
	content := fmt.Sprint(o.Header.AppKey, sales)
	wrongDays := daysOutOfOrder(sales, today)
	if known := m.answers[caller]; known != nil {
		if known.content == content {
			return answer{state: known.state + "; again", reasons: known.reasons}.line()
		}
		return "conflict; caller-id-reused /Header/CallerId"
	}
	if wrongDays != nil {
		return answer{state: "invalid", reasons: wrongDays}.line()
	}
	var a answer
	if sales[0].SelectedDay.After(today) {
		if a = m.record(sales); a.state == "recorded" {
			m.recorded[o.ID] = true
		}
	} else {
		a = m.sell(sales, today, false)
	}
	if o.Header.CallerID != "" {
		a.content = content
		m.answers[caller] = &a
	}
	return a.line()
}

func daysOutOfOrder(sales []fund.Terms, today day.Day) (reasons []string) {
	or := func(d day.Day) day.Day {
		if d.IsNone() {
			return today
		}
		return d
	}
	for i, s := range sales {
		switch d := or(s.SelectedDay); {
		case d.Before(today):
			reasons = append(reasons, fmt.Sprintf("date-in-the-past %d/SelectedTransactionDate", i))
		case d.After(today.Plus(366)):
			reasons = append(reasons, fmt.Sprintf("date-too-far %d/SelectedTransactionDate", i))
		case d != or(sales[0].SelectedDay):
			reasons = append(reasons, fmt.Sprintf("dates-differ %d/SelectedTransactionDate", i))
		}
	}
	return reasons
}

func (m *model) price(id int64, of fund.Fund) *fund.Price {
	for i, p := range m.prices {
		if p.ID == id && p.Fund == of {
			return &m.prices[i]
		}
	}
	return nil
}

func (m *model) current(of fund.Fund, on day.Day) *fund.Price {
	var newest *fund.Price
	for i, p := range m.prices {
		if p.Fund == of && !p.ValidFrom.After(on) && (newest == nil || !p.ValidFrom.Before(newest.ValidFrom)) {
			newest = &m.prices[i] // they are in the order of their IDs
		}
	}
	return newest
}

func (m *model) record(sales []fund.Terms) answer {
	var reasons []string
	for i, s := range sales {
		price := m.price(s.PriceID, s.Holding.Fund)
		if price == nil {
			reasons = append(reasons, fmt.Sprintf("price-not-found %d/FundToProcess/PriceID", i))
		}
		if m.money[s.Account] == nil {
			reasons = append(reasons, fmt.Sprintf("account-not-found %d/DestinationAccount", i))
		}
		if price != nil && price.Currency != s.Account.Currency {
			reasons = append(reasons, fmt.Sprintf("currency-mismatch %d/DestinationAccount/CurrencyCode", i))
		}
	}
	if reasons != nil {
		return answer{state: "failed", reasons: reasons}
	}
	return answer{state: "recorded"}
}

// sell tries the sales on a copy, which takes the place of the original when
// none is refused.
func (m *model) sell(sales []fund.Terms, today day.Day, isDue bool) answer {
	units, money := maps.Clone(m.units), maps.Clone(m.money)
	var all []string
	for i, s := range sales {
		var reasons []string
		refuse := func(why string) { reasons = append(reasons, fmt.Sprintf(why, i)) }

		switch have := units[s.Holding]; {
		case have == nil:
			refuse("holding-not-found %d/FundToProcess")
		case have.Cmp(big.NewInt(int64(s.Units))) < 0:
			refuse("holding-insufficient %d/FundAmount")
		}
		var price *fund.Price // that says the currency
		agreed := false
		if isDue {
			price, agreed = m.current(s.Holding.Fund, s.SelectedDay), true
		} else if price = m.price(s.PriceID, s.Holding.Fund); price != nil {
			current := m.current(s.Holding.Fund, today)
			agreed = current != nil && current.ID == price.ID
			if !agreed {
				refuse("price-not-current %d/FundToProcess/PriceID")
			}
		}
		if price == nil {
			refuse("price-not-found %d/FundToProcess/PriceID")
		}
		if money[s.Account] == nil {
			refuse("account-not-found %d/DestinationAccount")
		}
		var proceeds *big.Int
		switch {
		case price != nil && price.Currency != s.Account.Currency:
			refuse("currency-mismatch %d/DestinationAccount/CurrencyCode")
		case agreed:
			proceeds = exactProceeds(s.Units, price.PerUnit, price.Currency)
			if !proceeds.IsInt64() {
				refuse("proceeds-out-of-range %d/FundAmount")
				break
			}
			if proceeds.Sign() == 0 {
				refuse("proceeds-zero %d/FundAmount")
			}
			if !isDue && s.ControlTotal != 0 && s.ControlTotal != proceeds.Int64() {
				refuse("amount-mismatch %d/Amount")
			}
			if has := money[s.Account]; has != nil && !new(big.Int).Add(has, proceeds).IsInt64() {
				refuse("balance-out-of-range %d/DestinationAccount")
			}
		}
		if reasons == nil {
			units[s.Holding] = new(big.Int).Sub(units[s.Holding], big.NewInt(int64(s.Units)))
			money[s.Account] = new(big.Int).Add(money[s.Account], proceeds)
		}
		all = append(all, reasons...)
	}
	if all != nil {
		return answer{state: "failed", reasons: all}
	}
	m.units, m.money = units, money
	return answer{state: "completed"}
}

// machine drives a bank and the model by the same random batches.
type machine struct {
	bank    *bank
	model   *model
	opening *bank
	today   day.Day
	nextID  uint16
	sent    []*fund.Operation // to be repeated
	seen    map[string]int
}

var (
	someFunds = []fund.Fund{
		{IMKBCode: "AFA", HolderCorporationName: "Demo"}, {IMKBCode: "AFA", HolderCorporationName: "Other"}, {IMKBCode: "AFA.F1", HolderCorporationName: "Demo"},
	}
	someCurrencies = []string{"TRY", "TRY", "TRY", "JPY", "KWD"}
	someUnits      = []int64{1_000_000, 1_500_000, 2_222_222, 12_345_678, 50_000_000, 250_000_000, 1, int64(fund.MaxUnits)}
	somePrices     = []int64{100_000_000, 123_456_789, 125_000_000, 250_000_000, 987_654_321, 1_234_500_000, 500_000, 1, int64(fund.MaxUnitPrice)}
)

func pick[T any](t *rapid.T, label string, from []T) T { return rapid.SampledFrom(from).Draw(t, label) }

// oneIn is true once in n times, as ranges of numbers, which prefer small ones,
// are not.
func oneIn(t *rapid.T, label string, n int) bool {
	return pick(t, label, append(make([]bool, n-1), true))
}

func newMachine(t *rapid.T, seen map[string]int) *machine {
	b := newBank()
	clear(b.holdings)
	clear(b.accounts)
	clear(b.prices)
	for customer := range int64(2) {
		for _, f := range someFunds {
			if oneIn(t, "has none", 20) {
				continue
			}
			units := pick(t, "holding", []int64{0, 2_000_000, 20_000_000, 1_000_000_000, 1_000_000_000_000, int64(fund.MaxUnits), math.MaxInt64})
			b.holdings[fund.HoldingKey{CustomerNo: customer + 1, Fund: f}] = fund.Units(units)
		}
		for _, code := range []string{"TRY", "JPY", "KWD"} {
			if oneIn(t, "has no account", 20) {
				continue
			}
			key := fund.AccountKey{CustomerNo: customer + 1, BranchCode: 1, AccountSuffix: 1, Currency: currency(code)}
			b.accounts[key] = money.New(pick(t, "balance", []int64{0, 0, 0, 0, 0, 100_000, math.MaxInt64 - 1000}), key.Currency)
		}
	}
	m := &machine{bank: b, opening: b.clone(), model: modelOf(b), today: on(friday), seen: seen}
	for _, f := range someFunds {
		m.addPrice(t, f, m.today)
	}
	return m
}

func (m *machine) addPrice(t *rapid.T, f fund.Fund, from day.Day) {
	p := fund.Price{
		ID: int64(len(m.bank.prices) + 1), Fund: f, PerUnit: fund.UnitPrice(pick(t, "price", somePrices)),
		Currency: currency(pick(t, "currency", someCurrencies)), ValidFrom: from,
	}
	m.bank.prices[p.ID] = p
	m.model.prices = append(m.model.prices, p)
}

func (m *machine) drawTerms(t *rapid.T) fund.Terms {
	s := fund.Terms{
		Holding: fund.HoldingKey{CustomerNo: rapid.Int64Range(1, 2).Draw(t, "customer"), Fund: pick(t, "fund", someFunds)},
		Units:   fund.Units(pick(t, "units", someUnits)),
		PriceID: rapid.Int64Range(1, int64(len(m.bank.prices))+1).Draw(t, "price"),
		Account: fund.AccountKey{
			CustomerNo: rapid.Int64Range(1, 2).Draw(t, "to customer"), BranchCode: 1, AccountSuffix: 1,
			Currency: currency(pick(t, "into", someCurrencies)),
		},
	}
	price, priced := m.bank.current(s.Holding.Fund, m.today)
	if !oneIn(t, "at random", 10) && priced { // most customers know what they do
		s.PriceID, s.Account.Currency = price.ID, price.Currency
		if have := m.bank.holdings[s.Holding]; have > 0 {
			s.Units = min(s.Units, max(have/4, 1))
		}
	}
	if oneIn(t, "control total", 3) {
		if proceeds := exactProceeds(s.Units, price.PerUnit, s.Account.Currency); proceeds.IsInt64() {
			s.ControlTotal = proceeds.Int64()
		}
		if oneIn(t, "wrong", 5) {
			s.ControlTotal++
		}
	}
	return s
}

func (m *machine) drawRequest(t *rapid.T) *fund.Operation {
	o := m.identified(&fund.Operation{})
	o.Header.CallerID = pick(t, "CallerId", []string{"", "", fmt.Sprint("c-", m.nextID), fmt.Sprint("c-", m.nextID), fmt.Sprint("c-", m.nextID), "c-1"})
	o.Subscription = pick(t, "subscription", []string{"mobile", "mobile", "branch"})
	o.Header.AppKey = pick(t, "AppKey", []string{"", "", "", "app"})
	selected := day.Day{}
	switch {
	case oneIn(t, "later", 4):
		selected = m.today.Plus(pick(t, "days ahead", []int{1, 1, 2, 3}))
	case oneIn(t, "odd", 10):
		selected = m.today.Plus(pick(t, "odd day", []int{0, 366, -1, 367}))
	}
	for range rapid.IntRange(1, 3).Draw(t, "sales") {
		s := m.drawTerms(t)
		if s.SelectedDay = selected; oneIn(t, "mixed", 30) {
			s.SelectedDay = m.today.Plus(1)
		}
		o.Sales = append(o.Sales, fund.RestoreSale(s))
	}
	m.sent = append(m.sent, o)
	return m.arrive(t, o)
}

// arrive lets some operations wait for their batch until after midnight.
func (m *machine) arrive(t *rapid.T, o *fund.Operation) *fund.Operation {
	if oneIn(t, "before midnight", 10) {
		return arrive(m.today.Plus(-1), o)
	}
	return arrive(m.today, o)
}

func (m *machine) identified(o *fund.Operation) *fund.Operation {
	m.nextID++
	o.ID = operation.ID{byte(m.nextID >> 8), byte(m.nextID)}
	return o
}

// copied is the operation before anything was decided.
func copied(o *fund.Operation) *fund.Operation {
	return &fund.Operation{
		Envelope: o.Envelope, Sales: slices.Clone(o.Sales),
		Today: o.Today, DayFaults: o.DayFaults, Zone: o.Zone, Due: o.Due,
	}
}

func (m *machine) drawBatch(t *rapid.T) (batch []*fund.Operation) {
	for range rapid.IntRange(1, 5).Draw(t, "operations") {
		switch pick(t, "kind", []string{"new", "new", "new", "due", "due", "repeat"}) {
		case "repeat":
			if len(m.sent) > 0 {
				repeat := copied(pick(t, "repeat", m.sent))
				repeat.Header.ChannelRequestID = "again"
				batch = append(batch, m.identified(m.arrive(t, repeat)))
				continue
			}
		case "due":
			waiting := slices.SortedFunc(maps.Keys(m.bank.recorded), func(a, b operation.ID) int { return slices.Compare(a[:], b[:]) })
			if len(waiting) > 0 { // also before its day, and twice
				batch = append(batch, due(m.bank.recorded[pick(t, "due", waiting)]))
				continue
			}
		}
		batch = append(batch, m.drawRequest(t))
	}
	return batch
}

func results(batch []*fund.Operation) (lines []string) {
	for _, o := range batch {
		lines = append(lines, result(o))
	}
	return lines
}

func (m *machine) settleBatch(t *rapid.T) {
	batch := m.drawBatch(t)
	single := m.bank.clone()

	// Decided twice, as after a lost race, it comes out the same.
	first := m.bank.load(batch, m.today)
	first.Settle(batch, now, m.today)
	once, firstResults := first.Changes(), results(batch)
	book := m.bank.load(batch, m.today)
	book.Settle(batch, now, m.today)
	require.Equal(t, firstResults, results(batch))
	require.Equal(t, once, book.Changes())
	m.bank.keep(book)

	// The book agrees with the model.
	for i, o := range batch {
		want := m.model.decide(o, m.today)
		require.Equal(t, want, result(o), "operation %d of %d on %s", i, len(batch), m.today)
		m.seen[strings.Split(want, ";")[0]]++
		for _, reason := range strings.Split(want, "; ")[1:] {
			m.seen[strings.Split(reason, " ")[0]]++
		}
	}

	// One by one they come out as they did together.
	for i, o := range batch {
		alone := copied(o)
		singleBook := single.load([]*fund.Operation{alone}, m.today)
		singleBook.Settle([]*fund.Operation{alone}, now, m.today)
		single.keep(singleBook)
		require.Equal(t, result(o), result(alone), "operation %d of %d", i, len(batch))
	}
	require.Equal(t, m.bank.holdings, single.holdings)
	require.Equal(t, m.bank.accounts, single.accounts)
	require.Equal(t, m.bank.known, single.known)
	require.ElementsMatch(t, slices.Collect(maps.Keys(m.bank.recorded)), slices.Collect(maps.Keys(single.recorded)))
	require.Len(t, single.sales, len(m.bank.sales))
	for name, s := range m.bank.sales {
		require.Equal(t, s, single.sales[name], name)
	}
}

// check holds what is always true.
func (m *machine) check(t *rapid.T) {
	units, money := map[fund.HoldingKey]int64{}, map[fund.AccountKey]int64{}
	proceeds := map[string]int64{}
	for name, s := range m.bank.sales {
		for _, p := range s.Postings() {
			require.Equal(t, fund.SalePosting, p.Kind)
			if p.IsMoney() {
				require.Positive(t, p.Quantity)
				money[p.Account] += p.Quantity
				proceeds[name] += p.Quantity
			} else {
				require.Negative(t, p.Quantity)
				units[p.Holding] += p.Quantity
			}
		}
	}
	require.Len(t, m.bank.holdings, len(m.opening.holdings))
	for key, now := range m.bank.holdings {
		require.GreaterOrEqual(t, now, fund.Units(0))
		require.Equal(t, m.model.units[key].Int64(), int64(now))
		require.Equal(t, int64(now-m.opening.holdings[key]), units[key], "units are conserved")
	}
	require.Len(t, m.bank.accounts, len(m.opening.accounts))
	for key, now := range m.bank.accounts {
		require.GreaterOrEqual(t, now.Minor(), int64(0))
		require.Equal(t, key.Currency, now.Currency())
		require.Equal(t, m.model.money[key].Int64(), now.Minor())
		require.Equal(t, now.Minor()-m.opening.accounts[key].Minor(), money[key], "money is conserved")
	}
	for name, s := range m.bank.sales {
		terms, price := s.Terms, m.bank.prices[s.PriceID]
		switch s.State {
		case operation.Completed:
			require.Equal(t, proceeds[name], s.Proceeds.Minor())
			require.Equal(t, terms.Holding.Fund, price.Fund)
			require.Equal(t, terms.Account.Currency, price.Currency)
			require.Equal(t, s.PerUnit, price.PerUnit)
			require.Equal(t, now, s.SettledAt)
		default:
			require.Zero(t, s.Proceeds)
			require.Zero(t, s.PriceID)
			require.Zero(t, s.PerUnit)
			require.Zero(t, proceeds[name])
			require.Equal(t, s.State == operation.Recorded, s.SettledAt.IsZero())
			require.False(t, terms.SelectedDay.IsNone(), "only a sale for a later day is kept without being completed")
		}
	}
}

func TestTheBookAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t, seen)
		t.Repeat(map[string]func(*rapid.T){
			"a batch":       m.settleBatch,
			"another batch": m.settleBatch,
			"a new price": func(t *rapid.T) {
				m.addPrice(t, pick(t, "fund", someFunds), m.today.Plus(rapid.IntRange(-1, 2).Draw(t, "valid from")))
			},
			"days go by": func(t *rapid.T) { m.today = m.today.Plus(rapid.IntRange(1, 2).Draw(t, "days")) },
			"clock goes back": func(_ *rapid.T) {
				if m.today.After(on(friday)) {
					m.today = m.today.Plus(-1)
				}
			},
			"": m.check,
		})
	})
	t.Log("outcomes and reasons seen:", seen)
}
