package console

import (
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

type customerPage struct {
	CustomerNo int64
	Path       string
	// Day is the day that the page shows, or no day for now. Past means that the day is over.
	Day  day.Day
	Past bool
	backoffice.Customer
	// Chosen is the index of the holding or account whose chart is drawn: first the holdings,
	// then the accounts. Name is its name.
	Chosen int
	Name   string
	Line   *picture // nil if it never changed
	// Sales are the newest, Refused those refused immediately. AllSales links to all sales.
	Sales, Refused       []fund.SaleEntry
	AllSales, AllRefused string
	// Statement has the newest postings. Total counts the postings that were read.
	Statement []backoffice.Line
	Total     int
}

const (
	// The page has the newest maxStory sales and maxLines postings. It reads maxPostingsRead.
	maxStory, maxLines, maxPostingsRead = 20, 100, 2000
)

// customerAt reads a request. until is the zero time if the day is not over.
func customerAt(q *request) (customerNo int64, d day.Day, until time.Time, err error) {
	if err := q.follow(q.r.PathValue("ref"), &customerNo); err != nil {
		return 0, d, until, err
	}
	q.customer = customerNo
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
	if p.Customer, err = q.Office.Customer(q.ctx, n, until); err != nil {
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
	// The quantity after a posting is computed from the sum of all postings or, if there are
	// too many, from what the customer has. Key is a posting with only its holding or account.
	type key = fund.Posting
	after := make(map[key]int64)
	var keys []key
	for _, h := range p.Holdings {
		keys = append(keys, key{Holding: h.Key})
		after[key{Holding: h.Key}] = int64(h.Units)
	}
	for _, a := range p.Accounts {
		keys = append(keys, key{Account: a.Key})
		after[key{Account: a.Key}] = a.Balance.Minor()
	}
	var line key // its zero value has no postings
	if p.Chosen, _ = strconv.Atoi(q.query("line")); 0 <= p.Chosen && p.Chosen < len(keys) {
		line = keys[p.Chosen]
		if p.Name = "units of " + line.Holding.IMKBCode; line.IsMoney() {
			p.Name = "account " + q.Account(line.Account)
		}
	}
	var postings, points []backoffice.Line // newest first
	sums := make(map[key]int64)
	for posting, err := range q.Office.Reader.Postings(q.ctx, backoffice.Query{CustomerNo: n, Until: until, Order: backoffice.Newest, Limit: maxPostingsRead + 1}) {
		if err != nil {
			return nil, err
		}
		postings = append(postings, backoffice.Line{PostingEntry: posting})
		sums[key{Holding: posting.Holding, Account: posting.Account}] += posting.Quantity
	}
	if p.Total = len(postings); p.Total <= maxPostingsRead { // all postings were read: some may be newer than what the customer has
		after = sums
	}
	for i := range postings {
		of := key{Holding: postings[i].Holding, Account: postings[i].Account}
		postings[i].After = after[of]
		if after[of] -= postings[i].Quantity; of == line {
			points = append(points, postings[i])
		}
	}
	p.Statement = postings[:min(p.Total, maxLines)]
	if len(points) > 0 {
		p.Line = lineOf(q, points, until)
	}
	return p, nil
}

func (p customerPage) LinePath(of int) string {
	return with(p.Path, "day", p.Day.String(), "line", strconv.Itoa(of)) + "#line"
}

// lineOf draws postings of a holding or an account, newest first, up to until if it is set.
func lineOf(q *request, postings []backoffice.Line, until time.Time) *picture {
	newest, oldest := postings[0], postings[len(postings)-1]
	decimals, unit := fund.UnitDecimals, newest.Holding.IMKBCode
	if newest.IsMoney() {
		decimals, unit = newest.Account.Currency.Decimals(), newest.Account.Currency.Code()
	}
	from, to := oldest.PostedAt, q.bank
	if !until.IsZero() {
		to = earliest(to, until)
	}
	if !to.After(from) {
		to = from.Add(time.Second)
	}
	var at, values []float64
	for _, posting := range slices.Backward(append([]backoffice.Line{{PostingEntry: fund.PostingEntry{PostedAt: to}, After: newest.After}}, postings...)) {
		at, values = append(at, posting.PostedAt.Sub(from).Seconds()), append(values, float64(posting.After)/math.Pow10(decimals))
	}
	layout := "2 Jan 2006"
	if to.Sub(from) < 48*time.Hour {
		layout = "2 Jan 15:04"
	}
	p := chart(unit, true, at, values)
	p.From, p.To = q.local(from, layout), q.local(to, layout)
	return &p
}

func exportStatement(q *request) (any, error) {
	n, d, until, err := customerAt(q)
	if err != nil {
		return nil, err
	}
	q.about = " " + d.String()
	return download(q, "statement", bookfile.Statement, q.Office.Statement(q.r.Context(), n, until))
}
