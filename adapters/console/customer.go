package console

import (
	"context"
	"iter"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

// customerPage is the page of a customer.
type customerPage struct {
	CustomerNo int64
	Path       string
	// Day is the day that is shown, none for now. Past says that it is over.
	Day  day.Day
	Past bool
	backoffice.Customer
	// Chosen is the holding or account whose line over time is drawn: the holdings are
	// counted first, from 0. Name names it.
	Chosen int
	Name   string
	Line   *picture // nil if it never changed
	// Sales are the newest, and AllSales is where all are. Refused and AllRefused are the
	// same of sales that were refused at once.
	Sales, Refused       []fund.SaleEntry
	AllSales, AllRefused string
	// Statement has the newest postings. Total counts those that were read, at most
	// maxPostingsRead and one more.
	Statement []backoffice.Line
	Total     int
}

const (
	// maxStory is how many sales the page has, maxLines how many postings: the newest.
	maxStory, maxLines = 20, 100
	// maxPostingsRead is how many postings a line over time goes back.
	maxPostingsRead = 2000
)

// customerAt reads the reference and the day of a request. Until is the zero time
// if the day is not over.
func customerAt(q *request) (customerNo int64, d day.Day, until time.Time, err error) {
	if err := q.follow(q.r.PathValue("ref"), &customerNo); err != nil {
		return 0, d, until, err
	}
	q.of.customer = customerNo
	d, err = parseDay(q.query("day"))
	switch today := q.Today(); {
	case err != nil || d.IsNone() || d == today:
	case d.After(today):
		err = &problem{http.StatusBadRequest, calendar(d) + " has not come: choose " + calendar(today) + ", which is today at the bank, or an earlier day."}
	default:
		until = d.Plus(1).Start(q.Zone)
	}
	return customerNo, d, until, err
}

func showCustomer(q *request) (any, error) {
	n, d, until, err := customerAt(q)
	if err != nil {
		return nil, err
	}
	of := url.Values{ofCustomer.Name: {strconv.FormatInt(n, 10)}}
	p := customerPage{
		CustomerNo: n, Path: q.r.URL.Path, Day: d, Past: !until.IsZero(),
		AllSales: sales.address(q, "", of), AllRefused: refusals.address(q, "", of),
	}
	if p.Customer, err = q.Office.Finder.Customer(q.ctx, n, until); err != nil {
		return nil, err
	}
	for _, list := range []*[]fund.SaleEntry{&p.Sales, &p.Refused} {
		for s, err := range q.Office.Reader.Sales(q.ctx, backoffice.Query{CustomerNo: n, Refused: list == &p.Refused, Until: until, Order: backoffice.Newest, Limit: maxStory}) {
			if err != nil {
				return nil, err
			}
			*list = append(*list, s)
		}
	}
	// The quantity after a posting is counted back from what the customer has.
	after := make(map[positionKey]int64)
	for _, h := range p.Holdings {
		after[positionKey{holding: h.Key}] = int64(h.Units)
	}
	for _, a := range p.Accounts {
		after[positionKey{account: a.Key}] = a.Balance.Minor()
	}
	points := make(map[positionKey][]point)
	for posting, err := range q.Office.Reader.Postings(q.ctx, backoffice.Query{CustomerNo: n, Until: until, Order: backoffice.Newest, Limit: maxPostingsRead + 1}) {
		if err != nil {
			return nil, err
		}
		of := positionKey{posting.Holding, posting.Account}
		if p.Total++; p.Total <= maxLines {
			p.Statement = append(p.Statement, backoffice.Line{PostingEntry: posting, After: after[of]})
		}
		points[of] = append(points[of], point{posting.PostedAt, after[of]})
		after[of] -= posting.Quantity
	}
	p.Chosen, _ = strconv.Atoi(q.query("line"))
	var line positionKey
	switch i := p.Chosen - len(p.Holdings); {
	case p.Chosen < 0 || i >= len(p.Accounts):
	case i < 0:
		line.holding = p.Holdings[p.Chosen].Key
		p.Name = "units of " + line.holding.IMKBCode
	default:
		line.account = p.Accounts[i].Key
		p.Name = "account " + q.Account(line.account)
	}
	to := q.bank
	if p.Past && until.Before(to) {
		to = until
	}
	slices.Reverse(points[line])
	p.Line = lineOf(q, line, points[line], to)
	return p, nil
}

// LinePath is the page with the line over time of a holding or an account.
func (p customerPage) LinePath(of int) string {
	return with(p.Path, "day", p.Day.String(), "line", strconv.Itoa(of)) + "#line"
}

// positionKey is a holding or an account; the other is the zero value.
type positionKey struct {
	holding fund.HoldingKey
	account fund.AccountKey
}

// point is a quantity from a time on.
type point struct {
	at    time.Time
	after int64
}

// lineSteps is how many steps a line over time has.
const lineSteps = 280

// lineOf draws a holding or an account over time.
func lineOf(q *request, of positionKey, points []point, to time.Time) *picture {
	if len(points) == 0 {
		return nil
	}
	decimals, unit := fund.UnitDecimals, of.holding.IMKBCode
	if unit == "" {
		decimals, unit = of.account.Currency.Decimals(), of.account.Currency.Code()
	}
	scale := math.Pow10(decimals)
	from := points[0].at
	if !to.After(from) {
		to = from.Add(time.Second)
	}
	values := make([]float64, lineSteps)
	next := 0
	for i := range values {
		at := from.Add(time.Duration(float64(to.Sub(from)) * float64(i) / (lineSteps - 1)))
		for next < len(points)-1 && !points[next+1].at.After(at) {
			next++
		}
		values[i] = float64(points[next].after) / scale
	}
	values[lineSteps-1] = float64(points[len(points)-1].after) / scale
	layout := "2 Jan 2006"
	if to.Sub(from) < 48*time.Hour {
		layout = "2 Jan 15:04"
	}
	p := chart(fullWidth, unit, true, values)
	p.About = "Quantity over time: " + short(values[0]) + " at first, " + short(values[lineSteps-1]) + " at last."
	p.From, p.To = q.local(from, layout), q.local(to, layout)
	return &p
}

func exportStatement(q *request) (any, error) {
	n, _, until, err := customerAt(q)
	if err != nil {
		return nil, err
	}
	return download(q, "statement", bookfile.Statement, func(ctx context.Context) iter.Seq2[backoffice.Line, error] {
		return q.Office.Finder.Statement(ctx, n, until)
	})
}
