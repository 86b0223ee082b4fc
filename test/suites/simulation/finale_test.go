package simulation

import (
	"time"

	"bankingapi/domain/day"
)

// finale ends all faults and waits until every caller has an answer.
func (w *world) finale() {
	w.note("the finale")
	w.calm, w.outage, w.poison = true, noOutage, noPoison
	for _, r := range w.replicas {
		if r != nil {
			r.offset = 0
		}
	}
	w.quiet()
	w.reopen()
	var last string
	for _, s := range w.bank.recorded {
		last = max(last, s.day)
	}
	if last > w.today() {
		on, _ := day.Parse(last)
		w.pass(on.Start(w.zone).Sub(w.now()))
	}
	w.priceDue()
	for _, r := range w.replicas {
		w.startRound(r)
		if w.chance(500) {
			w.quiet()
		}
	}
	w.quiet()
	if n := len(w.bank.recorded); n > 0 && w.failure == nil {
		w.fail("%d recorded operations are not settled after their day", n)
	}
	for _, c := range w.callers {
		if w.failure != nil {
			return
		}
		w.askAgain(c)
	}
	for _, r := range w.replicas {
		r.drain()
	}
	w.quiet()
	for _, r := range w.replicas {
		if r != nil && w.failure == nil {
			w.fail("%s does not stop", r.name)
		}
	}
	w.compareAll()
	w.audit()
	w.auditOutcomes()
}

// askAgain makes a caller repeat some of its earlier requests.
func (w *world) askAgain(c *caller) {
	for range min(3, len(c.past)) {
		if w.failure != nil {
			return
		}
		c.request = c.past[w.rng.IntN(len(c.past))]
		w.send(c)
		w.quiet()
	}
}

// enough is more events than any finale needs.
const enough = 100_000

// quiet runs until no caller waits for an answer.
func (w *world) quiet() {
	began := w.event
	for idle := 0; w.failure == nil; {
		w.event++
		if w.event-began > enough {
			w.fail("a caller still waits")
		}
		w.tally.Events++
		w.pass(time.Millisecond)
		w.wait()
		w.collect()
		if tx := w.firstParked(); tx != nil {
			w.release(tx)
		} else if s := w.firstGated(); s != nil {
			w.let(s)
		} else if c := w.firstUnanswered(); c != nil {
			if c.waits == nil {
				c.wake = w.now()
				w.reopen()
				w.send(c)
			}
		} else if idle++; idle > 1 {
			return
		}
		w.collect()
	}
}

func (w *world) firstParked() *transaction {
	for tx := range w.running {
		if tx.parked {
			return tx
		}
	}
	return nil
}

func (w *world) firstGated() *settler {
	for _, r := range w.replicas {
		if r == nil {
			continue
		}
		for _, s := range r.settler {
			if s.atGate {
				return s
			}
		}
	}
	return nil
}

func (w *world) firstUnanswered() *caller {
	for _, c := range w.callers {
		if c.request != nil {
			return c
		}
	}
	return nil
}
