package console

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"time"

	"bankingapi/domain/subscription"
)

// view is what a template can use: what formats values, the request, and what the page shows.
type view struct {
	*viewer
	Options *Options // what the console was given
	Bar     *bar
	Page    *page
	Wrong   string // why a form changed nothing
	Missed  string // what a search did not find; it never appears in a URL or a log
	// Content is what the handler of the page returned.
	Content any

	request *request
}

func viewOf(q *request, content any) view {
	return view{
		viewer: q.viewer, Options: q.Options, Bar: q.Bar, Page: q.Page, Wrong: q.Wrong, Missed: q.Missed,
		Content: content, request: q,
	}
}

// on returns the view with other content.
func (v view) on(content any) view {
	v.Content = content
	return v
}

// Path is the address of the page, Form the form that was sent, and Menu the entries of the
// menu. Partners are the subscriptions for a filter.
func (v view) Path() string     { return v.request.r.URL.RequestURI() }
func (v view) Form() url.Values { return v.request.r.PostForm }
func (v view) Menu() []*page    { return v.request.console.menu }
func (v view) Partners() ([]*subscription.Subscription, error) {
	return v.Options.Subscriptions.List(v.request.ctx)
}

// Hour describes the period of the counts of the last hour.
func (v view) Hour() string {
	began := v.Options.Activity.Began()
	if v.Clock.Machine.Sub(began) < time.Hour {
		return "since the start at " + v.Clock.Moment(began).Format("15:04")
	}
	return "last hour"
}

// Said returns once what a form did before this page.
func (v view) Said() (text string) {
	r := v.request.r
	if r.Method == http.MethodGet && r.Header.Get("X-Live") == "" && v.Flash != "" && v.FlashPath == v.Path() {
		text = v.Flash
		v.Flash = ""
		v.changed = true
	}
	return text
}

// FormToken returns the value of the hidden field of one form. Each form has its own value.
func (v view) FormToken() string {
	return seal(v.box, v.ID, formToken{rand.Text(), v.Clock.Machine})
}
