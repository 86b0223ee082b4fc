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
	path   string // below /console/, and the name of the file
	fields []field
	// sealed says that the filter may name a user: a URL has it sealed.
	sealed  bool
	read    func(context.Context, *request, backoffice.Query) iter.Seq2[T, error]
	place   func(*T) backoffice.Cursor
	columns []bookfile.Column[T]
}

// field is a field of a filter: a choice if it has options, otherwise a text or a
// day.
type field struct {
	Name, Label string
	options     func(*request) ([]option, error)
	Day         bool

	Value   string
	Options []option
}

type option struct{ Value, Text string }

// rows is what the page of a list shows.
type rows[T any] struct {
	Path   string
	Fields []field
	Sealed bool
	Rows   []T
	// Next is the page after this one. Searched is set if rows older than the searched
	// ones may fit too.
	Next, Export string
	Searched     int
	// Of is the user of the filter as the session may see it, SealedUser the user for
	// the form, and Everyone the list without it. They are empty if the form shows the
	// user.
	Of, SealedUser, Everyone string
}

// Value is the value of a field of the filter.
func (r rows[T]) Value(name string) string {
	return r.Fields[slices.IndexFunc(r.Fields, func(f field) bool { return f.Name == name })].Value
}

var (
	onDay     = field{Name: "day", Label: "Received on", Day: true}
	byPartner = field{Name: "partner", Label: "Partner", options: partnerOptions}

	sales = list[fund.SaleEntry]{
		path:   "sales",
		fields: []field{onDay, {Name: "state", Label: "State", options: options("1", "1 Recorded", "2", "2 Completed", "8", "8 Failed")}, byPartner},
		read: func(ctx context.Context, q *request, f backoffice.Query) iter.Seq2[fund.SaleEntry, error] {
			return q.Office.Reader.Sales(ctx, f)
		},
		place: func(s *fund.SaleEntry) backoffice.Cursor {
			return backoffice.Cursor{OperationID: s.OperationID, Index: s.Index}
		},
		columns: bookfile.Sales,
	}
	refusals = list[operation.Refusal]{
		path:   "refusals",
		fields: []field{onDay, byPartner, {Name: "code", Label: "Code", options: codeOptions}},
		read: func(ctx context.Context, q *request, f backoffice.Query) iter.Seq2[operation.Refusal, error] {
			return q.Office.Reader.Refusals(ctx, f)
		},
		place:   func(r *operation.Refusal) backoffice.Cursor { return backoffice.Cursor{OperationID: r.ID} },
		columns: bookfile.Refusals,
	}
	notifications = list[push.Entry]{
		path: "notifications",
		fields: []field{
			{Name: "user", Label: "User"}, {Name: "application", Label: "Application"},
			{Name: "platform", Label: "Platform", options: options("65", "Android", "73", "iOS", "79", "Other")},
			{Name: "sent", Label: "Send status", options: options("1", "1 Success", "0", "0 Fail")}, onDay,
		},
		sealed: true,
		read: func(ctx context.Context, q *request, f backoffice.Query) iter.Seq2[push.Entry, error] {
			if f.Until.IsZero() {
				f.Until = q.bank.Add(time.Minute) // lets the storage look at the last minutes first
			}
			return q.Office.Reader.Notifications(ctx, f)
		},
		place: func(n *push.Entry) backoffice.Cursor {
			return backoffice.Cursor{OperationID: n.OperationID, Index: n.Index}
		},
		columns: bookfile.Notifications,
	}
	acts = list[audit.Act]{
		path:   "audit",
		fields: []field{{Name: "day", Label: "On", Day: true}, {Name: "actor", Label: "Who"}, {Name: "action", Label: "Did"}, {Name: "object", Label: "To"}},
		read: func(ctx context.Context, q *request, f backoffice.Query) iter.Seq2[audit.Act, error] {
			return q.Office.Reader.Acts(ctx, f)
		},
		place:   func(a *audit.Act) backoffice.Cursor { return backoffice.Cursor{OperationID: a.ID} },
		columns: bookfile.Acts,
	}
)

// show returns the rows of a page.
func (l list[T]) show(q *request) (any, error) {
	values, f, err := l.filter(q)
	if err == nil {
		err = q.look()
	}
	if err != nil {
		return nil, err
	}
	list := rows[T]{Path: "/console/" + l.path, Sealed: l.sealed, Export: l.address(q, "/export", values)}
	next := func(c backoffice.Cursor) {
		list.Next = joined(l.address(q, "", values)) + "before=" + c.OperationID.String() + "." + strconv.Itoa(c.Index)
	}
	f.Limit, f.ScanLimit = pageSize+1, pageDepth
	f.Truncated = func(c backoffice.Cursor) {
		next(c)
		list.Searched = pageDepth
	}
	for row, err := range l.read(q.ctx, q, f) {
		if err != nil {
			return nil, err
		}
		if len(list.Rows) == pageSize {
			next(l.place(&list.Rows[pageSize-1]))
			break
		}
		list.Rows = append(list.Rows, row)
	}
	if user := values.Get("user"); user != "" && !q.Revealed() {
		list.Of, list.SealedUser = q.User(user), q.session.refer(user)
		values.Del("user")
		list.Everyone = l.address(q, "", values)
	}
	for _, field := range l.fields {
		if field.Value = values.Get(field.Name); field.options != nil {
			if field.Options, err = field.options(q); err != nil {
				return nil, err
			}
		}
		if field.Name == "user" && list.Of != "" {
			field.Label = "Another user"
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
	return download(q, l.path, l.columns, func(ctx context.Context) iter.Seq2[T, error] { return l.read(ctx, q, f) })
}

// narrow takes the form of a filter whose URL is sealed. A masked form has its user
// sealed. Another user may be written beside it.
func (l list[T]) narrow(q *request) (any, error) {
	values := url.Values{}
	for _, field := range l.fields {
		values.Set(field.Name, q.field(field.Name))
	}
	if of := q.field("of"); of != "" && values.Get("user") == "" {
		var user string
		if err := q.session.follow(of, &user); err != nil {
			return nil, err
		}
		values.Set("user", user)
	}
	return redirect(l.address(q, "", values)), nil
}

// address is the address of a list with a filter.
func (l list[T]) address(q *request, below string, values url.Values) string {
	filter := url.Values{}
	for _, field := range l.fields {
		if value := values.Get(field.Name); value != "" {
			filter.Set(field.Name, value)
		}
	}
	path := "/console/" + l.path + below
	switch {
	case len(filter) == 0:
		return path
	case l.sealed:
		return with(path, "f", q.session.refer(filter))
	}
	return path + "?" + filter.Encode()
}

// filter reads the filter of a URL.
func (l list[T]) filter(q *request) (values url.Values, f backoffice.Query, err error) {
	values = q.r.URL.Query()
	if l.sealed {
		ref := values.Get("f")
		if values = (url.Values{}); ref != "" {
			if err := q.session.follow(ref, &values); err != nil {
				return nil, f, err
			}
		}
	}
	d, err := parseDay(values.Get("day"))
	if err != nil {
		return nil, f, err
	}
	f.Order = backoffice.Newest
	f.Subscription, f.Code, f.UserID, f.Application = values.Get("partner"), values.Get("code"), values.Get("user"), values.Get("application")
	f.Actor, f.Action, f.Object = values.Get("actor"), values.Get("action"), values.Get("object")
	f.State = map[string]operation.State{"1": operation.Recorded, "2": operation.Completed, "8": operation.Failed}[values.Get("state")]
	f.Platform = map[string]push.Platform{"65": push.Android, "73": push.IOS, "79": push.Other}[values.Get("platform")]
	f.Status = map[string]backoffice.SendStatus{"1": backoffice.Sent, "0": backoffice.NotSent}[values.Get("sent")]
	if !d.IsNone() {
		f.Since, f.Until = d.Start(q.Zone), d.Plus(1).Start(q.Zone)
	}
	f.After, err = cursor(q.query("before"))
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

// cursor reads the place of a row in a URL.
func cursor(text string) (c backoffice.Cursor, err error) {
	if text == "" {
		return c, nil
	}
	id, index, _ := strings.Cut(text, ".")
	if c.OperationID, err = operation.ParseID(id); err == nil {
		c.Index, err = strconv.Atoi(index)
	}
	if err != nil {
		return c, errNothing
	}
	return c, nil
}

// options are pairs of a value and its text.
func options(pairs ...string) func(*request) ([]option, error) {
	var all []option
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, option{pairs[i], pairs[i+1]})
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
