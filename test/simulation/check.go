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

// compare holds what is in the store against what should be there: the
// positions always, all rows once a day.
func (w *world) compare() {
	if !w.judged {
		return
	}
	for tx := range w.running {
		if tx.committed {
			return // the store is ahead of the bank, until the replica knows
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

// atTheDoor looks at an attempt that has just begun: either it is in the lane
// now, or it was answered for a reason that needs no store.
func (w *world) atTheDoor(l *lane, a *attempt) {
	r := a.request
	want := ""
	wrong := wrongDays(r.sales, w.bank.dayOf(a.arrived))
	switch {
	case r.broken:
		want = "invalid"
	case wrong != "" && (r.callerID == "" || r.forbidden):
		want = "invalid: " + wrong
	case r.forbidden:
		want = "forbidden: contradicts-subscription /Header/AppKey"
	}
	switch {
	case !a.done && want == "":
		l.waiting = append(l.waiting, &arrival{attempt: a})
		if n := len(l.waiting); n > w.limits.Queue+w.limits.Batch {
			w.fail("%s: %d are waiting or in a batch", l.name, n)
		}
		return
	case !a.done:
		w.fail("attempt %d waits for the store, and has to be answered %q", a.number, want)
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
		w.fail("attempt %d was answered %q at once, and should be %q", a.number, got, want)
		return
	}
	a.cancel()
	w.hear(a.caller, a)
}

// collect sees what became of everything since it was called last.
func (w *world) collect() {
	for i, r := range w.replicas {
		if r == nil {
			continue
		}
		for _, l := range r.lanes() {
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

// look sees who was answered in a lane, and whether that is right.
func (w *world) look(l *lane) {
	var answered, still []*arrival
	passed := false
	for _, a := range l.waiting {
		switch {
		case !a.answered():
			still = append(still, a)
		default:
			answered = append(answered, a)
			passed = passed || len(still) > 0
		}
	}
	l.waiting = still
	ended := l.ended
	l.ended = nil
	switch {
	case len(ended) > 1 && !l.replica.dead:
		w.fail("%s: %d transactions at one moment", l.name, len(ended))
	case len(ended) > 0:
		w.judge(ended[0], answered)
		if passed && !l.replica.dead {
			w.fail("%s: somebody was passed", l.name)
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
	// Who of a crashed replica's queue still shares a batch is nobody's choice.
	if l.batch.Items > 1 && !l.replica.dead {
		w.saw(aBatchOfMany)
	}
	if l.batch.Again > 0 && !l.replica.dead {
		w.saw(aBatchRunAgainOneByOne)
	}
	l.batch.Items, l.batch.Again = 0, 0
}

// leave looks at those who were answered although no transaction ended.
func (w *world) leave(l *lane, answered []*arrival) {
	for _, a := range answered {
		switch {
		case l.replica.dead:
		case a.settler != nil && (a.settler.ctx.Err() != nil || l.replica.draining || len(l.waiting) > w.limits.Queue):
			a.settler.failures++ // it left, or there was no room for it
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

// judge decides the operations of a transaction once more, and holds against
// that what their callers were told and what is in the store.
func (w *world) judge(tx *transaction, answered []*arrival) {
	kind := fault.KindOf(tx.err)
	cut := tx.err != nil && kind == fault.Internal && tx.late
	unknown := kind == fault.Indeterminate || cut
	if unknown && !tx.replica().dead && tx.late {
		w.saw(aTimeOut)
	}
	if !tx.caused() {
		w.fail("%s: a transaction failed although nobody made it fail: %v", tx.lane.name, tx.err)
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

// caused reports whether the world had a hand in how the transaction ended.
func (tx *transaction) caused() bool {
	if tx.panicked {
		return tx.poisoned
	}
	return tx.err == nil || slices.ContainsFunc(causes[:], func(cause error) bool { return errors.Is(tx.err, cause) })
}

var causes = [...]error{
	errUnavailable, errUnknown, errPoison, errGlitch, fake.ErrConflict, context.Canceled, context.DeadlineExceeded,
}

// nothing checks that everybody was told that nothing happened, or may have.
func (w *world) nothing(tx *transaction, answered []*arrival) {
	kind := fault.KindOf(tx.err)
	blame := tx.panicked || kind == fault.Internal
	if blame && !tx.replica().dead {
		if len(answered) > 1 {
			w.fail("%s: %d callers pay for the fault of one", tx.lane.name, len(answered))
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
			w.fail("%s: the store failed, and nobody was told", tx.lane.name)
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
			w.fail("attempt %d was answered %q, and its transaction failed: %v", told.number, told.answer(), tx.err)
		case got == kind:
		case got == fault.Unavailable && kind == fault.Indeterminate: // lost before it was tried alone
		case got == fault.Indeterminate && kind == fault.Internal && tx.late: // cut short
		default:
			w.fail("attempt %d was answered %q, and its transaction failed: %v", told.number, told.answer(), tx.err)
		}
		if told.left {
			w.saw(aCallerThatLeftTooLate)
		}
	}
}

// named are the operations of a round that are in the transaction, in its
// order.
func (a *arrival) named(tx *transaction) []*fund.Operation {
	var group []*fund.Operation
	for _, o := range a.listed {
		if slices.Contains(tx.due, o) {
			group = append(group, o)
		}
	}
	return group
}

// effect decides the operations of a transaction that took place.
func (w *world) effect(tx *transaction, answered []*arrival, unknown bool) {
	for _, a := range answered {
		if a.settler != nil {
			w.effectOfRound(tx, a, unknown)
			continue
		}
		told := a.attempt
		if kind := fault.KindOf(told.err); unknown && kind != fault.Indeterminate || tx.replica().dead && kind == fault.Unavailable {
			continue // it was not in it: lost before it was tried alone
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
			w.note("(%d) in truth: %s", told.number, want)
		} else if got := told.answer(); got != want {
			w.fail("attempt %d was answered %q, and should be %q", told.number, got, want)
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
	case strings.HasPrefix(answer, "failed"):
		w.saw(aRefusal)
		if len(a.request.sales) > 1 {
			w.saw(aRefusedArray)
		}
	case answer == "recorded":
		w.saw(aRecording)
	case strings.HasPrefix(answer, "invalid"):
		if wrongDays(a.request.sales, w.bank.dayOf(a.arrived)) == "" && tx.when.today > w.bank.dayOf(a.arrived) {
			w.saw(aDayThatPassedInTheQueue)
		}
	}
}

func (w *world) effectOfRound(tx *transaction, a *arrival, unknown bool) {
	s, group := a.settler, a.named(tx)
	if len(group) == 0 {
		s.failures++ // lost before it was tried alone
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

// rounded looks at a round that has ended.
func (w *world) rounded(s *settler) {
	w.note("the round of %s ends: %d completed, %d failed, %d failures", s.replica.name, s.result.Completed, s.result.Failed, s.failures)
	if (s.err != nil) != (s.failures > 0) {
		w.fail("a round of %s ended with %v, and %d failures were made", s.replica.name, s.err, s.failures)
	}
	if s.result != s.counted {
		w.fail("a round of %s counted %+v, and it was %+v", s.replica.name, s.result, s.counted)
	}
	if s.err != nil {
		return
	}
	for _, id := range s.expected {
		if w.bank.recorded[id] != nil && !slices.Contains(s.excused, id) && !w.settling(id) {
			w.fail("a round of %s was successful, and %d is still recorded", s.replica.name, w.numberOf(id))
		}
	}
}

// settling reports whether a transaction has settled the operation, and its
// replica does not know yet.
func (w *world) settling(id operation.ID) bool {
	for tx := range w.running {
		if tx.committed && slices.ContainsFunc(tx.due, func(o *fund.Operation) bool { return o.ID == id }) {
			return true
		}
	}
	return false
}

// comparePositions holds the positions in the store against the bank's.
func (w *world) comparePositions() {
	holdings := w.rows.Holdings()
	if len(holdings) != len(w.bank.units) {
		w.fail("%d holdings, and there should be %d", len(holdings), len(w.bank.units))
	}
	for _, h := range holdings {
		want := w.bank.units[position{h.Key.CustomerNo, slices.Index(w.funds, h.Key.Fund)}]
		if int64(h.Units) != want {
			w.fail("the holding of %d in %v is %d, and should be %d", h.Key.CustomerNo, h.Key.Fund, h.Units, want)
		}
	}
	accounts := w.rows.Accounts()
	if len(accounts) != len(w.bank.money) {
		w.fail("%d accounts, and there should be %d", len(accounts), len(w.bank.money))
	}
	for _, a := range accounts {
		number := slices.Index(w.accounts, a.Key)
		if want := w.bank.money[number]; a.Balance.Minor() != want {
			w.fail("account a%d has %d, and should have %d", number, a.Balance.Minor(), want)
		}
	}
}

// compareAll holds every row in the store against the bank's.
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
				w.fail("there is no row of sale %d/%d", s.number, i)
				return
			}
			if want := w.entry(s, i); entries[n] != want {
				w.fail("sale %d/%d is\n%+v, and should be\n%+v", s.number, i, entries[n], want)
				return
			}
			n++
		}
	}
	if n < len(entries) {
		w.fail("there is a row of a sale that should not be: %+v", entries[n])
		return
	}
	notifications := w.rows.Notifications()
	if len(notifications) != len(w.bank.inbox) {
		w.fail("%d notifications, and there should be %d", len(notifications), len(w.bank.inbox))
		return
	}
	for i, d := range w.bank.inbox {
		got := &notifications[i]
		fields := d.request.messages[d.position].fields()
		header := d.request.header()
		header.AppKey = d.request.recordedAppKey()
		if got.OperationID != d.id || got.Position != d.position || got.Subscription != d.request.subscription.Name ||
			got.Header != header || !got.ReceivedAt.Equal(d.arrived) ||
			got.Record.UserID != fields.UserID || got.Record.PushID != fields.PushID || got.Record.Subject != fields.Subject ||
			got.Record.HasPushInteractionID == fields.PushInteractionID.IsAbsent() || len(got.Record.TranData) != len(fields.TranData) {
			w.fail("notification %d is %+v, and should be %d/%d", i, got, d.number, d.position)
			return
		}
	}
}

// entry is the row of a sale as it should be.
func (w *world) entry(s *sold, i int) fund.SaleEntry {
	sale, row := s.request.sales[i], s.rows[i]
	header := s.request.header()
	header.AppKey = s.request.recordedAppKey()
	e := fund.SaleEntry{
		OperationID: s.id, Position: i, Subscription: s.request.subscription.Name, Header: header, ReceivedAt: s.arrived,
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
