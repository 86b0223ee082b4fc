package console

import (
	"context"
	"strings"
	"sync"
	"time"

	"bankingapi/application/backoffice"
)

// proof is the check of the book that runs, or ran last, in this process.
type proof struct {
	mu       sync.Mutex
	running  bool
	cancel   context.CancelFunc
	done     sync.WaitGroup
	by       string
	began    time.Time
	ended    time.Time
	rows     int64
	findings []backoffice.Finding
	result   backoffice.Proof
	err      error
	stopped  bool
}

// maxFindings is how many findings are kept.
const maxFindings = 500

// proofView is the page Proof.
type proofView struct {
	Running, Done, Holds, Stopped bool
	By, Rows, Count               string
	Failed                        string
	Began, Ended                  *moment
	Took                          string
	Checked                       []figure
	Totals                        []totalRow
	Findings                      []backoffice.Finding
	More                          string
	Hidden                        bool
	Export                        string
	CanStart                      bool
	// Last is the newest check that is recorded.
	Last *verified
	// TrailKey is empty without a trail.
	TrailKey string
}

type totalRow struct{ Of, Customers, Bank string }

// verified is a check of the book that was recorded.
type verified struct {
	At                    *moment
	Who, Text             string
	Result, Short, Reason string
	Holds                 bool
}

// lookBack is how far back a check of the book is looked for.
const lookBack = 90

// lastVerify returns the newest check that any program has recorded, or nil.
func (q *request) lastVerify() (*verified, error) {
	f := backoffice.Query{Action: backoffice.VerifyAct, Since: q.now.AddDate(0, 0, -lookBack), Limit: 1, Order: backoffice.Newest}
	for a, err := range q.o.Office.Reader.Acts(q.ctx, f) {
		if err != nil {
			return nil, err
		}
		result, text, _ := strings.Cut(a.Details, ": ")
		v := &verified{At: q.moment(a.At), Who: a.Actor, Result: result, Text: text, Reason: a.Reason, Holds: backoffice.Held(a.Details)}
		v.Short = a.At.In(q.o.Zone).Format("2 Jan 15:04")
		return v, nil
	}
	return nil, nil //nolint:nilnil // there is none
}

// progressNow reports whether a check runs, and how many rows it has read.
func (p *proof) progressNow() (running bool, rows int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running, p.rows
}

func (p *proof) view(q *request) proofView {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := proofView{Running: p.running, By: p.by, Rows: grouped(itoa(p.rows)), Began: q.moment(p.began), Export: "/console/proof/export", CanStart: q.session.operator}
	if q.o.Trail != nil {
		v.TrailKey = q.o.Trail.VerifyingKey()
	}
	if p.running || p.ended.IsZero() {
		return v
	}
	v.Ended = q.moment(p.ended)
	v.Took = p.ended.Sub(p.began).Round(time.Millisecond).String()
	if p.stopped {
		v.Stopped = true
		return v
	}
	if p.err != nil {
		v.Failed = "The check could not be finished. See the log of the service."
		return v
	}
	r := p.result
	v.Done, v.Holds, v.Count = true, r.Findings == 0, grouped(itoa(r.Findings))
	for _, each := range []struct {
		name string
		rows int64
	}{{"Holdings", r.Holdings}, {"Accounts", r.Accounts}, {"Sales", r.Sales}, {"Postings", r.Postings}} {
		v.Checked = append(v.Checked, figure{Name: each.name, Value: grouped(itoa(each.rows))})
	}
	if r.Batches+r.Unsealed > 0 {
		v.Checked = append(v.Checked, figure{Name: "Batches of the trail", Value: grouped(itoa(r.Batches)), Note: grouped(itoa(r.Unsealed)) + " not signed yet"})
	}
	for _, t := range append(append([]backoffice.Total(nil), r.Units...), r.Money...) {
		v.Totals = append(v.Totals, totalRow{t.Of, grouped(t.Customers), grouped(t.Bank)})
	}
	v.Findings = q.findings(p.findings)
	v.Hidden = len(p.findings) > 0 && !q.session.reveals()
	if extra := r.Findings - int64(len(p.findings)); extra > 0 {
		v.More = grouped(itoa(extra))
	}
	return v
}

// findings are what a session may see: the texts name customers.
func (q *request) findings(found []backoffice.Finding) []backoffice.Finding {
	shown := append([]backoffice.Finding(nil), found...)
	if !q.session.reveals() {
		for i := range shown {
			shown[i].Text = q.text(shown[i].Text)
		}
	}
	return shown
}

func itoa(n int64) string { return fixedAmount(n, 0) }

func showProof(q *request) (err error) {
	v := q.proof.view(q)
	if v.Last, err = q.lastVerify(); err != nil {
		return err
	}
	if len(v.Findings) > 0 {
		if err := q.look(); err != nil {
			return err
		}
	}
	return q.show("proof", v)
}

// startProof begins a check, or stops the one that runs. The check goes on
// after the answer. It reads a snapshot on one connection, so that sales go on.
func startProof(q *request) error {
	if !q.session.operator {
		return errRole
	}
	if q.PostForm.Get("action") == "stop" {
		q.proof.stop()
		return q.redirect("/console/proof")
	}
	select {
	case q.long <- struct{}{}:
	default:
		return errBusy
	}
	if !q.proof.start(q.Console, q.session.user) {
		<-q.long
	}
	return q.redirect("/console/proof")
}

// start begins a check unless one runs. It gives back the place of long work
// when the check ends.
func (p *proof) start(c *Console, user string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running {
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.running, p.cancel, p.by, p.began, p.ended, p.rows, p.findings, p.err, p.stopped = true, cancel, user, c.o.Now(), time.Time{}, 0, nil, nil, false
	p.done.Go(func() {
		defer cancel()
		defer func() { <-c.long }()
		c.reading <- struct{}{} // it is one of the two that read
		defer func() { <-c.reading }()
		result, err := c.o.Office.Verify(by(ctx, user, ""), nil, backoffice.Watch{Found: p.found, Progress: p.progress})
		if err != nil && ctx.Err() == nil {
			c.o.Failed("Proof", err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.running, p.result, p.err, p.stopped, p.ended = false, result, err, ctx.Err() != nil, c.o.Now()
	})
	return true
}

func (p *proof) found(f backoffice.Finding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.findings) < maxFindings {
		p.findings = append(p.findings, f)
	}
}

func (p *proof) progress(rows int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows = rows
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

func exportProof(q *request) error {
	q.proof.mu.Lock()
	found := q.findings(q.proof.findings)
	q.proof.mu.Unlock()
	return export(q, "findings", []string{"Rule", "Finding"}, sliceOf(found), func(f *backoffice.Finding) []string { return []string{f.Rule, f.Text} })
}
