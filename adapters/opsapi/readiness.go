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
	// freshness is how long an answer serves all who ask: a flood of probes
	// costs one look a second.
	freshness = time.Second
	// patience is how long one check may take.
	patience = 2 * time.Second
)

// Check is one condition for the service to be ready.
type Check struct {
	Name string
	// Probe returns nil when the condition holds. Its context ends after 2
	// seconds; it is not called again before it has returned. Of its error
	// people see the Detail of a *fault.Error, which holds no secrets; the rest
	// is for Options.Changed.
	Probe func(context.Context) error
}

// readiness answers /readyz the way Kubernetes' own servers do.
type readiness struct {
	checks   []*probe
	now      func() time.Time
	changed  func(string, error)
	draining atomic.Bool

	turn   chan struct{} // holds one while somebody looks; guards what follows
	looked time.Time
	errs   []error // of each check; nil before the first look
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
		// Without the request's context: the look belongs to all who ask, one
		// that leaves must not fail the others.
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

// list has a line for each check, and reports whether all of them pass.
func (r *readiness) list() (text string, ready bool) {
	var lines strings.Builder
	ready = true
	tell := func(name string, err error) {
		if err == nil {
			fmt.Fprintf(&lines, "[+]%s ok\n", name)
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

// detail is what people may see of an error.
func detail(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Detail != "" {
		return e.Detail
	}
	return "The log says why."
}

// look returns what the checks say, no older than freshness. Those who ask at
// the same time wait for one look.
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

// probe is a check and its call on the way. It is run by one goroutine at a
// time.
type probe struct {
	Check
	pending chan error // nil when none is on its way
}

// run waits for the check no longer than patience. A check that does not come
// back is left behind, and waited for again the next time: it cannot pile up.
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

// call belongs to nobody who asks: whoever leaves must not fail the others.
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
