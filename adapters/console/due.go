package console

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sort"
	"strconv"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

type duePage struct {
	Due dueDays
	// Closed are the days of Due on which the bank is closed.
	Closed map[day.Day]*backoffice.ClosedWait
	dueFilter
	// Until is the last day whose sales are forecast.
	Until day.Day
	forecast
	// Page is the number of the page of Rows, from 1.
	Page       int
	Failed     []fund.SaleEntry
	MoreFailed bool // more sales may have failed than are listed
}

// dueFilter selects the rows of a forecast. No day selects what is due now.
type dueFilter struct {
	Day    day.Day
	Fund   string
	Result string // complete, wait or fail; empty selects all that do not wait for a price
}

// forecast is what would happen to the waiting sales, in the order in which they are settled.
type forecast struct {
	Groups []dueGroup
	// Rows is the chosen page of the rows that fit the filter, Fitting how many there are.
	Rows    []fund.Forecast
	Fitting int
	// Sales is the number of sales that were forecast, without those of days before the chosen
	// one. Cut says that more wait: the page ended at maxForecast sales or at the end of its time.
	Sales int64
	Cut   bool
}

// dueGroup sums the sales with one result: those that wait for one price are one line.
type dueGroup struct {
	dueResult
	Sales    int64
	Units    backoffice.Sum
	Proceeds backoffice.Sum
	PriceID  int64 // of an estimate, the newest price
}

// dueResult is what a group has in common.
type dueResult struct {
	Result, Refusal string
	Of              fund.PriceDay
	Currency        money.Currency
	IsPriced        bool // they wait for the price of another sale of their request
}

// The results of a forecast.
const (
	completes = "complete"
	waits     = "wait"
	fails     = "fail"
)

func resultOf(f *fund.Forecast) string {
	switch f.State {
	case operation.Completed:
		return completes
	case operation.Failed:
		return fails
	default:
		return waits
	}
}

const (
	// maxWaiting is how many waiting sales a page counts. More are shown as "over".
	maxWaiting = 20_000
	// maxForecast is how many sales a page shows the forecast of, in at most forecastTime.
	maxForecast  = 10_000
	forecastTime = 1700 * time.Millisecond
	failedDays   = 30 // for which a sale that failed on its day is shown
	// A page shows at most maxFailed of these, of at most maxFailedRead failed sales.
	maxFailed, maxFailedRead = 20, 2000
)

func showDue(q *request) (any, error) {
	filter, err := dueFilterOf(q)
	if err != nil {
		return nil, err
	}
	p := duePage{dueFilter: filter, Until: cmp.Or(filter.Day, q.Options.DueUntil()), Page: 1}
	if n, err := strconv.Atoi(q.query("page")); err == nil && n > 1 {
		p.Page = min(n, maxForecast/pageSize)
	}
	if p.Due, err = dueOf(q); err != nil {
		return nil, err
	}
	if p.Closed, err = closedDays(q, p.Due.Days); err != nil {
		return nil, err
	}
	if p.forecast, err = forecastDue(q, filter, p.Until, p.Page); err != nil {
		return nil, err
	}
	p.Page = min(p.Page, max(1, p.Pages()))
	p.Failed, p.MoreFailed, err = failedOnTheirDay(q)
	return p, err
}

func dueFilterOf(q *request) (f dueFilter, err error) {
	f.Fund = q.query("fund")
	f.Result = q.query("result")
	if f.Result != "" && !slices.Contains([]string{completes, waits, fails}, f.Result) {
		return f, errNothing
	}
	f.Day, err = parseDay(q.query("day"))
	return f, err
}

// fits reports whether a row is in the list. What waits for one price is one line of the groups.
func (f dueFilter) fits(s *fund.Forecast) bool {
	result := resultOf(s)
	isDay := f.Day.IsNone() || s.Terms.SelectedDay == f.Day
	isFund := f.Fund == "" || s.Terms.Holding.IMKBCode == f.Fund
	isResult := f.Result == result || f.Result == "" && (result != waits || f.Fund != "")
	return isDay && isFund && isResult
}

// forecastDue settles the sales until a day in memory. Earlier sales take their units first, so
// all of them are read, also those of other days than the chosen one. If sales were settled since
// the page was chosen, it may not exist any more: then Rows has the last page.
func forecastDue(q *request, filter dueFilter, until day.Day, page int) (all forecast, err error) {
	ctx, cancel := context.WithTimeout(q.ctx, forecastTime)
	defer cancel()
	hasRead := false // a database that does not answer is another matter
	for f, err := range q.Options.Forecast(ctx, until) {
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && hasRead {
			all.Cut = true
			break
		}
		if err != nil {
			return all, err
		}
		hasRead = true
		if !filter.Day.IsNone() && f.Terms.SelectedDay != filter.Day {
			continue
		}
		if all.Sales == maxForecast {
			all.Cut = true
			break
		}
		all.Sales++
		all.group(&f)
		if !filter.fits(&f) {
			continue
		}
		if all.Fitting < page*pageSize {
			if all.Fitting%pageSize == 0 { // the rows of the page before, which would be the last one
				all.Rows = nil
			}
			all.Rows = append(all.Rows, f)
		}
		all.Fitting++
	}
	slices.SortStableFunc(all.Groups, func(a, b dueGroup) int {
		return cmp.Or(cmp.Compare(a.Result, b.Result), cmp.Compare(b.Sales, a.Sales))
	})
	return all, nil
}

// group adds a sale to the line of its result.
func (all *forecast) group(f *fund.Forecast) {
	of := dueResult{Result: resultOf(f), Refusal: f.Refusal, Of: f.PriceDay(), Currency: f.Terms.Account.Currency}
	of.IsPriced = of.Result == waits && f.IsPriced
	at := slices.IndexFunc(all.Groups, func(known dueGroup) bool { return known.dueResult == of })
	if at < 0 {
		at, all.Groups = len(all.Groups), append(all.Groups, dueGroup{dueResult: of, PriceID: f.PriceID})
	}
	g := &all.Groups[at]
	g.Sales++
	g.Units = g.Units.Plus(backoffice.SumOf(int64(f.Terms.Units)))
	g.Proceeds = g.Proceeds.Plus(backoffice.SumOf(f.Proceeds.Minor()))
}

// Pages returns the number of pages of Rows.
func (p duePage) Pages() int { return (p.Fitting + pageSize - 1) / pageSize }

// Path returns the path of another page of the rows.
func (p duePage) Path(page int) string {
	text := ""
	if page > 1 {
		text = strconv.Itoa(page)
	}
	return with("/console/due", "day", p.Day.String(), "fund", p.Fund, "result", p.Result, "page", text) + "#waiting"
}

// closedDays returns the days on which the bank is closed, of those for which sales wait.
func closedDays(q *request, days []backoffice.DueDay) (map[day.Day]*backoffice.ClosedWait, error) {
	closed := make(map[day.Day]*backoffice.ClosedWait)
	all, err := q.Options.Office.ClosedWaiting(q.ctx, days)
	for _, of := range all {
		closed[of.ClosedDay.Day] = &of
	}
	return closed, err
}

func exportDue(q *request) (any, error) {
	f, err := dueFilterOf(q)
	if err != nil {
		return nil, err
	}
	q.about = " " + f.Day.String() + " " + f.Fund
	waiting := backoffice.Query{State: operation.Recorded, DueSince: f.Day, DueUntil: f.Day, IMKBCode: f.Fund, Order: backoffice.ByDay}
	return download(q, "due", bookfile.Sales, q.Options.Office.Reader.Sales(q.r.Context(), waiting))
}

// failedOnTheirDay returns the sales that failed on their day, last settled first, without
// cancelled sales. more is true if other sales may exist.
func failedOnTheirDay(q *request) (all []fund.SaleEntry, more bool, err error) {
	since := q.Clock.bank.AddDate(0, 0, -failedDays)
	read := 0
	f := backoffice.Query{Order: backoffice.Newest, State: operation.Failed, Limit: maxFailedRead, Since: q.Clock.Machine.AddDate(0, 0, -fund.MaxDaysAhead-failedDays), Until: q.Clock.bank.Add(time.Hour)}
	for s, err := range q.Options.Office.Reader.Sales(q.ctx, f) {
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
	found.Days, err = q.Options.Office.Lookups.DueDays(q.ctx, backoffice.DueQuery{Limit: maxWaiting + 1})
	found.Late = found.Days[:sort.Search(len(found.Days), func(i int) bool { return found.Days[i].Day.After(q.Options.DueUntil()) })]
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
