package console

import (
	"context"
	"iter"
	"slices"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// duePage is the page Due.
type duePage struct {
	Day    day.Day // whose sales are listed, none for all
	Months []month
	dueDays
	// Rows are the first sales that wait. Forecast says that they are as they would be if
	// they were settled now.
	Rows       []fund.SaleEntry
	Forecast   bool
	MoreRows   bool
	Failed     []fund.SaleEntry
	MoreFailed bool // more sales may have failed than are listed
	Export     string
}

// month is a month of the calendar, from Monday on.
type month struct {
	Name  string
	Blank []struct{}
	Days  []calendarDay
}

type calendarDay struct {
	Number      int
	Day         day.Day
	Sales       int64
	Today, Late bool
}

func duePath(d day.Day) string { return with("/console/due", "day", d.String()) + "#waiting" }

func showDue(q *request) (any, error) {
	chosen, err := parseDay(q.query("day"))
	if err != nil {
		return nil, err
	}
	p := duePage{Day: chosen, Export: with("/console/due/export", "day", chosen.String())}
	if p.dueDays, err = dueOf(q); err != nil {
		return nil, err
	}
	p.addMonths(q.Today())
	// What is due, or waits for a chosen day, is shown as it would be settled now, if few
	// sales come before it.
	until := chosen
	if chosen.IsNone() {
		until = q.Today()
	}
	before := salesOn(slices.DeleteFunc(slices.Clone(p.Days), func(d backoffice.DueDay) bool { return d.Day.After(until) }))
	p.Forecast = before > 0 && before <= maxForecast && (len(p.Late) > 0 || !chosen.IsNone())
	rows := recorded(q.ctx, q, chosen, pageSize+1)
	if p.Forecast {
		rows = q.Forecast(q.ctx, until)
	}
	for s, err := range rows {
		if err != nil {
			return nil, err
		}
		if !chosen.IsNone() && s.Terms.SelectedDay != chosen {
			continue
		}
		if p.MoreRows = len(p.Rows) == pageSize; p.MoreRows {
			break
		}
		p.Rows = append(p.Rows, s)
	}
	p.Failed, p.MoreFailed, err = failedOnTheirDay(q)
	return p, err
}

// maxForecast is for how many sales a page says what would happen.
const maxForecast = 500

// recorded yields the sales that wait for a day; those of all days if it is none.
func recorded(ctx context.Context, q *request, chosen day.Day, limit int) iter.Seq2[fund.SaleEntry, error] {
	until := chosen
	if chosen.IsNone() {
		until = q.Today().Plus(maxAhead)
	}
	return q.Office.Reader.Sales(ctx, backoffice.Query{State: operation.Recorded, DueSince: chosen, DueUntil: until, Limit: limit, Order: backoffice.ByDay})
}

func exportDue(q *request) (any, error) {
	chosen, err := parseDay(q.query("day"))
	if err != nil {
		return nil, err
	}
	return download(q, "due", bookfile.Sales, func(ctx context.Context) iter.Seq2[fund.SaleEntry, error] { return recorded(ctx, q, chosen, 0) })
}

const (
	// failedDays is for how many days a sale that failed on its day is shown.
	failedDays = 30
	// maxFailed is how many of them are shown, and maxFailedRead how many failed
	// sales are read for it. They have an index by receipt.
	maxFailed, maxFailedRead = 20, 2000
)

// failedOnTheirDay lists the sales that failed on their day, the last settled first. A sale
// may have been received long before. A cancelled sale did not reach its day. more is
// true if there may be others.
func failedOnTheirDay(q *request) (all []fund.SaleEntry, more bool, err error) {
	since, read := q.bank.AddDate(0, 0, -failedDays), 0
	f := backoffice.Query{Order: backoffice.Newest, State: operation.Failed, Limit: maxFailedRead, Since: q.machine.AddDate(0, 0, -maxAhead-failedDays), Until: q.bank.Add(time.Hour)}
	for s, err := range q.Office.Reader.Sales(q.ctx, f) {
		if err != nil {
			return nil, false, err
		}
		if read++; s.Refusal != fault.Cancelled && s.SettledAt.After(since) {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b fund.SaleEntry) int { return b.SettledAt.Compare(a.SettledAt) })
	return all[:min(len(all), maxFailed)], len(all) > maxFailed || read == maxFailedRead, nil
}

// addMonths adds this month, the next one and the later ones in which something waits.
func (p *duePage) addMonths(today day.Day) {
	sales := make(map[day.Day]int64)
	waits := make(map[string]bool)
	for _, d := range p.Days {
		sales[d.Day], waits[d.Day.String()[:len("2006-01")]] = d.Sales, true
	}
	first := today.Start(time.UTC)
	first = first.AddDate(0, 0, 1-first.Day())
	for i := range maxAhead/28 + 1 {
		start := first.AddDate(0, i, 0)
		if i > 1 && !waits[start.Format("2006-01")] {
			continue
		}
		m := month{Name: start.Format("January 2006"), Blank: make([]struct{}, (int(start.Weekday())+6)%7)}
		for at := start; at.Month() == start.Month(); at = at.AddDate(0, 0, 1) {
			d := day.Of(at, time.UTC)
			m.Days = append(m.Days, calendarDay{at.Day(), d, sales[d], d == today, sales[d] > 0 && !d.After(today)})
		}
		p.Months = append(p.Months, m)
	}
}

// maxAhead is how many days ahead a sale may be recorded.
const maxAhead = 366

// maxWaiting is how many waiting sales a page counts. More are shown as "over".
const maxWaiting = 20_000

// dueDays are the sales that wait, in the order of their days. Late are those whose
// day has come.
type dueDays struct{ Days, Late []backoffice.DueDay }

// dueOf counts what waits, by day.
func dueOf(q *request) (found dueDays, err error) {
	found.Days, err = q.Office.Lookups.DueDays(q.ctx, q.Today().Plus(maxAhead), maxWaiting)
	for _, d := range found.Days {
		if !d.Day.After(q.Today()) {
			found.Late = append(found.Late, d)
		}
	}
	return found, err
}

func salesOn(days []backoffice.DueDay) (n int64) {
	for _, d := range days {
		n += d.Sales
	}
	return n
}

// Total is how many sales wait.
func (d dueDays) Total() string { return total(d.Days) }

// TotalLate is how many of them are due.
func (d dueDays) TotalLate() string { return total(d.Late) }

func total(days []backoffice.DueDay) string {
	if n := salesOn(days); n < maxWaiting {
		return count(n)
	}
	return "over " + count(maxWaiting)
}
