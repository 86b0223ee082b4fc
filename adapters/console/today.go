package console

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
)

// todayPage is the page Today.
type todayPage struct {
	glanced
	snapshot
	Rate, Latency picture
	Check         proofRun // of this process
	Checks        []summary.Check
	// Unread says why the database could not be read. What is of it is not known then.
	Unread string
}

func showToday(q *request) (any, error) {
	checks, _ := q.console.health.results(q.Machine, q.Checks)
	p := todayPage{snapshot: q.console.activity.snapshot(q.machine), Check: q.console.proof.now(), Checks: checks}
	err := q.console.inTurn(q.ctx, func() (err error) {
		p.glanced, err = q.console.glance.read(q)
		return err
	})
	if err != nil {
		known, _ := q.explain(err)
		if known == errInternal {
			return nil, err
		}
		p.glanced, p.Unread = glanced{Today: q.Today()}, known.text
	}
	last := len(p.rate) - 1
	p.Rate = lastHour(q, p.rate, "")
	p.Rate.About = fmt.Sprintf("Requests a second over the last hour: now %s, at most %s.", short(p.rate[last]), short(slices.Max(p.rate)))
	p.Latency = lastHour(q, p.slow, "ms", p.median)
	p.Latency.About = fmt.Sprintf("Time to answer over the last hour. 99th percentile: now %s ms, at most %s ms. Median: now %s ms.",
		short(p.slow[last]), short(slices.Max(p.slow)), short(p.median[last]))
	return p, nil
}

// lastHour is a chart of values of the last minutes, the running one last.
func lastHour(q *request, first []float64, unit string, others ...[]float64) picture {
	p := chart(halfWidth, unit, false, append([][]float64{first}, others...)...)
	p.From, p.To = q.local(q.machine.Add(-time.Duration(len(first)-1)*time.Minute), "15:04"), q.local(q.machine, "15:04")
	return p
}

// glance is what the page Today reads from the database. All pages that refresh
// themselves within a second share one. A page that a person opens reads anew.
type glance struct {
	mu   sync.Mutex
	at   time.Time // of the machine
	last glanced
	tally
}

type glanced struct {
	Today    day.Day // of the bank
	Received backoffice.Received
	// Counted is until when Received counts so far, the zero time if it counts all.
	Counted time.Time
	Due     dueDays
	Checked *audit.Act
}

const glanceAge = time.Second

func (g *glance) read(q *request) (now glanced, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now.Today = q.Today()
	if age := q.machine.Sub(g.at).Abs(); q.r.Header.Get("X-Live") != "" && g.last.Today == now.Today && age < glanceAge {
		return g.last, nil
	}
	if now.Due, err = dueOf(q); err != nil {
		return now, err
	}
	if now.Checked, err = lastVerified(q); err != nil {
		return now, err
	}
	if now.Received, now.Counted, err = g.count(q); err == nil {
		g.at, g.last = q.machine, now
	}
	return now, err
}

// tally counts what the bank received on its day, part by part: what was counted is
// kept, so that a page reads the last minutes only. It starts anew every hour, because
// a sale that waits may be cancelled.
type tally struct {
	started time.Time // of the machine
	day     day.Day
	until   time.Time // what came before is in sum
	sum     backoffice.Received
}

const (
	// tallyPart is how much of the day one statement counts.
	tallyPart = time.Hour
	// tallyAge is how long a tally is kept.
	tallyAge = time.Hour
	// tallyTime is how long a page counts. The next one goes on.
	tallyTime = time.Second
	// tallyOpen is for how long an operation may be stored after its ID was made.
	tallyOpen = 2 * time.Minute
)

// count returns what was received on the bank's day. until is the zero time unless
// there was no time to count all.
func (t *tally) count(q *request) (received backoffice.Received, until time.Time, err error) {
	// A sandbox can go back to its beginning. Its book is small.
	if today := q.Today(); t.day != today || q.Sandbox != nil || q.machine.Sub(t.started).Abs() > tallyAge {
		*t = tally{started: q.machine, day: today, until: today.Start(q.Zone)}
	}
	ctx, cancel := context.WithTimeout(q.ctx, tallyTime)
	defer cancel()
	for closed := q.bank.Add(-tallyOpen); t.until.Before(closed); {
		end := t.until.Add(tallyPart)
		if end.After(closed) {
			end = closed
		}
		part, err := q.Office.Lookups.Received(ctx, t.until, end)
		if err != nil && ctx.Err() != nil && q.ctx.Err() == nil {
			return t.sum, t.until, nil
		}
		if err != nil {
			return received, until, err
		}
		t.sum, t.until = t.sum.Plus(part), end
	}
	open, err := q.Office.Lookups.Received(q.ctx, t.until, t.day.Plus(1).Start(q.Zone))
	return t.sum.Plus(open), time.Time{}, err
}
