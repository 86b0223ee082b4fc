package console

import (
	"fmt"
	"html/template"
	"slices"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
	"bankingapi/domain/day"
)

// today is the page Today.
type today struct {
	Heading   string
	Figures   []figure
	Since     string
	Rate      template.HTML
	Latency   template.HTML
	Refusals  []refusalRow
	Refused   string
	More      int
	Checks    []summary.Check
	OldestDue string
}

type figure struct{ Name, Value, Class, Note, Path string }

type refusalRow struct{ Partner, Operation, Code, Meaning, Count, Path string }

func showToday(q *request) error {
	s := q.activity.snapshot(q.real)
	due, checked, err := q.atAGlance()
	if err != nil {
		return err
	}
	on := q.today().String()
	t := today{Heading: calendar(q.today()), Since: q.dated(s.since), Checks: q.o.Checks(), Refused: with("/console/refusals", "day", on)}
	t.Figures = q.figures(s, due, q.book(checked))
	if len(due.late) > 0 {
		t.OldestDue = calendar(due.late[0].Day)
	}
	last := len(s.rate) - 1
	from, to := q.real.Add(-time.Duration(last)*time.Minute).In(q.o.Zone).Format("15:04"), q.real.In(q.o.Zone).Format("15:04")
	latest := s.rate[last]
	t.Rate = chart(halfWidth, fmt.Sprintf("Requests a second over the last hour: now %s, at most %s.", short(latest), short(slices.Max(s.rate))), "", from, to, false, line{"first", s.rate})
	t.Latency = chart(halfWidth, fmt.Sprintf("Time to answer over the last hour. 99th percentile: now %s ms, at most %s ms. Median: now %s ms.",
		short(s.slow[last]), short(slices.Max(s.slow)), short(s.median[last])), "ms", from, to, false, line{"first", s.slow}, line{"second", s.median})
	for i, r := range s.refusals {
		if i == 12 {
			t.More = len(s.refusals) - i
			break
		}
		row := refusalRow{Partner: or(r.subscription, "no subscription"), Operation: r.operation, Code: r.code, Meaning: explainCode(r.code).Meaning, Count: count(r.count)}
		if r.kept {
			row.Path = with("/console/refusals", "day", on, "partner", r.subscription, "code", r.code)
		}
		t.Refusals = append(t.Refusals, row)
	}
	return q.show("today", t)
}

// glance is what the page Today reads from the database. All pages that refresh
// themselves within a second share one. A page that a person opens reads anew.
type glance struct {
	mu      sync.Mutex
	of      day.Day
	read    time.Time
	due     dueDays
	checked *verified
}

const glanceAge = time.Second

// atAGlance returns what waits, and the last check of the book.
func (q *request) atAGlance() (dueDays, *verified, error) {
	g := &q.glance
	g.mu.Lock()
	defer g.mu.Unlock()
	if age := q.real.Sub(g.read).Abs(); q.Header.Get("X-Live") != "" && g.of == q.today() && age < glanceAge {
		return g.due, g.checked, nil
	}
	due, err := q.due(q.today().Plus(maxAhead))
	if err != nil {
		return due, nil, err
	}
	checked, err := q.lastVerify()
	if err != nil {
		return due, nil, err
	}
	g.of, g.read, g.due, g.checked = q.today(), q.real, due, checked
	return due, checked, nil
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// book is the figure of the last check of the book: the one that runs, or the
// newest that was recorded, by whichever program.
func (q *request) book(last *verified) figure {
	f := figure{Name: "Book", Value: "unchecked", Note: "no check is recorded", Path: "/console/proof"}
	if running, rows := q.proof.progressNow(); running {
		f.Value, f.Class, f.Note = "checking", "wait", grouped(itoa(rows))+" rows"
		return f
	}
	if last != nil {
		f.Value, f.Class, f.Note = "holds", "good", "checked "+last.Short
		if !last.Holds {
			f.Value, f.Class = last.Result, "bad"
		}
	}
	return f
}

// figures are the numbers at the top.
func (q *request) figures(s snapshot, d dueDays, book figure) []figure {
	note := func(n int, text string) string {
		if n == 0 {
			return ""
		}
		return count(n) + " " + text
	}
	class := func(n int, name string) string {
		if n == 0 {
			return ""
		}
		return name
	}
	on := q.today().String()
	waiting := figure{Name: "Waiting for a day", Value: d.total(), Path: "/console/due"}
	if late := d.lateSales(); late > 0 {
		waiting.Class, waiting.Note = "bad", d.lateText()+" due, not settled"
	}
	return []figure{
		{"Sales completed", count(s.completed), class(s.completed, "good"), note(s.settled, "more on their day"), with("/console/sales", "day", on, "state", "2")},
		{"Refused operations", count(s.refused), class(s.refused, "bad"), note(s.lapsed, "sales failed on their day"), with("/console/refusals", "day", on)},
		{"Sales recorded", count(s.recorded), class(s.recorded, "wait"), "for a later day", "/console/due"},
		waiting,
		{"Messages accepted", count(s.messages), "", note(s.replayed, "repeats answered"), "/console/notifications"},
		{"Rejected requests", count(s.rejected), "", note(s.failed, "answered 5xx"), ""},
		book,
	}
}

// maxAhead is how many days ahead a sale may be recorded.
const maxAhead = 366

// dueDays are the sales that wait, counted up to a limit.
type dueDays struct {
	days []backoffice.DueDay
	late []backoffice.DueDay
	more bool // there are more than were counted
}

// maxWaiting is how many waiting sales a page counts. More are shown as "over".
const maxWaiting = 20_000

// due counts what waits for that day or an earlier one, by day.
func (q *request) due(until day.Day) (found dueDays, err error) {
	if found.days, err = q.o.Office.Lookups.DueDays(q.ctx, until, maxWaiting); err != nil {
		return found, err
	}
	sales := 0
	for _, d := range found.days {
		sales += int(d.Sales)
		if !d.Day.After(q.today()) {
			found.late = append(found.late, d)
		}
	}
	found.more = sales == maxWaiting
	return found, nil
}

func (d dueDays) total() string {
	n := 0
	for _, each := range d.days {
		n += int(each.Sales)
	}
	return d.text(n)
}

func (d dueDays) lateSales() (n int) {
	for _, each := range d.late {
		n += int(each.Sales)
	}
	return n
}

func (d dueDays) lateText() string {
	if len(d.late) == len(d.days) {
		return d.text(d.lateSales())
	}
	return count(d.lateSales())
}

func (d dueDays) text(n int) string {
	if d.more {
		return "over " + count(n)
	}
	return count(n)
}
