package console

import (
	"context"
	"html/template"
	"iter"
	"slices"
	"strconv"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

// customerView is the page of a customer.
type customerView struct {
	Number, Path string
	Day, Today   string // the day that is shown and the last that may be, as in the form
	Shown        string // the same for people; empty for now
	Past         bool   // the day is over
	Holdings     []position
	Accounts     []position
	Line         template.HTML
	LineOf       string
	Statement    []statementRow
	Total        int
	Export       string
	Known        bool
}

// position is a holding or an account.
type position struct {
	Name, Note, Quantity string
	Path                 string // shows its line
	Chosen               bool
}

// statementRow is a posting with what was there after it.
type statementRow struct {
	At                    *moment
	Kind, Of              string
	Operation, Path       string
	Units, Money, Balance string
	Less                  bool
}

// maxLines is how many postings the statement of a page has, the newest.
const maxLines = 100

// laterDay is the error for a day that has not come. A page shows it like that for
// a text that is no day.
type laterDay struct{ chosen, today day.Day }

func (e laterDay) Error() string {
	return calendar(e.chosen) + " has not come: choose " + calendar(e.today) + ", which is today at the bank, or an earlier day"
}

func (laterDay) Is(target error) bool { return target == errNotToday }

// customerAt reads the reference and the day of a request. Until is the zero time
// if the day is not over.
func (q *request) customerAt() (customerNo int64, d day.Day, until time.Time, err error) {
	if err := q.session.follow(q.PathValue("ref"), &customerNo); err != nil {
		return 0, d, until, err
	}
	if d, err = q.day(q.URL.Query().Get("day")); err != nil || d.IsNone() {
		return customerNo, d, until, err
	}
	switch today := q.today(); {
	case d.After(today):
		return 0, d, until, laterDay{d, today}
	case d == today:
		return customerNo, d, until, nil
	}
	return customerNo, d, d.Plus(1).Start(q.o.Zone), nil
}

func showCustomer(q *request) error {
	n, d, until, err := q.customerAt()
	if err != nil {
		return err
	}
	if err := q.look(); err != nil {
		return err
	}
	path := "/console/customer/" + q.PathValue("ref")
	v := customerView{Number: q.number(n), Path: path, Day: d.String(), Today: q.today().String(), Past: !until.IsZero(), Export: with(path+"/export", "day", d.String())}
	if v.Past {
		v.Shown = "at the end of " + calendar(d)
	} else if !d.IsNone() {
		v.Shown = "so far today, " + calendar(d)
	}
	// One reading of the statement serves all: on Postgres it costs most of the page.
	var had backoffice.Positions
	points := make(map[positionKey][]point)
	for line, err := range q.o.Office.Finder.Statement(q.ctx, n, until) {
		if err != nil {
			return err
		}
		if v.Total++; len(v.Statement) == maxLines {
			v.Statement = append(v.Statement[:0], v.Statement[1:]...)
		}
		v.Statement = append(v.Statement, q.statementRow(&line))
		of := positionKey{line.Holding, line.Account}
		points[of] = append(points[of], point{line.PostedAt, line.After})
		had.Add(&line)
	}
	has := had.Customer()
	if until.IsZero() {
		if has, err = q.o.Office.Finder.Customer(q.ctx, n, until); err != nil {
			return err
		}
	}
	chosen, _ := strconv.Atoi(q.URL.Query().Get("line"))
	keys := q.positions(&v, has, chosen)
	v.Known = len(keys) > 0
	var of positionKey
	if chosen < len(keys) && chosen >= 0 && len(keys) > 0 {
		of = keys[chosen]
	}
	slices.Reverse(v.Statement) // newest first
	v.Line = q.line(of, points[of], until)
	return q.show("customer", v)
}

// positionKey is a holding or an account; the other is the zero value.
type positionKey struct {
	holding fund.HoldingKey
	account fund.AccountKey
}

func (q *request) positions(v *customerView, has backoffice.Customer, chosen int) (keys []positionKey) {
	path := func() (string, bool) {
		n := len(keys)
		return with(v.Path, "day", v.Day, "line", strconv.Itoa(n)) + "#line", n == chosen
	}
	for _, h := range has.Holdings {
		p := position{Name: h.Key.IMKBCode, Note: h.Key.HolderCorporationName, Quantity: units(h.Units)}
		p.Path, p.Chosen = path()
		if p.Chosen {
			v.LineOf = "units of " + p.Name
		}
		v.Holdings, keys = append(v.Holdings, p), append(keys, positionKey{holding: h.Key})
	}
	for _, a := range has.Accounts {
		p := position{Name: q.account(a.Key), Quantity: amount(a.Balance)}
		p.Path, p.Chosen = path()
		if p.Chosen {
			v.LineOf = "account " + p.Name
		}
		v.Accounts, keys = append(v.Accounts, p), append(keys, positionKey{account: a.Key})
	}
	return keys
}

func (q *request) statementRow(l *backoffice.Line) statementRow {
	row := statementRow{At: q.moment(l.PostedAt), Kind: l.Kind.String(), Operation: shortID(l.OperationID), Path: salePath(l.OperationID, l.Index), Less: l.Quantity < 0}
	if l.Kind != fund.SalePosting {
		row.Path = salePath(l.OperationID, 0)
	}
	if l.IsMoney() {
		decimals := l.Account.Currency.Decimals()
		row.Of, row.Money, row.Balance = q.account(l.Account), signed(grouped(fixedAmount(l.Quantity, decimals))), grouped(fixedAmount(l.After, decimals))
		return row
	}
	row.Of, row.Units, row.Balance = l.Holding.IMKBCode, signed(units(fund.Units(l.Quantity))), units(fund.Units(l.After))
	return row
}

// point is a quantity from a time on.
type point struct {
	at    time.Time
	after int64
}

// lineSteps is how many steps a line over time has.
const lineSteps = 280

// line draws a position over time.
func (q *request) line(of positionKey, points []point, until time.Time) template.HTML {
	if len(points) == 0 {
		return ""
	}
	decimals, unit := fund.UnitDecimals, of.holding.IMKBCode
	if unit == "" {
		decimals, unit = of.account.Currency.Decimals(), of.account.Currency.Code()
	}
	scale := 1.0
	for range decimals {
		scale *= 10
	}
	from, to := points[0].at, q.now
	if !until.IsZero() && until.Before(to) {
		to = until
	}
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
	return chart(fullWidth, "Quantity over time: "+short(values[0])+" at first, "+short(values[lineSteps-1])+" at last.", unit,
		from.In(q.o.Zone).Format(layout), to.In(q.o.Zone).Format(layout), true, line{"first", values})
}

var statementColumns = []string{"PostedAt", "Kind", "OperationId", "Index", "Fund", "Holder", "Account", "CurrencyCode", "Units", "Amount", "After"}

func exportCustomer(q *request) error {
	n, _, until, err := q.customerAt()
	if err != nil {
		return err
	}
	rows := func(ctx context.Context) iter.Seq2[backoffice.Line, error] {
		return q.o.Office.Finder.Statement(ctx, n, until)
	}
	return export(q, "statement", statementColumns, rows, func(l *backoffice.Line) []string {
		row := []string{instant(l.PostedAt), l.Kind.String(), l.OperationID.String(), strconv.Itoa(l.Index), l.Holding.IMKBCode, l.Holding.HolderCorporationName}
		if l.IsMoney() {
			decimals := l.Account.Currency.Decimals()
			return append(row, q.account(l.Account), l.Account.Currency.Code(), "", fixedAmount(l.Quantity, decimals), fixedAmount(l.After, decimals))
		}
		return append(row, "", "", fund.Units(l.Quantity).String(), "", fund.Units(l.After).String())
	})
}
