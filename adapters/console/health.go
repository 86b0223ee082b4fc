package console

import (
	"net/http"
	"sync"
	"time"

	"bankingapi/application/summary"
)

// health is what the bar on every page says. It needs no database and no place to
// read: the checks of readiness run beside the request that asks for them.
type health struct {
	mu      sync.Mutex
	running sync.WaitGroup
	began   time.Time     // of the run that goes on, the zero time if none does
	done    chan struct{} // closed when it ends
	ended   time.Time     // of the last run
	checks  []summary.Check
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
	// healthAge is how long the results of the checks are shown.
	healthAge = time.Second
	// healthWait is how long a page waits for new ones.
	healthWait = 200 * time.Millisecond
	// healthSilence is after how long checks that do not end are a trouble.
	healthSilence = time.Second
	// errorShare is one in how many requests may be answered 5xx, errorCount how many
	// at least are a trouble.
	errorShare, errorCount = 20, 5
)

// troubles are the lines of the bar, worst first.
func (c *Console) troubles() (all []trouble) {
	checks, silent := c.health.results(c.o.Machine, c.o.Checks)
	if silent {
		all = append(all, trouble{Name: "checks", Text: "The checks of the service do not end. Its database may hang.", Effect: "Requests that need it are answered 503.", Bad: true})
	}
	for _, check := range checks {
		if check.Problem != "" {
			all = append(all, trouble{Name: check.Name, Text: "Not ready. " + check.Problem, Effect: "Requests that need it are answered 503.", Bad: true})
		}
	}
	if failed, requests := c.activity.failures(c.o.Machine()); failed >= errorCount && failed*errorShare >= requests {
		all = append(all, trouble{Name: "errors", Text: count(failed) + " of " + plural(requests, "request") + " of the last two minutes were answered 5xx.", Bad: true})
	}
	for _, check := range checks {
		for _, warning := range check.Warnings {
			all = append(all, trouble{Name: check.Name, Text: warning})
		}
	}
	c.health.date(all, c.o.Machine())
	return all
}

// results returns what the checks said last. If that is old, it starts a run and waits
// a moment. silent is true if a run does not end.
func (h *health) results(now func() time.Time, run func() []summary.Check) (checks []summary.Check, silent bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.began.IsZero() && now().Sub(h.ended).Abs() >= healthAge {
		done := make(chan struct{})
		h.began, h.done = now(), done
		h.running.Go(func() {
			checks := run()
			h.mu.Lock()
			defer h.mu.Unlock()
			h.checks, h.ended, h.began = checks, now(), time.Time{}
			close(done)
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

// date says since when each trouble lasts.
func (h *health) date(all []trouble, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	since := make(map[string]time.Time)
	for i := range all {
		t := &all[i]
		if t.Since = h.since[t.Name]; t.Since.IsZero() {
			t.Since = now
		}
		since[t.Name] = t.Since
	}
	h.since = since
}

// serveHealth answers the script of the pages with the bar.
func (c *Console) serveHealth(w http.ResponseWriter, r *http.Request) {
	s := c.signedIn(w, r)
	if s == nil {
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	bar := view{viewer: &viewer{s, c.o.Zone, c.o.Machine(), c.o.Bank()}, Content: c.troubles()}
	_ = c.templates["error"].ExecuteTemplate(w, "health", bar) // it fails only if the client disconnected
}
