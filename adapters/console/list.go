package console

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

const (
	pageSize  = 50
	pageDepth = 20_000 // rows that are searched for one page
)

// list is a page of rows, newest first, with a filter, and its export.
type list[T any] struct {
	path    string // the path below /console/, and the name of the file
	fields  []field
	read    func(backoffice.Reader, context.Context, backoffice.Query) iter.Seq2[T, error]
	refused bool // reads only what was refused
	place   func(*T) backoffice.Cursor
	columns []bookfile.Column[T]
}

// field is a field of a filter: a choice if it has options, otherwise an input of Type.
type field struct {
	Name, Label, Type string
	// mask shows a value that names a person. In a URL the value is encrypted.
	mask    func(v *viewer, value string) string
	Value   string
	Options []option
}

type option struct{ Value, Text string }

type rows[T any] struct {
	Fields []field
	Rows   []T
	// Next is the page after this one. Searched is set if rows older than the searched rows may
	// also fit.
	Next, Export string
	// Many is the page that cancels or reverses what a list of sales shows. Action is its name.
	Many, Action string
	Searched     int
	// Of is the person of the filter as the session may see it, Sealed the person encrypted for
	// the form, and Everyone the list without it. They are empty if the form shows the person.
	Of, Sealed, Everyone string
}

var (
	fromDay    = field{Name: "day", Label: "On, or from", Type: "date"}
	toDay      = field{Name: "until", Label: "Until", Type: "date"}
	byPartner  = field{Name: "partner", Label: "Partner"}
	ofCustomer = field{Name: "customer", Label: "Customer", mask: func(v *viewer, value string) string { return v.Mask(bookfile.Customer, value) }}

	sales = list[fund.SaleEntry]{
		path: "sales",
		fields: []field{
			fromDay, toDay, {Name: "state", Label: "State", Options: []option{{"1", "1 Recorded"}, {"2", "2 Completed"}, {"8", "8 Failed"}}},
			byPartner, ofCustomer, {Name: "fund", Label: "Fund"}, {Name: "settled", Label: "Settled on", Type: "date"}, {Name: "price", Label: "Settled at PriceID"}, {Name: "amount", Label: "Proceeds or amount"},
		},
		read:    backoffice.Reader.Sales,
		place:   func(s *fund.SaleEntry) backoffice.Cursor { return backoffice.Cursor{OperationID: s.ID, Index: s.Index} },
		columns: bookfile.Sales,
	}
	refusals = list[operation.Decision]{
		path:    "refusals",
		fields:  []field{fromDay, toDay, byPartner, ofCustomer, {Name: "code", Label: "Code"}},
		read:    backoffice.Reader.Decisions,
		refused: true,
		place:   func(d *operation.Decision) backoffice.Cursor { return backoffice.Cursor{OperationID: d.ID} },
		columns: bookfile.Refusals,
	}
	notifications = list[push.Entry]{
		path: "notifications",
		fields: []field{
			fromDay, toDay, byPartner, {Name: "user", Label: "User", mask: (*viewer).User}, {Name: "application", Label: "Application"},
			{Name: "platform", Label: "Platform", Options: []option{{"65", "Android"}, {"73", "iOS"}, {"79", "Other"}}},
			{Name: "sent", Label: "Send status", Options: []option{{"1", "1 Success"}, {"0", "0 Fail"}}},
		},
		read:    backoffice.Reader.Notifications,
		place:   func(n *push.Entry) backoffice.Cursor { return backoffice.Cursor{OperationID: n.ID, Index: n.Index} },
		columns: bookfile.Notifications,
	}
	requests = list[summary.Answered]{
		path: "requests",
		fields: []field{
			fromDay, toDay, {Name: "request", Label: "X-Request-Id"}, {Name: "caller", Label: "CallerId"}, byPartner,
			{Name: "class", Label: "Answer", Options: []option{{"2", "repeats"}, {"4", "4xx"}, {"5", "5xx"}}},
		},
		read:    backoffice.Reader.Requests,
		place:   func(a *summary.Answered) backoffice.Cursor { return backoffice.Cursor{OperationID: a.ID} },
		columns: bookfile.Requests,
	}
	acts = list[audit.Act]{
		path: "audit",
		fields: []field{
			fromDay, toDay, {Name: "actor", Label: "Who"}, {Name: "action", Label: "Did"}, {Name: "object", Label: "To what"},
			{Name: "looked", Label: "Looked at customer", mask: ofCustomer.mask},
		},
		read:    backoffice.Reader.Acts,
		place:   func(a *audit.Act) backoffice.Cursor { return backoffice.Cursor{OperationID: a.ID} },
		columns: bookfile.Acts,
	}
)

// set sets a field of a filter. An error says how a value is written.
func set(q *request, f *backoffice.Query, name, value string) (err error) {
	text := map[string]*string{
		"partner": &f.Subscription, "code": &f.Code, "user": &f.UserID, "application": &f.Application,
		"request": &f.RequestID, "caller": &f.CallerID, "actor": &f.Actor, "action": &f.Action, "object": &f.Object,
	}[name]
	if text != nil {
		*text = value
		return nil
	}
	switch name {
	case "fund":
		f.IMKBCode = strings.ToUpper(value) // no code has small letters
		return nil
	case "day", "until", "settled":
		return setDay(q, f, name, value)
	case "amount":
		f.Amount, err = parseAmount(value)
		return err
	case "customer", "looked":
		return setCustomer(q, f, name, value)
	case "sent":
		f.Status = map[string]backoffice.SendStatus{"1": backoffice.Sent, "0": backoffice.NotSent}[value]
		return nil
	}
	n, wrong := strconv.ParseInt(value, 10, 64)
	switch name {
	case "state":
		f.State = operation.State(n) //nolint:gosec // another number finds nothing
	case "class":
		f.Class = int(n)
	case "platform":
		f.Platform = push.Platform(n) //nolint:gosec // as above
	case "price":
		f.PriceID = n
		if wrong != nil || n < 1 { // as above
			return errPrice
		}
	}
	return nil
}

// setDay selects one day, or with until a period.
func setDay(q *request, f *backoffice.Query, name, value string) error {
	d, err := parseDay(value)
	if err != nil {
		return err
	}
	start := d.Start(q.Options.Zone())
	end := d.Plus(1).Start(q.Options.Zone())
	switch name {
	case "settled":
		f.SettledSince = start
		f.SettledUntil = end
	case "day":
		f.Since = start
		f.Until = end
	default:
		f.Until = end
		if !end.After(f.Since) {
			return errPeriod
		}
	}
	return nil
}

func setCustomer(q *request, f *backoffice.Query, name, value string) error {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 {
		return errCustomer
	}
	f.CustomerNo = n
	f.Object = audit.CustomerObject(q.Options.Key, n)
	if name == "customer" {
		q.customer = n
	}
	return nil
}

// inGroups matches an amount with thousands and cents, as the console shows it or as Turkish does.
var inGroups = regexp.MustCompile(`^[0-9]{1,3}((,[0-9]{3})+\.|(\.[0-9]{3})+,)[0-9]{1,2}$`)

// parseAmount reads an amount of any currency. A comma or a point before three digits may separate
// thousands. Without cents nobody knows, so it is refused.
func parseAmount(value string) (decimal.Decimal, error) {
	if inGroups.MatchString(value) {
		last := strings.LastIndexAny(value, ",.")
		value = strings.NewReplacer(",", "", ".", "").Replace(value[:last]) + "." + value[last+1:]
	}
	whole, cents, found := strings.Cut(value, ",")
	if found && len(cents) <= 2 {
		value = whole + "." + cents
	}
	amount, err := decimal.Parse(value)
	if err != nil {
		return amount, errAmount
	}
	minor, err := amount.Integer(2)
	if err != nil || minor < 1 {
		return amount, errAmount
	}
	return amount, nil
}

func (l list[T]) show(q *request) (any, error) {
	values, f, err := l.filter(q)
	if wrong, is := errors.AsType[*problem](err); is && wrong.Status == http.StatusBadRequest {
		q.Wrong = wrong.Text
		q.status = wrong.Status
	} else if err != nil {
		return nil, err
	}
	path := l.address(q, "", values)
	list := rows[T]{Export: l.address(q, "/export", values)}
	if l.path == "sales" && q.Operator {
		list.Many = l.address(q, "/many", values)
		list.Action = manyActions[f.State]
	}
	l.showFields(q, values, &list)
	if q.Wrong != "" {
		return list, nil
	}
	err = l.readPage(q, path, f, &list)
	return list, err
}

// showFields fills the form of the filter. A person whom the session may not see is sealed.
func (l list[T]) showFields(q *request, values url.Values, list *rows[T]) {
	for _, field := range l.fields {
		field.Value = values.Get(field.Name)
		if field.mask != nil && field.Value != "" && !q.Revealed() {
			list.Of = field.mask(q.viewer, field.Value)
			list.Sealed = q.refer(field.Value)
			values.Del(field.Name)
			list.Everyone = l.address(q, "", values)
			field.Label = "Another " + strings.ToLower(field.Label)
			field.Value = ""
		}
		list.Fields = append(list.Fields, field)
	}
}

// readPage reads the rows of one page, and where the next one begins.
func (l list[T]) readPage(q *request, path string, f backoffice.Query, list *rows[T]) error {
	next := func(c backoffice.Cursor) { list.Next = with(path, "before", q.refer(c)) }
	f.Limit = pageSize + 1
	f.ScanLimit = pageDepth
	if f.Until.IsZero() {
		f.Until = q.Clock.bank.Add(time.Minute) // lets the storage look at the last minutes first
	}
	f.Truncated = func(c backoffice.Cursor) {
		next(c)
		list.Searched = pageDepth
	}
	for row, err := range l.read(q.Options.Office.Reader, q.ctx, f) {
		if err != nil {
			return err
		}
		if len(list.Rows) == pageSize {
			next(l.place(&list.Rows[pageSize-1]))
			break
		}
		list.Rows = append(list.Rows, row)
	}
	return nil
}

func (l list[T]) export(q *request) (any, error) {
	_, f, err := l.filter(q)
	if err != nil {
		return nil, err
	}
	return download(q, l.path, l.columns, l.read(q.Options.Office.Reader, q.r.Context(), f))
}

// narrow processes the form of a filter. It keeps the sealed person unless the form names one.
func (l list[T]) narrow(q *request) (any, error) {
	values := url.Values{}
	for _, field := range l.fields {
		value := strings.TrimSpace(q.field(field.Name))
		of := q.field("of")
		if field.mask != nil && value == "" && of != "" {
			if err := q.follow(of, &value); err != nil {
				return nil, err
			}
		}
		values.Set(field.Name, value)
	}
	return q.redirect(l.address(q, "", values))
}

// address returns the path of a list with a filter. It encrypts a person.
func (l list[T]) address(q *request, below string, values url.Values) string {
	var filter []string
	for _, field := range l.fields {
		value := values.Get(field.Name)
		if field.mask != nil && value != "" {
			value = q.refer(value)
		}
		filter = append(filter, field.Name, value)
	}
	return with("/console/"+l.path+below, filter...)
}

// filter reads the URL. An error with status 400 names the wrong field.
func (l list[T]) filter(q *request) (values url.Values, f backoffice.Query, err error) {
	values = url.Values{}
	f.Order = backoffice.Newest
	f.Refused = l.refused
	for _, field := range l.fields {
		value := q.query(field.Name)
		if value == "" {
			continue
		}
		if field.mask != nil && q.follow(value, &value) != nil {
			return nil, f, errReference
		}
		wrong := error(errOption)
		if field.Options == nil || slices.ContainsFunc(field.Options, func(o option) bool { return o.Value == value }) {
			wrong = set(q, &f, field.Name, value)
		}
		if wrong != nil {
			err = &problem{http.StatusBadRequest, field.Label + ": " + wrong.Error()}
		}
		if wrong == nil || field.mask == nil {
			values.Set(field.Name, value)
		}
		q.about += " " + field.Name
		if field.mask == nil && field.Name != "object" { // these name a person
			q.about += "=" + value
		}
	}
	if err != nil {
		return values, f, err
	}
	before := q.query("before")
	if before != "" {
		err = q.follow(before, &f.After)
	}
	return values, f, err
}

// parseDay reads the day in a field of a form. An empty field is no day.
func parseDay(text string) (d day.Day, err error) {
	if d, err = day.Parse(text); err != nil && text != "" {
		return d, errDay
	}
	return d, nil
}
