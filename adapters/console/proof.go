package console

import (
	"context"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/audit"
)

// proof is the check of the book that runs, or ran last, in this process.
type proof struct {
	mu     sync.Mutex
	run    proofRun
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// proofRun is a check of the book. Ended is the zero time while it runs.
type proofRun struct {
	By           string
	Began, Ended time.Time
	Rows         int64
	Findings     []backoffice.Finding // at most maxFindings
	Result       backoffice.Proof
	// Failed says that it could not be finished, Stopped that a person stopped it.
	Failed, Stopped bool
}

// maxFindings is how many findings are kept.
const maxFindings = 500

// Running reports whether the check goes on.
func (r proofRun) Running() bool { return !r.Began.IsZero() && r.Ended.IsZero() }

// Done reports whether it has a result.
func (r proofRun) Done() bool { return !r.Ended.IsZero() && !r.Failed && !r.Stopped }

// proofPage is the page Proof. Last is the newest check that is recorded.
type proofPage struct {
	proofRun
	Last     *audit.Act
	TrailKey string // empty without a trail
}

// lookBack is how many days back a check of the book is looked for.
const lookBack = 90

// lastVerified is the newest check that any program has recorded, or nil.
func lastVerified(ctx context.Context, o *Options) (*audit.Act, error) {
	return o.Office.LastVerified(ctx, o.Bank().AddDate(0, 0, -lookBack))
}

// now returns how the check is going.
func (p *proof) now() proofRun {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

func showProof(q *request) (any, error) {
	p := proofPage{proofRun: q.console.proof.now()}
	if q.Trail != nil {
		p.TrailKey = q.Trail.VerifyingKey()
	}
	if p.Done() && len(p.Findings) > 0 {
		if err := q.look(); err != nil {
			return nil, err
		}
	}
	var err error
	p.Last, err = lastVerified(q.ctx, q.Options)
	return p, err
}

// startProof begins a check, or stops the one that runs. The check goes on
// after the answer. It reads a snapshot on one connection, so that sales go on.
func startProof(q *request) (any, error) {
	if q.field("action") == "stop" {
		q.console.proof.stop()
		return q.redirect("/console/proof")
	}
	select {
	case q.console.long <- struct{}{}:
	default:
		return nil, errBusy
	}
	q.console.startProof(q.by(context.Background(), ""), q.Name)
	return q.redirect("/console/proof")
}

// startProof begins a check. It gives back the place of long work when the check
// ends, so no other one runs.
func (c *Console) startProof(ctx context.Context, user string) {
	p := &c.proof
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, p.cancel = context.WithCancel(ctx)
	p.run = proofRun{By: user, Began: c.o.Machine()}
	update := func(change func(*proofRun)) {
		p.mu.Lock()
		defer p.mu.Unlock()
		change(&p.run)
	}
	p.done.Go(func() {
		defer func() { <-c.long }()
		c.reading <- struct{}{} // it is one of the two that read
		defer func() { <-c.reading }()
		result, err := c.o.Office.Verify(ctx, nil, backoffice.Watch{
			Found: func(f backoffice.Finding) {
				update(func(r *proofRun) {
					if len(r.Findings) < maxFindings {
						r.Findings = append(r.Findings, f)
					}
				})
			},
			Progress: func(rows int64) { update(func(r *proofRun) { r.Rows = rows }) },
		})
		if err != nil && ctx.Err() == nil {
			c.o.Failed("Proof", err)
		}
		update(func(r *proofRun) {
			r.Result, r.Stopped, r.Failed, r.Ended = result, ctx.Err() != nil, err != nil, c.o.Machine()
		})
	})
}

// stop ends a check that runs and waits for it.
func (p *proof) stop() {
	p.mu.Lock()
	if p.cancel != nil {
		p.cancel()
	}
	p.mu.Unlock()
	p.done.Wait()
}

func exportProof(q *request) (any, error) {
	columns := []bookfile.Column[backoffice.Finding]{
		{Name: "Rule", Value: func(f *backoffice.Finding) bookfile.Value { return bookfile.Text(f.Rule) }},
		{Name: "Finding", Value: func(f *backoffice.Finding) bookfile.Value { return bookfile.MessageText(f.Text) }},
	}
	return download(q, "findings", columns, rowsOf(q.console.proof.now().Findings))
}
