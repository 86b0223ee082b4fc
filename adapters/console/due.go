package console

import (
	"context"
	"iter"
	"slices"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// dueView is the page Due.
type dueView struct {
	Day    string
	Shown  string
	Months []month
	// Beyond is what waits after BeyondMonth, the last of Months, with its first day.
	Beyond      dueDayRow
	BeyondMonth string
	Late        []dueDayRow
	Total       string
	Rows        []saleRow
	MoreRows    bool
	Failed      []saleRow
	// MoreFailed is true if more sales may have failed than are listed.
	MoreFailed bool
	Export     string
}

type dueDayRow struct{ Day, Operations, Sales, Path string }

// month is a month of the calendar, from Monday on.
type month struct {
	Name  string
	Blank []struct{}
	Days  []calendarDay
}

type calendarDay struct {
	Number           int
	Name, Sales      string
	Path             string
	Today, Has, Late bool
}

func showDue(q *request) error {
	chosen, err := q.day(q.URL.Query().Get("day"))
	if err != nil {
		return err
	}
	if err := q.look(); err != nil {
		return err
	}
	due, err := q.due(q.today().Plus(maxAhead))
	if err != nil {
		return err
	}
	v := dueView{Day: chosen.String(), Shown: calendar(chosen), Total: due.total(), Export: with("/console/due/export", "day", chosen.String())}
	q.months(&v, due)
	for _, d := range due.late {
		v.Late = append(v.Late, dueDayRow{calendar(d.Day), plural(int(d.Operations), "request"), plural(int(d.Sales), "sale"), duePath(d.Day)})
	}
	if err := q.waiting(&v, chosen); err != nil {
		return err
	}
	if err := q.failed(&v); err != nil {
		return err
	}
	return q.show("due", v)
}

func duePath(d day.Day) string { return with("/console/due", "day", d.String()) + "#waiting" }

const (
	// failedDays is for how many days a sale that failed on its day is shown.
	failedDays = 30
	// maxFailed is how many of them are shown, and maxFailedRead how many failed
	// sales are read for it. They have an index by receipt.
	maxFailed, maxFailedRead = 20, 2000
)

// failed lists the sales that failed on their day, the last settled first. A sale
// may have been received long before. A cancelled sale did not reach its day.
func (q *request) failed(v *dueView) error {
	since, read := q.now.AddDate(0, 0, -failedDays), 0
	f := backoffice.Query{State: operation.Failed, Limit: maxFailedRead, Since: q.real.AddDate(0, 0, -maxAhead-failedDays), Until: q.now.Add(time.Hour), Order: backoffice.Newest}
	var failed []fund.SaleEntry
	for s, err := range q.o.Office.Reader.Sales(q.ctx, f) {
		if err != nil {
			return err
		}
		if read++; s.Refusal != fault.Cancelled && s.SettledAt.After(since) {
			failed = append(failed, s)
		}
	}
	slices.SortStableFunc(failed, func(a, b fund.SaleEntry) int { return b.SettledAt.Compare(a.SettledAt) })
	v.MoreFailed = len(failed) > maxFailed || read == maxFailedRead
	for i := range failed[:min(len(failed), maxFailed)] {
		row := q.saleRow(&failed[i])
		row.Why += " on " + calendar(day.Of(failed[i].SettledAt, q.o.Zone))
		v.Failed = append(v.Failed, row)
	}
	return nil
}

// waiting lists the sales of a day, or the first that wait.
func (q *request) waiting(v *dueView, chosen day.Day) error {
	for s, err := range q.recorded(q.ctx, chosen, pageSize+1) {
		if err != nil {
			return err
		}
		if len(v.Rows) == pageSize {
			v.MoreRows = true
			break
		}
		v.Rows = append(v.Rows, q.saleRow(&s))
	}
	return nil
}

// recorded yields the sales that wait for a day; those of all days if it is none.
func (q *request) recorded(ctx context.Context, chosen day.Day, limit int) iter.Seq2[fund.SaleEntry, error] {
	until := chosen
	if chosen.IsNone() {
		until = q.today().Plus(maxAhead)
	}
	return q.o.Office.Reader.Sales(ctx, backoffice.Query{State: operation.Recorded, DueSince: chosen, DueUntil: until, Limit: limit, Order: backoffice.ByDay})
}

func exportDue(q *request) error {
	chosen, err := q.day(q.URL.Query().Get("day"))
	if err != nil {
		return err
	}
	return q.exportSales("due", func(ctx context.Context) iter.Seq2[fund.SaleEntry, error] { return q.recorded(ctx, chosen, 0) })
}

// maxMonths is how many months the calendar shows.
const maxMonths = 6

// months fills in this month, the next one and the later ones in which something
// waits. What waits after them is one line.
func (q *request) months(v *dueView, due dueDays) {
	sales := make(map[day.Day]int)
	waits := make(map[string]bool)
	for _, d := range due.days {
		sales[d.Day], waits[d.Day.String()[:len("2006-01")]] = int(d.Sales), true
	}
	first := q.today().Start(time.UTC)
	first = time.Date(first.Year(), first.Month(), 1, 0, 0, 0, 0, time.UTC)
	after := first
	for i := 0; len(v.Months) < maxMonths && i <= maxAhead/28; i++ {
		start := first.AddDate(0, i, 0)
		if i > 1 && !waits[start.Format("2006-01")] {
			continue
		}
		after = start.AddDate(0, 1, 0)
		m := month{Name: start.Format("January 2006"), Blank: make([]struct{}, (int(start.Weekday())+6)%7)}
		for at := start; at.Month() == start.Month(); at = at.AddDate(0, 0, 1) {
			d := day.Of(at, time.UTC)
			cell := calendarDay{Number: at.Day(), Name: calendar(d), Today: d == q.today()}
			if n := sales[d]; n > 0 {
				cell.Has, cell.Late, cell.Sales, cell.Path = true, !d.After(q.today()), count(n), duePath(d)
			}
			m.Days = append(m.Days, cell)
		}
		v.Months = append(v.Months, m)
	}
	beyond := 0
	for _, d := range due.days {
		if d.Day.Before(day.Of(after, time.UTC)) {
			continue
		}
		if beyond == 0 {
			v.Beyond = dueDayRow{Day: calendar(d.Day), Path: duePath(d.Day)}
		}
		beyond += int(d.Sales)
	}
	if beyond > 0 {
		v.Beyond.Sales, v.BeyondMonth = due.text(beyond), after.AddDate(0, -1, 0).Format("January 2006")
	}
}
