package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// The victim is a partner that stays far below what the service can do. Its neighbours are
// each at the limit of what they may do, or beyond what the service can do.
const (
	victimRate           = 50
	victimConnections    = 64
	manyConnections      = 2500
	waitingSubscriptions = 22
	waitsOfSubscription  = 100
	reversals            = 20
	overload             = 2           // times the capacity
	neighbourStart       = time.Second // how long a neighbour is there before the victim is measured
)

var (
	arrayOfPushes = work{name: "push1000", title: "push, 1,000 records a request", records: 1000, rate: 60}
	arrayOfSales  = work{name: "sale1000", title: "sale, 1,000 records a request", records: 1000, rate: 60, pick: pickAny}
)

// A neighbour is what another partner does while the victim is measured.
type neighbour struct {
	title  string
	victim work
	// run does it for the time, and returns what it reached.
	run func(n *neighbourhood, ctx context.Context, length time.Duration) (*tally, error)
}

var neighbours = []neighbour{
	{"60 requests a second of 1,000 messages each", plainPush, sending(arrayOfPushes, 60)},
	{"60 requests a second of 1,000 sales each", plainSale, sending(arrayOfSales, 60)},
	{"sales on 2,500 connections", plainSale, sending(plainSale, manyConnections)},
	{"2,200 waiting requests to /outcomes, and 20 reversals", plainSale, (*neighbourhood).wait},
	{"sales at twice the capacity", plainSale, (*neighbourhood).overload},
}

// sending is a neighbour that sends a work.
func sending(w work, connections int) func(*neighbourhood, context.Context, time.Duration) (*tally, error) {
	return func(n *neighbourhood, ctx context.Context, length time.Duration) (*tally, error) {
		return n.send(ctx, w, connections, length)
	}
}

// neighbourhood is one service with a victim and its neighbours.
type neighbourhood struct {
	*store
	noting    sync.Mutex // guards the ledger
	neighbour string     // its key
	waiting   []string   // the keys of those who wait for outcomes
	capacity  float64    // sales a second
}

// measureNeighbours measures a victim alone and beside each neighbour, in turn in the same run.
func (b *bench) measureNeighbours(ctx context.Context) error {
	o, err := b.openStore(ctx, "neighbours", b.versions[0], b.service)
	if err != nil {
		return err
	}
	defer o.stop()
	n := &neighbourhood{store: o, neighbour: o.Subscribe(b.t, "neighbour")}
	for i := range waitingSubscriptions {
		n.waiting = append(n.waiting, o.Subscribe(b.t, "waiting-"+strconv.Itoa(i)))
	}
	for _, w := range []work{plainPush, plainSale} { // the first ones warm up
		t, err := inProcess(ctx, n.load(n.neighbour, w, victimConnections, b.length()))
		if err != nil {
			return err
		}
		n.noteRows(w, t)
		n.capacity = t.records
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
		fmt.Fprintf(b.progress, "%s, %s: the victim's answers: %s; one: %s\n", b.engine.name(), beside.title, &near, near.example)
		p99 := near.latency.quantile(0.99)
		b.report.add("A victim that sends 50 requests a second, beside a neighbour and alone.",
			[]string{"engine", "neighbour", "victim", "p50", "p99", "alone: p50", "p99", "p99 to p99 alone", "victim's requests not completed", "neighbour completed, of its requests", "p99 of these", "both, of the capacity"},
			b.engine.name(), beside.title, beside.victim.title,
			short(near.latency.quantile(0.5)), short(p99), short(alone.latency.quantile(0.5)), short(alone.latency.quantile(0.99)),
			fmt.Sprintf("%.1f", float64(p99)/float64(max(1, alone.latency.quantile(0.99)))), strconv.Itoa(near.failed()+near.missed),
			fmt.Sprintf("%d of %d", other.completed+other.late, other.all()), short(other.latency.quantile(0.99)),
			fmt.Sprintf("%.2f", float64(other.completed+near.completed)/(float64(b.rounds)*b.length().Seconds()*n.capacity)))
	}
	return b.prove(o, "neighbours")
}

// measureBeside measures the victim alone, and while a neighbour is there.
func (n *neighbourhood) measureBeside(ctx context.Context, beside neighbour, length time.Duration, alone, near, other *tally) error {
	victim := func(to *tally) error {
		t, err := n.measureVictim(ctx, beside.victim, length)
		if err != nil {
			return err
		}
		to.merge(t)
		return nil
	}
	if err := victim(alone); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		t, err := beside.run(n, ctx, length+neighbourStart)
		other.merge(t)
		done <- err
	}()
	pause(ctx, neighbourStart)
	return errors.Join(victim(near), <-done)
}

// noteRows notes the rows of a run. A 503 may have had an effect.
func (n *neighbourhood) noteRows(w work, t *tally) {
	n.noting.Lock()
	defer n.noting.Unlock()
	n.note(w, t, t.failed())
}

// overload sends sales at twice the capacity.
func (n *neighbourhood) overload(ctx context.Context, length time.Duration) (*tally, error) {
	return n.send(ctx, plainSale.at(max(1, int(overload*n.capacity))), rateConnections, length)
}

// wait holds requests for outcomes, while the bank reverses sales of the neighbour.
func (n *neighbourhood) wait(ctx context.Context, length time.Duration) (*tally, error) {
	ctx, stop := context.WithTimeout(ctx, length)
	defer stop()
	total := &tally{}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: waitingSubscriptions * waitsOfSubscription}}
	defer client.CloseIdleConnections()
	var running sync.WaitGroup
	var mutex sync.Mutex
	for _, key := range n.waiting {
		for range waitsOfSubscription {
			running.Go(func() {
				for ctx.Err() == nil {
					status, err := n.poll(ctx, client, key)
					mutex.Lock()
					switch {
					case err != nil && ctx.Err() == nil:
						total.broken++
					case err != nil || status == http.StatusOK: // it waited until the end, or was answered
						total.completed++
						status = http.StatusOK
						fallthrough
					default:
						total.answered(status, 1)
					}
					mutex.Unlock()
					if status != http.StatusOK {
						pause(ctx, time.Second)
					}
				}
			})
		}
	}
	err := n.reverse(ctx)
	running.Wait()
	return total, err
}

// poll waits for outcomes once.
func (n *neighbourhood) poll(ctx context.Context, client *http.Client, key string) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.services[0].URL+"/outcomes?wait=20s", http.NoBody)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Ocp-Apim-Subscription-Key", key)
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.Body.Close()
}

// reverse makes sales of the neighbour and reverses them with the operator's command. Each is
// an outcome.
func (n *neighbourhood) reverse(ctx context.Context) error {
	c, err := n.load(n.neighbour, plainSale, 1, answerLimit).client(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	for range reversals {
		if ctx.Err() != nil {
			return nil // the measurement has ended
		}
		a, err := c.exchange()
		if err != nil || string(a.body) != string(completedBody) {
			return errors.Join(err, fmt.Errorf("%d %s", a.status, a.body))
		}
		n.noting.Lock()
		n.ledger["sales"].acknowledged++
		n.noting.Unlock()
		if text, err := n.Command("sales", "reverse", string(a.operation[:]), "--reason", "bench").CombinedOutput(); err != nil {
			return fmt.Errorf("sales reverse: %w\n%s", err, text)
		}
	}
	return nil
}
