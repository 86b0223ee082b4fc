package console

import (
	"context"
	"iter"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// dueView is the page Due.
type dueView struct {
	Day      string
	Shown    string
	Months   []month
	Late     []dueDayRow
	Total    string
	Rows     []saleRow
	MoreRows bool
	Failed   []saleRow
	Export   string
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
	v := dueView{Day: chosen.String(), Shown: calendar(chosen), Total: due.total(), Export: with("/console/due/export", "day", chosen.String()), Months: q.months(due)}
	for _, d := range due.late {
		v.Late = append(v.Late, dueDayRow{calendar(d.Day), plural(int(d.Operations), "request"), plural(int(d.Sales), "sale"), duePath(d.Day)})
	}
	if err := q.waiting(&v, chosen); err != nil {
		return err
	}
	failed := backoffice.RecentFilter{State: operation.Failed, Limit: 20, Since: q.real.AddDate(0, 0, -30), Until: q.now.Add(time.Hour)}
	for s, err := range q.o.Office.Recent.RecentSales(q.ctx, failed) {
		if err != nil {
			return err
		}
		v.Failed = append(v.Failed, q.saleRow(&s))
	}
	return q.show("due", v)
}

func duePath(d day.Day) string { return with("/console/due", "day", d.String()) + "#waiting" }

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
	return q.o.Office.Recorded.RecordedSales(ctx, chosen, until, limit)
}

func exportDue(q *request) error {
	chosen, err := q.day(q.URL.Query().Get("day"))
	if err != nil {
		return err
	}
	return q.exportSales("due", func(ctx context.Context) iter.Seq2[fund.SaleEntry, error] { return q.recorded(ctx, chosen, 0) })
}

// months are this month and the next ones, as far as something waits, at least
// two and at most six.
func (q *request) months(due dueDays) (all []month) {
	sales := make(map[day.Day]int)
	last := q.today()
	for _, d := range due.days {
		sales[d.Day], last = int(d.Sales), d.Day
	}
	first := q.today().Start(time.UTC)
	start := time.Date(first.Year(), first.Month(), 1, 0, 0, 0, 0, time.UTC)
	for len(all) < 6 && (len(all) < 2 || !start.After(last.Start(time.UTC))) {
		m := month{Name: start.Format("January 2006"), Blank: make([]struct{}, (int(start.Weekday())+6)%7)}
		for at := start; at.Month() == start.Month(); at = at.AddDate(0, 0, 1) {
			d := day.Of(at, time.UTC)
			cell := calendarDay{Number: at.Day(), Name: calendar(d), Today: d == q.today()}
			if n := sales[d]; n > 0 {
				cell.Has, cell.Late, cell.Sales, cell.Path = true, !d.After(q.today()), count(n), duePath(d)
			}
			m.Days = append(m.Days, cell)
		}
		all = append(all, m)
		start = start.AddDate(0, 1, 0)
	}
	return all
}
