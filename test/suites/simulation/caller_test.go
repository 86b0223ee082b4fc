package simulation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"bankingapi/application/commit"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// caller is a client of the API. It sends one request after the other and
// retries as real clients do.
type caller struct {
	name         string
	subscription *subscription.Subscription
	wake         time.Time // when it acts next
	request      *request  // without an answer yet; nil before the next one
	waits        *attempt  // the attempt whose answer it waits for
	tries        int
	made         int // requests so far
	past         []*request
}

// attempt is one request that was sent.
type attempt struct {
	number  int
	caller  *caller
	request *request
	replica *replica
	id      operation.ID
	arrived time.Time // by the replica's clock
	cancel  context.CancelFunc
	left    bool // the caller has hung up

	// Written by its goroutine, read once it is done.
	done     bool
	outcome  operation.Outcome
	err      error
	panicked bool
	lost     bool // the answer did not reach the caller
}

// call runs in the goroutine of an attempt.
func (a *attempt) call(ctx context.Context, ask func(context.Context) (operation.Outcome, error)) {
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(*commit.Panic); !ok {
				panic(v)
			}
			a.panicked = true
		}
		a.replica.world.turn.Load()
		a.done = true
	}()
	a.outcome, a.err = ask(ctx)
}

// answer returns the answer in the same form as bank.
func (a *attempt) answer() string {
	switch {
	case a.panicked:
		return "panic"
	case a.err != nil:
		return answered(fault.KindOf(a.err), fault.Of(a.err))
	case a.outcome.Replayed:
		return answered(a.outcome.State, a.outcome.Faults) + ", again"
	}
	return answered(a.outcome.State, a.outcome.Faults)
}

func answered(outcome fmt.Stringer, faults []fault.Fault) string {
	var texts []string
	for _, f := range faults {
		texts = append(texts, f.Code+" "+f.Pointer)
	}
	if texts == nil {
		return outcome.String()
	}
	return outcome.String() + ": " + strings.Join(texts, ", ")
}

// next chooses the next request of the caller.
func (w *world) next(c *caller) *request {
	if c.request != nil {
		return c.request
	}
	c.tries = 0
	if len(c.past) > 0 && w.chance(120) {
		// Repeat an earlier request, sometimes with a mistake.
		r := c.past[w.rng.IntN(len(c.past))]
		if w.chance(250) {
			r = w.alter(r)
		}
		c.request = r
		return r
	}
	c.request = w.think(c)
	if c.request.callerID != "" {
		c.past = append(c.past, c.request)
	}
	return c.request
}

// hear handles an answer, or a missing one.
func (w *world) hear(c *caller, a *attempt) {
	c.waits = nil
	if a.done && !a.lost && (a.err == nil || settled(a.err)) {
		w.finish(c)
		return
	}
	// The outcome is unknown, or there was no effect: retry a limited number of
	// times. Without a CallerId, a careful caller does not retry a sale.
	c.tries++
	careless := c.request.callerID == "" && c.request.operation == operation.BuyFundFromCustomer && w.chance(500)
	if careless || c.tries > 8 && !w.calm {
		w.finish(c)
		return
	}
	if w.chance(20) && c.request.callerID != "" {
		c.request = w.alter(c.request) // a mistake in the retry
	}
	c.wake = w.now().Add(time.Duration(w.rng.IntN(30_000*c.tries)) * time.Millisecond)
}

// settled are failures that a retry of the same request would also get.
func settled(err error) bool {
	switch fault.KindOf(err) {
	case fault.Invalid, fault.Forbidden, fault.Conflict:
		return true
	case fault.None, fault.Internal, fault.Busy, fault.Unavailable, fault.Indeterminate:
	}
	return false
}

func (w *world) finish(c *caller) {
	c.request = nil
	c.wake = w.now()
	if w.chance(300) {
		c.wake = c.wake.Add(time.Duration(w.rng.IntN(int(12 * time.Hour))))
	}
}

// giveUp makes a caller hang up. It may retry while its first request is still
// running.
func (w *world) giveUp(a *attempt) {
	a.left = true
	w.hear(a.caller, a)
	a.cancel()
}

// send sends the request of the caller to a replica.
func (w *world) send(c *caller) {
	r := w.anyReplica()
	if r == nil {
		c.wake = w.now().Add(time.Duration(1+w.rng.IntN(60)) * time.Second)
		return
	}
	request := w.next(c)
	w.tally.Operations++
	a := &attempt{number: len(w.attempts), caller: c, request: request, replica: r, arrived: r.now()}
	w.attempts = append(w.attempts, a)
	w.note("%s asks %s (%d): %s", c.name, r.name, a.number, request)
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(context.Background())
	c.waits, w.starting = a, a
	queue := &r.pushes
	if request.operation == operation.BuyFundFromCustomer {
		fields := w.saleFields(request)
		queue = &r.sales
		go a.call(ctx, func(ctx context.Context) (operation.Outcome, error) {
			return r.buyer.Buy(ctx, request.subscription, request.header(), fields)
		})
	} else {
		fields := pushFields(request)
		go a.call(ctx, func(ctx context.Context) (operation.Outcome, error) {
			return r.adder.Add(ctx, request.subscription, request.header(), fields)
		})
	}
	w.wait()
	w.starting = nil
	w.atTheDoor(queue, a)
}
