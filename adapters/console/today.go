package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// todayPage is the page Today.
type todayPage struct {
	glanced
	lastHour
	Hours, Rate, Latency picture
	Check                proofRun // of this process
	Checks               []summary.Check
	// Unread says why the database could not be read. What is of it is not known then.
	Unread string
}

// fundDay is what was sold of a fund today.
type fundDay struct {
	Fund     string
	Sales    int64
	Proceeds money.Amount
}

// Funds are the completed sales by fund and currency, most sold first.
func (p todayPage) Funds() (all []fundDay) {
	for key, sum := range p.Received.Sales {
		if key.State == operation.Completed {
			all = append(all, fundDay{key.IMKBCode, sum.Sales, money.New(sum.Proceeds, key.Currency)})
		}
	}
	slices.SortFunc(all, func(x, y fundDay) int {
		return cmp.Or(cmp.Compare(y.Sales, x.Sales), cmp.Compare(x.Fund, y.Fund), cmp.Compare(x.Proceeds.Currency().Code(), y.Proceeds.Currency().Code()))
	})
	return all
}

// RefusedToday are the operations that were refused, by partner and code.
func (p todayPage) RefusedToday() []refused { return sorted(p.Received.Refused) }

func showToday(q *request) (any, error) {
	checks, _ := q.console.health.results(q.console)
	p := todayPage{lastHour: q.console.activity.lastHour(q.machine, q.Today()), Check: q.console.proof.now(), Checks: checks}
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
	p.Rate = minutes(q, p.rate, "")
	p.Rate.About = fmt.Sprintf("Requests a second over the last hour: now %s, at most %s.", short(p.rate[last]), short(slices.Max(p.rate)))
	p.Latency = minutes(q, p.slow, "ms", p.median)
	p.Latency.About = fmt.Sprintf("Time to answer over the last hour. 99th percentile: now %s ms, at most %s ms. Median: now %s ms.",
		short(p.slow[last]), short(slices.Max(p.slow)), short(p.median[last]))
	p.Hours = chart(fullWidth, "an hour", true, append(p.hours[:24:24], p.hours[23]), append(p.yesterday[:24:24], p.yesterday[23])) // the last bar needs an end
	p.Hours.From, p.Hours.To = "00:00", "24:00"
	p.Hours.About = fmt.Sprintf("Sales received in each hour: %s today, at most %s in an hour.", count(p.Received.InState(operation.Recorded, operation.Completed, operation.Failed)), short(slices.Max(p.hours[:])))
	return p, nil
}

// minutes is a chart of values of the last minutes, the running one last.
func minutes(q *request, first []float64, unit string, others ...[]float64) picture {
	p := chart(halfWidth, unit, false, append([][]float64{first}, others...)...)
	p.From, p.To = q.local(q.machine.Add(-time.Duration(len(first)-1)*time.Minute), "15:04"), q.local(q.machine, "15:04")
	return p
}

// glance is what the page Today keeps of what it read from the database.
type glance struct {
	mu             sync.Mutex
	today, dayPast tally
}

type glanced struct {
	Today    day.Day // of the bank
	Received backoffice.Received
	// Counted is until when Received counts so far, the zero time if it counts all.
	Counted time.Time
	// hours are the sales that were received in each hour today, and yesterday.
	hours, yesterday [hoursOfDay]float64
	Due              dueDays
	Checked          *audit.Act
}

func (g *glance) read(q *request) (now glanced, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now.Today = q.Today()
	if now.Due, err = dueOf(q); err != nil {
		return now, err
	}
	if now.Checked, err = lastVerified(q.ctx, &q.console.o); err != nil {
		return now, err
	}
	ctx, cancel := context.WithTimeout(q.ctx, tallyTime)
	defer cancel()
	if err = g.today.count(ctx, q, now.Today); err == nil {
		err = g.dayPast.count(ctx, q, now.Today.Plus(-1))
	}
	if err != nil && (ctx.Err() == nil || q.ctx.Err() != nil) {
		return now, err
	}
	now.Received.Add(g.today.sum)
	if now.hours, now.yesterday = g.today.hours, g.dayPast.hours; g.today.until.Before(q.bank.Add(-tallyOpen)) {
		now.Counted = g.today.until
		return now, nil
	}
	open, err := q.Office.Lookups.Received(q.ctx, g.today.until, now.Today.Plus(1).Start(q.Zone))
	if err == nil {
		now.Received.Add(open)
		now.hours[g.today.hour(q, g.today.until)] += sold(open)
	}
	return now, err
}

// tally counts what the bank received on a day, part by part: what was counted is
// kept, so that a page reads the last minutes only. It starts anew every hour, because
// a sale that waits may be cancelled.
type tally struct {
	started time.Time // of the machine
	day     day.Day
	until   time.Time // what came before is counted
	sum     backoffice.Received
	hours   [hoursOfDay]float64
}

const (
	// hoursOfDay is for a day on which the clocks are set back.
	hoursOfDay = 25
	// tallyAge is how long a tally is kept.
	tallyAge = time.Hour
	// tallyTime is how long a page counts. The next one goes on.
	tallyTime = time.Second
	// tallyOpen is for how long an operation may be stored after its ID was made.
	tallyOpen = 2 * time.Minute
)

func sold(r backoffice.Received) float64 {
	return float64(r.InState(operation.Recorded, operation.Completed, operation.Failed))
}

// hour is the hour of the day, from 0 on.
func (t *tally) hour(q *request, at time.Time) int {
	return min(int(at.Sub(t.day.Start(q.Zone)).Hours()), hoursOfDay-1)
}

// count counts on until ctx ends, one hour with each statement. It leaves out the last
// minutes, in which more may be stored.
func (t *tally) count(ctx context.Context, q *request, of day.Day) error {
	// A sandbox can go back to its beginning. Its book is small.
	if t.day != of || q.Sandbox != nil || q.machine.Sub(t.started).Abs() > tallyAge {
		*t = tally{started: q.machine, day: of, until: of.Start(q.Zone)}
	}
	closed := of.Plus(1).Start(q.Zone)
	if now := q.bank.Add(-tallyOpen); now.Before(closed) {
		closed = now
	}
	for t.until.Before(closed) {
		hour := t.hour(q, t.until)
		end := of.Start(q.Zone).Add(time.Duration(hour+1) * time.Hour)
		if end.After(closed) {
			end = closed
		}
		part, err := q.Office.Lookups.Received(ctx, t.until, end)
		if err != nil {
			return err
		}
		t.sum.Add(part)
		t.hours[hour] += sold(part)
		t.until = end
	}
	return nil
}
