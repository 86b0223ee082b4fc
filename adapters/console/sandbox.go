package console

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"time"

	"bankingapi/application/buyfund"
)

// Sandbox is what the page Sandbox works with. All functions are required.
type Sandbox struct {
	// Requests returns the last requests, newest first.
	Requests func() []SandboxRequest
	// Advance moves the clock of the bank forward, and settles what becomes due.
	Advance func(ctx context.Context, by time.Duration) (buyfund.Settlement, error)
	// Reset brings the book back to its beginning.
	Reset func(ctx context.Context) error
	// Faults are the faults that can be ordered, by their values of the header
	// Sandbox-Fault, with what they do.
	Faults iter.Seq2[string, string]
	// Order makes the next requests fail, unless they order a fault of their own. 0
	// requests take the order back.
	Order func(fault string, requests int) error
	// Ordered returns the fault that Order ordered, and for how many requests more.
	Ordered func() (fault string, requests int)
}

// SandboxRequest is a request to the API of a sandbox, and its answer. Keys are
// masked.
type SandboxRequest struct {
	Number              int64
	ReceivedAt          time.Time
	Method, Path, Fault string
	Body, Answer        string
	Milliseconds        float64
	// Status is 0 if the connection was closed. Lost says that the answer was made
	// but not sent.
	Status int
	Lost   bool
}

// sandboxView is the page Sandbox.
type sandboxView struct {
	Wrong  string
	Clock  *moment
	Day    string
	Ahead  string
	Rows   []sandboxRow
	Faults iter.Seq2[string, string]
	// Ordered is the fault of the next requests, Left how many have it.
	Ordered, Left string
}

type sandboxRow struct {
	Number, Time, Method, Path, Fault, Took string
	State                                   state
	Body, Answer                            string
}

// shownRequests is how many requests the page shows.
const shownRequests = 100

func showSandbox(q *request) error { return q.showSandbox("") }

// showSandbox shows the page, and why a form changed nothing.
func (q *request) showSandbox(wrong string) error {
	if q.o.Sandbox == nil {
		return errNoPage
	}
	now := q.o.Bank()
	v := sandboxView{Wrong: wrong, Clock: q.moment(now), Day: now.In(q.o.Zone).Format("Monday 2 January 2006, 15:04"), Faults: q.o.Sandbox.Faults}
	if ahead := now.Sub(q.o.Now()).Round(time.Second); ahead > 0 {
		v.Ahead = ahead.String()
	}
	if fault, requests := q.o.Sandbox.Ordered(); requests > 0 {
		v.Ordered, v.Left = fault, plural(requests, "request")
	}
	for i, r := range q.o.Sandbox.Requests() {
		if i == shownRequests {
			break
		}
		row := sandboxRow{Number: strconv.FormatInt(r.Number, 10), Time: r.ReceivedAt.In(q.o.Zone).Format("15:04:05.000"), Method: r.Method, Path: r.Path, Fault: r.Fault,
			Took: short(r.Milliseconds) + " ms", State: state{strconv.Itoa(r.Status), "good"}, Body: r.Body, Answer: r.Answer}
		switch {
		case r.Status == 0:
			row.State = state{"connection cut", "bad"}
		case r.Lost:
			row.State = state{row.State.Text + ", answer lost", "bad"}
		case r.Status >= 500:
			row.State.Class = "bad"
		case r.Status >= 400:
			row.State.Class = "wait"
		}
		v.Rows = append(v.Rows, row)
	}
	return q.show("sandbox", v)
}

// useSandbox moves the clock or resets the book.
func useSandbox(q *request) error {
	if q.o.Sandbox == nil {
		return errNoPage
	}
	if !q.session.operator {
		return errRole
	}
	switch q.PostForm.Get("action") {
	case "advance":
		by, err := time.ParseDuration(q.PostForm.Get("by"))
		if err != nil || by <= 0 {
			q.status = http.StatusBadRequest
			return q.showSandbox("The clock moves forward by a duration, such as 24h.")
		}
		settled, err := q.o.Sandbox.Advance(q.Context(), by) // it may settle many days
		if err != nil {
			wrong, ok := explain(err)
			if !ok {
				return err
			}
			q.status = http.StatusConflict
			return q.showSandbox(wrong)
		}
		return q.did("/console/sandbox", "The clock moved. Settled on the way: "+count(settled.Completed)+" completed, "+count(settled.Failed)+" failed.")
	case "fault":
		return q.orderFault(q.PostForm.Get("fault"), q.PostForm.Get("requests"))
	case "no-fault":
		if err := q.o.Sandbox.Order("", 0); err != nil {
			return err
		}
		return q.did("/console/sandbox", "The next requests are answered as usual.")
	case "reset":
		if q.PostForm.Get("confirm") != "yes" {
			q.status = http.StatusBadRequest
			return q.showSandbox("Nothing was changed: tick the box to confirm.")
		}
		if err := q.o.Sandbox.Reset(q.Context()); err != nil {
			return err
		}
		return q.did("/console/sandbox", "The book is back at its beginning, and the clock at the real time. The key stays.")
	}
	return errNothing
}

// maxOrdered is how many requests a fault can be ordered for.
const maxOrdered = 1000

// orderFault makes the next requests fail.
func (q *request) orderFault(name, requests string) error {
	n, err := strconv.Atoi(requests)
	if err != nil || n < 1 || n > maxOrdered {
		q.status = http.StatusBadRequest
		return q.showSandbox("A fault is ordered for 1 to " + count(maxOrdered) + " requests.")
	}
	if err := q.o.Sandbox.Order(name, n); err != nil {
		wrong, ok := explain(err)
		if !ok {
			return err
		}
		q.status = http.StatusBadRequest
		return q.showSandbox(wrong)
	}
	return q.did("/console/sandbox", "Ordered: "+name+" for the next "+plural(n, "request")+" to an operation.")
}
