package fake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// Backoffice returns the ports of package backoffice. strike may be nil. now is
// the time of imports.
func (s *Store) Backoffice(strike Strike, now func() time.Time) backoffice.Ports {
	o := office{s, strike, now}
	return backoffice.Ports{
		Imports: imports{o}, Reader: reader{o}, Lookups: lookups{o}, Evidence: evidence{o}, Books: s.Books(strike), Audit: acts{o}, Outcomes: s.Books(strike), Withdrawing: imports{o},
		RuleBook: rules{o}, Pricing: pricing{o},
	}
}

type office struct {
	store  *Store
	strike Strike
	now    func() time.Time
}

type (
	imports  struct{ office }
	reader   struct{ office }
	lookups  struct{ office }
	evidence struct{ office }
	acts     struct{ office }
	rules    struct{ office }
)

// numbered is one line of an import.
type numbered[T any] struct {
	line  int64
	value T
}

// reportEvery is the number of lines between two progress reports of an import.
const reportEvery = 1000

// importLines runs one import. write stores a line while the store is locked.
func importLines[T any](ctx context.Context, at office, imported *backoffice.Imported, lines backoffice.Lines[T], o backoffice.ImportOptions, check func([]numbered[T]) error, write func(*numbered[T])) error {
	var all []numbered[T]
	return at.store.transact(ctx, at.strike, func() {},
		func() error {
			all = nil
			err := lines(func(line int64, value T) error {
				all = append(all, numbered[T]{line, value})
				if len(all)%reportEvery == 0 {
					o.TellProgress(int64(len(all)))
				}
				return ctx.Err()
			})
			if err != nil {
				return err
			}
			o.TellProgress(int64(len(all)))
			return check(all)
		},
		func() error {
			s := at.store
			holdings := s.holdings
			accounts := s.accounts
			prices := s.prices
			postings := s.postings
			if o.DryRun {
				s.holdings = maps.Clone(holdings)
				s.accounts = maps.Clone(accounts)
				s.prices = slices.Clone(prices)
				s.postings = slices.Clone(postings)
			}
			for i := range all {
				write(&all[i])
			}
			if o.DryRun {
				s.holdings = holdings
				s.accounts = accounts
				s.prices = prices
				s.postings = postings
				return nil
			}
			for _, p := range s.prices[len(prices):] {
				s.provePrice(p)
			}
			s.posted(ctx, len(postings))
			at.store.audit(ctx, imported.String())
			return nil
		})
}

// Prices implements backoffice.Imports.
func (i imports) Prices(ctx context.Context, lines backoffice.Lines[fund.Price], o backoffice.ImportOptions) (imported backoffice.Imported, err error) {
	s := i.store
	var known []fund.Price
	err = importLines(ctx, i.office, &imported, lines, o,
		func(all []numbered[fund.Price]) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			var changed backoffice.Faults
			known = slices.Clone(s.prices)
			for _, l := range all {
				known = append(known, l.value)
			}
			for _, l := range all {
				at := s.price(l.value.ID)
				if at >= 0 {
					changed.ComparePrice(l.line, s.prices[at], l.value)
					continue
				}
				if l.value.IsWithdrawn() {
					continue
				}
				newest := newestBefore(known, l.value, func(fund.Price) bool { return true })
				if o.SameCurrency && newest.ID != 0 {
					changed.CompareCurrency(l.line, newest, l.value)
				}
				before := newestBefore(known, l.value, func(p fund.Price) bool { return p.Currency == l.value.Currency })
				if o.PriceChangeLimit > 0 && before.ID != 0 {
					changed.CompareBefore(l.line, before, l.value, o.PriceChangeLimit)
				}
			}
			if changed.Lines > 0 {
				return &changed
			}
			return nil
		},
		func(l *numbered[fund.Price]) {
			if s.price(l.value.ID) >= 0 {
				imported.Unchanged++
				return
			}
			if !slices.ContainsFunc(s.prices, func(p fund.Price) bool { return p.Fund == l.value.Fund }) {
				imported.NewFunds = append(imported.NewFunds, l.value.Fund)
			}
			outranks := func(p fund.Price) bool {
				return p.Fund == l.value.Fund && p.ValidFrom == l.value.ValidFrom && p.ID > l.value.ID
			}
			if !l.value.IsWithdrawn() && slices.ContainsFunc(known, outranks) {
				imported.Outranked = append(imported.Outranked, l.value.ID)
			}
			imported.New++
			s.prices = append(s.prices, l.value)
			if act, ok := audit.From(ctx); ok {
				s.priceActs[l.value.ID] = act
			}
		})
	return imported, err
}

// newestBefore returns the newest price of the fund of an earlier day among those that counts accepts.
// It returns the zero value if there is none.
func newestBefore(known []fund.Price, of fund.Price, counts func(fund.Price) bool) (before fund.Price) {
	for _, p := range known {
		isNewer := p.ValidFrom.After(before.ValidFrom) || p.ValidFrom == before.ValidFrom && p.ID > before.ID
		if p.Fund == of.Fund && p.ValidFrom.Before(of.ValidFrom) && isNewer && counts(p) {
			before = p
		}
	}
	return before
}

// WithdrawPrice implements backoffice.Withdrawing.
func (i imports) WithdrawPrice(ctx context.Context, id int64, today day.Day) error {
	s := i.store
	var at int
	var withdrawn fund.Price
	return s.transact(ctx, i.strike, func() { at = s.price(id) },
		func() (err error) {
			if at < 0 {
				return backoffice.ErrNotFound
			}
			withdrawn, err = s.prices[at].Withdraw(today)
			return err
		},
		func() error {
			p := s.prices[at]
			s.prices[at] = withdrawn
			s.provePrice(withdrawn)
			s.audit(ctx, fmt.Sprintf("%s %q: %s %s from %s", p.Fund.IMKBCode, p.Fund.HolderCorporationName, p.PerUnit, p.Currency.Code(), p.ValidFrom))
			return nil
		})
}

// Rules implements backoffice.RuleBook.
func (r rules) Rules(ctx context.Context) (found fund.Rules, err error) {
	var text string
	err = r.store.read(ctx, r.strike, func() { text = r.store.rules })
	if err == nil && text == "" {
		err = backoffice.ErrNoRules
	}
	if err != nil {
		return found, err
	}
	return fund.ParseRules(text)
}

// ChangeRules implements backoffice.RuleBook.
func (r rules) ChangeRules(ctx context.Context, change func(*fund.Rules, bool) (fund.Rules, error)) error {
	s := r.store
	var changed fund.Rules
	return s.transact(ctx, r.strike, func() {},
		func() error {
			var current *fund.Rules
			if s.rules != "" {
				parsed, err := fund.ParseRules(s.rules)
				if err != nil {
					return err
				}
				current = &parsed
			}
			var err error
			changed, err = change(current, len(s.answered) > 0)
			return err
		},
		func() error {
			if changed.String() == s.rules {
				return nil
			}
			s.rules = changed.String()
			if act, ok := audit.From(ctx); ok {
				act.Object = s.rules
				s.audit(audit.With(ctx, act))
			}
			return nil
		})
}

// Holdings implements backoffice.Imports.
func (i imports) Holdings(ctx context.Context, lines backoffice.Lines[fund.Holding], o backoffice.ImportOptions) (imported backoffice.Imported, err error) {
	err = o.RequireID()
	if err != nil {
		return imported, err
	}
	s := i.store
	at := i.now()
	err = importLines(ctx, i.office, &imported, lines, o, func(all []numbered[fund.Holding]) error {
		return s.changedSince(o.AsOf, len(all), func(i int, p *fund.PostingEntry) (line int64, same bool) {
			h := &all[i].value
			return all[i].line, !p.IsMoney() && p.Holding == h.Key && s.holdings[h.Key] != h.Units
		})
	}, func(l *numbered[fund.Holding]) {
		h := l.value
		before, exists := s.holdings[h.Key]
		kind := count(&imported, exists, before == h.Units)
		s.holdings[h.Key] = h.Units
		by := h.Units - before
		if by != 0 || !exists {
			s.postings = append(s.postings, fund.PostingEntry{Posting: fund.UnitPosting(kind, o.ID, int(l.line), h.Key, by), PostedAt: at})
		}
	})
	return imported, err
}

// Accounts implements backoffice.Imports.
func (i imports) Accounts(ctx context.Context, lines backoffice.Lines[fund.Account], o backoffice.ImportOptions) (imported backoffice.Imported, err error) {
	err = o.RequireID()
	if err != nil {
		return imported, err
	}
	s := i.store
	at := i.now()
	err = importLines(ctx, i.office, &imported, backoffice.CheckedAccounts(lines), o, func(all []numbered[fund.Account]) error {
		return s.changedSince(o.AsOf, len(all), func(i int, p *fund.PostingEntry) (line int64, same bool) {
			a := &all[i].value
			return all[i].line, p.IsMoney() && p.Account == a.Key && s.accounts[a.Key].Minor() != a.Balance.Minor()
		})
	}, func(l *numbered[fund.Account]) {
		a := l.value
		before, exists := s.accounts[a.Key]
		kind := count(&imported, exists, before.Minor() == a.Balance.Minor())
		s.accounts[a.Key] = a.Balance
		by := a.Balance.Minor() - before.Minor()
		if by != 0 || !exists {
			s.postings = append(s.postings, fund.PostingEntry{Posting: fund.MoneyPosting(kind, o.ID, int(l.line), a.Key, by), PostedAt: at})
		}
	})
	return imported, err
}

// ClosedDays implements backoffice.Imports.
func (i imports) ClosedDays(ctx context.Context, lines backoffice.Lines[fund.ClosedDay], o backoffice.ImportOptions) (imported backoffice.Imported, err error) {
	s := i.store
	var all []fund.ClosedDay
	err = s.transact(ctx, i.strike, func() {},
		func() error {
			all = nil
			err := lines(func(_ int64, c fund.ClosedDay) error {
				all = append(all, c)
				return ctx.Err()
			})
			o.TellProgress(int64(len(all)))
			return err
		},
		func() error {
			imported = backoffice.Imported{Removed: int64(len(s.closed))}
			for _, c := range all {
				at := slices.IndexFunc(s.closed, func(known fund.ClosedDay) bool { return known.Day == c.Day })
				count(&imported, at >= 0, at >= 0 && s.closed[at] == c)
				if at >= 0 {
					imported.Removed--
				}
			}
			if !o.DryRun {
				s.closed = all
				s.prove(func(*proof.Keys) []proof.Entry { return entriesOf(proof.OfCalendar(all)) })
				s.audit(ctx, imported.String())
			}
			return nil
		})
	return imported, err
}

// changedSince returns an error for the first line whose position a sale, a reversal or an adjust
// has changed after the time of the file. of reports whether a posting belongs to a position that a line changes.
func (s *Store) changedSince(since time.Time, lines int, of func(i int, p *fund.PostingEntry) (line int64, same bool)) error {
	if since.IsZero() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range lines {
		for j := range s.postings {
			p := &s.postings[j]
			isAdjust := p.Kind == fund.AdjustmentPosting && p.Index == 0
			if (p.Kind == fund.SalePosting || p.Kind == fund.ReversalPosting || isAdjust) && !p.PostedAt.Before(since.Add(-backoffice.InFlight)) {
				if line, same := of(i, p); same {
					return &backoffice.ChangedSince{Line: line}
				}
			}
		}
	}
	return nil
}

// count counts a line and returns the kind of its posting.
func count(imported *backoffice.Imported, exists, same bool) fund.PostingKind {
	switch {
	case !exists:
		imported.New++
		return fund.OpeningPosting
	case same:
		imported.Unchanged++
	default:
		imported.Changed++
	}
	return fund.AdjustmentPosting
}

// Operation implements backoffice.Lookups.
func (l lookups) Operation(ctx context.Context, id operation.ID) (found backoffice.Operation, err error) {
	exists := false
	err = l.store.read(ctx, l.strike, func() { found, exists = l.store.operation(id) })
	if err == nil && !exists {
		err = backoffice.ErrNotFound
	}
	return found, err
}

// OperationOf implements backoffice.Lookups.
func (l lookups) OperationOf(ctx context.Context, key idempotency.Key) (found backoffice.Operation, err error) {
	err = l.store.read(ctx, l.strike, func() {
		record := l.store.record(key)
		if record != nil {
			found, _ = l.store.operation(record.Outcome.ID)
			found.Record = record
		}
	})
	if err == nil && found.Record == nil {
		err = backoffice.ErrNotFound
	}
	return found, err
}

// operation is everything that is stored under an ID.
func (s *Store) operation(id operation.ID) (o backoffice.Operation, exists bool) {
	o.ID = id
	o.Sales = slices.Clone(s.sales[id])
	o.Postings = s.postingsOf(id)
	if d, ok := s.answered[id]; ok {
		o.Answered = &d
		if key, hasKey := idempotency.KeyOf(d.Operation, &d.Envelope); hasKey {
			o.Record = s.record(key)
		}
	}
	for _, r := range s.refusals {
		if r.ID == id {
			o.Refusal = &r
			o.RefusedSales = slices.Clone(s.refusedSales[id])
		}
	}
	for _, n := range s.notifications {
		if n.ID == id {
			o.Notifications = append(o.Notifications, n)
		}
	}
	if r, ok := s.reversals[id]; ok {
		o.Reversal = &r
		o.ReversalPostings = s.postingsOf(r.ID)
	}
	o.Prices = make(map[int64]fund.Price)
	for _, p := range s.prices {
		o.Prices[p.ID] = p
	}
	return o, o.Answered != nil || len(o.Postings) > 0
}

func (s *Store) postingsOf(id operation.ID) (all []fund.PostingEntry) {
	for _, p := range s.postings {
		if p.OperationID == id {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, comparePostings)
	return all
}

func (s *Store) record(key idempotency.Key) *idempotency.Record {
	r, ok := s.operations[key]
	if !ok {
		return nil
	}
	r = copyKnown(r)
	return &r
}

// DueDays implements backoffice.Lookups.
func (l lookups) DueDays(ctx context.Context, of backoffice.DueQuery) (days []backoffice.DueDay, err error) {
	var last operation.ID
	due := backoffice.Query{State: operation.Recorded, DueUntil: of.Until, Subscription: of.Subscription, Limit: of.Limit, Order: backoffice.ByDay}
	for s, err := range reader(l).Sales(ctx, due) {
		if err != nil {
			return nil, err
		}
		n := len(days)
		if n == 0 || days[n-1].Day != s.Terms.SelectedDay {
			days = append(days, backoffice.DueDay{Day: s.Terms.SelectedDay})
			last = operation.ID{}
		}
		today := &days[len(days)-1]
		today.Sales++
		if s.ID != last {
			today.Operations++
			last = s.ID
		}
	}
	return days, nil
}

// CountReceived implements backoffice.Lookups.
func (l lookups) CountReceived(ctx context.Context, since, until time.Time) (r backoffice.Received, err error) {
	ended := make(map[operation.ID]time.Time) // of those that had waited
	err = l.store.read(ctx, l.strike, func() {
		for _, e := range l.store.ended {
			if !e.Reversed {
				ended[e.OperationID] = e.At
			}
		}
	})
	in := func(id operation.ID) bool {
		first := backoffice.FirstID(since)
		end := backoffice.FirstID(until)
		return bytes.Compare(first[:], id[:]) <= 0 && bytes.Compare(id[:], end[:]) < 0
	}
	rows := reader(l)
	all := backoffice.Query{}
	r.Add(backoffice.Received{}) // makes its maps
	for s, wrong := range rows.Sales(ctx, all) {
		key := backoffice.SalesKey{IMKBCode: s.Terms.Holding.IMKBCode, Currency: s.Terms.Account.Currency, State: s.State, Reversed: !s.ReversedAt.IsZero()}
		at, hasEnded := ended[s.ID]
		key.Waited = hasEnded && s.Refusal != fault.Cancelled
		isIn := in(s.ID)
		if key.Waited {
			isIn = !at.Before(since) && at.Before(until)
		}
		if err = errors.Join(err, wrong); isIn {
			r.Add(backoffice.Received{Sales: map[backoffice.SalesKey]backoffice.SalesSum{key: {Sales: 1, Proceeds: backoffice.SumOf(s.Proceeds.Minor())}}})
		}
	}
	for refused, wrong := range rows.Decisions(ctx, backoffice.Query{Refused: true}) {
		if err = errors.Join(err, wrong); in(refused.ID) {
			r.Refused[backoffice.RefusedKey{Subscription: refused.Subscription, Code: refused.Faults[0].Code}]++
		}
	}
	for n, wrong := range rows.Notifications(ctx, all) {
		if err = errors.Join(err, wrong); in(n.ID) {
			r.Messages++
		}
	}
	return r, err
}

// Read implements backoffice.Evidence.
func (e evidence) Read(ctx context.Context, w backoffice.Witness) error {
	s := e.store
	var all []*backoffice.Position
	var operations []backoffice.Operation
	var wrong []backoffice.Finding
	err := s.read(ctx, e.strike, func() {
		all = positions(s.holdings, fund.HoldingKey.Compare, func(u fund.Units) int64 { return int64(u) }, s.postings, false,
			func(p *fund.Posting) fund.HoldingKey { return p.Holding }, func(p *backoffice.Position, k fund.HoldingKey) { p.Holding = k })
		all = append(all, positions(s.accounts, fund.AccountKey.Compare, money.Amount.Minor, s.postings, true,
			func(p *fund.Posting) fund.AccountKey { return p.Account }, func(p *backoffice.Position, k fund.AccountKey) {
				p.Account = backoffice.AccountName{CustomerNo: k.CustomerNo, BranchCode: k.BranchCode, AccountSuffix: k.AccountSuffix, CurrencyCode: k.Currency.Code()}
			})...)
		operations = s.sold()
		wrong = s.rulesOfNoAct()
	})
	for i := 0; i < len(wrong) && err == nil; i++ {
		err = w.Found(wrong[i])
	}
	for i := 0; i < len(all) && err == nil; i++ {
		err = w.Position(all[i])
	}
	for i := 0; i < len(operations) && err == nil; i++ {
		err = w.Operation(&operations[i])
	}
	if err == nil && ctx.Err() != nil {
		err = cancelled(ctx)
	}
	return err
}

// rulesOfNoAct compares the rules with the newest act that wrote rules.
func (s *Store) rulesOfNoAct() []backoffice.Finding {
	acted := ""
	for i := range s.acts {
		if slices.Contains(backoffice.RulesActs, s.acts[i].Action) {
			acted = s.acts[i].Object
		}
	}
	if acted == s.rules {
		return nil
	}
	return []backoffice.Finding{backoffice.RulesOfNoAct(s.rules, acted).Of("the rules of the bank")}
}

// positions are the stored positions of money or of units, by key, with the sums of their
// postings. A position that only postings name is one of them.
func positions[K comparable, V any](stored map[K]V, compare func(a, b K) int, quantity func(V) int64, postings []fund.PostingEntry, isMoney bool,
	key func(*fund.Posting) K, name func(*backoffice.Position, K),
) (all []*backoffice.Position) {
	found := make(map[K]*backoffice.Position)
	for k, value := range stored {
		found[k] = &backoffice.Position{Quantity: quantity(value), Exists: true}
	}
	for i := range postings {
		p := &postings[i].Posting
		if p.IsMoney() != isMoney {
			continue
		}
		if found[key(p)] == nil {
			found[key(p)] = new(backoffice.Position)
		}
		sum := found[key(p)]
		sum.Postings++
		sum.Posted.High += p.Quantity / 1_000_000_000
		sum.Posted.Low += p.Quantity % 1_000_000_000
	}
	for _, k := range slices.SortedFunc(maps.Keys(found), compare) {
		found[k].IsMoney = isMoney
		name(found[k], k)
		all = append(all, found[k])
	}
	return all
}

// sold is everything that is stored of the operations that sell.
func (s *Store) sold() (all []backoffice.Operation) {
	ids := make(map[operation.ID]bool)
	for id := range s.sales {
		ids[id] = true
	}
	for id := range s.reversals {
		ids[id] = true
	}
	for i := range s.postings {
		if s.postings[i].Kind == fund.SalePosting {
			ids[s.postings[i].OperationID] = true
		}
	}
	for key, record := range s.operations {
		if key.Operation == operation.BuyFundFromCustomer {
			ids[record.Outcome.ID] = true
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(ids), compareIDs) {
		o, _ := s.operation(id)
		all = append(all, o)
	}
	return all
}
