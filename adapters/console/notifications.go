package console

import (
	"context"
	"iter"
	"strconv"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/push"
)

// narrowed is the filter of the page Notifications. A URL has it sealed,
// because it names a user.
type narrowed struct {
	User        string `json:",omitempty"`
	Application string `json:",omitempty"`
	Platform    string `json:",omitempty"`
	Sent        string `json:",omitempty"`
	Day         string `json:",omitempty"`
}

func (q *request) notificationsPath(n narrowed, more ...string) string {
	ref := ""
	if n != (narrowed{}) {
		ref = q.session.refer(n)
	}
	return with("/console/notifications", append([]string{"f", ref}, more...)...)
}

// narrowNotifications takes the form of the filter. A masked form has its user
// sealed. Another user may be written beside it.
func narrowNotifications(q *request) error {
	user := q.PostForm.Get("user")
	if of := q.PostForm.Get("of"); of != "" && user == "" {
		if err := q.session.follow(of, &user); err != nil {
			return err
		}
	}
	return q.redirect(q.notificationsPath(narrowed{
		User: user, Application: q.PostForm.Get("application"),
		Platform: q.PostForm.Get("platform"), Sent: q.PostForm.Get("sent"), Day: q.PostForm.Get("day"),
	}))
}

func (q *request) narrowed() (n narrowed, f backoffice.Query, err error) {
	if ref := q.URL.Query().Get("f"); ref != "" {
		if err := q.session.follow(ref, &n); err != nil {
			return n, f, err
		}
	}
	d, err := q.day(n.Day)
	if err != nil {
		return n, f, err
	}
	// The upper bound lets the storage look at the last minutes first.
	f = backoffice.Query{UserID: n.User, Application: n.Application, Until: q.now.Add(time.Minute), Order: backoffice.Newest}
	if !d.IsNone() {
		f.Since, f.Until = d.Start(q.o.Zone), d.Plus(1).Start(q.o.Zone)
	}
	switch n.Platform {
	case "65", "73", "79":
		platform, _ := strconv.Atoi(n.Platform)
		f.Platform = push.Platform(platform) //nolint:gosec // one of three
	}
	switch n.Sent {
	case "1":
		f.Status = backoffice.Sent
	case "0":
		f.Status = backoffice.NotSent
	}
	f.After, err = cursor(q.URL.Query().Get("before"))
	return n, f, err
}

// notificationsList is the page Notifications.
type notificationsList struct {
	Filter narrowed
	// Of is the user of the filter as the session may see it, Sealed the user for
	// the form, and Everyone the path without it. They are empty if the form shows
	// the user.
	Of, Sealed, Everyone string

	Rows                []notificationRow
	Next, Export, Depth string
	Full                bool
}

type notificationRow struct {
	At                                   *moment
	Operation                            string
	User, Application, Platform, Subject string
	Status                               state
	Partner, CallerID, Channel           string
	// Facts are the members that the row does not show.
	Facts []fact
}

// fact is a member and its value. Code says that the value is an ID or a code.
type fact struct {
	Name, Value string
	Code        bool
}

// member is the value of a member, as the session may see it.
func (q *request) member(m *push.Member, r *push.Record) string {
	switch value := m.Value(r); m.Kind {
	case push.Code, push.Number:
		return value
	case push.User:
		return q.user(value)
	default:
		return q.text(value)
	}
}

func (q *request) notificationRow(n *push.Entry) notificationRow {
	row := notificationRow{
		At: q.moment(n.ReceivedAt), Operation: n.OperationID.String(), Status: state{"0 Fail", "bad"},
		Partner: n.Subscription, CallerID: n.Header.CallerID, Channel: n.Header.Channel,
	}
	if n.Record.Sent {
		row.Status = state{"1 Success", "good"}
	}
	for i := range push.Members {
		m := &push.Members[i]
		switch value := q.member(m, &n.Record); m.Name {
		case "ExternalApplicationCode":
			row.Application = value
		case "UserId":
			row.User = value
		case "Platform":
			row.Platform = platform(n.Record.Platform)
		case "Subject":
			row.Subject = value
		case "SendStatus": // it is the Status
		default:
			if value != "" {
				row.Facts = append(row.Facts, fact{m.Name, value, m.Kind != push.Message})
			}
		}
	}
	for _, item := range n.Record.TranData {
		row.Facts = append(row.Facts, fact{item.Code, q.text(item.Name), false})
	}
	return row
}

func platform(p push.Platform) string {
	switch p {
	case push.Android:
		return "Android"
	case push.IOS:
		return "iOS"
	case push.Other:
		return "Other"
	}
	return strconv.Itoa(int(p))
}

func showNotifications(q *request) error {
	n, f, err := q.narrowed()
	if err != nil {
		return err
	}
	if err := q.look(); err != nil {
		return err
	}
	list := notificationsList{Filter: n, Export: exportPath(q.notificationsPath(n)), Full: q.session.reveals()}
	f.Limit, f.ScanLimit = pageSize+1, pageDepth
	f.Truncated = func(c backoffice.Cursor) {
		list.Next, list.Depth = q.notificationsPath(n, "before", place(c.OperationID, c.Index)), grouped(itoa(pageDepth))
	}
	last := ""
	for entry, err := range q.o.Office.Reader.Notifications(q.ctx, f) {
		if err != nil {
			return err
		}
		if len(list.Rows) == pageSize {
			list.Next = q.notificationsPath(n, "before", last)
			break
		}
		list.Rows, last = append(list.Rows, q.notificationRow(&entry)), place(entry.OperationID, entry.Index)
	}
	if !list.Full && n.User != "" {
		list.Of, list.Sealed = q.user(n.User), q.session.refer(n.User)
		n.User = ""
		list.Filter, list.Everyone = n, q.notificationsPath(n)
	}
	return q.show("notifications", list)
}

// exportPath is the path of a list's export, with the same query.
func exportPath(path string) string {
	for i := range len(path) {
		if path[i] == '?' {
			return path[:i] + "/export" + path[i:]
		}
	}
	return path + "/export"
}

func notificationColumns() []string {
	columns := []string{"ReceivedAt", "OperationId", "Index", "Partner", "CallerId"}
	for _, m := range push.Members {
		columns = append(columns, m.Name)
	}
	return columns
}

func exportNotifications(q *request) error {
	_, f, err := q.narrowed()
	if err != nil {
		return err
	}
	f.After = backoffice.Cursor{}
	rows := func(ctx context.Context) iter.Seq2[push.Entry, error] {
		return q.o.Office.Reader.Notifications(ctx, f)
	}
	return export(q, "notifications", notificationColumns(), rows, func(n *push.Entry) []string {
		row := []string{instant(n.ReceivedAt), n.OperationID.String(), strconv.Itoa(n.Index), n.Subscription, n.Header.CallerID}
		for i := range push.Members {
			row = append(row, q.member(&push.Members[i], &n.Record))
		}
		return row
	})
}
