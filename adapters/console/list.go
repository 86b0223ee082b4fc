package console

import (
	"context"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

const (
	// pageSize is how many rows a page of a list has.
	pageSize = 50
	// pageDepth is how many rows are searched for those of one page.
	pageDepth = 20000
)

// list is a page of rows, newest first, with a filter, and its export.
type list[T any] struct {
	path    string // below /console/, and the name of the file
	fields  []field
	read    func(backoffice.Reader, context.Context, backoffice.Query) iter.Seq2[T, error]
	place   func(*T) backoffice.Cursor
	columns []bookfile.Column[T]
}

// field is a field of a filter: a choice if it has options, otherwise an input of Type.
type field struct {
	Name, Label, Type string
	options           func(*request) ([]option, error)
	// mask shows a value that names a person: a URL has it sealed.
	mask func(v *viewer, value string) string

	Value   string
	Options []option
}

type option struct{ Value, Text string }

// rows is what the page of a list shows.
type rows[T any] struct {
	Path   string
	Fields []field
	Rows   []T
	// Next is the page after this one. Searched is set if rows older than the searched
	// ones may fit too.
	Next, Export string
	Searched     int
	// Of is the person of the filter as the session may see it, Sealed the same for the
	// form, and Everyone the list without it. They are empty if the form shows the person.
	Of, Sealed, Everyone string
}

// The fields of filters. What they narrow says set.
var (
	fromDay    = field{Name: "day", Label: "On, or from", Type: "date"}
	toDay      = field{Name: "until", Label: "Until", Type: "date"}
	byPartner  = field{Name: "partner", Label: "Partner", options: partnerOptions}
	byCode     = field{Name: "code", Label: "Code", options: codeOptions}
	ofCustomer = field{Name: "customer", Label: "Customer", mask: func(v *viewer, value string) string { return v.Mask(bookfile.Customer, value) }}
	lookedAt   = field{Name: "looked", Label: "Looked at customer", mask: ofCustomer.mask}

	sales = list[fund.SaleEntry]{
		path: "sales",
		fields: []field{
			fromDay, toDay, {Name: "state", Label: "State", options: options("1", "1 Recorded", "2", "2 Completed", "8", "8 Failed")},
			byPartner, ofCustomer, {Name: "fund", Label: "Fund"}, {Name: "amount", Label: "Proceeds or amount"},
		},
		read: backoffice.Reader.Sales,
		place: func(s *fund.SaleEntry) backoffice.Cursor {
			return backoffice.Cursor{OperationID: s.OperationID, Index: s.Index}
		},
		columns: bookfile.Sales,
	}
	refusals = list[operation.Refusal]{
		path:    "refusals",
		fields:  []field{fromDay, toDay, byPartner, ofCustomer, byCode},
		read:    backoffice.Reader.Refusals,
		place:   func(r *operation.Refusal) backoffice.Cursor { return backoffice.Cursor{OperationID: r.ID} },
		columns: bookfile.Refusals,
	}
	notifications = list[push.Entry]{
		path: "notifications",
		fields: []field{
			fromDay, toDay, byPartner, {Name: "user", Label: "User", mask: (*viewer).User}, {Name: "application", Label: "Application"},
			{Name: "platform", Label: "Platform", options: options("65", "Android", "73", "iOS", "79", "Other")},
			{Name: "sent", Label: "Send status", options: options("1", "1 Success", "0", "0 Fail")},
		},
		read: backoffice.Reader.Notifications,
		place: func(n *push.Entry) backoffice.Cursor {
			return backoffice.Cursor{OperationID: n.OperationID, Index: n.Index}
		},
		columns: bookfile.Notifications,
	}
	acts = list[audit.Act]{
		path:    "audit",
		fields:  []field{fromDay, toDay, {Name: "actor", Label: "Who"}, {Name: "action", Label: "Did"}, {Name: "object", Label: "To what"}, lookedAt},
		read:    backoffice.Reader.Acts,
		place:   func(a *audit.Act) backoffice.Cursor { return backoffice.Cursor{OperationID: a.ID} },
		columns: bookfile.Acts,
	}
)

// set narrows a query to the value of a field.
func (q *request) set(f *backoffice.Query, name, value string) (err error) {
	n, wrong := strconv.ParseInt(value, 10, 64)
	switch name {
	case "day", "until":
		var d day.Day
		if d, err = parseDay(value); name == "day" {
			f.Since = d.Start(q.Zone)
		}
		f.Until = d.Plus(1).Start(q.Zone)
	case "state":
		f.State = operation.State(n) //nolint:gosec // another number finds nothing
	case "partner":
		f.Subscription = value
	case "customer", "looked":
		if wrong != nil || n < 1 {
			return errNumber
		}
		if f.Object = q.console.customerObject(n); name == "customer" {
			f.CustomerNo, q.of.customer = n, n
		}
	case "fund":
		f.IMKBCode = value
	case "amount":
		amount, wrong := decimal.Parse(value)
		if f.Amount, err = amount.Scaled(2); wrong != nil || err != nil {
			return errNumber
		}
	case "code":
		f.Code = value
	case "user":
		f.UserID = value
	case "application":
		f.Application = value
	case "platform":
		f.Platform = push.Platform(n) //nolint:gosec // as above
	case "sent":
		f.Status = map[string]backoffice.SendStatus{"1": backoffice.Sent, "0": backoffice.NotSent}[value]
	case "actor":
		f.Actor = value
	case "action":
		f.Action = value
	case "object":
		f.Object = value
	}
	return err
}

// customerObject is the object of the acts that are about a customer.
func (c *Console) customerObject(n int64) string {
	return "customer " + c.sessions.hash(strconv.FormatInt(n, 10))
}

// show returns the rows of a page.
func (l list[T]) show(q *request) (any, error) {
	values, f, err := l.filter(q)
	if err != nil {
		return nil, err
	}
	list := rows[T]{Path: "/console/" + l.path, Export: l.address(q, "/export", values)}
	next := func(c backoffice.Cursor) {
		list.Next = joined(l.address(q, "", values)) + "before=" + q.refer(c)
	}
	f.Limit, f.ScanLimit = pageSize+1, pageDepth
	if f.Until.IsZero() {
		f.Until = q.bank.Add(time.Minute) // lets the storage look at the last minutes first
	}
	f.Truncated = func(c backoffice.Cursor) {
		next(c)
		list.Searched = pageDepth
	}
	for row, err := range l.read(q.Office.Reader, q.ctx, f) {
		if err != nil {
			return nil, err
		}
		if len(list.Rows) == pageSize {
			next(l.place(&list.Rows[pageSize-1]))
			break
		}
		list.Rows = append(list.Rows, row)
	}
	for _, field := range l.fields {
		if field.Value = values.Get(field.Name); field.options != nil {
			if field.Options, err = field.options(q); err != nil {
				return nil, err
			}
		}
		if field.mask != nil && field.Value != "" && !q.Revealed() {
			list.Of, list.Sealed = field.mask(q.viewer, field.Value), q.refer(field.Value)
			values.Del(field.Name)
			list.Everyone = l.address(q, "", values)
			field.Label, field.Value = "Another "+strings.ToLower(field.Label), ""
		}
		list.Fields = append(list.Fields, field)
	}
	return list, nil
}

// export downloads all rows that fit the filter.
func (l list[T]) export(q *request) (any, error) {
	_, f, err := l.filter(q)
	if err != nil {
		return nil, err
	}
	f.After = backoffice.Cursor{}
	return download(q, l.path, l.columns, func(ctx context.Context) iter.Seq2[T, error] { return l.read(q.Office.Reader, ctx, f) })
}

// narrow takes the form of a filter. A masked form has its person sealed. Another
// person may be written beside it.
func (l list[T]) narrow(q *request) (any, error) {
	values := url.Values{}
	for _, field := range l.fields {
		value := strings.TrimSpace(q.field(field.Name))
		if of := q.field("of"); field.mask != nil && value == "" && of != "" {
			if err := q.follow(of, &value); err != nil {
				return nil, err
			}
		}
		values.Set(field.Name, value)
	}
	return q.redirect(l.address(q, "", values))
}

// address is the address of a list with a filter. It is sealed if it names a person.
func (l list[T]) address(q *request, below string, values url.Values) string {
	filter, sealed := url.Values{}, false
	for _, field := range l.fields {
		if value := values.Get(field.Name); value != "" {
			filter.Set(field.Name, value)
			sealed = sealed || field.mask != nil
		}
	}
	path := "/console/" + l.path + below
	switch {
	case len(filter) == 0:
		return path
	case sealed:
		return with(path, "f", q.refer(filter))
	}
	return path + "?" + filter.Encode()
}

// filter reads the filter of a URL.
func (l list[T]) filter(q *request) (values url.Values, f backoffice.Query, err error) {
	values = q.r.URL.Query()
	ref := values.Get("f")
	if ref != "" {
		values = url.Values{}
		if err := q.follow(ref, &values); err != nil {
			return nil, f, err
		}
	}
	f.Order = backoffice.Newest
	for _, field := range l.fields {
		value := values.Get(field.Name)
		if value == "" || ref == "" && field.mask != nil { // no URL names a person
			values.Del(field.Name)
			continue
		}
		if err := q.set(&f, field.Name, value); err != nil {
			return nil, f, err
		}
	}
	if before := q.query("before"); before != "" {
		err = q.follow(before, &f.After)
	}
	return values, f, err
}

// parseDay reads the day in a field of a form; none if it is empty.
func parseDay(text string) (d day.Day, err error) {
	if text == "" {
		return d, nil
	}
	if d, err = day.Parse(text); err != nil {
		return d, errDay
	}
	return d, nil
}

// options are pairs of a value and its text.
func options(pairs ...string) func(*request) ([]option, error) {
	var all []option
	for pair := range slices.Chunk(pairs, 2) {
		all = append(all, option{pair[0], pair[1]})
	}
	return func(*request) ([]option, error) { return all, nil }
}

func partnerOptions(q *request) (all []option, err error) {
	subscriptions, err := q.Subscriptions.List(q.ctx)
	for _, s := range subscriptions {
		all = append(all, option{s.Name, s.Name})
	}
	return all, err
}

// codeOptions are the codes of refusals by the bank.
func codeOptions(*request) (all []option, err error) {
	for _, c := range fault.Codes() {
		if c.Remedy == fault.NewOperation {
			all = append(all, option{c.Name, c.Name})
		}
	}
	return all, nil
}
