package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The victim is a partner that stays far below what the service can do.
const (
	victimRate        = 50
	victimConnections = 64
)

// Neighbours, each at the limit of what it may do, or beyond what the service can do.
const (
	arrayRecords         = 1000
	arrayRate            = 60 // requests a second
	manyConnections      = 2500
	waitingSubscriptions = 22
	waitsOfSubscription  = 100
	reversals            = 20
	overload             = 2 // times the capacity
)

// neighbourStart is how long a neighbour is there before the victim is measured.
const neighbourStart = time.Second

// A neighbour is what another partner does while the victim is measured.
type neighbour struct {
	title  string
	victim work
	// run does it until ctx ends, and returns what it reached.
	run func(n *neighbourhood, ctx context.Context, length time.Duration) (*tally, error)
}

var (
	arrayOfPushes = work{name: "push1000", title: "push, 1,000 records a request", records: arrayRecords, rate: arrayRate}
	arrayOfSales  = work{name: "sale1000", title: "sale, 1,000 records a request", records: arrayRecords, rate: arrayRate, pick: pickAny}
)

var neighbours = []neighbour{
	{"60 requests a second of 1,000 messages each", plainPush, func(n *neighbourhood, ctx context.Context, length time.Duration) (*tally, error) {
		return n.load(ctx, arrayOfPushes, arrayRate, length)
	}},
	{"60 requests a second of 1,000 sales each", plainSale, func(n *neighbourhood, ctx context.Context, length time.Duration) (*tally, error) {
		return n.load(ctx, arrayOfSales, arrayRate, length)
	}},
	{"sales on 2,500 connections", plainSale, func(n *neighbourhood, ctx context.Context, length time.Duration) (*tally, error) {
		return n.load(ctx, plainSale, manyConnections, length)
	}},
	{"2,200 waiting requests to /outcomes, and 20 reversals", plainSale, (*neighbourhood).wait},
	{"sales at twice the capacity", plainSale, (*neighbourhood).overload},
}

// neighbourhood is one service with a victim and its neighbours.
type neighbourhood struct {
	*store
	noting    sync.Mutex // guards the ledger
	neighbour string     // its key
	waiting   []string   // the keys of those who wait for outcomes
	capacity  float64    // sales a second; 0 until it is measured
}

var neighbourColumns = []string{"engine", "neighbour", "victim", "p50", "p99", "alone: p50", "p99", "p99 to p99 alone", "victim's requests not completed", "neighbour completed, of its requests"}

// measureNeighbours measures a victim alone and beside each neighbour, in turn in the same run.
func (b *bank) measureNeighbours(ctx context.Context, s settings, r *report, progress io.Writer) error {
	o, err := b.newStore(ctx, "neighbours", b.versions[0].binary, s.service)
	if err != nil {
		return err
	}
	if o.key, err = o.program.prepare(1); err != nil {
		return err
	}
	n := &neighbourhood{store: o, neighbour: o.program.Subscribe(b.t, "neighbour")}
	for i := range waitingSubscriptions {
		n.waiting = append(n.waiting, o.program.Subscribe(b.t, "waiting-"+strconv.Itoa(i)))
	}
	if err := o.serve(plainName, 1); err != nil {
		return err
	}
	defer o.stop()
	if err := warmUp(ctx, s.length(), []work{plainSale, plainPush}, o.served); err != nil {
		return err
	}
	for _, beside := range neighbours {
		alone, near, other := newTally(), newTally(), newTally()
		for range s.rounds {
			if err := b.engine.checkpoint(ctx); err != nil {
				return err
			}
			waitQuiet(ctx, b.patience)
			t, err := n.loadVictim(ctx, beside.victim, s.length())
			if err != nil {
				return err
			}
			alone.merge(t)
			t, theirs, err := n.measureBeside(ctx, beside, s.length())
			if err != nil {
				return fmt.Errorf("%s: %w", beside.title, err)
			}
			near.merge(t)
			other.merge(theirs)
		}
		row := besideRow(b.engine.name(), beside, alone, near, other)
		fmt.Fprintln(progress, strings.Join(row, ", "))
		if near.failed() > 0 {
			fmt.Fprintf(progress, "the victim's answers: %s; one: %s\n", near, near.example)
		}
		r.add("A victim that sends 50 requests a second, beside a neighbour and alone.", neighbourColumns, row...)
		if beside.title == neighbours[len(neighbours)-1].title {
			goodput := float64(other.completed+near.completed) / (float64(s.rounds) * s.length().Seconds()) / n.capacity
			r.add("The overload in it: what was completed, as a share of the capacity, and how long the neighbour's accepted requests took.",
				[]string{"engine", "capacity, a second", "completed of it", "p50", "p99"},
				b.engine.name(), fmt.Sprintf("%.0f", n.capacity), fmt.Sprintf("%.2f", goodput), short(other.latency.quantile(0.5)), short(other.latency.quantile(0.99)))
		}
	}
	proof, err := o.prove()
	r.proofs = append(r.proofs, b.engine.name()+", neighbours: "+proof)
	return err
}

func besideRow(engine string, beside neighbour, alone, near, other *tally) []string {
	ratio := float64(near.latency.quantile(0.99)) / float64(max(1, alone.latency.quantile(0.99)))
	all := other.completed + other.late + other.missed + other.failed()
	return []string{
		engine, beside.title, beside.victim.title,
		short(near.latency.quantile(0.5)), short(near.latency.quantile(0.99)), short(alone.latency.quantile(0.5)), short(alone.latency.quantile(0.99)),
		fmt.Sprintf("%.1f", ratio), strconv.Itoa(near.failed() + near.missed), fmt.Sprintf("%d of %d", other.completed+other.late, all),
	}
}

// measureBeside measures the victim while a neighbour is there, and returns the tallies of both.
func (n *neighbourhood) measureBeside(ctx context.Context, beside neighbour, length time.Duration) (victim, other *tally, err error) {
	if n.capacity == 0 {
		t, err := n.loadOf(ctx, n.neighbour, plainSale, victimConnections, length)
		if err != nil {
			return nil, nil, err
		}
		n.capacity = float64(t.completed) / length.Seconds()
	}
	type result struct {
		tally *tally
		err   error
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan result, 1)
	go func() {
		t, err := beside.run(n, ctx, length+neighbourStart)
		done <- result{t, err}
	}()
	pause(ctx, neighbourStart)
	victim, err = n.loadVictim(ctx, beside.victim, length)
	theirs := <-done
	return victim, theirs.tally, errors.Join(err, theirs.err)
}

func (n *neighbourhood) loadVictim(ctx context.Context, w work, length time.Duration) (*tally, error) {
	w.rate = victimRate
	return n.loadOf(ctx, n.key, w, victimConnections, length)
}

// load is a work of the neighbour. Like a client of ours, it waits for a second after a 503.
func (n *neighbourhood) load(ctx context.Context, w work, connections int, length time.Duration) (*tally, error) {
	return n.loadOf(ctx, n.neighbour, w, connections, length)
}

// loadOf is a work of one subscription, whose rows are noted.
func (n *neighbourhood) loadOf(ctx context.Context, key string, w work, connections int, length time.Duration) (*tally, error) {
	l := load{addresses: []string{n.address()}, key: key, work: w, connections: connections, length: length, waits: key == n.neighbour && w.rate == 0}
	t, err := l.run(ctx)
	if t == nil {
		return newTally(), err
	}
	n.noting.Lock()
	defer n.noting.Unlock()
	n.served.ledger.acknowledged[w.export()] += (t.completed + t.late - t.rowless) * w.records
	n.served.ledger.unknown[w.export()] += t.failed() * w.records // a 503 may have had an effect
	return t, err
}

func (n *neighbourhood) address() string {
	return strings.TrimPrefix(n.served.servers[0].URL, "http://")
}

// overload sends sales at twice the capacity.
func (n *neighbourhood) overload(ctx context.Context, length time.Duration) (*tally, error) {
	w := plainSale
	w.rate = max(1, int(overload*n.capacity))
	return n.load(ctx, w, rateConnections, length)
}

// wait holds requests for outcomes, while the bank reverses sales of the neighbour.
func (n *neighbourhood) wait(ctx context.Context, length time.Duration) (*tally, error) {
	ctx, stop := context.WithTimeout(ctx, length)
	defer stop()
	total := newTally()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: waitingSubscriptions * waitsOfSubscription}}
	defer client.CloseIdleConnections()
	var running sync.WaitGroup
	var mutex sync.Mutex
	for _, key := range n.waiting {
		for range waitsOfSubscription {
			running.Go(func() {
				t := newTally()
				for ctx.Err() == nil {
					t.poll(ctx, client, "http://"+n.address(), key)
				}
				mutex.Lock()
				defer mutex.Unlock()
				total.merge(t)
			})
		}
	}
	err := n.reverse(ctx)
	running.Wait()
	return total, err
}

// poll waits for outcomes once.
func (t *tally) poll(ctx context.Context, client *http.Client, url, key string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/outcomes?wait=20s", http.NoBody)
	if err != nil {
		t.broken++
		return
	}
	request.Header.Set("Ocp-Apim-Subscription-Key", key)
	answer, err := client.Do(request)
	if err != nil {
		if ctx.Err() == nil {
			t.broken++
			return
		}
		t.statuses[http.StatusOK]++ // it waited until the end
		t.completed++
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	t.statuses[answer.StatusCode]++
	if answer.StatusCode == http.StatusOK {
		t.completed++
		return
	}
	pause(ctx, time.Second)
}

// reverse makes sales of the neighbour and reverses them with the operator's command. Each is
// an outcome.
func (n *neighbourhood) reverse(ctx context.Context) error {
	for range reversals {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the measurement has ended
		}
		l := load{addresses: []string{n.address()}, key: n.neighbour, work: plainSale, connections: 1, length: answerLimit}
		id, err := l.one(ctx)
		if err != nil {
			return err
		}
		n.noting.Lock()
		n.served.ledger.acknowledged["sales"]++
		n.noting.Unlock()
		if text, err := n.program.Command("sales", "reverse", id, "--reason", "bench").CombinedOutput(); err != nil {
			return fmt.Errorf("sales reverse: %w\n%s", err, text)
		}
	}
	return nil
}

// pause waits, or returns when the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
