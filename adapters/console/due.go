package console

import (
	"context"
	"iter"
	"slices"
	"sort"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

type duePage struct {
	Day day.Day // only sales of this day are listed; no day lists all
	Due dueDays
	// Months are this month, the next month and the months in which sales wait. Sales counts
	// the waiting sales by day.
	Months []time.Time
	Sales  map[day.Day]int64
	// Rows are the first waiting sales, one more than the page shows. Forecast means that Rows
	// has the results of settling now.
	Rows       []fund.SaleEntry
	Forecast   bool
	Failed     []fund.SaleEntry
	MoreFailed bool // more sales may have failed than are listed
}

func showDue(q *request) (any, error) {
	chosen, err := parseDay(q.query("day"))
	if err != nil {
		return nil, err
	}
	p := duePage{Day: chosen, Sales: make(map[day.Day]int64)}
	if p.Due, err = dueOf(q); err != nil {
		return nil, err
	}
	// If few sales are due, or wait for a chosen day, the page shows them as settled now.
	until, before, waits := chosen, int64(0), make(map[string]bool)
	if chosen.IsNone() {
		until = q.DueUntil()
	}
	for _, d := range p.Due.Days {
		if !d.Day.After(until) {
			before += d.Sales
		}
		p.Sales[d.Day], waits[d.Day.String()[:len("2006-01")]] = d.Sales, true
	}
	today := q.Today().Start(time.UTC)
	for i := range fund.MaxDaysAhead/28 + 1 {
		if month := today.AddDate(0, i, 1-today.Day()); i <= 1 || waits[month.Format("2006-01")] {
			p.Months = append(p.Months, month)
		}
	}
	p.Forecast = before > 0 && before <= maxForecast && (len(p.Due.Late) > 0 || !chosen.IsNone())
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
		if p.Rows = append(p.Rows, s); len(p.Rows) > pageSize {
			break
		}
	}
	p.Failed, p.MoreFailed, err = failedOnTheirDay(q)
	return p, err
}

// recorded yields the sales that wait for a day, or for all days if no day is chosen.
func recorded(ctx context.Context, q *request, chosen day.Day, limit int) iter.Seq2[fund.SaleEntry, error] {
	return q.Office.Reader.Sales(ctx, backoffice.Query{State: operation.Recorded, DueSince: chosen, DueUntil: chosen, Limit: limit, Order: backoffice.ByDay})
}

func exportDue(q *request) (any, error) {
	chosen, err := parseDay(q.query("day"))
	if err != nil {
		return nil, err
	}
	q.about = " " + chosen.String()
	return download(q, "due", bookfile.Sales, recorded(q.r.Context(), q, chosen, 0))
}

const (
	// maxWaiting is how many waiting sales a page counts. More are shown as "over".
	maxWaiting  = 20_000
	maxForecast = 500 // sales on a page
	failedDays  = 30  // for which a sale that failed on its day is shown
	// A page shows at most maxFailed of these, of at most maxFailedRead failed sales.
	maxFailed, maxFailedRead = 20, 2000
)

// failedOnTheirDay returns the sales that failed on their day, last settled first, without
// cancelled sales. more is true if other sales may exist.
func failedOnTheirDay(q *request) (all []fund.SaleEntry, more bool, err error) {
	since, read := q.bank.AddDate(0, 0, -failedDays), 0
	f := backoffice.Query{Order: backoffice.Newest, State: operation.Failed, Limit: maxFailedRead, Since: q.machine.AddDate(0, 0, -fund.MaxDaysAhead-failedDays), Until: q.bank.Add(time.Hour)}
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

// dueDays has the waiting sales by day. Late has the days that are due.
type dueDays struct{ Days, Late []backoffice.DueDay }

func dueOf(q *request) (found dueDays, err error) {
	found.Days, err = q.Office.Lookups.DueDays(q.ctx, q.Today().Plus(fund.MaxDaysAhead), maxWaiting+1)
	found.Late = found.Days[:sort.Search(len(found.Days), func(i int) bool { return found.Days[i].Day.After(q.DueUntil()) })]
	return found, err
}

func total(days []backoffice.DueDay) string {
	var n int64
	for _, d := range days {
		n += d.Sales
	}
	if n <= maxWaiting {
		return count(n)
	}
	return "over " + count(maxWaiting)
}
