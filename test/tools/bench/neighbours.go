package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The victim is a partner that stays far below what the service can do. Its neighbours are
// each at the limit of what they may do, or beyond what the service can do.
const (
	victimRate           = 50
	victimConnections    = 64
	waitingSubscriptions = 22
	reversals            = 20
	neighbourStart       = time.Second // how long a neighbour is there before the victim is measured
)

var (
	arrayOfPushes = work{Name: "push1000", Title: "push, 1,000 records a request", Records: 1000, Rate: 60}
	arrayOfSales  = work{Name: "sale1000", Title: "sale, 1,000 records a request", Records: 1000, Rate: 60, Sellers: anySeller}
	waitForNews   = work{Name: "outcomes", Waits: 20 * time.Second}
)

// A neighbour is what another partner does while the victim is measured.
type neighbour struct {
	title       string
	victim      work
	work        work
	connections int
	overload    int // its rate in multiples of the capacity; 0: that of the work
}

var neighbours = []neighbour{
	{"60 requests a second of 1,000 messages each", plainPush, arrayOfPushes, 60, 0},
	{"60 requests a second of 1,000 sales each", plainSale, arrayOfSales, 60, 0},
	{"sales on 2,500 connections", plainSale, plainSale, 2500, 0},
	{"2,200 waiting requests to /outcomes, and 20 reversals", plainSale, waitForNews, 100 * waitingSubscriptions, 0},
	{"sales at twice the capacity", plainSale, plainSale, rateConnections, 2},
}

// neighbourhood is one service with a victim and its neighbours.
type neighbourhood struct {
	*store
	neighbour string   // its key
	waiting   []string // the keys of those who wait for outcomes
	capacity  float64  // sales a second
}

// measureNeighbours measures a victim alone and beside each neighbour, in turn in the same run.
func (b *bank) measureNeighbours(ctx context.Context) error {
	o, err := b.openStore(ctx, "neighbours", b.versions[0])
	if err != nil {
		return err
	}
	n := &neighbourhood{store: o, neighbour: o.Subscribe(b.t, "neighbour")}
	for i := range waitingSubscriptions {
		n.waiting = append(n.waiting, o.Subscribe(b.t, "waiting-"+strconv.Itoa(i)))
	}
	for _, w := range []work{plainPush, plainSale} { // the first ones warm up
		t, err := n.load(w, victimConnections, b.length(), n.neighbour).runInProcess(ctx)
		if err != nil {
			return err
		}
		n.noteRows(w, t)
		n.capacity = t.Records
	}
	for _, beside := range neighbours {
		var alone, near, other tally
		for range b.rounds {
			if err := b.engine.checkpoint(ctx); err != nil {
				return err
			}
			b.waitQuiet(ctx)
			if err := n.measureBeside(ctx, beside, b.length(), &alone, &near, &other); err != nil {
				return fmt.Errorf("%s: %w", beside.title, err)
			}
		}
		fmt.Fprintf(b.progress, "%s, %s: the victim's answers: %s; one: %s\n", b.engine.name(), beside.title, &near, near.Example)
		p99 := quantile(near.Latency, 0.99)
		p99Alone := quantile(alone.Latency, 0.99)
		b.report.add("A victim that sends 50 requests a second, beside a neighbour and alone.",
			[]string{"engine", "neighbour", "victim", "p50", "p99", "alone: p50", "p99", "p99 to p99 alone", "victim's requests not completed", "neighbour completed, of its requests", "p99 of these", "both, of the capacity"},
			b.engine.name(), beside.title, beside.victim.Title,
			short(quantile(near.Latency, 0.5)), short(p99), short(quantile(alone.Latency, 0.5)), short(p99Alone),
			fmt.Sprintf("%.1f", float64(p99)/float64(max(1, p99Alone))), strconv.Itoa(near.failed()+near.Missed),
			fmt.Sprintf("%d of %d", other.Completed+other.Late, other.all()), short(quantile(other.Latency, 0.99)),
			fmt.Sprintf("%.2f", float64(other.Completed+near.Completed)/(float64(b.rounds)*b.length().Seconds()*n.capacity)))
	}
	return b.prove(o)
}

// measureBeside measures the victim alone, and while a neighbour is there. It adds what they
// reached to the tallies.
func (n *neighbourhood) measureBeside(ctx context.Context, beside neighbour, length time.Duration, alone, near, other *tally) error {
	victim := n.load(beside.victim.at(victimRate), victimConnections, length, n.key)
	byItself, err := victim.runInProcess(ctx)
	if err != nil {
		return err
	}
	neighbour := n.loadOf(beside, length+neighbourStart)
	var loud *tally
	done := make(chan error, 1)
	go func() {
		var err error
		loud, err = neighbour.runInProcess(ctx)
		done <- err
	}()
	reversed := make(chan error, 1)
	go func() { reversed <- n.reverse(ctx, beside) }()
	pause(ctx, neighbourStart)
	quiet, err := victim.runInProcess(ctx)
	err = errors.Join(err, <-done, <-reversed)
	if err != nil {
		return err
	}
	n.noteRows(beside.victim, byItself)
	n.noteRows(beside.victim, quiet)
	n.noteRows(beside.work, loud)
	alone.merge(byItself)
	near.merge(quiet)
	other.merge(loud)
	return nil
}

// noteRows notes the rows of a run. A 503 may have had an effect.
func (n *neighbourhood) noteRows(w work, t *tally) { n.note(w, t, t.failed()) }

// loadOf is the load of a neighbour. Without a rate it waits for a second after a 503, like a client
// of ours. Those who wait for outcomes wait until the end of the run.
func (n *neighbourhood) loadOf(beside neighbour, length time.Duration) load {
	w := beside.work
	if beside.overload > 0 {
		w.Rate = max(1, int(float64(beside.overload)*n.capacity))
	}
	keys := []string{n.neighbour}
	if w.Waits > 0 {
		w.Waits = min(w.Waits, length)
		keys = n.waiting
	}
	l := n.load(w, beside.connections, length, keys...)
	l.Polite = w.Rate == 0
	return l
}

// reverse makes sales of the neighbour and reverses them with the operator's command, if outcomes
// are waited for. Each is an outcome.
func (n *neighbourhood) reverse(ctx context.Context, beside neighbour) error {
	if beside.work.Waits == 0 {
		return nil
	}
	c, err := n.load(plainSale, 1, answerLimit, n.neighbour).client(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	for range reversals {
		a, err := c.exchange()
		if err != nil || string(a.body) != string(completedBody) {
			return errors.Join(err, fmt.Errorf("%d %s", a.status, a.body))
		}
		n.ledger["sales"].acknowledged++
		if text, err := n.Command("sales", "reverse", string(a.operation[:]), "--reason", "bench").CombinedOutput(); err != nil {
			return fmt.Errorf("sales reverse: %w\n%s", err, text)
		}
	}
	return nil
}
