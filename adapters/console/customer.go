package console

import (
	"context"
	"iter"
	"math"
	"net/http"
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
	// Statement has the newest postings, and Total counts all.
	Statement []backoffice.Line
	Total     int
}

// maxLines is how many postings the statement of a page has, the newest.
const maxLines = 100

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
	p := customerPage{CustomerNo: n, Path: q.r.URL.Path, Day: d, Past: !until.IsZero()}
	// One reading of the statement serves all: on Postgres it costs most of the page.
	var had backoffice.Positions
	points := make(map[positionKey][]point)
	for line, err := range q.Office.Finder.Statement(q.ctx, n, until) {
		if err != nil {
			return nil, err
		}
		if p.Total++; len(p.Statement) == maxLines {
			p.Statement = slices.Delete(p.Statement, 0, 1)
		}
		p.Statement = append(p.Statement, line)
		of := positionKey{line.Holding, line.Account}
		points[of] = append(points[of], point{line.PostedAt, line.After})
		had.Add(&line)
	}
	slices.Reverse(p.Statement) // newest first
	if p.Customer = had.Customer(); !p.Past {
		if p.Customer, err = q.Office.Finder.Customer(q.ctx, n, until); err != nil {
			return nil, err
		}
	}
	p.Chosen, _ = strconv.Atoi(q.query("line"))
	var of positionKey
	switch i := p.Chosen - len(p.Holdings); {
	case p.Chosen < 0 || i >= len(p.Accounts):
	case i < 0:
		of.holding = p.Holdings[p.Chosen].Key
		p.Name = "units of " + of.holding.IMKBCode
	default:
		of.account = p.Accounts[i].Key
		p.Name = "account " + q.Account(of.account)
	}
	if p.Past && until.Before(q.bank) {
		p.Line = lineOf(q, of, points[of], until)
	} else {
		p.Line = lineOf(q, of, points[of], q.bank)
	}
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
