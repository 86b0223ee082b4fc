package simulation

import (
	"context"
	"errors"
	"slices"
	"strings"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/test/fake"
)

// compare compares the store with the bank: the positions every time, all rows
// once a day.
func (w *world) compare() {
	if !w.judged {
		return
	}
	for tx := range w.running {
		if tx.committed {
			return // the bank learns of the commit when the replica does
		}
	}
	w.judged = false
	w.comparePositions()
	if today := w.today(); w.compared != today {
		w.compared = today
		w.tally.Days++
		w.compareAll()
		w.auditSums(w.rows.Sales())
	}
}

// atTheDoor checks a new attempt. It must be in the queue now, or be answered
// for a reason that does not need the store.
func (w *world) atTheDoor(l *queue, a *attempt) {
	r := a.request
	want := ""
	wrong := wrongDays(r.sales, w.bank.dayOf(a.arrived))
	switch {
	case r.broken:
		want = "invalid"
	case wrong != "" && r.callerID == "":
		want = "invalid: " + wrong
	case r.forbidden && r.callerID == "": // another one may be a repeat, which only the store knows
		want = contradiction
	}
	switch {
	case !a.done && want == "":
		l.waiting = append(l.waiting, &arrival{attempt: a})
		if n := len(l.waiting); n > w.limits.Queue+w.limits.Batch {
			w.fail("%s: %d are waiting or in a batch", l.name, n)
		}
		return
	case !a.done:
		w.fail("attempt %d waits for the store, but must be answered %q", a.number, want)
		return
	}
	w.note("(%d) %s", a.number, a.answer())
	got := a.answer()
	switch {
	case r.broken && fault.KindOf(a.err) == fault.Invalid:
	case want != "" && got == want:
	case want == "" && fault.KindOf(a.err) == fault.Busy && l.replica.draining:
		w.saw(aStoppingReplica)
	case want == "" && fault.KindOf(a.err) == fault.Busy && len(l.waiting) > w.limits.Queue:
		w.saw(aFullQueue)
	default:
		w.fail("attempt %d was answered %q at once, want %q", a.number, got, want)
		return
	}
	a.cancel()
	w.hear(a.caller, a)
}

// collect handles everything that ended since its last call.
func (w *world) collect() {
	for i, r := range w.replicas {
		if r == nil {
			continue
		}
		for _, l := range r.queues() {
			w.look(l)
		}
		if r.dead {
			continue
		}
		r.settler = slices.DeleteFunc(r.settler, func(s *settler) bool {
			if s.done {
				w.rounded(s)
			}
			return s.done
		})
		if len(r.settler) > 0 {
			continue
		}
		select {
		case err := <-r.closed:
			w.note("%s has stopped", r.name)
			if n := len(r.sales.waiting) + len(r.pushes.waiting); n > 0 || err != nil {
				w.fail("%s has stopped with %d items not answered: %v", r.name, n, err)
			}
			w.replicas[i] = nil
		default:
		}
	}
	w.compare()
}

// look finds the items of a queue that were answered and checks the answers.
func (w *world) look(l *queue) {
	var answered, still []*arrival
	passed := false
	waits := make(map[string]bool) // the owners of those that still wait
	for _, a := range l.waiting {
		switch {
		case !a.answered():
			still = append(still, a)
			waits[a.owner()] = true
		default:
			answered = append(answered, a)
			passed = passed || waits[a.owner()]
		}
	}
	l.waiting = still
	w.countRunning(l)
	ended := l.ended
	l.ended = nil
	switch {
	case len(ended) > 1 && !l.replica.dead && !areSettlingAndSelling(ended):
		w.fail("%s: %d transactions at the same time", l.name, len(ended))
	case len(ended) > 1 && !l.replica.dead:
		for _, tx := range ended {
			w.judge(tx, slices.DeleteFunc(slices.Clone(answered), func(a *arrival) bool { return (a.settler != nil) != tx.settles() }))
		}
	case len(ended) > 0:
		w.judge(ended[0], answered)
		if passed && !l.replica.dead {
			w.fail("%s: a request overtook another one of its subscription", l.name)
		}
	default:
		w.leave(l, answered)
	}
	for _, a := range answered {
		if a.attempt == nil {
			continue
		}
		w.note("(%d) %s", a.attempt.number, a.attempt.answer())
		a.attempt.cancel()
		if a.attempt.caller.waits == a.attempt && !l.replica.dead {
			w.hear(a.attempt.caller, a.attempt)
		}
	}
	// After a crash it does not matter which queued items share a batch.
	if l.batch.Items > 1 && !l.replica.dead {
		w.saw(aBatchOfMany)
	}
	if l.batch.Alone > 0 && !l.replica.dead {
		w.saw(aBatchRunAgainOneByOne)
	}
	l.batch.Items, l.batch.Alone = 0, 0
}

// countRunning checks that no more transactions of the queue run than may.
func (w *world) countRunning(l *queue) {
	switch {
	case len(l.running) < 2 || l.replica.dead:
	case areSettlingAndSelling(l.running):
		w.saw(aSettlementBesideSales)
	default:
		w.fail("%s: %d transactions run", l.name, len(l.running))
	}
}

// settles reports whether the transaction settles due operations.
func (tx *transaction) settles() bool { return len(tx.due) > 0 }

// areSettlingAndSelling reports whether two transactions may run at the same time: many due
// operations are settled beside the sales of the subscriptions, which do not wait for them.
func areSettlingAndSelling(ended []*transaction) bool {
	return len(ended) == 2 && ended[0].settles() != ended[1].settles()
}

// leave checks items that were answered without a transaction.
func (w *world) leave(l *queue, answered []*arrival) {
	for _, a := range answered {
		switch {
		case l.replica.dead:
		case a.settler != nil && (a.settler.ctx.Err() != nil || l.replica.draining || len(l.waiting) > w.limits.Queue):
			a.settler.failures++ // it left, or the queue was full
		case a.attempt != nil && a.attempt.left && fault.KindOf(a.attempt.err) == fault.Unavailable:
			w.saw(aCallerThatLeftTheQueue)
		default:
			w.fail("%s: an answer without a transaction: %s", l.name, a)
		}
	}
}

// String names the arrival for a message.
func (a *arrival) String() string {
	if a.attempt == nil {
		return "a round of " + a.settler.replica.name
	}
	return a.attempt.answer()
}

// judge decides the operations of a transaction again with the bank. It
// compares the result with the answers and with the store.
func (w *world) judge(tx *transaction, answered []*arrival) {
	kind := fault.KindOf(tx.err)
	cut := tx.err != nil && kind == fault.Internal && tx.late
	unknown := kind == fault.Indeterminate || cut
	if unknown && !tx.replica().dead && tx.late {
		w.saw(aTimeOut)
	}
	if !tx.caused() {
		w.fail("%s: a transaction failed without an injected fault: %v", tx.queue.name, tx.err)
		return
	}
	switch {
	case tx.panicked || tx.err != nil && !unknown:
		w.nothing(tx, answered)
	case unknown && !tx.committed:
		w.saw(anUnknownWithoutEffect)
		w.nothing(tx, answered)
	default:
		if unknown {
			w.saw(anUnknownWithEffect)
			if tx.replica().dead {
				w.saw(aCrashAfterCommit)
			}
		}
		w.effect(tx, answered, unknown)
	}
	w.judged = true
}

// caused reports whether an injected fault explains how the transaction ended.
func (tx *transaction) caused() bool {
	if tx.panicked {
		return tx.poisoned
	}
	return tx.err == nil || slices.ContainsFunc(causes[:], func(cause error) bool { return errors.Is(tx.err, cause) })
}

var causes = [...]error{
	errUnavailable, errUnknown, errPoison, errGlitch, fake.ErrConflict, context.Canceled, context.DeadlineExceeded,
}

// nothing checks that all callers were told that there was no effect, or that
// the outcome is unknown.
func (w *world) nothing(tx *transaction, answered []*arrival) {
	kind := fault.KindOf(tx.err)
	blame := tx.panicked || kind == fault.Internal
	if blame && !tx.replica().dead {
		if len(answered) > 1 {
			w.fail("%s: the fault of one caller failed %d callers", tx.queue.name, len(answered))
		}
		if tx.panicked {
			w.saw(aPanic)
		}
		if tx.poisoned && len(answered) > 0 && answered[0].attempt != nil {
			w.saw(aPoisonedRequest)
		}
	}
	if !blame && !tx.replica().dead {
		if len(answered) == 0 {
			w.fail("%s: the store failed, but no caller got the error", tx.queue.name)
		}
		if kind == fault.Unavailable && tx.late {
			w.saw(aTimeOut)
		}
	}
	for _, a := range answered {
		if s := a.settler; s != nil {
			group := a.named(tx)
			if !blame || len(group) == 1 {
				s.failures++
			}
			if blame && tx.poisoned && len(group) == 1 {
				w.saw(aPoisonedDue)
			}
			continue
		}
		got, told := fault.KindOf(a.attempt.err), a.attempt
		switch {
		case told.panicked && tx.panicked:
		case told.err == nil, told.panicked:
			w.fail("attempt %d was answered %q, but its transaction failed: %v", told.number, told.answer(), tx.err)
		case got == kind:
		case got == fault.Unavailable && kind == fault.Indeterminate: // unknown before it was retried alone
		case got == fault.Indeterminate && kind == fault.Internal && tx.late: // cut short
		default:
			w.fail("attempt %d was answered %q, but its transaction failed: %v", told.number, told.answer(), tx.err)
		}
		if told.left {
			w.saw(aCallerThatLeftTooLate)
		}
	}
}

// named returns the operations of a round that are in the transaction, in the
// order of the round.
func (a *arrival) named(tx *transaction) []*fund.Operation {
	var group []*fund.Operation
	for _, o := range a.listed {
		if slices.Contains(tx.due, o) {
			group = append(group, o)
		}
	}
	return group
}

// effect decides the operations of a transaction that took effect.
func (w *world) effect(tx *transaction, answered []*arrival, unknown bool) {
	if len(tx.due) > 0 && slices.ContainsFunc(answered, func(a *arrival) bool { return a.settler == nil }) {
		w.saw(aDueBesideANewOne)
	}
	for _, a := range answered {
		if a.settler != nil {
			w.effectOfRound(tx, a, unknown)
			continue
		}
		told := a.attempt
		if kind := fault.KindOf(told.err); unknown && kind != fault.Indeterminate || tx.replica().dead && kind == fault.Unavailable {
			continue // not in this transaction: unknown before it was retried alone
		}
		known := w.bank.known[told.request.identity()]
		before := len(w.bank.inbox)
		var want string
		if told.request.operation == operation.BuyFundFromCustomer {
			want = w.bank.buy(told, tx.when)
		} else {
			want = w.bank.add(told)
			if want == "completed" && len(w.bank.inbox) < before+len(told.request.messages) {
				w.saw(aMessageSentTwice)
			}
		}
		w.sawAnswer(told, want, tx)
		if known != nil && known.unheard && strings.HasSuffix(want, "again") {
			w.saw(aReplayAfterUnknown)
		}
		if known := w.bank.known[told.request.identity()]; known != nil {
			known.unheard = unknown
		}
		if unknown {
			w.note("(%d) actual outcome: %s", told.number, want)
		} else if got := told.answer(); got != want {
			w.fail("attempt %d was answered %q, want %q", told.number, got, want)
		}
		if told.left {
			w.saw(aCallerThatLeftTooLate)
		}
	}
}

func (w *world) sawAnswer(a *attempt, answer string, tx *transaction) {
	switch {
	case strings.HasSuffix(answer, ", again"):
		w.saw(aReplay)
	case strings.HasPrefix(answer, "conflict"):
		w.saw(anotherContent)
	case strings.HasPrefix(answer, "failed: day-closed"):
		w.saw(aClosedDay)
	case strings.HasPrefix(answer, "failed: after-cut-off"):
		w.saw(aCutOff)
	case strings.HasPrefix(answer, "failed"):
		w.saw(aRefusal)
		if len(a.request.sales) > 1 {
			w.saw(aRefusedArray)
		}
	case answer == "recorded":
		w.saw(aRecording)
	case answer == "completed" && a.request.operation == operation.BuyFundFromCustomer && tx.when.today > w.bank.dayOf(a.arrived):
		w.saw(aDayThatPassedInTheQueue)
	}
}

func (w *world) effectOfRound(tx *transaction, a *arrival, unknown bool) {
	s, group := a.settler, a.named(tx)
	if len(group) == 0 {
		s.failures++ // unknown before it was retried alone
		return
	}
	for _, o := range group {
		if slices.Contains(tx.held, o.ID) {
			w.saw(aDueHeld)
			s.excused = append(s.excused, o.ID)
			continue
		}
		answer := w.bank.settle(o.ID, tx.when)
		switch {
		case answer == "" && w.bank.recorded[o.ID] != nil:
			w.saw(aDueNoLongerDue)
			s.excused = append(s.excused, o.ID)
		case answer == "":
			w.saw(aDueOfAnotherReplica)
		case answer == "completed":
			w.saw(aDueCompleted)
		default:
			w.saw(aDueFailed)
		}
		w.note("due %d: %s", w.numberOf(o.ID), answer)
		switch {
		case unknown || answer == "":
		case answer == "completed":
			s.counted.Completed++
		default:
			s.counted.Failed++
		}
	}
	if unknown {
		s.failures++
	}
}

func (w *world) numberOf(id operation.ID) int {
	if s := w.bank.sold[id]; s != nil {
		return s.number
	}
	return -1
}

// rounded checks a round that has ended.
func (w *world) rounded(s *settler) {
	w.note("the round of %s ends: %d completed, %d failed, %d failures", s.replica.name, s.result.Completed, s.result.Failed, s.failures)
	if (s.err != nil) != (s.failures > 0) {
		w.fail("a round of %s ended with %v after %d injected failures", s.replica.name, s.err, s.failures)
	}
	if s.result != s.counted {
		w.fail("a round of %s counted %+v, want %+v", s.replica.name, s.result, s.counted)
	}
	if s.err != nil {
		return
	}
	for _, id := range s.expected {
		if w.bank.recorded[id] != nil && !slices.Contains(s.excused, id) && !w.settling(id) {
			w.fail("a round of %s succeeded, but %d is still recorded", s.replica.name, w.numberOf(id))
		}
	}
}

// settling reports whether a transaction has settled the operation but its
// replica does not know it yet.
func (w *world) settling(id operation.ID) bool {
	for tx := range w.running {
		if tx.committed && slices.ContainsFunc(tx.due, func(o *fund.Operation) bool { return o.ID == id }) {
			return true
		}
	}
	return false
}

// comparePositions compares the positions of the store with those of the bank.
func (w *world) comparePositions() {
	holdings := w.rows.Holdings()
	if len(holdings) != len(w.bank.units) {
		w.fail("%d holdings, want %d", len(holdings), len(w.bank.units))
	}
	for _, h := range holdings {
		want := w.bank.units[position{h.Key.CustomerNo, slices.Index(w.funds, h.Key.Fund)}]
		if int64(h.Units) != want {
			w.fail("the holding of %d in %v is %d, want %d", h.Key.CustomerNo, h.Key.Fund, h.Units, want)
		}
	}
	accounts := w.rows.Accounts()
	if len(accounts) != len(w.bank.money) {
		w.fail("%d accounts, want %d", len(accounts), len(w.bank.money))
	}
	for _, a := range accounts {
		number := slices.Index(w.accounts, a.Key)
		if want := w.bank.money[number]; a.Balance.Minor() != want {
			w.fail("account a%d has %d, want %d", number, a.Balance.Minor(), want)
		}
	}
}

// compareAll compares every row of the store with those of the bank.
func (w *world) compareAll() {
	if w.failure != nil {
		return
	}
	entries := w.rows.Sales()
	n := 0
	for _, id := range w.bank.order {
		s := w.bank.sold[id]
		for i := range s.rows {
			if n == len(entries) {
				w.fail("sale %d/%d has no row", s.number, i)
				return
			}
			if want := w.entry(s, i); entries[n] != want {
				w.fail("sale %d/%d is\n%+v, want\n%+v", s.number, i, entries[n], want)
				return
			}
			n++
		}
	}
	if n < len(entries) {
		w.fail("unexpected row of a sale: %+v", entries[n])
		return
	}
	notifications := w.rows.Notifications()
	if len(notifications) != len(w.bank.inbox) {
		w.fail("%d notifications, want %d", len(notifications), len(w.bank.inbox))
		return
	}
	for i, d := range w.bank.inbox {
		got := &notifications[i]
		fields := d.request.messages[d.position].fields()
		header := d.request.header()
		header.AppKey = d.request.recordedAppKey()
		if got.ID != d.id || got.Index != d.position || got.Subscription != d.request.subscription.Name ||
			got.Header != header || !got.ReceivedAt.Equal(d.arrived) ||
			got.Values.UserID != fields.UserID || got.Values.PushID != fields.PushID || got.Values.Subject != fields.Subject ||
			got.Values.HasPushInteractionID == fields.PushInteractionID.IsAbsent() || len(got.Values.TranData) != len(fields.TranData) {
			w.fail("notification %d is %+v, want %d/%d", i, got, d.number, d.position)
			return
		}
	}
}

// entry returns the expected row of a sale.
func (w *world) entry(s *sold, i int) fund.SaleEntry {
	sale, row := s.request.sales[i], s.rows[i]
	header := s.request.header()
	header.AppKey = s.request.recordedAppKey()
	e := fund.SaleEntry{
		Envelope: operation.Envelope{ID: s.id, Subscription: s.request.subscription.Name, Header: header, ReceivedAt: s.arrived}, Index: i,
		Terms: fund.Terms{
			Holding:      fund.HoldingKey{CustomerNo: sale.customer, Fund: w.funds[sale.fund]},
			Units:        fund.Units(sale.units),
			Account:      w.accounts[sale.account],
			PriceID:      sale.price,
			ControlTotal: sale.total,
			SelectedDay:  parsed(sale.day),
		},
		State: row.state, PriceID: row.price, PerUnit: fund.UnitPrice(row.perUnit), Refusal: row.refusal, SettledAt: row.settled,
	}
	if row.state == operation.Completed {
		e.Proceeds = money.New(row.proceeds, e.Terms.Account.Currency)
	}
	return e
}
