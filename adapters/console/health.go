package console

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
	"bankingapi/domain/day"
	"bankingapi/domain/subscription"
)

// health is the content of the bar on every page. A request needs no database and no place to
// read for it: the checks of readiness and of the book run in the background.
type health struct {
	mu      sync.Mutex
	running sync.WaitGroup
	checks  kept[[]summary.Check]
	book    kept[[]trouble]
	// since is the time when each trouble was first seen. While the service is not ready, a
	// trouble that is not seen may continue: its check may have no result.
	since map[string]time.Time
}

// kept is the last value that was read.
type kept[T any] struct {
	value T
	began time.Time     // of the last run
	done  chan struct{} // closed when the run ends; nil if no run is active
}

// trouble is a line of the bar. Bad means that callers notice it. The words of Text, and what,
// distinguish troubles of one Name. All that make the service not ready share one start time.
type trouble struct {
	Name, Text, Effect string
	Bad                bool
	Since              time.Time
	what               string
}

const (
	// healthAge is the maximum age of check results, bookAge of the results about the book.
	healthAge, bookAge = time.Second, 15 * time.Second
	// A page waits healthWait for new results. A run longer than healthSilence is a trouble.
	healthWait, healthSilence = 200 * time.Millisecond, time.Second
	// At least errorCount 5xx answers, and one in errorShare requests, are a trouble.
	errorShare, errorCount = 20, 5
	lateAfter              = 5 * time.Minute // how long a due sale may wait to be settled
	checkDays, expiryDays  = 7, 14           // age of the last check of the book; time before a key expires
)

// figures matches the numbers of a trouble, which may change while it lasts.
var figures = regexp.MustCompile(`[\d.,]+`)

// Without durability or with a wrong clock, the API still answers.
const unavailable, unbalanced = "Not ready: requests that need it are answered 503.", "Not ready: a balancer that asks /readyz sends nothing here. Requests that come are answered."

// troubles returns the lines of the bar, worst first.
func (c *Console) troubles() (all []trouble) {
	now := c.o.Machine()
	checks, silent := c.health.results(c)
	for _, check := range checks {
		effect := unavailable
		if check.Name == "durability" || check.Name == "clock" {
			effect = unbalanced
		}
		same := slices.IndexFunc(all, func(t trouble) bool { return t.Text == check.Problem })
		switch {
		case check.Problem == "":
		case same >= 0:
			all[same].Name += ", " + check.Name
		default:
			all = append(all, trouble{Name: check.Name, Text: check.Problem, Effect: effect, Bad: true})
		}
	}
	if silent && len(all) == 0 {
		all = append(all, trouble{Name: "checks", Text: "The checks of the service do not end. Its database may hang.", Effect: unavailable, Bad: true})
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
	all = append(all, h.book.value...)
	since := make(map[string]time.Time)
	if slices.ContainsFunc(all, trouble.isUnready) {
		maps.Copy(since, h.since)
	}
	for i := range all {
		t := &all[i]
		key := t.Name + t.what + figures.ReplaceAllString(t.Text, "")
		if t.isUnready() {
			key = unavailable
		}
		if t.Since = h.since[key]; t.Since.IsZero() {
			t.Since = now
		}
		since[key] = t.Since
	}
	h.since = since
	return all
}

func (t trouble) isUnready() bool { return t.Effect != "" }

// refresh reads an old value again in the background. The caller must hold the lock.
func refresh[T any](c *Console, k *kept[T], age time.Duration, read func() (T, error)) {
	h, now := &c.health, c.o.Machine
	if k.done != nil || now().Sub(k.began).Abs() < age {
		return
	}
	k.began, k.done = now(), make(chan struct{})
	h.running.Go(func() {
		var value T
		var err error // the checks report what is wrong
		panicked := caught(func() error {
			value, err = read()
			return nil
		})
		if panicked != nil {
			c.o.Failed("Bar", panicked)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if err == nil && panicked == nil {
			k.value = value
		}
		close(k.done)
		k.done = nil
	})
}

// results returns the last results of the checks. silent is true if a run does not end.
func (h *health) results(c *Console) (checks []summary.Check, silent bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	refresh(c, &h.checks, healthAge, func() ([]summary.Check, error) { return c.o.Checks(), nil })
	refresh(c, &h.book, bookAge, func() ([]trouble, error) { return c.lookAtBook(context.Background()) })
	if done := h.checks.done; done != nil {
		h.mu.Unlock()
		select {
		case <-done:
		case <-time.After(healthWait):
		}
		h.mu.Lock()
	}
	return h.checks.value, h.checks.done != nil && c.o.Machine().Sub(h.checks.began) >= healthSilence
}

// lookAtBook returns the troubles of due sales, of keys, and of the last check of the book.
func (c *Console) lookAtBook(ctx context.Context) (all []trouble, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	due, err := c.o.Due(ctx)
	partners, wrong := c.o.Subscriptions.List(ctx)
	checked, failed := c.o.Office.LastVerified(ctx)
	if err := errors.Join(err, wrong, failed); err != nil {
		return nil, err
	}
	if due.Lag(c.o.Bank()) > lateAfter {
		all = append(all, trouble{Name: "due sales", Text: "Sales that should be settled: " + count(due.ForSettling) + "."})
	}
	for _, of := range due.ForPrice {
		if of.Day.Before(day.Of(c.o.Bank(), c.o.Zone)) {
			all = append(all, trouble{Name: "due sales", what: of.Fund.IMKBCode + of.Day.String(), Text: "Sales that wait for the price of " + of.Fund.IMKBCode + " of " + calendar(of.Day) + ": " + count(of.Sales) + "."})
		}
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
			all = append(all, trouble{Name: "keys", what: s.Name, Text: "The " + []string{"primary", "secondary"}[i] + how + calendar(c.viewer(nil).LastDay(key.Expires)) + "."})
		}
	}
	switch {
	case checked == nil && used:
		all = append(all, trouble{Name: "book", Text: "No check of the book is recorded in the last 90 days."})
	case checked == nil:
	case !backoffice.BookHolds(checked.Details):
		all = append(all, trouble{Name: "book", Text: "The last check of the book has findings: see Proof.", Bad: true})
	case checked.At.Before(c.o.Bank().AddDate(0, 0, -checkDays)):
		all = append(all, trouble{Name: "book", Text: "The last check of the book is older than " + plural(checkDays, "day") + "."})
	}
	return all, nil
}

// showHealth sends the bar to the script of the pages.
func showHealth(q *request) (any, error) {
	return response(func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = q.console.templates["error"].ExecuteTemplate(w, "health", q) // it fails only if the client disconnected
		return nil
	}), nil
}
