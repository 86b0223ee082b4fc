package console

import (
	"bytes"
	"context"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// pages are the templates.
type pages struct {
	signIn *template.Template
	named  map[string]*template.Template
}

func newPages() *pages {
	functions := template.FuncMap{
		"asset": assetPath,
		"has":   strings.Contains,
		"nav": func(here, name, path string) map[string]any {
			return map[string]any{"Name": name, "Path": path, "Here": here == name || above[here] == name}
		},
	}
	p := &pages{named: make(map[string]*template.Template)}
	layout := template.Must(template.New("layout.html").Funcs(functions).ParseFS(files, "pages/layout.html"))
	names, err := fs.Glob(files, "pages/*.html")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for _, path := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "pages/"), ".html")
		p.named[name] = template.Must(template.Must(layout.Clone()).ParseFS(files, path))
	}
	p.signIn = template.Must(template.New("signin.html").Funcs(functions).ParseFS(files, "pages/signin.html"))
	return p
}

// above names the page of the menu that leads to a page.
var above = map[string]string{"Sale": "Sales", "Subscription": "Subscriptions", "Refusals": "Sales"}

// assetPath is the address of an asset. It changes with the content.
func assetPath(name string) string {
	content, err := fs.ReadFile(files, "pages/"+name)
	if err != nil {
		panic(err) // the templates name embedded files
	}
	return "/console/" + name + "?" + fingerprint(content)
}

// request is one request of a session.
type request struct {
	*Console
	*http.Request
	w       http.ResponseWriter
	session *session
	// ctx ends when the page may no longer read.
	ctx   context.Context
	title string
	// now is the time of the bank, real that of the machine.
	now, real time.Time

	// form is the number of the form that was sent.
	form   int64
	status int
	body   bytes.Buffer
	// streamed is true if the body was written already.
	streamed bool
	// told is true if the look was reported.
	told bool
}

// layout is what every page has.
type layout struct {
	Title, Here string
	session     *session
	Path        string
	// Said is what a form did before this page.
	Said               string
	User, Role         string
	Operator, Revealed bool
	BankDay, BankTime  string
	UTC, Zone          string
	Sandbox            bool
	// Live is how often the page refreshes itself, in seconds, 0 if it does not.
	Live    int
	Content any
}

// CSRF is the hidden field of one form. Each form has another one.
func (l layout) CSRF() string { return l.session.newForm() }

// show renders a page into the body.
func (q *request) show(name string, content any) error {
	role := "viewer"
	if q.session.operator {
		role = "operator"
	}
	local := q.now.In(q.o.Zone)
	live := map[string]int{"Today": 5, "Sandbox": 2}[q.title]
	if p, ok := content.(proofView); ok && p.Running {
		live = 2
	}
	said := ""
	if q.Method == http.MethodGet && q.Header.Get("X-Live") == "" {
		said = q.session.hear(q.URL.RequestURI())
	}
	q.body.Reset()
	return q.pages.named[name].ExecuteTemplate(&q.body, "layout.html", layout{
		Title: q.title, Here: q.title, session: q.session, Path: q.URL.RequestURI(), Said: said,
		User: q.session.user, Role: role, Operator: q.session.operator, Revealed: q.session.reveals(),
		BankDay: local.Format("Monday, 2 January 2006"), BankTime: local.Format("15:04"),
		UTC: q.now.UTC().Format("15:04"), Zone: city(q.o.Zone.String()),
		Sandbox: q.o.Sandbox != nil, Live: live,
		Content: content,
	})
}

// send writes the body that show made.
func (q *request) send() {
	if q.streamed {
		return
	}
	if q.status == 0 {
		q.status = http.StatusOK
	}
	q.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	q.w.WriteHeader(q.status)
	_, _ = q.w.Write(q.body.Bytes()) // it fails only if the client disconnected
}

func (q *request) redirect(to string) error {
	q.status = http.StatusSeeOther
	q.w.Header().Set("Location", to)
	return nil
}

// look reports that the page shows unmasked data, once. It must be called
// before such data is shown; a page that cannot be reported is not sent.
func (q *request) look() error {
	if q.told || !q.session.reveals() {
		return nil
	}
	q.o.Looked(q.session.user, q.title)
	ctx := by(q.Context(), q.session.user, "")
	if err := q.o.Office.Audit.Record(ctx, q.o.Office.Acts.New(ctx, "console.view", q.title, "")); err != nil {
		return err
	}
	q.told = true
	return nil
}

// by returns a context whose acts are those of a user.
func by(ctx context.Context, user, reason string) context.Context {
	host, _ := os.Hostname() // empty if the system has none
	return audit.By(ctx, audit.Who{Actor: user, SystemUser: "console", Origin: host, Reason: reason})
}

// number shows a number of a customer or an account, or its last digits.
func (q *request) number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	if q.session.reveals() {
		return digits
	}
	return mask + digits[len(digits)-min(4, len(digits)/2):]
}

const mask = "******"

// user shows a user's code, or its end.
func (q *request) user(id string) string {
	if q.session.reveals() {
		return id
	}
	runes := []rune(id)
	return mask + string(runes[len(runes)-min(4, len(runes)/3):])
}

// text shows a text that a caller sent, or says that it is hidden.
func (q *request) text(t string) string {
	if q.session.reveals() || t == "" {
		return t
	}
	return "hidden (" + plural(len([]rune(t)), "character") + ")"
}

func (q *request) account(a fund.AccountKey) string {
	suffix := strconv.FormatInt(a.AccountSuffix, 10)
	if !q.session.reveals() {
		suffix = "*" + suffix[len(suffix)/2+len(suffix)%2:]
	}
	return strconv.FormatInt(a.BranchCode, 10) + "-" + q.number(a.CustomerNo) + "-" + suffix + " " + a.Currency.Code()
}

// customer is a link to a customer.
type customer struct{ Number, Path string }

func (q *request) customer(n int64) customer {
	return customer{q.number(n), "/console/customer/" + q.session.refer(n)}
}

// moment is an instant in both clocks.
type moment struct{ Day, Time, UTC, Machine string }

func (q *request) moment(t time.Time) *moment {
	if t.IsZero() {
		return nil
	}
	local, utc := t.In(q.o.Zone), t.UTC()
	shown := utc.Format("15:04:05.000") + " UTC"
	if local.Day() != utc.Day() {
		shown = utc.Format("2 Jan 15:04:05.000") + " UTC"
	}
	return &moment{local.Format("2 Jan 2006"), local.Format("15:04:05.000"), shown, utc.Format(time.RFC3339Nano)}
}

// today is the bank's day.
func (q *request) today() day.Day { return day.Of(q.now, q.o.Zone) }

// calendar shows a day for people.
func calendar(d day.Day) string {
	if d.IsNone() {
		return ""
	}
	return d.Start(time.UTC).Format("Mon 2 Jan 2006")
}

// city is the last part of a time zone's name.
func city(zone string) string {
	return strings.ReplaceAll(zone[strings.LastIndex(zone, "/")+1:], "_", " ")
}

// grouped puts commas between thousands: 1,204,318.50
func grouped(number string) string {
	sign, rest := "", number
	if strings.HasPrefix(rest, "-") {
		sign, rest = "−", rest[1:]
	}
	whole, fraction, has := strings.Cut(rest, ".")
	var b strings.Builder
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(whole[i])
	}
	if has {
		b.WriteString("." + fraction)
	}
	return sign + b.String()
}

func count(n int) string { return grouped(strconv.Itoa(n)) }

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return count(n) + " " + word + "s"
}

func units(u fund.Units) string { return grouped(fixed(int64(u), fund.UnitDecimals)) }

func amount(a money.Amount) string { return grouped(a.String()) }

// signed is a change: with its sign.
func signed(text string) string {
	if !strings.HasPrefix(text, "−") {
		return "+" + text
	}
	return text
}

// fixed writes a scaled number with all its decimals, so that a column aligns.
func fixed(value int64, decimals int) string {
	text := strconv.FormatInt(value, 10)
	sign := ""
	if value < 0 {
		sign, text = "-", text[1:]
	}
	if len(text) <= decimals {
		text = strings.Repeat("0", decimals-len(text)+1) + text
	}
	cut := len(text) - decimals
	return sign + text[:cut] + "." + text[cut:]
}

// state is an operation's state as a badge.
type state struct{ Text, Class string }

func stateOf(s operation.State) state {
	switch s {
	case operation.Recorded:
		return state{"1 Recorded", "wait"}
	case operation.Completed:
		return state{"2 Completed", "good"}
	case operation.Failed:
		return state{"8 Failed", "bad"}
	}
	return state{"none", ""}
}

// day reads the day in a field of a form; none if it is empty.
func (q *request) day(text string) (day.Day, error) {
	if text == "" {
		return day.Day{}, nil
	}
	d, err := day.Parse(text)
	if err != nil {
		return d, errNotToday
	}
	return d, nil
}

// with is the path with these query values; empty ones are left out.
func with(path string, pairs ...string) string {
	values := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			values.Set(pair[0], pair[1])
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}
