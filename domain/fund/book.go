package fund

import (
	"slices"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Book is the part of the bank's book that a batch of operations touches.
// Storage loads it by the Load methods with what Touch names, somebody calls
// Settle once, storage writes what Changes returns. It is not safe for
// concurrent use.
type Book struct {
	Register operation.Register

	holdings map[HoldingKey]*position[Units]
	accounts map[AccountKey]*position[money.Amount]
	prices   map[int64]Price
	current  map[PriceDay]Price
	claimed  map[operation.ID]bool

	changes Changes
	undo    []func()
	settled bool
	others  bool // an operation was not completed, or completed before, or recorded before
}

// position is a quantity as it was loaded and as it is now.
type position[Q comparable] struct{ loaded, now Q }

// NewBook returns an empty book with room for n operations.
func NewBook(n int) *Book {
	return &Book{
		holdings: make(map[HoldingKey]*position[Units], n),
		accounts: make(map[AccountKey]*position[money.Amount], n),
		prices:   make(map[int64]Price),
		current:  make(map[PriceDay]Price),
		claimed:  make(map[operation.ID]bool),
	}
}

// LoadHolding puts a holding into the book.
func (b *Book) LoadHolding(h Holding) { b.holdings[h.Key] = &position[Units]{h.Units, h.Units} }

// LoadAccount puts an account into the book.
func (b *Book) LoadAccount(a Account) {
	b.accounts[a.Key] = &position[money.Amount]{a.Balance, a.Balance}
}

// LoadPrice puts a price into the book, to be found by its ID.
func (b *Book) LoadPrice(p Price) { b.prices[p.ID] = p }

// LoadCurrentPrice puts the current price of a fund on a day into the book.
func (b *Book) LoadCurrentPrice(of PriceDay, p Price) { b.current[of] = p }

// LoadClaim tells the book that a due operation is still recorded, and held by
// this transaction alone. Settle leaves due operations without a claim alone:
// another replica has them.
func (b *Book) LoadClaim(id operation.ID) { b.claimed[id] = true }

// Touched is all that a batch of operations may read or change: each key once,
// in the one order in which storage locks.
type Touched struct {
	Due       []*Operation // to be claimed
	Holdings  []HoldingKey
	Accounts  []AccountKey
	PriceIDs  []int64
	PriceDays []PriceDay
	Callers   []operation.Key
}

// Touch lists what settling the operations on that day touches. Storage loads
// that and nothing else; what does not exist is left out of the book.
func Touch(operations []*Operation, today day.Day) Touched {
	var t Touched
	for _, o := range operations {
		if key, ok := o.Key(); ok {
			t.Callers = append(t.Callers, key)
		}
		if o.Due {
			t.Due = append(t.Due, o)
		}
		for i := range o.Sales {
			terms := &o.Sales[i].terms
			on := terms.dayOr(today)
			t.Accounts = append(t.Accounts, terms.Account)
			if on.After(today) {
				t.PriceIDs = append(t.PriceIDs, terms.PriceID)
				continue // only recorded: the holding is neither checked nor blocked
			}
			t.Holdings = append(t.Holdings, terms.Holding)
			t.PriceDays = append(t.PriceDays, PriceDay{terms.Holding.Fund, on})
			if !o.Due {
				t.PriceIDs = append(t.PriceIDs, terms.PriceID)
			}
		}
	}
	t.Holdings = sortedOnce(t.Holdings, HoldingKey.Compare)
	t.Accounts = sortedOnce(t.Accounts, AccountKey.Compare)
	t.PriceDays = sortedOnce(t.PriceDays, PriceDay.compare)
	t.Callers = operation.SortedKeys(t.Callers)
	slices.Sort(t.PriceIDs)
	t.PriceIDs = slices.Compact(t.PriceIDs)
	slices.SortFunc(t.Due, func(a, b *Operation) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return t
}

func sortedOnce[K comparable](keys []K, compare func(K, K) int) []K {
	slices.SortFunc(keys, compare)
	return slices.Compact(keys)
}

// Settle decides the operations in the order given, as of now, and leaves the
// changes in the book and each operation's outcome in the operation. It has no
// other effect, and a batch decided again in a new book comes out the same.
func (b *Book) Settle(operations []*Operation, now time.Time, today day.Day) {
	b.settled = true
	for _, o := range operations {
		b.settle(o, now, today)
		if o.Due || o.outcome.Replayed || o.outcome.State != operation.Completed {
			b.others = true
		}
	}
}

// CompletedAll reports whether Settle completed every operation, each of them
// new: then Changes and the added operations are all there is to write.
func (b *Book) CompletedAll() bool { return b.settled && !b.others }

func (b *Book) settle(o *Operation, now time.Time, today day.Day) {
	o.outcome, o.err = operation.Outcome{}, nil
	key, hasKey := o.Key()
	if o.Due {
		if b.claimed[o.ID] && !o.Sales[0].terms.SelectedDay.After(today) {
			delete(b.claimed, o.ID)
			b.carryOut(o, now, today)
			b.Register.Change(key, o.outcome)
		}
		return
	}
	dayFaults := DayFaults(o.Sales, today)
	var fingerprint operation.Fingerprint
	if hasKey {
		fingerprint = o.fingerprint()
		outcome, known, err := b.Register.Find(key, fingerprint)
		// A repeat is answered although its day has gone by; where it is none,
		// 400 comes before 422 (the contract, section 1).
		if known && (err == nil || dayFaults == nil) {
			o.outcome, o.err = outcome, err
			return
		}
	}
	if dayFaults != nil {
		o.err = fault.New(fault.Invalid, "The request breaks a rule.", dayFaults...)
		return
	}
	if o.Sales[0].terms.dayOr(today).After(today) {
		b.record(o)
	} else {
		b.carryOut(o, now, today)
	}
	if hasKey {
		b.Register.Add(operation.Known{Key: key, ID: o.ID, Fingerprint: fingerprint, Outcome: o.outcome})
	}
}

// record keeps the operation for its day, if price, account and currency are
// in order now.
func (b *Book) record(o *Operation) {
	var refusals []fault.Fault
	for i := range o.Sales {
		t := &o.Sales[i].terms
		var r reasons
		price, found := b.prices[t.PriceID]
		found = found && price.Fund == t.Holding.Fund
		r.refuseUnless(found, PriceNotFound)
		r.refuseUnless(b.accounts[t.Account] != nil, AccountNotFound)
		r.refuseUnless(!found || price.Currency == t.Account.Currency, CurrencyMismatch)
		refusals = append(refusals, operation.UnderParameter(i, r)...)
	}
	if refusals != nil {
		o.outcome = operation.Outcome{State: operation.Failed, Faults: refusals}
		return
	}
	o.outcome = operation.Outcome{State: operation.Recorded}
	for i := range o.Sales {
		b.changes.Sales = append(b.changes.Sales, SaleRecord{
			Operation: o, Position: i, State: operation.Recorded,
		})
	}
}

// carryOut settles the sales of the operation, all or none.
func (b *Book) carryOut(o *Operation, now time.Time, today day.Day) {
	firstSale, firstPosting := len(b.changes.Sales), len(b.changes.Postings)
	b.undo = b.undo[:0]
	var refusals []fault.Fault
	for i := range o.Sales {
		record := SaleRecord{Operation: o, Position: i, State: operation.Completed, SettledAt: now}
		r := b.sell(&record, today)
		if len(r) > 0 {
			record.State, record.Refusal = operation.Failed, r[0].Code
			refusals = append(refusals, operation.UnderParameter(i, r)...)
		}
		b.changes.Sales = append(b.changes.Sales, record)
	}
	if refusals == nil {
		o.outcome = operation.Outcome{State: operation.Completed}
		return
	}
	o.outcome = operation.Outcome{State: operation.Failed, Faults: refusals}
	for _, undo := range slices.Backward(b.undo) {
		undo()
	}
	b.changes.Postings = b.changes.Postings[:firstPosting]
	if !o.Due {
		b.changes.Sales = b.changes.Sales[:firstSale] // a refusal leaves nothing behind
		return
	}
	for i := firstSale; i < len(b.changes.Sales); i++ { // the recorded rows end with all their array
		s := &b.changes.Sales[i]
		s.State, s.Price, s.Proceeds = operation.Failed, Price{}, money.Amount{}
	}
}

// sell decides one sale and, if nothing is in its way, carries it out.
func (b *Book) sell(s *SaleRecord, today day.Day) reasons {
	t := &s.Operation.Sales[s.Position].terms
	var r reasons

	holding := b.holdings[t.Holding]
	r.refuseUnless(holding != nil, HoldingNotFound)
	r.refuseUnless(holding == nil || holding.now >= t.Units, HoldingInsufficient)

	price, agreed := b.agreedPrice(s.Operation.Due, t, today, &r)

	account := b.accounts[t.Account]
	r.refuseUnless(account != nil, AccountNotFound)
	sameCurrency := price.Currency.IsNone() || price.Currency == t.Account.Currency
	r.refuseUnless(sameCurrency, CurrencyMismatch)

	if agreed && sameCurrency {
		s.Price = price
		var inRange bool
		s.Proceeds, inRange = Proceeds(t.Units, price.PerUnit, price.Currency)
		r.refuseUnless(inRange, ProceedsOutOfRange)
		r.refuseUnless(!inRange || s.Proceeds.Minor() > 0, ProceedsZero)
		checked := t.ControlTotal != 0 && !s.Operation.Due
		r.refuseUnless(!inRange || !checked || t.ControlTotal == s.Proceeds.Minor(), AmountMismatch)
	}
	if len(r) > 0 {
		return r
	}
	balance, inRange := account.now.Add(s.Proceeds)
	if !inRange {
		r.refuseUnless(false, BalanceOutOfRange)
		return r
	}
	unitsBefore, balanceBefore := holding.now, account.now
	b.undo = append(b.undo, func() { holding.now, account.now = unitsBefore, balanceBefore })
	holding.now -= t.Units
	account.now = balance
	b.changes.Postings = append(b.changes.Postings,
		UnitPosting(SalePosting, s.Operation.ID, s.Position, t.Holding, -t.Units),
		MoneyPosting(SalePosting, s.Operation.ID, s.Position, t.Account, s.Proceeds.Minor()))
	return nil
}

// agreedPrice is the price of the sale: the current one of its day, which an
// immediate sale must have named. Where it is not agreed, the price that was
// named, if any, still says the currency.
func (b *Book) agreedPrice(due bool, t *Terms, today day.Day, r *reasons) (price Price, agreed bool) {
	current, hasCurrent := b.current[PriceDay{t.Holding.Fund, t.dayOr(today)}]
	if due {
		r.refuseUnless(hasCurrent, PriceNotFound)
		return current, hasCurrent
	}
	named, found := b.prices[t.PriceID]
	if !found || named.Fund != t.Holding.Fund {
		r.refuseUnless(false, PriceNotFound)
		return Price{}, false
	}
	agreed = hasCurrent && current.ID == named.ID
	r.refuseUnless(agreed, PriceNotCurrent)
	return named, agreed
}

// reasons collects why one sale is refused.
type reasons []fault.Fault

func (r *reasons) refuseUnless(inOrder bool, code string) {
	if !inOrder {
		*r = append(*r, Refusal(code))
	}
}
