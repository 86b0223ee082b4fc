package console

import (
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/bookfile"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/push"
)

// viewer shows values as a session may see them. machine and bank are the two clocks
// when the request arrived.
type viewer struct {
	*session
	zone          *time.Location
	machine, bank time.Time
}

func (c *Console) viewer(s *session) *viewer {
	return &viewer{s, c.o.Zone, c.o.Machine(), c.o.Bank()}
}

const hidden = "******"

// Revealed reports whether the session shows numbers and texts in full.
func (v *viewer) Revealed() bool { return v.reveals() }

// Mask returns what the session may see of a text that names somebody.
func (v *viewer) Mask(of bookfile.Personal, text string) string {
	runes := []rune(text)
	n := len(runes)
	switch {
	case v.Revealed() || n == 0:
		return text
	case of == bookfile.Customer:
		return hidden + string(runes[n-min(4, n/2):])
	case of == bookfile.Suffix:
		return "*" + string(runes[n/2+n%2:])
	case of == bookfile.User:
		return hidden + string(runes[n-min(4, n/3):])
	}
	return "hidden (" + plural(n, "character") + ")"
}

// Number shows the number of a customer, or its last digits.
func (v *viewer) Number(n int64) string {
	return v.Mask(bookfile.Customer, strconv.FormatInt(n, 10))
}

// User shows the code of a user, or its end.
func (v *viewer) User(id string) string { return v.Mask(bookfile.User, id) }

// Text shows a text that a caller sent, or says that it is hidden.
func (v *viewer) Text(text string) string { return v.Mask(bookfile.Message, text) }

// Account shows an account as BRANCH-CUSTOMER-SUFFIX CURRENCY.
func (v *viewer) Account(a fund.AccountKey) string {
	return strconv.FormatInt(a.BranchCode, 10) + "-" + v.Number(a.CustomerNo) + "-" + v.Mask(bookfile.Suffix, strconv.FormatInt(a.AccountSuffix, 10)) + " " + a.Currency.Code()
}

// Position names the holding or the account of a posting.
func (v *viewer) Position(p fund.Posting) string {
	if p.IsMoney() {
		return "Account " + v.Account(p.Account)
	}
	return "Units of " + p.Holding.IMKBCode
}

// Customer is the path of a customer's page, which only this session can read.
func (v *viewer) Customer(n int64) string { return "/console/customer/" + v.refer(n) }

// fact is a member of a message and its value. Code says that the value is an ID or
// a code.
type fact struct {
	Name, Value string
	Code        bool
}

// Facts are the members of a message that its row does not show.
func (v *viewer) Facts(e push.Entry) (all []fact) {
	r := e.Record
	if e.Erasure != nil {
		all = append(all, fact{"Erased", v.local(e.Erasure.At(), "2 Jan 2006 15:04") + ": " + e.Erasure.Reason, false})
	}
	for i := range push.Members {
		m := &push.Members[i]
		value := m.Value(&r)
		switch m.Name {
		case "ExternalApplicationCode", "UserId", "Platform", "Subject", "SendStatus":
			continue
		}
		if m.Kind == push.Message {
			value = v.Text(value)
		}
		if value != "" {
			all = append(all, fact{m.Name, value, m.Kind != push.Message})
		}
	}
	for _, item := range r.TranData {
		all = append(all, fact{"TranData " + item.Code, v.Text(item.Name), false})
	}
	return all
}

// Moment is an instant in the bank's time zone, for the templates "moment", "minute"
// and "instant".
func (v *viewer) Moment(t time.Time) time.Time { return t.In(v.zone) }

func (v *viewer) local(at time.Time, layout string) string { return v.Moment(at).Format(layout) }

// Day is the bank's day of an instant.
func (v *viewer) Day(at time.Time) day.Day { return day.Of(at, v.zone) }

// Today is the bank's day.
func (v *viewer) Today() day.Day { return v.Day(v.bank) }

// IsPast reports whether a time of the machine has passed. The zero time never does.
func (v *viewer) IsPast(at time.Time) bool { return !at.IsZero() && !v.machine.Before(at) }

// DaysSince is how many whole days ago a time of the machine was.
func (v *viewer) DaysSince(at time.Time) int { return max(0, int(v.machine.Sub(at).Hours()/24)) }

// LastDay is the last whole day before a time, none for the zero time.
func (v *viewer) LastDay(at time.Time) (last day.Day) {
	if at.IsZero() {
		return last
	}
	return v.Day(at.Add(-time.Nanosecond))
}

// view is what every template has: the viewer, what the layout shows, and the
// content of the page.
type view struct {
	*viewer
	console           *Console
	Title, Role, Path string
	Menu              []entry
	// Troubles are what the bar says.
	Troubles []trouble
	// Entry is the entry of the menu that leads to this page.
	Entry string
	// Flash is what a form did before this page.
	Flash string
	// Refresh is how often the page refreshes itself, in seconds, 0 if it does not.
	Refresh int
	Content any
}

// view is what the layout shows around the content of a page.
func (q *request) view(content any) view {
	v := view{viewer: q.viewer, console: q.console, Title: q.page.title, Role: "viewer", Path: q.r.URL.RequestURI(), Menu: q.console.menu, Troubles: q.console.troubles(), Entry: q.page.menu, Refresh: q.page.refresh, Content: content}
	if q.Operator {
		v.Role = "operator"
	}
	if p, ok := content.(proofPage); ok && p.Running() {
		v.Refresh = 2
	}
	if q.r.Method == http.MethodGet && q.r.Header.Get("X-Live") == "" {
		v.Flash = q.takeFlash(v.Path)
	}
	return v
}

// On is the view of a part of the page.
func (v view) On(content any) view {
	v.Content = content
	return v
}

// FormToken is the value of the hidden field of one form. Each form has another one.
func (v view) FormToken() string { return v.console.sessions.newFormToken(v.session) }

// Bank is the time of the bank.
func (v view) Bank() time.Time { return v.bank.In(v.zone) }

// City is the last part of the name of the bank's time zone.
func (v view) City() string { return strings.ReplaceAll(path.Base(v.zone.String()), "_", " ") }
