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
	// freshness is how long a result is reused, so that many probes cost one
	// check a second.
	freshness = time.Second
	// patience is how long one check may take.
	patience = 2 * time.Second
)

// Check is one condition for the service to be ready.
type Check struct {
	Name string
	// Probe returns nil if the condition is met. Its context ends after 2
	// seconds. The listener does not call it again before it returned. It shows
	// the Detail of a *fault.Error, which contains no secrets. The rest of the
	// error goes to the function changed of NewReadiness. Warnings mean that the
	// condition is met.
	Probe func(context.Context) error
}

// StorageChecks are the checks of a storage. Risks are warnings if the operator
// allows them.
func StorageChecks(s *store.Store, allowUnsafe bool) []Check {
	return []Check{
		{"database", s.Ping},
		{"schema", s.Schema.Require},
		{"durability", func(ctx context.Context) error { return Warned(s.Durability(ctx, allowUnsafe)) }},
	}
}

// Warnings are sentences about risks of a service that is ready. They contain
// no secrets.
type Warnings []string

func isFailure(err error) bool {
	_, warnings := errors.AsType[Warnings](err)
	return err != nil && !warnings
}

// Warned returns err, or the warnings as the error of a check whose condition is met.
func Warned(warnings []string, err error) error {
	if err == nil && len(warnings) > 0 {
		return Warnings(warnings)
	}
	return err
}

// Warn returns a warning, or nil for an empty text.
func Warn(text string) error {
	if text == "" {
		return nil
	}
	return Warnings{text}
}

// Error joins the sentences.
func (w Warnings) Error() string { return strings.Join(w, " ") }

// Readiness decides whether the service is ready. It is safe for concurrent use.
type Readiness struct {
	checks   []*probe
	now      func() time.Time
	changed  func(check string, err error)
	draining atomic.Bool

	turn   chan struct{} // a mutex for the fields below that one can wait for
	looked time.Time
	errs   []error // of each check; nil before the first run
}

// NewReadiness returns the Readiness of a service that is ready if all checks
// pass. Each name is one word and unique. changed is called with the error when a
// check starts to fail, and with nil when it passes again.
func NewReadiness(now func() time.Time, changed func(check string, err error), checks ...Check) *Readiness {
	r := &Readiness{now: now, changed: changed, turn: make(chan struct{}, 1)}
	for _, c := range checks {
		r.checks = append(r.checks, &probe{Check: c})
	}
	return r
}

// Drain makes the service not ready from now on, because it is about to stop. It
// may be called twice.
func (r *Readiness) Drain() { r.draining.Store(true) }

// Require runs the checks one after the other, now. It returns the error of the
// first one that fails.
func (r *Readiness) Require(ctx context.Context) error {
	if r.draining.Load() {
		return errStopping
	}
	for _, c := range r.checks {
		if err := c.Probe(ctx); isFailure(err) {
			return err
		}
	}
	return nil
}

// serve returns a handler that answers 200 or 503, in the format of the Kubernetes
// servers. With ?verbose, and whenever the service is not ready, it lists every
// check.
func (r *Readiness) serve(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		// Without the context of the request: several requests share a run, and a
		// client that disconnects must not fail the others.
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
	for i, err := range r.look() {
		result := summary.Check{Name: r.checks[i].Name}
		if warnings, ok := errors.AsType[Warnings](err); ok {
			result.Warnings = warnings
		} else if err != nil {
			result.Problem = detail(err)
		}
		all = append(all, result)
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
	if n := len(results); n == 0 || results[n-1].Name != shutdown {
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
				fmt.Fprintf(&lines, "[!]%s warning: %s\n", c.Name, w)
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

// detail returns the part of an error that may be shown.
func detail(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Detail != "" {
		return e.Detail
	}
	return "See the log."
}

// look returns the results of the checks, at most freshness old. Concurrent
// callers wait for the same run.
func (r *Readiness) look() []error {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if age := r.now().Sub(r.looked); r.errs != nil && 0 <= age && age < freshness {
		return r.errs
	}
	errs := make([]error, len(r.checks))
	var all sync.WaitGroup
	for i, c := range r.checks {
		all.Go(func() { errs[i] = c.run() })
	}
	all.Wait()
	for i, err := range errs {
		if failed := r.errs != nil && isFailure(r.errs[i]); failed != isFailure(err) {
			r.changed(r.checks[i].Name, err)
		}
	}
	r.errs, r.looked = errs, r.now()
	return errs
}

// probe is a check and its running call. One goroutine at a time uses it.
type probe struct {
	Check
	pending chan error // nil if no call is running
}

// run waits for the check for at most patience. If the check has not returned by
// then, the next run waits for the same call, so calls cannot pile up.
func (p *probe) run() error {
	if p.pending == nil {
		p.pending = make(chan error, 1)
		go p.call(p.pending)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-p.pending:
		p.pending = nil
		if errors.Is(err, context.DeadlineExceeded) {
			return errors.Join(errNoAnswer, err)
		}
		return err
	case <-timer.C:
		return errNoAnswer
	}
}

// call runs the check without the context of any request: a client that
// disconnects must not fail the others.
func (p *probe) call(result chan<- error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			result <- fmt.Errorf("panic of type %T", cause)
		}
	}()
	result <- p.Probe(ctx)
}
