package console

import (
	"iter"
	"net/http"
	"strconv"
	"time"

	"bankingapi/application/buyfund"
	"bankingapi/application/operator"
)

// sandboxPage is the page Sandbox.
type sandboxPage struct {
	Wrong string // why a form changed nothing
	Ahead time.Duration
	Rows  []operator.SandboxRequest
	// Faults can be ordered. Ordered is the fault of the next Left requests.
	Faults  iter.Seq2[string, string]
	Ordered string
	Left    int
}

const (
	// shownRequests is how many requests the page shows.
	shownRequests = 100
	// maxOrdered is how many requests a fault can be ordered for.
	maxOrdered = 1000
)

func showSandbox(q *request) (any, error) { return newSandboxPage(q, ""), nil }

func newSandboxPage(q *request, wrong string) sandboxPage {
	p := sandboxPage{Wrong: wrong, Ahead: max(0, q.bank.Sub(q.machine).Round(time.Second)), Rows: q.Sandbox.Requests(), Faults: q.Sandbox.Faults}
	p.Rows = p.Rows[:min(len(p.Rows), shownRequests)]
	p.Ordered, p.Left = q.Sandbox.Ordered()
	return p
}

// useSandbox moves the clock, orders faults or resets the book.
func useSandbox(q *request) (any, error) {
	rejected := func(status int, wrong string) (any, error) {
		return shown{status, q.page.template, newSandboxPage(q, wrong)}, nil
	}
	var err error
	var done string
	status := http.StatusBadRequest
	switch q.field("action") {
	case "advance":
		by, wrong := time.ParseDuration(q.field("by"))
		if wrong != nil || by <= 0 {
			return rejected(status, "The clock moves forward by a duration, such as 24h.")
		}
		var settled buyfund.Settlement
		settled, err = q.Sandbox.Advance(q.r.Context(), by) // it may settle many days
		done = "The clock moved. Settled on the way: " + count(settled.Completed) + " completed, " + count(settled.Failed) + " failed."
		status = http.StatusConflict
	case "fault":
		n, wrong := strconv.Atoi(q.field("requests"))
		if wrong != nil || n < 1 || n > maxOrdered {
			return rejected(status, "A fault is ordered for 1 to "+count(maxOrdered)+" requests.")
		}
		err = q.Sandbox.Order(q.field("fault"), n)
		done = "Ordered: " + q.field("fault") + " for the next " + plural(n, "request") + " to an operation."
	case "no-fault":
		err = q.Sandbox.Order("", 0)
		done = "The next requests are answered as usual."
	case "reset":
		if q.field("confirm") != "yes" {
			return rejected(status, "Nothing was changed: tick the box to confirm.")
		}
		err = q.Sandbox.Reset(q.r.Context())
		done = "The book is back at its beginning, and the clock at the real time. The key stays."
	default:
		return nil, errNothing
	}
	if err == nil {
		return q.done("/console/sandbox", done)
	}
	if reason, ok := reasonOf(err); ok {
		return rejected(status, reason)
	}
	return nil, err
}
