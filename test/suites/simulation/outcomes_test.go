package simulation

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"bankingapi/application/buyfund"
	"bankingapi/application/outcomes"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// partner reads outcomes, always after its last cursor.
type partner struct {
	subscription string // empty for an operator, who reads those of all
	next         string
	seen         []fund.Ended
}

// read reads the next page of a partner and returns the number of its outcomes.
func (w *world) read(p *partner) int {
	page, err := w.feed.Page(context.Background(), outcomes.Query{Subscription: p.subscription, After: p.next, Limit: 1 + w.rng.IntN(4)})
	if err != nil {
		w.fail("the outcomes after %q: %v", p.next, err)
		return 0
	}
	w.note("%d outcomes of %q after %q", len(page.Outcomes), p.subscription, p.next)
	p.next = page.Next
	p.seen = append(p.seen, page.Outcomes...)
	if len(p.seen) > len(w.bank.ended)+len(w.attempts) {
		w.fail("the outcomes of %q have no end", p.subscription)
	}
	if !w.calm && len(page.Outcomes) > 0 {
		w.saw(anOutcomeRead)
	}
	return len(page.Outcomes)
}

// auditOutcomes checks that every partner learned how each of its recorded operations
// ended, once and in order.
func (w *world) auditOutcomes() {
	for _, p := range w.partners {
		for w.failure == nil && w.read(p) > 0 { // to the end
			continue
		}
		told, last := map[operation.ID]bool{}, int64(0)
		for _, e := range p.seen {
			want, ok := w.bank.ended[e.OperationID]
			switch {
			case !ok || told[e.OperationID] || e.Number <= last:
				w.fail("unexpected outcome for %q after %d: %+v", p.subscription, last, e)
				return
			case answered(e.State, e.Faults) != want.answer || !e.At.Equal(want.at) || e.Reversed:
				w.fail("the outcome %+v is not %q at %s", e, want.answer, want.at)
				return
			}
			if s := w.bank.sold[e.OperationID]; e.CallerID != s.request.callerID || e.Subscription != s.request.subscription.Name {
				w.fail("the outcome of %d is told as that of another operation: %+v", s.number, e)
			}
			told[e.OperationID], last = true, e.Number
		}
		for _, id := range w.bank.order {
			s := w.bank.sold[id]
			_, hasEnded := w.bank.ended[id]
			if mine := p.subscription == "" || p.subscription == s.request.subscription.Name; told[id] != (mine && hasEnded) {
				w.fail("operation %d: the outcome was told to %q: %t", s.number, p.subscription, told[id])
				return
			}
		}
	}
}

// holiday closes a day of the next ones, or opens it again.
func (w *world) holiday() {
	on := plusDays(w.today(), w.rng.IntN(8))
	w.bank.holidays[on] = !w.bank.holidays[on]
	w.note("closed on %s: %t", on, w.bank.holidays[on])
	w.pass(5 * time.Second) // a change reaches every replica
}

// calendar returns the rules of the bank, with its calendar, of a new replica.
func (w *world) calendar() *buyfund.Rules {
	always := fund.Rules{Zone: w.zone, Weekdays: [7]bool{time.Saturday: w.weekend, time.Sunday: w.weekend}}
	if w.cutOff != "" {
		var err error
		if always.CutOff, err = day.ParseClock(w.cutOff); err != nil {
			panic(err)
		}
	}
	return buyfund.FixedRules(always, w, w.now)
}

// ClosedDays implements buyfund.ClosedDays.
func (w *world) ClosedDays(context.Context) iter.Seq2[fund.ClosedDay, error] {
	w.turn.Load()
	return func(yield func(fund.ClosedDay, error) bool) {
		for _, on := range slices.Sorted(maps.Keys(w.bank.holidays)) {
			if w.bank.holidays[on] && !yield(fund.ClosedDay{Day: parsed(on)}, nil) {
				return
			}
		}
	}
}
