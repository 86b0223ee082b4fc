package console

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

type customerPage struct {
	saleTable // the newest sales
	Path      string
	// Day is the day that the page shows, or no day for now or another moment. Until is the end of
	// the day, if it is over, or the other moment.
	Day   day.Day
	Until time.Time
	backoffice.Customer
	// Refused are the newest that were refused immediately. AllSales links to all sales.
	Refused              []fund.SaleEntry
	AllSales, AllRefused string
	// Statement has the newest postings. Total counts the postings that were read.
	Statement []backoffice.Line
	Total     int
}

const (
	// The page has the newest maxStory sales and maxLines postings. It reads maxPostingsRead.
	maxStory, maxLines, maxPostingsRead = 20, 100, 2000
)

// customerAt reads a request: a day, or the moment at which the bank decided something. until is
// the zero time if the day is not over.
func customerAt(q *request) (customerNo int64, d day.Day, until time.Time, err error) {
	if err := q.follow(q.r.PathValue("ref"), &customerNo); err != nil {
		return 0, d, until, err
	}
	q.customer = customerNo
	at := q.query("at")
	if at != "" {
		if until, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return 0, d, until, errNothing
		}
		return customerNo, d, until, nil
	}
	d, err = parseDay(q.query("day"))
	switch today := q.Clock.Today(); {
	case err != nil || d.IsNone() || d == today:
	case d.After(today):
		err = &problem{http.StatusBadRequest, calendar(d) + " has not come: choose " + calendar(today) + ", which is today at the bank, or an earlier day."}
	default:
		until = d.Plus(1).Start(q.Options.Zone())
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
		saleTable: saleTable{CustomerNo: n}, Path: q.r.URL.Path, Day: d, Until: until,
		AllSales: sales.address(q, "", of), AllRefused: refusals.address(q, "", of),
	}
	if p.Customer, err = q.Options.Office.Customer(q.ctx, n, until); err != nil {
		return nil, err
	}
	for _, list := range []*[]fund.SaleEntry{&p.Sales, &p.Refused} {
		for s, err := range q.Options.Office.Reader.Sales(q.ctx, backoffice.Query{CustomerNo: n, Refused: list == &p.Refused, Until: until, Order: backoffice.Newest, Limit: maxStory}) {
			if err != nil {
				return nil, err
			}
			*list = append(*list, s)
		}
	}
	p.Twins = make(map[int]bool)
	for i := range p.Sales {
		for k := range p.Sales {
			areTwo := counts(&p.Sales[i]) && counts(&p.Sales[k]) && areTwins(&p.Sales[i], &p.Sales[k])
			p.Twins[i] = p.Twins[i] || areTwo
		}
	}
	lines, err := q.Options.Office.NewestLines(q.ctx, n, until, &p.Customer, maxPostingsRead+1)
	p.Statement = lines[:min(len(lines), maxLines)]
	p.Total = len(lines)
	return p, err
}

func exportStatement(q *request) (any, error) {
	n, d, until, err := customerAt(q)
	if err != nil {
		return nil, err
	}
	q.about = " " + d.String() + q.query("at")
	return download(q, "statement", bookfile.Statement, q.Options.Office.Statement(q.r.Context(), n, until))
}
