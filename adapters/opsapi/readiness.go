package opsapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bankingapi/application/store"
	"bankingapi/application/summary"
	"bankingapi/domain/fault"
)

const (
	// freshness is how long a result is reused, so that many probes cost one check a second.
	freshness = time.Second
	// patience is how long one check may take.
	patience = 2 * time.Second
)

// Check is one condition for the service to be ready.
type Check struct {
	Name string
	// Probe returns an error if the condition is not met, and otherwise sentences about
	// risks, without secrets. Its context ends after 2 seconds. The listener does not call
	// it again before it returned. It shows the Detail of a *fault.Error, which contains no
	// secrets. The rest of the error goes to the function changed of NewReadiness.
	Probe func(context.Context) (warnings []summary.Warning, err error)
}

// StorageChecks returns the checks of a storage. Risks are warnings if allowUnsafe is set.
func StorageChecks(s *store.Store, allowUnsafe bool) []Check {
	return []Check{
		{"database", func(ctx context.Context) ([]summary.Warning, error) { return nil, nameMark(s.Ping(ctx)) }},
		{"schema", func(ctx context.Context) ([]summary.Warning, error) { return nil, nameMark(s.Schema.Require(ctx)) }},
		{"durability", func(ctx context.Context) ([]summary.Warning, error) {
			risks, err := s.Durability(ctx, allowUnsafe)
			return warningsOf(risks), err
		}},
	}
}

// nameMark returns the error of a storage with another mark as one that may be shown completely: it
// says which mark, and what to do.
func nameMark(err error) error {
	_, isOther := errors.AsType[store.MarkError](err)
	if !isOther {
		return err
	}
	return fault.New(fault.Unavailable, fault.Explain(err).Error())
}

func warningsOf(risks []store.Risk) (all []summary.Warning) {
	for _, r := range risks {
		all = append(all, summary.Warning{Text: r.Detail, CanWait: r.CanWait})
	}
	return all
}

// Readiness decides whether the service is ready. It is safe for concurrent use.
type Readiness struct {
	checks   []*probe
	now      func() time.Time
	changed  func(check string, warnings []string, err error)
	draining atomic.Bool

	turn   chan struct{} // a mutex for the fields below, as a channel
	looked time.Time
	found  []result // of each check; nil before the first run
}

// result is what a Probe returned.
type result struct {
	warnings []summary.Warning
	err      error
}

// NewReadiness returns the Readiness of a service that is ready if all checks
// pass. Each name is one word and unique. changed is called when a check starts to
// fail, with the error, and when it passes again.
func NewReadiness(now func() time.Time, changed func(check string, warnings []string, err error), checks ...Check) *Readiness {
	r := &Readiness{now: now, changed: changed, turn: make(chan struct{}, 1)}
	for _, c := range checks {
		r.checks = append(r.checks, &probe{Check: c})
	}
	return r
}

// Drain makes the service not ready from now on, because it is about to stop. It
// may be called twice.
func (r *Readiness) Drain() { r.draining.Store(true) }

// Require runs the checks one after the other, now. It returns the error of the first check
// that fails.
func (r *Readiness) Require(ctx context.Context) error {
	if r.draining.Load() {
		return errStopping
	}
	for _, c := range r.checks {
		if _, err := c.Probe(ctx); err != nil {
			return err
		}
	}
	return nil
}

// serve returns a handler that answers 200 or 503, in the format of the Kubernetes servers.
// With ?verbose, and whenever the service is not ready, it lists every check.
func (r *Readiness) serve(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		list, ready := r.list()
		switch {
		case !ready:
			serveText(w, http.StatusServiceUnavailable, list+name+" check failed\n")
		case request.URL.Query().Has("verbose"):
			serveText(w, http.StatusOK, list+name+" check passed\n")
		default:
			serveText(w, http.StatusOK, "ok\n")
		}
	}
}

// Results runs the checks, as /readyz does, and returns them in their order.
func (r *Readiness) Results() (all []summary.Check) {
	for i, found := range r.look() {
		all = append(all, summary.Check{Name: r.checks[i].Name, Problem: detail(found.err), OfStorage: isOfStorage(found.err), Warnings: found.warnings})
	}
	if r.draining.Load() {
		all = append(all, summary.Check{Name: shutdown, Problem: detail(errStopping)})
	}
	return all
}

// shutdown is the name of the check that fails while the service stops.
const shutdown = "shutdown"

// list returns a line for each check and reports whether all of them pass.
func (r *Readiness) list() (text string, ready bool) {
	results := r.Results()
	n := len(results)
	if n == 0 || results[n-1].Name != shutdown {
		results = append(results, summary.Check{Name: shutdown})
	}
	var lines strings.Builder
	ready = true
	for _, c := range results {
		switch {
		case c.Problem != "":
			ready = false
			fmt.Fprintf(&lines, "[-]%s failed: %s\n", c.Name, c.Problem)
		case len(c.Warnings) > 0:
			for _, w := range c.Warnings {
				fmt.Fprintf(&lines, "[!]%s warning: %s\n", c.Name, w.Text)
			}
		default:
			fmt.Fprintf(&lines, "[+]%s ok\n", c.Name)
		}
	}
	return lines.String(), ready
}

var (
	errStopping = fault.New(fault.Busy, "The service is stopping.")
	errNoAnswer = fault.New(fault.Unavailable, fmt.Sprintf("No answer within %s.", patience))
)

// detail returns the part of an error that may be shown. It is empty for no error.
func detail(err error) string {
	switch shown, ok := errors.AsType[*fault.Error](err); {
	case err == nil:
		return ""
	case ok && shown.Detail != "":
		return shown.Detail
	}
	return "See the log."
}

// isOfStorage reports whether a check has no result: the storage did not answer, or with an error.
// What a check finds itself has no cause.
func isOfStorage(err error) bool {
	known, ok := errors.AsType[*fault.Error](err)
	return ok && known.Kind == fault.Unavailable && (known == errNoAnswer || known.Cause != nil)
}

// look returns the results of the checks, at most freshness old. Concurrent
// callers wait for the same run.
func (r *Readiness) look() []result {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	age := r.now().Sub(r.looked)
	if r.found != nil && 0 <= age && age < freshness {
		return r.found
	}
	found := make([]result, len(r.checks))
	var all sync.WaitGroup
	for i, c := range r.checks {
		all.Go(func() { found[i] = c.run() })
	}
	all.Wait()
	for i, now := range found {
		failed := r.found != nil && r.found[i].err != nil
		if failed != (now.err != nil) {
			r.changed(r.checks[i].Name, summary.Texts(now.warnings), now.err)
		}
	}
	r.found, r.looked = found, r.now()
	return found
}

// probe is a check and its running call. One goroutine at a time uses it.
type probe struct {
	Check
	pending chan result // nil if no call is running
}

// run waits for the check for at most patience. If the check has not returned by then, the next
// run waits for the same call, so calls cannot pile up. If it returned while no run waited,
// that result is old.
func (p *probe) run() result {
	select {
	case <-p.pending:
		p.pending = nil
	default:
	}
	if p.pending == nil {
		p.pending = make(chan result, 1)
		go p.call(p.pending)
	}
	select {
	case found := <-p.pending:
		p.pending = nil
		if errors.Is(found.err, context.DeadlineExceeded) {
			found.err = errors.Join(errNoAnswer, found.err)
		}
		return found
	case <-time.After(patience):
		return result{err: errNoAnswer}
	}
}

// call runs the check without the context of any request: several requests share it, and a
// client that disconnects must not fail the others.
func (p *probe) call(pending chan<- result) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var found result
	defer func() {
		cause := recover()
		if cause != nil {
			found.err = fmt.Errorf("panic of type %T", cause)
		}
		pending <- found
	}()
	found.warnings, found.err = p.Probe(ctx)
}
