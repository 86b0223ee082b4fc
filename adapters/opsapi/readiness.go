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
	// seconds. It is not called again before it returned. The listener shows the
	// Detail of a *fault.Error, which contains no secrets. The rest of the error
	// goes to Options.Changed. Warnings mean that the condition is met.
	Probe func(context.Context) error
}

// Warnings are sentences about risks of a service that is ready. They contain
// no secrets.
type Warnings []string

// Error joins the sentences.
func (w Warnings) Error() string { return strings.Join(w, " ") }

// readiness answers /readyz in the format of the Kubernetes servers.
type readiness struct {
	checks   []*probe
	now      func() time.Time
	changed  func(string, error)
	draining atomic.Bool

	turn   chan struct{} // a mutex for the fields below that one can wait for
	looked time.Time
	errs   []error // of each check; nil before the first run
}

func newReadiness(o Options) *readiness {
	r := &readiness{now: o.Now, changed: o.Changed, turn: make(chan struct{}, 1)}
	for _, c := range o.Checks {
		r.checks = append(r.checks, &probe{Check: c})
	}
	if r.changed == nil {
		r.changed = func(string, error) {}
	}
	return r
}

// serve returns a handler that answers 200 or 503. With ?verbose, and whenever
// the service is not ready, it lists every check.
func (r *readiness) serve(name string) http.HandlerFunc {
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

// Result is a check and its result.
type Result struct {
	Name string
	// Problem is empty if the check passes. It contains no secrets.
	Problem string
	// Warnings are risks that the check has found. It passes.
	Warnings []string
}

// Results runs the checks, as /readyz does, and returns them in their order.
func (h *Handler) Results() (all []Result) {
	r := h.readiness
	for i, err := range r.look() {
		result := Result{Name: r.checks[i].Name}
		if warnings, ok := errors.AsType[Warnings](err); ok {
			result.Warnings = warnings
		} else if err != nil {
			result.Problem = detail(err)
		}
		all = append(all, result)
	}
	if r.draining.Load() {
		all = append(all, Result{Name: "shutdown", Problem: detail(errStopping)})
	}
	return all
}

// list returns a line for each check and reports whether all of them pass.
func (r *readiness) list() (text string, ready bool) {
	var lines strings.Builder
	ready = true
	tell := func(name string, err error) {
		if err == nil {
			fmt.Fprintf(&lines, "[+]%s ok\n", name)
			return
		}
		if warnings, ok := errors.AsType[Warnings](err); ok {
			for _, w := range warnings {
				fmt.Fprintf(&lines, "[!]%s warning: %s\n", name, w)
			}
			return
		}
		ready = false
		fmt.Fprintf(&lines, "[-]%s failed: %s\n", name, detail(err))
	}
	for i, err := range r.look() {
		tell(r.checks[i].Name, err)
	}
	if r.draining.Load() {
		tell("shutdown", errStopping)
	} else {
		tell("shutdown", nil)
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
func (r *readiness) look() []error {
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
		if failed := r.errs != nil && r.errs[i] != nil; failed != (err != nil) {
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
