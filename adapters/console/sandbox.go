package console

import (
	"net/http"
	"strconv"
	"time"

	"bankingapi/application/operator"
)

// sandboxPage is the page Sandbox. Ordered is the fault of the next Left requests.
type sandboxPage struct {
	Ahead   time.Duration
	Ordered string
	Left    int
}

// maxOrdered is the maximum number of requests for which a fault can be ordered.
const maxOrdered = 1000

func showSandbox(q *request) (any, error) {
	page := sandboxPage{Ahead: max(0, q.bank.Sub(q.machine).Round(time.Second))}
	if armed := q.Sandbox.ArmedFaults(); len(armed) > 0 {
		page.Ordered, page.Left = armed[0].Fault, armed[0].Count
	}
	return page, nil
}

func useSandbox(q *request) (any, error) {
	const page = "/console/sandbox"
	switch q.field("action") {
	case "advance":
		by, err := time.ParseDuration(q.field("by"))
		if err != nil || by <= 0 {
			return nil, &problem{http.StatusBadRequest, "The clock moves forward by a duration, such as 24h."}
		}
		settled, err := q.Sandbox.AdvanceClock(q.r.Context(), by) // it may settle many days
		return q.done(err, page, "The clock moved. Settled on the way: "+count(settled.Completed)+" completed, "+count(settled.Failed)+" failed.")
	case "fault":
		n, err := strconv.Atoi(q.field("requests"))
		if err != nil || n < 1 || n > maxOrdered {
			return nil, &problem{http.StatusBadRequest, "A fault is ordered for 1 to " + count(maxOrdered) + " requests."}
		}
		fault := q.field("fault")
		return q.done(q.Sandbox.ArmFaults(operator.ArmedFault{Fault: fault, Count: n}), page, "Ordered: "+fault+" for the next "+plural(n, "request")+" to an operation.")
	case "no-fault":
		return q.done(q.Sandbox.ArmFaults(), page, "The next requests are answered as usual.")
	case "reset":
		if q.field("confirm") != "yes" {
			return nil, errConfirm
		}
		return q.done(q.Sandbox.Reset(q.r.Context()), page, "The book is back at its beginning, and the clock at the real time. The key stays.")
	}
	return nil, errNothing
}
