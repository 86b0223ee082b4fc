package console

import (
	"net/http"
	"strconv"
	"time"

	"bankingapi/application/operator"
)

const maxOrdered = 1000

// showSandbox returns how far the clock is ahead.
func showSandbox(q *request) (any, error) {
	return max(0, q.bank.Sub(q.machine).Round(time.Second)), nil
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
