package console

import (
	"context"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/audit"
)

// proof is the running or last check of the book in this process.
type proof struct {
	mu     sync.Mutex
	run    proofRun
	cancel context.CancelFunc
	done   chan struct{} // closed at the end of the run; nil before the first run
}

// proofRun is a check of the book. Ended is the zero time while it runs.
type proofRun struct {
	By           string
	Began, Ended time.Time
	Rows         int64
	Findings     []backoffice.Finding // at most maxFindings
	Result       backoffice.Proof
	// Failed means that the check could not be finished, Stopped that a person stopped it.
	Failed, Stopped bool
	// Last is the newest recorded check, for the page Proof.
	Last *audit.Act
}

const maxFindings = 500

func (r proofRun) Running() bool { return !r.Began.IsZero() && r.Ended.IsZero() }

func (r proofRun) Done() bool { return !r.Ended.IsZero() && !r.Failed && !r.Stopped }

// Groups returns the findings by rule, for people.
func (r proofRun) Groups() []backoffice.FindingGroup { return backoffice.GroupFindings(r.Findings) }

func (p *proof) now() proofRun {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

func showProof(q *request) (any, error) {
	p := q.console.proof.now()
	if p.Done() && len(p.Findings) > 0 {
		if err := q.look(); err != nil {
			return nil, err
		}
	}
	var err error
	p.Last, err = q.Options.Office.LastVerified(q.ctx)
	return p, err
}

// startProof begins a check, or stops the running check. The check continues after the
// response, and holds one of the two places to read.
func startProof(q *request) (any, error) {
	c := q.console
	p := &q.console.proof
	if q.field("action") == "stop" {
		p.stop()
		return q.redirect("/console/proof")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !c.long.TryLock() {
		return nil, errLong
	}
	ctx, cancel := context.WithCancel(q.by(context.Background(), ""))
	done := make(chan struct{})
	p.cancel = cancel
	p.done = done
	p.run = proofRun{By: q.Name, Began: c.o.Machine()}
	update := func(change func(*proofRun)) {
		p.mu.Lock()
		defer p.mu.Unlock()
		change(&p.run)
	}
	go func() {
		defer close(done)
		defer c.long.Unlock()
		var result backoffice.Proof
		err := c.inTurn(ctx, func() (err error) {
			result, err = c.o.Office.Verify(ctx, nil, backoffice.Watch{
				Found: func(f backoffice.Finding) {
					update(func(r *proofRun) { r.Findings = append(r.Findings, f)[:min(len(r.Findings)+1, maxFindings)] })
				},
				Progress: func(rows int64) { update(func(r *proofRun) { r.Rows = rows }) },
			})
			return err
		})
		if err != nil && ctx.Err() == nil {
			c.o.Failed("Proof", err)
		}
		update(func(r *proofRun) {
			r.Result = result
			r.Stopped = ctx.Err() != nil
			r.Failed = err != nil
			r.Ended = c.o.Machine()
		})
	}()
	return q.redirect("/console/proof")
}

func (p *proof) stop() {
	p.mu.Lock()
	cancel := p.cancel
	done := p.done
	p.mu.Unlock()
	if done != nil {
		cancel()
		<-done
	}
}

func exportProof(q *request) (any, error) {
	return download(q, "findings", bookfile.Findings, rowsOf(q.console.proof.now().Findings))
}
