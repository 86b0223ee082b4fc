package simulation

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bankingapi/application/outcomes"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
)

// Result is the result of one run.
type Result struct {
	Seed  uint64
	Hash  uint64 // hash of the trace, the same for equal runs
	Tally Tally
	// Err is the failed check, or nil.
	Err error
}

// world is one run. Only the world decides what happens next.
type world struct {
	faultInjector
	seed   uint64
	rng    *rand.Rand
	mutant Mutant
	trace  trace
	tally  Tally
	calm   bool // true in the finale: no more faults

	// turn tells the race detector that the goroutines of the run see what the
	// world wrote before. Time, which also wakes them, does not.
	turn   atomic.Int64
	polite atomic.Int32 // transactions that let another one go first

	began time.Time // in the time of the bubble
	event int

	store *fake.Store
	rows  Rows
	feed  *outcomes.Feed
	ids   fake.IDs
	bank  *bank
	// opening has the amounts of the positions from other sources than sales.
	opening books

	customers []int64
	funds     []fund.Fund // no customer has the last one
	currency  []money.Currency
	accounts  []fund.AccountKey // the last one does not exist

	replicas []*replica // nil if down
	replaced int
	callers  []*caller
	partners []*partner
	attempts []*attempt
	starting *attempt // the attempt that asks for the next ID

	outage      outage
	outageUntil time.Time
	judged      bool   // true if something was decided since the last comparison
	compared    string // the day of the last comparison of all rows
	failure     error
}

type outage uint8

const (
	noOutage outage = iota
	refusing        // the store returns errors
	hanging         // the store does not answer
)

// books are quantities by holding and account.
type books struct {
	units map[fund.HoldingKey]int64
	money map[fund.AccountKey]int64
}

const (
	poisonedFund = 0
	poisonedUser = 99
)

// Play runs the seed in its own bubble. mutant may be nil. If to is not nil,
// the trace is written to it.
func Play(t *testing.T, seed uint64, mutant *Mutant, to io.Writer) (result Result) {
	synctest.Test(t, func(*testing.T) {
		w := newWorld(seed, mutant, to)
		w.run()
		result = Result{Seed: seed, Hash: w.trace.hash, Tally: w.tally}
		if w.failure != nil {
			result.Err = fmt.Errorf("seed %d, event %d: %w", seed, w.event, w.failure)
		}
	})
	return result
}

func newWorld(seed uint64, mutant *Mutant, to io.Writer) *world {
	w := &world{
		seed:  seed,
		rng:   rand.New(rand.NewPCG(seed, 0x62616e6b)),
		trace: trace{hash: fnvOffset, to: to},
		began: time.Now(),
		store: fake.NewStore(),
	}
	if mutant != nil {
		w.mutant = *mutant
	}
	w.rows = w.mutant.rows(w.store)
	w.feed = outcomes.New(w.mutant.outcomes(w.store.Books(nil)))
	w.faultInjector = newFaultInjector(w.rng)
	w.bank = &bank{
		zone: w.zone, units: map[position]int64{}, money: map[int]int64{}, known: map[identity]*known{},
		sold: map[operation.ID]*sold{}, recorded: map[operation.ID]*sold{}, delivered: map[string]bool{},
		ended: map[operation.ID]ended{}, holidays: map[string]bool{}, weekend: w.weekend, cutOff: w.cutOff,
	}
	w.opening = books{map[fund.HoldingKey]int64{}, map[fund.AccountKey]int64{}}
	w.furnish()
	for i := range w.faultInjector.replicas {
		w.replicas = append(w.replicas, w.open("r"+strconv.Itoa(i)))
	}
	ours := &subscription.Subscription{Name: "ours"}
	theirs := &subscription.Subscription{Name: "theirs", AppKey: "app"}
	for i := range w.faultInjector.callers {
		c := &caller{name: "c" + strconv.Itoa(i), subscription: pick(w.rng, ours, theirs), wake: w.now()}
		if i%3 == 2 {
			c.name = w.callers[i-1].name // two callers with the same CallerIds, perhaps of one subscription
		}
		w.callers = append(w.callers, c)
	}
	w.partners = []*partner{{}, {subscription: ours.Name}, {subscription: theirs.Name}}
	w.note("opens in %s: %d replicas, %d callers, batch %d, queue %d, timeout %v",
		w.zone, len(w.replicas), len(w.callers), w.limits.Batch, w.limits.Queue, w.limits.Timeout.Truncate(time.Second))
	return w
}

// furnish imports the opening book.
func (w *world) furnish() {
	for i := range 2 + w.rng.IntN(3) {
		w.customers = append(w.customers, int64(1001+i))
	}
	codes := [...]string{"TRY", "USD", "JPY", "KWD"}
	for _, code := range codes {
		c, _ := money.ParseCurrency(code)
		w.currency = append(w.currency, c)
	}
	w.funds = []fund.Fund{
		poisonedFund: {IMKBCode: "PSN", HolderCorporationName: "Holder"},
		{IMKBCode: "GLD", HolderCorporationName: "Holder"},
		{IMKBCode: "GLD", HolderCorporationName: "Another Holder"},
		{IMKBCode: "ABC.F1", HolderCorporationName: "Holder"},
		{IMKBCode: "XYZ", HolderCorporationName: "İstanbul Portföy"},
		{IMKBCode: "NONE", HolderCorporationName: "Holder"},
	}
	for _, c := range w.customers {
		for i, currency := range w.currency[:3+w.rng.IntN(2)] {
			w.accounts = append(w.accounts, fund.AccountKey{CustomerNo: c, BranchCode: int64(i), AccountSuffix: 1, Currency: currency})
		}
		for f := range w.funds[:len(w.funds)-1] {
			if w.chance(850) {
				w.put(c, f, pick(w.rng, 0, 1+w.rng.Int64N(5_000_000), 1_000_000_000, 1_000_000_000, 1_000_000_000_000, int64(fund.MaxUnits)))
			}
		}
	}
	w.accounts = append(w.accounts, fund.AccountKey{CustomerNo: 9999, Currency: w.currency[0]})
	for i, key := range w.accounts {
		w.bank.currencies = append(w.bank.currencies, key.Currency.Code())
		if i == len(w.accounts)-1 {
			break
		}
		balance := int64(0)
		if w.chance(30) {
			balance = math.MaxInt64 - w.rng.Int64N(1000) // nearly full
		}
		w.bank.money[i], w.opening.money[key] = balance, balance
		w.store.PutAccounts(fund.Account{Key: key, Balance: money.New(balance, key.Currency)})
	}
	for f := range w.funds[:len(w.funds)-1] {
		w.quote(f, 0)
	}
}

// put adds units to a holding.
func (w *world) put(customer int64, f int, units int64) {
	key := fund.HoldingKey{CustomerNo: customer, Fund: w.funds[f]}
	w.opening.units[key] += units
	w.bank.units[position{customer, f}] += units
	w.store.PutHoldings(fund.Holding{Key: key, Units: fund.Units(w.bank.units[position{customer, f}])})
}

// quote adds a price for the fund, valid from that many days after today.
func (w *world) quote(f, days int) { w.quoteFrom(f, plusDays(w.today(), days)) }

// priceDue adds the prices that due sales wait for.
func (w *world) priceDue() {
	for _, id := range w.bank.order {
		o := w.bank.recorded[id]
		if o == nil || o.day > w.today() {
			continue
		}
		for _, s := range o.request.sales {
			if p := w.bank.current(s.fund, o.day, len(w.bank.prices)); p == nil || p.from != o.day {
				w.quoteFrom(s.fund, o.day)
			}
		}
	}
}

// quoteFrom adds a price for the fund, valid from that day.
func (w *world) quoteFrom(f int, from string) {
	currency := w.currency[f%len(w.currency)]
	if w.chance(50) {
		currency = w.currency[0]
	}
	perUnit := pick(w.rng, 1+w.rng.Int64N(300_000_000), 1+w.rng.Int64N(100_000_000_000), 125_000_000)
	if w.chance(20) {
		perUnit = int64(fund.MaxUnitPrice)
	}
	p := price{int64(len(w.bank.prices) + 1), f, perUnit, currency.Code(), currency.Decimals(), from}
	w.bank.prices = append(w.bank.prices, p)
	validFrom, err := day.Parse(from)
	if err != nil {
		panic(err)
	}
	w.store.PutPrices(fund.Price{ID: p.id, Fund: w.funds[f], PerUnit: fund.UnitPrice(perUnit), Currency: currency, ValidFrom: validFrom})
	w.note("price p%d: f%d costs %d %s from %s", p.id, f, perUnit, p.currency, from)
}

// now returns the correct time.
func (w *world) now() time.Time { return w.start.Add(time.Since(w.began)) }

func (w *world) today() string { return w.bank.dayOf(w.now()) }

// chance returns true in that many of 1,000 cases.
func (w *world) chance(perMille int) bool { return w.rng.IntN(1000) < perMille }

func (w *world) note(format string, args ...any) { w.trace.add(w.event, w.now(), format, args...) }

// fail records the first failure.
func (w *world) fail(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf(format, args...)
		w.note("WRONG: %v", w.failure)
	}
}

func (w *world) newID() operation.ID {
	id := w.ids.Next()
	w.starting.id = id
	return id
}

// leaveHeld removes due operations that, this time, another transaction holds.
// The result depends only on the seed.
func (w *world) leaveHeld(tx *transaction) []*fund.Operation {
	if w.held == 0 || w.calm {
		return tx.due
	}
	return slices.DeleteFunc(slices.Clone(tx.due), func(o *fund.Operation) bool {
		h := fnv.New64a()
		_ = binary.Write(h, binary.LittleEndian, []uint64{w.seed, uint64(tx.when.at.UnixMicro())})
		_, _ = h.Write(o.ID[:])
		isHeld := h.Sum64()%1000 < uint64(w.held)
		if isHeld {
			tx.held = append(tx.held, o.ID)
		}
		return isHeld
	})
}

// run simulates weeks and then the finale.
func (w *world) run() {
	last := w.now().AddDate(0, 0, w.days)
	for w.failure == nil && w.now().Before(last) {
		w.step()
	}
	if w.failure == nil {
		w.finale()
	}
	for _, r := range w.replicas { // always, so that no goroutine remains
		if r != nil {
			r.kill()
			w.wait()
		}
	}
}

// wait returns when all goroutines are blocked.
func (w *world) wait() {
	w.turn.Add(1)
	synctest.Wait()
}

// pass advances time and stops whenever the deadline of a batch passes.
func (w *world) pass(d time.Duration) {
	until := time.Now().Add(d)
	for w.failure == nil {
		if w.polite.Load() > 0 {
			w.turn.Add(1)
			time.Sleep(time.Nanosecond) // so that its deadline is known
			w.wait()
			w.collect()
		}
		next := until
		for tx := range w.running {
			if deadline, ok := tx.ctx.Deadline(); ok && deadline.Before(next) && deadline.After(time.Now()) {
				next = deadline
			}
		}
		w.turn.Add(1)
		time.Sleep(time.Until(next))
		if next == until {
			return
		}
		w.wait()
		w.collect()
	}
}

// running returns the running transactions.
func (w *world) running(yield func(*transaction) bool) {
	for _, r := range w.replicas {
		if r == nil {
			continue
		}
		for _, l := range r.queues() {
			for _, tx := range l.running {
				if !yield(tx) {
					return
				}
			}
		}
		for _, s := range r.settler {
			if s.listing != nil && !yield(s.listing) {
				return
			}
		}
	}
}

// step runs one event.
func (w *world) step() {
	w.event++
	w.tally.Events++
	w.pass(time.Duration(1+w.rng.IntN(1000)) * time.Microsecond)
	w.wait()
	w.collect()
	if w.outage != noOutage && !w.now().Before(w.outageUntil) {
		w.outage = noOutage
		w.note("the store is available again")
	}

	var parked []*transaction
	if w.outage != hanging {
		for tx := range w.running {
			if tx.parked {
				parked = append(parked, tx)
			}
		}
	}
	var gated []*settler
	inFlight := 0
	for _, r := range w.replicas {
		if r == nil {
			continue
		}
		inFlight += len(r.sales.waiting) + len(r.pushes.waiting) + len(r.settler)
		for _, s := range r.settler {
			if s.atGate {
				gated = append(gated, s)
			}
		}
	}
	var ready []*caller
	for _, c := range w.callers {
		if c.waits == nil && !c.wake.After(w.now()) {
			ready = append(ready, c)
		}
	}

	if w.trouble() {
		return
	}
	release := 10 * (len(parked) + len(gated))
	send := w.eagerness * len(ready)
	idle := 1
	if w.outage != noOutage {
		idle = 10 * w.eagerness
	}
	switch n := w.rng.IntN(release + send + idle); {
	case n < release:
		n /= 10
		if n < len(parked) {
			w.release(parked[n])
		} else {
			w.let(gated[n-len(parked)])
		}
	case n < release+send:
		w.send(ready[w.rng.IntN(len(ready))])
	case w.outage != noOutage:
		w.pass(time.Duration(w.rng.Int64N(int64(w.outageUntil.Sub(w.now())/2 + time.Second))))
		w.wait()
	case inFlight > 0:
		w.pass(time.Duration(1+w.rng.IntN(pick(w.rng, 10, 100, 100, 2000))) * time.Millisecond)
		w.wait()
	default:
		w.passIdly()
	}
	w.collect()
}

// passIdly advances time while there are no requests.
func (w *world) passIdly() {
	w.reopen()
	// Events of every minute happen once.
	for _, r := range w.replicas {
		if r != nil && !r.draining && w.chance(500) {
			w.startRound(r)
			return
		}
	}
	midnight := day.Of(w.now(), w.zone).Plus(1).Start(w.zone).Sub(w.now())
	switch n := w.rng.IntN(100); {
	case n < 40:
		w.pass(time.Duration(w.rng.Int64N(int64(10 * time.Minute))))
	case n < 65:
		w.pass(time.Duration(w.rng.Int64N(int64(8 * time.Hour))))
	case n < 90:
		// Stop around midnight, with callers that send at once.
		w.pass(midnight + pick(w.rng, -time.Microsecond, 0, time.Microsecond, -2*time.Millisecond, -time.Second, time.Minute))
	case n < 97:
		w.pass(midnight + time.Duration(w.rng.Int64N(int64(24*time.Hour))))
	default:
		w.note("no requests for days")
		w.pass(time.Duration(1+w.rng.IntN(4)) * 24 * time.Hour)
	}
	if w.chance(300) {
		w.quote(w.rng.IntN(len(w.funds)-1), pick(w.rng, 0, 0, 1, 1, 2, 7, -1))
	}
	if w.chance(100) {
		w.holiday()
	}
	if w.chance(200) {
		c, f := w.customers[w.rng.IntN(len(w.customers))], w.rng.IntN(len(w.funds)-1)
		if w.bank.units[position{c, f}] < 1_000_000_000 {
			w.put(c, f, 1+w.rng.Int64N(1_000_000_000))
		}
	}
}

// trouble injects a fault.
func (w *world) trouble() bool {
	n := w.rng.IntN(1000)
	among := func(perMille int) bool {
		n -= perMille
		return n < 0 && n >= -perMille
	}
	switch {
	case among(w.crash):
		if r := w.anyReplica(); r != nil {
			w.crashes(r)
		}
	case among(w.faultInjector.drain):
		if r := w.anyReplica(); r != nil && !r.draining {
			w.note("%s is asked to stop", r.name)
			r.drain()
			w.wait()
			w.collect()
		}
	case among(w.faultInjector.outage):
		w.outage = pick(w.rng, refusing, hanging)
		length := pick(w.rng, time.Second, time.Minute, time.Hour, 3*24*time.Hour)
		w.outageUntil = w.now().Add(time.Duration(w.rng.Int64N(int64(length))))
		w.note("the store is unavailable (%d)", w.outage)
	case among(w.faultInjector.giveUp):
		for _, i := range w.rng.Perm(len(w.callers)) {
			if a := w.callers[i].waits; a != nil {
				w.note("%s gives up (%d)", a.caller.name, a.number)
				w.giveUp(a)
				w.wait()
				w.collect()
				break
			}
		}
	case among(w.faultInjector.stepClock):
		if r := w.anyReplica(); r != nil {
			r.offset = 0
			if w.chance(500) {
				r.offset = pick(w.rng, -time.Second, time.Second, -time.Hour, time.Hour, -26*time.Hour).Truncate(time.Microsecond)
			}
			w.note("the clock of %s is off by %v", r.name, r.offset)
		}
	case among(w.faultInjector.nap):
		w.pass(time.Duration(w.rng.Int64N(int64(30 * time.Second))))
		w.wait()
		w.collect()
	case among(20):
		w.read(w.partners[w.rng.IntN(len(w.partners))])
	case among(30):
		w.reopen()
		if r := w.anyReplica(); r != nil && !r.draining {
			w.startRound(r)
		}
	default:
		return false
	}
	return true
}

// anyReplica returns a replica that accepts connections, or nil if there is
// none. A stopping replica still accepts them for a moment, until its balancer
// knows.
func (w *world) anyReplica() *replica {
	var up []*replica
	for _, r := range w.replicas {
		if r != nil {
			up = append(up, r)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[w.rng.IntN(len(up))]
}

// reopen starts replicas that are down.
func (w *world) reopen() {
	for i, r := range w.replicas {
		if r == nil && (w.calm || w.chance(700)) {
			w.replaced++
			w.replicas[i] = w.open("r" + strconv.Itoa(i) + strconv.Itoa(w.replaced))
			w.note("%s starts", w.replicas[i].name)
		}
	}
}

func (w *world) crashes(r *replica) {
	w.note("%s crashes", r.name)
	w.saw(aCrash)
	waiting := [...][]*arrival{slices.Clone(r.sales.waiting), slices.Clone(r.pushes.waiting)}
	r.kill()
	w.wait()
	w.collect()
	w.replicas[slices.Index(w.replicas, r)] = nil
	for _, a := range slices.Concat(waiting[:]...) {
		if a.attempt == nil {
			continue
		}
		a.attempt.lost = true
		if a.attempt.caller.waits == a.attempt {
			w.hear(a.attempt.caller, a.attempt)
		}
	}
}

func (w *world) startRound(r *replica) {
	if len(r.settler) > 1 {
		return // at most two rounds run at a time
	}
	if w.chance(700) {
		w.priceDue()
	}
	w.note("%s begins a round", r.name)
	s := r.settle()
	today := w.bank.dayOf(r.now())
	for id, sold := range w.bank.recorded {
		if sold.day <= today && w.bank.isPriced(sold, len(w.bank.prices)) {
			s.expected = append(s.expected, id)
		}
	}
	slices.SortFunc(s.expected, compareIDs)
	w.wait()
}

// let opens the gate of a settler, so that its next batch is queued.
func (w *world) let(s *settler) {
	l := &s.replica.sales
	l.waiting = append(l.waiting, &arrival{settler: s, step: s.steps, listed: s.list})
	w.note("%s goes on with its round", s.replica.name)
	s.open <- struct{}{}
	w.wait()
}

// release continues a transaction or makes it fail.
func (w *world) release(tx *transaction) {
	name := tx.replica().name + " listing"
	if tx.queue != nil {
		name = tx.queue.name
	}
	err := w.verdict(tx)
	if err != nil {
		w.note("%s at %s: %v", name, moments[tx.moment], err)
	} else {
		w.note("%s at %s", name, moments[tx.moment])
	}
	if errors.Is(err, fake.ErrConflict) {
		w.saw(aConflictRunAgain)
	}
	tx.verdict <- err
	w.wait()
}

var moments = [...]string{fake.Begin: "begin", fake.Commit: "commit", fake.Committed: "committed"}

// verdict decides how a transaction continues at its moment.
func (w *world) verdict(tx *transaction) error {
	if w.calm {
		return nil
	}
	gone := w.outage == refusing
	switch tx.moment {
	case fake.Begin:
		if gone || w.chance(w.unavailable) {
			return errUnavailable
		}
	case fake.Commit:
		switch {
		case gone:
			return pick[error](w.rng, errUnavailable, errUnknown)
		case tx.poisoned:
			return errPoison
		case w.chance(w.unavailable):
			return errUnavailable
		case w.chance(w.lostBefore):
			return errUnknown
		case w.chance(w.conflict):
			return fake.ErrConflict
		case w.chance(w.glitch):
			return errGlitch
		}
	case fake.Committed:
		if gone || w.chance(w.lostAfter) {
			return errUnknown
		}
	}
	return nil
}
