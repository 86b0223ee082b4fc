package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

type todayPage struct {
	glanced
	lastHour
	Hours, Rate, Latency picture
	Check                proofRun // of this process
	Checks               []summary.Check
	// Unread is the reason why the database could not be read. Then values from it are unknown.
	Unread string
}

// Funds returns the funds and currencies of the received sales, most sold first.
func (p todayPage) Funds() []backoffice.SalesKey {
	sales := maps.Clone(p.Received.Sales)
	maps.DeleteFunc(sales, func(of backoffice.SalesKey, _ backoffice.SalesSum) bool {
		return of.State != operation.Completed || of.Reversed
	})
	return slices.SortedFunc(maps.Keys(sales), func(x, y backoffice.SalesKey) int {
		return cmp.Or(cmp.Compare(sales[y].Sales, sales[x].Sales), cmp.Compare(fmt.Sprint(x), fmt.Sprint(y)))
	})
}

func showToday(q *request) (any, error) {
	checks, _ := q.console.health.results(q.console)
	p := todayPage{lastHour: q.console.activity.lastHour(q.machine), Check: q.console.proof.now(), Checks: checks}
	err := q.console.inTurn(q.ctx, func() (err error) {
		p.glanced, err = q.console.glance.read(q)
		return err
	})
	if err != nil {
		known := q.explain(err)
		if known == errInternal {
			return nil, err
		}
		p.glanced, p.Unread = glanced{}, known.Text
	}
	p.Rate, p.Latency = minutes(q, "", p.rate), minutes(q, "ms", p.slow, p.median)
	p.Hours = chart("an hour", true, nil, append(p.hours[:], p.hours[23]), append(p.yesterday[:], p.yesterday[23])) // the last bar needs an end point
	p.Hours.From, p.Hours.To = "00:00", "24:00"
	return p, nil
}

// minutes returns a chart of values of the last minutes, the current minute last.
func minutes(q *request, unit string, lines ...[]float64) picture {
	p := chart(unit, false, nil, lines...)
	p.From, p.To = q.local(q.machine.Add(-time.Duration(len(lines[0])-1)*time.Minute), "15:04"), q.local(q.machine, "15:04")
	return p
}

// glance caches what the page Today read from the database.
type glance struct {
	mu             sync.Mutex
	today, dayPast tally
	busy           glanced   // the last values read while the last minutes had many operations
	busyAt         time.Time // of the machine
	corrected      [2]operation.ID
}

type glanced struct {
	Received backoffice.Received
	// Received counts until Counted so far. Counted is zero if Received is complete.
	Counted time.Time
	// hours and yesterday count the sales received in each hour of today and yesterday.
	hours, yesterday [hoursOfDay]float64
	Due              dueDays
	Checked          *audit.Act
}

func (g *glance) read(q *request) (now glanced, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// This replica, another replica or a command may have changed the result of a counted sale.
	for i, action := range [...]string{"sales.cancel", "sales.reverse"} {
		for act, err := range q.Office.Reader.Acts(q.ctx, backoffice.Query{Action: action, Since: q.machine.Add(-2 * tallyAge), Limit: 1, Order: backoffice.Newest}) {
			if err != nil {
				return now, err
			}
			if act.ID != g.corrected[i] {
				g.corrected[i], g.today, g.busyAt = act.ID, tally{}, time.Time{}
			}
		}
	}
	if q.machine.Sub(g.busyAt).Abs() < busyAge && g.today.day == q.Today() && q.Sandbox == nil {
		return g.busy, nil
	}
	if now.Due, err = dueOf(q); err == nil {
		now.Checked, err = q.Office.LastVerified(q.ctx)
	}
	if err != nil {
		return now, err
	}
	ctx, cancel := context.WithTimeout(q.ctx, tallyTime)
	defer cancel()
	if err = g.today.count(ctx, q, q.Today()); err == nil {
		err = g.dayPast.count(ctx, q, q.Today().Plus(-1))
	}
	if err != nil && (ctx.Err() == nil || q.ctx.Err() != nil) {
		return now, err
	}
	now.Received.Add(g.today.sum)
	if now.hours, now.yesterday = g.today.hours, g.dayPast.hours; g.today.until.Before(q.bank.Add(-tallyOpen)) {
		now.Counted = g.today.until
		return now, nil
	}
	open, err := q.Office.Lookups.CountReceived(q.ctx, g.today.until, q.Today().Plus(1).Start(q.Zone))
	if err == nil {
		now.Received.Add(open)
		now.hours[q.Moment(g.today.until).Hour()] += float64(sold(open))
	}
	if err == nil && sold(open)+open.Refusals()+open.Messages > busyFrom {
		g.busy, g.busyAt = now, q.machine
		g.busy.Counted = q.bank
	}
	return now, err
}

// tally counts what the bank received on a day, so that a page reads only the last minutes. It
// restarts every hour, and if a sale was cancelled or reversed.
type tally struct {
	started time.Time // of the machine
	day     day.Day
	until   time.Time // everything before this time is counted
	sum     backoffice.Received
	hours   [hoursOfDay]float64
}

const (
	// hoursOfDay are hours of the clock. If it is set back, one of them counts two hours.
	hoursOfDay = 24
	tallyAge   = time.Hour
	tallyTime  = time.Second // how long a page counts; the next page continues
	// tallyOpen is the maximum time between making the ID of an operation and storing it.
	tallyOpen = 2 * time.Minute
	// From busyFrom operations in the last minutes, not every page counts them: this would take
	// processor time from the callers.
	busyFrom = 5000
	busyAge  = 5 * time.Second
)

func sold(r backoffice.Received) (sales int64) {
	for key, sum := range r.Sales {
		if !key.Waited {
			sales += sum.Sales
		}
	}
	return sales
}

// count continues to count until ctx ends. It omits the last minutes: more may be stored.
func (t *tally) count(ctx context.Context, q *request, of day.Day) error {
	// A sandbox can be reset. Its book is small.
	if t.day != of || q.Sandbox != nil || q.machine.Sub(t.started).Abs() > tallyAge || t.until.After(q.bank) { // or the clock was set back
		*t = tally{started: q.machine, day: of, until: of.Start(q.Zone)}
	}
	closed := earliest(of.Plus(1).Start(q.Zone), q.bank.Add(-tallyOpen))
	for t.until.Before(closed) {
		end := earliest(t.until.Add(time.Hour-t.until.Sub(of.Start(q.Zone))%time.Hour), closed)
		part, err := q.Office.Lookups.CountReceived(ctx, t.until, end)
		if err != nil {
			return err
		}
		t.sum.Add(part)
		t.hours[q.Moment(t.until).Hour()] += float64(sold(part))
		t.until = end
	}
	return nil
}
