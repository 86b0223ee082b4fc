package console

import (
	"context"
	"net/http"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/fleet"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

type todayPage struct {
	glanced
	fleet.LastHour
	Check proofRun // of this process
	// Close is the day whose sums the page shows, and Closing its counts so far. Open says that
	// counting goes on: the next page has more.
	Close   day.Day
	Closing backoffice.Received
	Open    bool
	// Unread is the reason why the database could not be read. Then values from it are unknown.
	Unread string
}

func showToday(q *request) (any, error) {
	chosen, err := parseDay(q.query("close"))
	if err != nil {
		return nil, err
	}
	if chosen.IsNone() {
		chosen = q.Clock.Today()
	}
	if chosen.After(q.Clock.Today()) {
		return nil, &problem{http.StatusBadRequest, calendar(chosen) + " has not come."}
	}
	p := todayPage{LastHour: q.Options.Activity.LastHour(q.Clock.Machine), Check: q.console.proof.now(), Close: chosen}
	err = q.console.inTurn(q.ctx, func() error { return q.console.glance.read(q, &p) })
	if err != nil {
		known := q.explain(err)
		if known == errInternal {
			return nil, err
		}
		p = todayPage{LastHour: p.LastHour, Check: p.Check, Close: chosen, Unread: known.Text}
	}
	return p, nil
}

// glance caches what the page Today read from the database.
type glance struct {
	mu           sync.Mutex
	today, close tally     // close is of the day that was chosen last
	busy         glanced   // the last values read while the last minutes had many operations
	busyAt       time.Time // of the machine
	corrected    [2]operation.ID
}

type glanced struct {
	Received backoffice.Received
	// Counted is until when Received counts so far. It is zero if Received is complete.
	Counted time.Time
	Due     dueDays
	Checked *audit.Act
}

func (g *glance) read(q *request, p *todayPage) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.forgetCorrected(q); err != nil {
		return err
	}
	now, err := g.readNow(q)
	if err != nil {
		return err
	}
	p.glanced = now
	if p.Close == q.Clock.Today() {
		p.Closing = now.Received
		p.Open = !now.Counted.IsZero()
		return nil
	}
	_, err = g.close.count(q, p.Close)
	p.Closing, p.Open = g.close.sum, g.close.until.Before(p.Close.Plus(1).Start(q.Options.Zone()))
	return err
}

// forgetCorrected begins to count again if a sale was cancelled or reversed: by this replica,
// another one or a command.
func (g *glance) forgetCorrected(q *request) error {
	for i, action := range [...]string{audit.SalesCancel, audit.SalesReverse} {
		newest := backoffice.Query{Action: action, Since: q.Clock.Machine.Add(-2 * tallyAge), Limit: 1, Order: backoffice.Newest}
		for act, err := range q.Options.Office.Reader.Acts(q.ctx, newest) {
			if err != nil {
				return err
			}
			if act.ID != g.corrected[i] {
				g.corrected[i], g.today, g.close, g.busyAt = act.ID, tally{}, tally{}, time.Time{}
			}
		}
	}
	return nil
}

// readNow reads today and what waits. While very much arrives, it returns what was read before.
func (g *glance) readNow(q *request) (now glanced, err error) {
	if q.Clock.Machine.Sub(g.busyAt).Abs() < busyAge && g.today.day == q.Clock.Today() && q.Options.Sandbox == nil {
		return g.busy, nil
	}
	now.Due, err = dueOf(q)
	if err != nil {
		return now, err
	}
	now.Checked, err = q.Options.Office.LastVerified(q.ctx)
	if err != nil {
		return now, err
	}
	isOpen, err := g.today.count(q, q.Clock.Today())
	if err != nil {
		return now, err
	}
	now.Received.Add(g.today.sum)
	if isOpen {
		now.Counted = g.today.until
		return now, nil
	}
	latest, err := q.Options.Office.Lookups.CountReceived(q.ctx, g.today.until, q.Clock.Today().Plus(1).Start(q.Options.Zone()))
	if err != nil {
		return now, err
	}
	now.Received.Add(latest)
	if sold(latest)+latest.Refusals()+latest.Messages > busyFrom {
		g.busy = now
		g.busyAt = q.Clock.Machine
		g.busy.Counted = q.Clock.bank
	}
	return now, nil
}

// tally counts what the bank received on a day, so that a page reads only the last minutes. It
// restarts every hour, and if a sale was cancelled or reversed.
type tally struct {
	started time.Time // of the machine
	day     day.Day
	until   time.Time // everything before this time is counted
	sum     backoffice.Received
}

const (
	tallyAge  = time.Hour
	tallyTime = time.Second // how long a page counts; the next page continues
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

// count continues to count a day for a second. isOpen says that the next page has more.
func (t *tally) count(q *request, of day.Day) (isOpen bool, err error) {
	ctx, cancel := context.WithTimeout(q.ctx, tallyTime)
	defer cancel()
	// A sandbox can be reset. Its book is small.
	isOld := q.Clock.Machine.Sub(t.started).Abs() > tallyAge || t.until.After(q.Clock.bank) // or the clock was set back
	if t.day != of || q.Options.Sandbox != nil || isOld {
		*t = tally{started: q.Clock.Machine, day: of, until: of.Start(q.Options.Zone())}
	}
	closed := earliest(of.Plus(1).Start(q.Options.Zone()), q.Clock.bank.Add(-tallyOpen)) // more may be stored of the last minutes
	for t.until.Before(closed) {
		end := earliest(t.until.Add(time.Hour-t.until.Sub(of.Start(q.Options.Zone()))%time.Hour), closed)
		part, err := q.Options.Office.Lookups.CountReceived(ctx, t.until, end)
		if err != nil && ctx.Err() != nil && q.ctx.Err() == nil {
			return true, nil
		}
		if err != nil {
			return true, err
		}
		t.sum.Add(part)
		t.until = end
	}
	return false, nil
}
