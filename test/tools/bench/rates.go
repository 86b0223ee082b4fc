package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// rateConnections is the number of connections of a run with a rate. It is more than
// any side needs at a rate that it can carry.
const rateConnections = 256

var rateColumns = []string{"engine", "work", "requests a second", "side", "p50", "p99", "p99.9", "answered in time", "cores of service and database"}

// A trial is a work at a rate on one side, with the results of all rounds.
type trial struct {
	work  work
	side  side
	tally *tally
	cores float64 // of the service and the database, the sum of all rounds
}

// trials returns every work at every rate on every side.
func trials(works []work, rates []int, sides ...side) (all []*trial) {
	for _, w := range works {
		for _, w.rate = range rates {
			for _, side := range sides {
				all = append(all, &trial{work: w, side: side, tally: newTally()})
			}
		}
	}
	return all
}

// inTurn runs each trial once in a round. The first one may have a quieter machine, so
// the next round has the other order.
func inTurn(trials []*trial, rounds int, run func(o *trial, round int) error) error {
	trials = slices.Clone(trials)
	for round := 1; round <= rounds; round++ {
		for _, o := range trials {
			if err := run(o, round); err != nil {
				return fmt.Errorf("%s, %d a second: %w", o.side.name(), o.work.rate, err)
			}
		}
		slices.Reverse(trials)
	}
	return nil
}

// measureTrial adds the results of a round to those of a trial.
func (b *bank) measureTrial(ctx context.Context, o *trial, round int, length time.Duration, progress io.Writer) error {
	m, err := b.measure(ctx, o.side, o.work, rateConnections, length)
	if err != nil {
		return err
	}
	m.round = round
	fmt.Fprintf(progress, "%d a second: %s\n", o.work.rate, m)
	o.tally.merge(m.tally)
	o.cores += m.used.service + m.used.database
	return nil
}

// row returns the cells of rateColumns.
func (o *trial) row(engine string, rounds int) []string {
	t := o.tally
	quantile := func(q float64) string { return short(t.latency.quantile(q)) }
	all := t.completed + t.late + t.missed + t.failed()
	return []string{
		engine, o.work.title, strconv.Itoa(o.work.rate), o.side.name(), quantile(0.5), quantile(0.99), quantile(0.999),
		fmt.Sprintf("%.1f %%", 100*float64(t.completed)/float64(max(1, all))), cores(o.cores / float64(rounds)),
	}
}

// measureRates measures the latency of sales and pushes that arrive at fixed rates.
// On Postgres it also measures both peers.
func (b *bank) measureRates(ctx context.Context, s settings, r *report, progress io.Writer) (err error) {
	var sides []side
	for _, o := range b.stores {
		sides = append(sides, o.served)
	}
	if b.peer != nil {
		pipelined, err := startPeer(ctx, b.peer.dsn, pipelinedName)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, pipelined.stop()) }()
		sides = append(sides, b.peer, pipelined)
	}
	works := []work{plainSale, plainPush}
	if err := warmUp(ctx, s.length(), works, sides...); err != nil {
		return err
	}
	all := trials(works, s.rates, sides...)
	err = inTurn(all, s.rounds, func(o *trial, round int) error { return b.measureTrial(ctx, o, round, s.length(), progress) })
	for _, o := range all {
		r.add("Latency from the moment at which a request was due. Requests arrive at random at a fixed rate.", rateColumns, o.row(b.engine.name(), s.rounds)...)
	}
	return err
}
