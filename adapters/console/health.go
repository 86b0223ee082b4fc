package console

import (
	"context"
	"net/http"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
	"bankingapi/domain/day"
	"bankingapi/domain/subscription"
)

// health is what the bar on every page says. It needs no database and no place to
// read: the checks of readiness run beside the request that asks for them, and so does
// the look at the book.
type health struct {
	mu      sync.Mutex
	running sync.WaitGroup
	began   time.Time     // of the run that goes on, the zero time if none does
	done    chan struct{} // closed when it ends
	ended   time.Time     // of the last run
	checks  []summary.Check
	// book is what the last look at the book found, and looked when it began.
	book    []trouble
	looked  time.Time
	looking bool
	// since is when a trouble was first seen.
	since map[string]time.Time
}

// trouble is a line of the bar. Bad says that callers notice it.
type trouble struct {
	Name, Text, Effect string
	Bad                bool
	Since              time.Time
}

const (
	// healthAge is how long the results of the checks are shown, and bookAge those of the
	// look at the book.
	healthAge, bookAge = time.Second, 15 * time.Second
	// healthWait is how long a page waits for new ones.
	healthWait = 200 * time.Millisecond
	// healthSilence is after how long checks that do not end are a trouble.
	healthSilence = time.Second
	// errorShare is one in how many requests may be answered 5xx, errorCount how many
	// at least are a trouble.
	errorShare, errorCount = 20, 5
	// lateAfter is how long a due sale may wait to be settled.
	lateAfter = 5 * time.Minute
	// checkDays is how old the last check of the book may be, and expiryDays how long
	// before its end a key is a trouble.
	checkDays, expiryDays = 7, 14
)

const unavailable = "Requests that need it are answered 503."

// troubles are the lines of the bar, worst first.
func (c *Console) troubles() (all []trouble) {
	now := c.o.Machine()
	checks, silent := c.health.results(c)
	if silent {
		all = append(all, trouble{Name: "checks", Text: "The checks of the service do not end. Its database may hang.", Effect: unavailable, Bad: true})
	}
	for _, check := range checks {
		if check.Problem != "" {
			all = append(all, trouble{Name: check.Name, Text: "Not ready. " + check.Problem, Effect: unavailable, Bad: true})
		}
	}
	var failed, requests int
	c.activity.last(2, now, func(m *minute, _ float64) { failed, requests = failed+m.failed, requests+m.requests })
	if failed >= errorCount && failed*errorShare >= requests {
		all = append(all, trouble{Name: "errors", Text: count(failed) + " of " + plural(requests, "request") + " of the last two minutes were answered 5xx.", Bad: true})
	}
	for _, check := range checks {
		for _, warning := range check.Warnings {
			all = append(all, trouble{Name: check.Name, Text: warning})
		}
	}
	h := &c.health
	h.mu.Lock()
	defer h.mu.Unlock()
	all = append(all, h.book...)
	since := make(map[string]time.Time)
	for i := range all {
		t := &all[i]
		if t.Since = h.since[t.Name]; t.Since.IsZero() {
			t.Since = now
		}
		since[t.Name] = t.Since
	}
	h.since = since
	return all
}

// results returns what the checks said last. If that is old, it starts a run and waits
// a moment. silent is true if a run does not end.
func (h *health) results(c *Console) (checks []summary.Check, silent bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := c.o.Machine
	if h.began.IsZero() && now().Sub(h.ended).Abs() >= healthAge {
		done := make(chan struct{})
		h.began, h.done = now(), done
		h.running.Go(func() {
			checks := c.o.Checks()
			h.mu.Lock()
			defer h.mu.Unlock()
			h.checks, h.ended, h.began = checks, now(), time.Time{}
			close(done)
		})
	}
	if !h.looking && now().Sub(h.looked).Abs() >= bookAge {
		h.looking, h.looked = true, now()
		h.running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			found, err := c.lookAtBook(ctx)
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.looking = false; err == nil { // the checks say what is wrong otherwise
				h.book = found
			}
		})
	}
	if done := h.done; !h.began.IsZero() {
		h.mu.Unlock()
		select {
		case <-done:
		case <-time.After(healthWait):
		}
		h.mu.Lock()
	}
	return h.checks, !h.began.IsZero() && now().Sub(h.began) >= healthSilence
}

// isTroubled reports whether the service is not ready, or its checks do not end.
func (c *Console) isTroubled() bool {
	for _, t := range c.troubles() {
		if t.Effect == unavailable {
			return true
		}
	}
	return false
}

// lookAtBook finds the troubles of the book: sales that should be settled, a check that
// is old or has findings, and keys that expire.
func (c *Console) lookAtBook(ctx context.Context) (all []trouble, err error) {
	due, err := c.o.Due(ctx)
	if err != nil {
		return nil, err
	}
	if due.Lag(c.o.Bank()) > lateAfter {
		all = append(all, trouble{Name: "due sales", Text: "Sales that should be settled: " + count(due.ForSettling) + "."})
	}
	for _, of := range due.ForPrice {
		if of.Day.Before(day.Of(c.o.Bank(), c.o.Zone)) {
			all = append(all, trouble{Name: "due sales", Text: "Sales that wait for the price of " + of.Fund.IMKBCode + " of " + calendar(of.Day) + ": " + count(of.Sales) + "."})
		}
	}
	partners, err := c.o.Subscriptions.List(ctx)
	if err != nil {
		return nil, err
	}
	checked, err := lastVerified(ctx, &c.o)
	if err != nil {
		return nil, err
	}
	now, used := c.o.Machine(), false
	soon, old := now.AddDate(0, 0, expiryDays), now.AddDate(0, 0, -checkDays)
	for _, s := range partners {
		used = used || !s.Created.IsZero() && s.Created.Before(old)
		for i, key := range []subscription.KeyLife{s.PrimaryKey, s.SecondaryKey} {
			if s.State != subscription.Active || key.Expires.IsZero() || key.Expires.After(soon) {
				continue
			}
			how := " key of " + s.Name + " works until "
			if key.Expires.Before(now) {
				how = " key of " + s.Name + " expired on "
			}
			all = append(all, trouble{Name: "keys", Text: "The " + []string{"primary", "secondary"}[i] + how + calendar(c.viewer(nil).LastDay(key.Expires)) + "."})
		}
	}
	switch {
	case checked == nil && used:
		all = append(all, trouble{Name: "book", Text: "No check of the book is recorded in the last 90 days."})
	case checked == nil:
	case !backoffice.Held(checked.Details):
		all = append(all, trouble{Name: "book", Text: "The last check of the book has findings: see Proof.", Bad: true})
	case checked.At.Before(c.o.Bank().AddDate(0, 0, -checkDays)):
		all = append(all, trouble{Name: "book", Text: "The last check of the book is older than " + plural(checkDays, "day") + "."})
	}
	return all, nil
}

// serveHealth answers the script of the pages with the bar.
func (c *Console) serveHealth(w http.ResponseWriter, r *http.Request) {
	if s := c.signedIn(w, r); s != nil {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		bar := view{viewer: c.viewer(s), Content: c.troubles()}
		_ = c.templates["error"].ExecuteTemplate(w, "health", bar) // it fails only if the client disconnected
	}
}
