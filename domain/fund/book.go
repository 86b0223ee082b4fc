package fund

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Book is the part of the bank's book that a batch of operations reads and
// changes. Storage loads everything in the LockSet with the Load methods. The use
// case calls Settle once. Then storage writes Changes and what the Register added
// and changed. A Book is not safe for concurrent use.
type Book struct {
	Register idempotency.Register

	holdings map[HoldingKey]*position[Units]
	accounts map[AccountKey]*position[money.Amount]
	prices   map[int64]Price
	current  map[PriceDay]Price
	claimed  map[operation.ID]bool
	reversed []operation.ID
	rules    string

	changes Changes
	undo    []func()
	settled bool
	others  bool // an operation was not completed, or was a repeat, or was due
}

// position is a quantity: the loaded value and the current value.
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

// LoadPrice puts a price into the book, under its ID.
func (b *Book) LoadPrice(p Price) { b.prices[p.ID] = p }

// LoadCurrentPrice puts the current price of a fund on a day into the book.
func (b *Book) LoadCurrentPrice(of PriceDay, p Price) { b.current[of] = p }

// LoadClaim tells the book that a due operation is still recorded and that only this
// transaction holds it. Settle ignores due operations without a claim, because another replica
// settles them.
func (b *Book) LoadClaim(id operation.ID) { b.claimed[id] = true }

// LockSet is everything that a batch of operations may read or change. Each key
// is listed once, in the order in which storage locks.
type LockSet struct {
	Due       []*Operation // the operations to claim
	Holdings  []HoldingKey
	Accounts  []AccountKey
	PriceIDs  []int64
	PriceDays []PriceDay
	Callers   []idempotency.Key
	Reversed  []operation.ID // the operations whose reversals are loaded
	// Rules are the rules of the bank by which the operations were prepared. If they are not
	// empty, the rules of the book are loaded. They can be others.
	Rules string
}

// NewLockSet lists what the operations read or change when they are settled today. Storage
// loads exactly these rows into a Book. It skips rows that do not exist.
func NewLockSet(operations []*Operation, today day.Day) LockSet {
	t := LockSet{Rules: rulesOf(operations)}
	for _, o := range operations {
		if key, ok := o.Key(); ok {
			t.Callers = append(t.Callers, key)
		}
		if o.Due {
			t.Due = append(t.Due, o)
		}
		for i := range o.Sales {
			terms := &o.Sales[i].terms
			on := terms.dayOr(o.today(today))
			t.Accounts = append(t.Accounts, terms.Account)
			if on.After(o.today(today)) {
				t.PriceIDs = append(t.PriceIDs, terms.PriceID)
				continue // the sale is only recorded: the holding is not checked or reserved
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
	t.PriceDays = sortedOnce(t.PriceDays, PriceDay.Compare)
	t.Callers = sortedOnce(t.Callers, idempotency.Key.Compare)
	t.PriceIDs = sortedOnce(t.PriceIDs, cmp.Compare)
	slices.SortFunc(t.Due, func(a, b *Operation) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return t
}

func sortedOnce[K comparable](keys []K, compare func(K, K) int) []K {
	slices.SortFunc(keys, compare)
	return slices.Compact(keys)
}

// Settle decides the operations in the given order, as of now. It puts the
// changes into the book and each outcome into its operation. It has no other
// effect: the same batch in a new book with the same content has the same result.
func (b *Book) Settle(operations []*Operation, now time.Time, today day.Day) {
	b.settled = true
	for _, o := range operations {
		b.settle(o, now, today)
		if o.Due || o.outcome.Replayed || o.outcome.State != operation.Completed {
			b.others = true
		}
	}
}

// CompletedAll reports whether every operation was new and Settle completed it. Then storage
// only needs to write Changes and the added records.
func (b *Book) CompletedAll() bool { return b.settled && !b.others }

func (b *Book) settle(o *Operation, now time.Time, today day.Day) {
	o.outcome = operation.Outcome{}
	o.err = nil
	key, hasKey := o.Key()
	if o.Due {
		if !o.follows(b.rules) {
			o.err = ErrRulesChanged
			return
		}
		if b.claimed[o.ID] && !o.Sales[0].terms.SelectedDay.After(today) && !lacksPrice(b, o) {
			delete(b.claimed, o.ID)
			b.carryOut(o, now, today)
			b.Register.Change(key, o.outcome)
			b.changes.end(&o.Envelope, Ended{State: o.outcome.State, Faults: o.outcome.Faults, At: now})
		}
		return
	}
	today = o.today(today)
	var fingerprint idempotency.Fingerprint
	if hasKey {
		fingerprint = o.fingerprint()
		outcome, known, err := b.Register.Find(key, fingerprint, o.fingerprints)
		if known { // a repeat gets its answer although its day has passed, and whatever is defined for its caller now
			o.outcome = outcome
			o.err = err
			return
		}
	}
	if o.Contradiction != nil {
		o.err = o.Contradiction
		return
	}
	if !o.follows(b.rules) {
		o.err = ErrRulesChanged
		return
	}
	if len(o.DayFaults) > 0 {
		o.err = fault.New(fault.Invalid, "The request breaks a rule.", o.DayFaults...)
		return
	}
	if o.Sales[0].terms.dayOr(today).After(today) {
		b.record(o)
	} else {
		b.carryOut(o, now, today)
	}
	if o.outcome.State == operation.Failed {
		b.changes.Refusals = append(b.changes.Refusals, operation.Decision{
			Envelope: o.Envelope, Operation: operation.BuyFundFromCustomer, State: operation.Failed, Faults: o.outcome.Faults,
		})
		bySale := o.faultsBySale()
		for i := range o.Sales {
			of := o.entry(i, operation.Failed)
			if len(bySale[i]) > 0 {
				of.Refusal = bySale[i][0].Code
			}
			b.changes.RefusedSales = append(b.changes.RefusedSales, of)
		}
	}
	if hasKey {
		if len(o.Sales) > 1 { // some sales may name the day, and others may not
			same := o.fingerprints(o.ID)
			if len(same) > 0 && !slices.Contains(same, fingerprint) {
				fingerprint = same[0]
			}
		}
		b.Register.Add(idempotency.Record{Key: key, Fingerprint: fingerprint, Outcome: o.outcome})
	}
}

// lacksPrice reports whether a due operation must wait because one of its funds has no price of
// the day of the sale yet.
func lacksPrice(b *Book, o *Operation) bool {
	return slices.ContainsFunc(o.Sales, func(s Sale) bool { return !b.isPriced(s) })
}

// isPriced reports whether the fund of a sale has a price of the day of the sale.
func (b *Book) isPriced(s Sale) bool {
	price, ok := b.current[PriceDay{s.terms.Holding.Fund, s.terms.SelectedDay}]
	return ok && price.ValidFrom == s.terms.SelectedDay
}

// record keeps the operation for its day if price, account and currency are valid now.
func (b *Book) record(o *Operation) {
	var refusals []fault.Fault
	for i := range o.Sales {
		t := &o.Sales[i].terms
		r := reasons(slices.Clone(o.Closed))
		price, found := b.prices[t.PriceID]
		found = found && price.Fund == t.Holding.Fund && !price.IsWithdrawn()
		r.refuseUnless(found, fault.PriceNotFound)
		r.refuseUnless(b.accounts[t.Account] != nil, fault.AccountNotFound)
		r.refuseUnless(!found || price.Currency == t.Account.Currency, fault.CurrencyMismatch)
		refusals = append(refusals, operation.UnderParameter(i, r)...)
	}
	if refusals != nil {
		o.outcome = operation.Outcome{ID: o.ID, State: operation.Failed, Faults: refusals}
		return
	}
	o.outcome = operation.Outcome{ID: o.ID, State: operation.Recorded}
	for i := range o.Sales {
		b.changes.Sales = append(b.changes.Sales, o.entry(i, operation.Recorded))
	}
}

// carryOut settles either all sales of the operation or no sale.
func (b *Book) carryOut(o *Operation, now time.Time, today day.Day) {
	decided := &b.changes.Sales
	if o.Due {
		decided = &b.changes.Settled
	}
	firstSale := len(*decided)
	b.undo = b.undo[:0]
	var refusals []fault.Fault
	for i := range o.Sales {
		s := o.entry(i, operation.Completed)
		s.SettledAt = now
		r := b.sell(o, &s, today)
		if len(r) > 0 {
			s.State = operation.Failed
			s.Refusal = r[0].Code
			refusals = append(refusals, operation.UnderParameter(i, r)...)
		}
		*decided = append(*decided, s)
	}
	if refusals == nil {
		o.outcome = operation.Outcome{ID: o.ID, State: operation.Completed}
		return
	}
	o.outcome = operation.Outcome{ID: o.ID, State: operation.Failed, Faults: refusals}
	for _, undo := range slices.Backward(b.undo) {
		undo()
	}
	if !o.Due {
		*decided = (*decided)[:firstSale] // a refusal changes nothing
		return
	}
	for i := firstSale; i < len(*decided); i++ { // the recorded sales fail together
		s := &(*decided)[i]
		s.State = operation.Failed
		s.PriceID = 0
		s.PerUnit = 0
		s.Proceeds = money.Amount{}
	}
}

// sell decides one sale. It returns the reasons to refuse the sale, or carries it out.
func (b *Book) sell(o *Operation, s *SaleEntry, today day.Day) reasons {
	t := &s.Terms
	r := reasons(slices.Clone(o.Closed))

	holding := b.holdings[t.Holding]
	r.refuseUnless(holding != nil, fault.HoldingNotFound)
	r.refuseUnless(holding == nil || holding.now >= t.Units, fault.HoldingInsufficient)

	price, agreed := b.agreedPrice(o.Due, t, today, &r)

	account := b.accounts[t.Account]
	r.refuseUnless(account != nil, fault.AccountNotFound)
	sameCurrency := price.Currency.IsNone() || price.Currency == t.Account.Currency
	r.refuseUnless(sameCurrency, fault.CurrencyMismatch)

	if agreed && sameCurrency {
		s.PriceID = price.ID
		s.PerUnit = price.PerUnit
		var inRange bool
		s.Proceeds, inRange = Proceeds(t.Units, price.PerUnit, price.Currency)
		r.refuseUnless(inRange, fault.ProceedsOutOfRange)
		r.refuseUnless(!inRange || s.Proceeds.Minor() > 0, fault.ProceedsZero)
		checked := t.ControlTotal != 0 && !o.Due
		if inRange && checked && t.ControlTotal != s.Proceeds.Minor() {
			r = append(r, RefusalNaming(fault.AmountMismatch, s.Proceeds.String()+" "+s.Proceeds.Currency().Code()))
		}
		if inRange && account != nil {
			_, fits := account.now.Add(s.Proceeds)
			r.refuseUnless(fits, fault.BalanceOutOfRange)
		}
	}
	if len(r) > 0 {
		return r
	}
	balance, _ := account.now.Add(s.Proceeds)
	unitsBefore := holding.now
	balanceBefore := account.now
	b.undo = append(b.undo, func() {
		holding.now = unitsBefore
		account.now = balanceBefore
	})
	holding.now -= t.Units
	account.now = balance
	return nil
}

// agreedPrice returns the price of the sale, which is the current price on its day. An
// immediate sale must name that price. If it names another price of the fund, agreedPrice
// returns that price for its currency, and agreed is false.
func (b *Book) agreedPrice(due bool, t *Terms, today day.Day, r *reasons) (price Price, agreed bool) {
	current, hasCurrent := b.current[PriceDay{t.Holding.Fund, t.dayOr(today)}]
	if due { // lacksPrice has found the price of its day
		return current, hasCurrent
	}
	named, found := b.prices[t.PriceID]
	if !found || named.Fund != t.Holding.Fund {
		r.refuseUnless(false, fault.PriceNotFound)
		return Price{}, false
	}
	agreed = hasCurrent && current.ID == named.ID
	if !agreed {
		newer := ""
		if hasCurrent {
			newer = strconv.FormatInt(current.ID, 10)
		}
		*r = append(*r, RefusalNaming(fault.PriceNotCurrent, newer))
	}
	return named, agreed
}

// reasons collects the reasons to refuse one sale.
type reasons []fault.Fault

func (r *reasons) refuseUnless(inOrder bool, code string) {
	if !inOrder {
		*r = append(*r, Refusal(code))
	}
}

// Refusal returns the fault of a refused sale, with its pointer from the record (/FundAmount).
func Refusal(code string) fault.Fault { return RefusalNaming(code, "") }

// RefusalNaming returns the fault of Refusal with a detail that names a value for the caller,
// such as the current PriceID. If named is empty, it uses the detail of the code.
func RefusalNaming(code, named string) fault.Fault {
	c, _ := fault.Describe(code)
	f := fault.Fault{Pointer: c.Pointer, Code: code, Detail: c.Refusal(named, false)}
	if c.Naming != "" {
		f.Named = named
	}
	return f
}
