package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// rateConnections is the number of connections of a run with a rate. It is more than
// any side needs at a rate that it can carry.
const rateConnections = 256

var rateColumns = []string{"engine", "work", "requests a second", "side", "p50", "p99", "p99.9", "answered in time", "cores of service and database"}

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
	type row struct {
		work work
		side side
	}
	tallies, used := map[string]*tally{}, map[string]float64{}
	var rows []row
	for _, name := range []string{"sale", "push"} {
		w, err := findWork(name)
		if err != nil {
			return err
		}
		for _, side := range sides {
			if _, err := side.run(ctx, w, 16, s.length()/5); err != nil { // warm up
				return fmt.Errorf("%s, warming up %s: %w", side.name(), name, err)
			}
		}
		for _, w.rate = range s.rates {
			for _, side := range sides {
				rows = append(rows, row{w, side})
			}
		}
	}
	key := func(o row) string { return fmt.Sprint(o.work.name, o.work.rate, o.side.name()) }
	for round := 1; round <= s.rounds; round++ {
		for _, o := range rows {
			m, err := b.measure(ctx, o.side, o.work, rateConnections, s.length())
			if err != nil {
				return fmt.Errorf("%s, %d a second: %w", o.side.name(), o.work.rate, err)
			}
			m.round = round
			fmt.Fprintf(progress, "%d a second: %s\n", o.work.rate, m)
			if tallies[key(o)] == nil {
				tallies[key(o)] = newTally()
			}
			tallies[key(o)].merge(m.tally)
			used[key(o)] += m.used.service + m.used.database
		}
		slices.Reverse(rows) // the first side may have a quieter machine
	}
	if s.rounds%2 == 1 {
		slices.Reverse(rows)
	}
	for _, o := range rows {
		t := tallies[key(o)]
		quantile := func(q float64) string { return short(t.latency.quantile(q)) }
		all := t.completed + t.late + t.missed + t.failed()
		r.add("Latency from the moment at which a request was due. Requests arrive at random at a fixed rate.", rateColumns,
			b.engine.name(), o.work.title, strconv.Itoa(o.work.rate), o.side.name(), quantile(0.5), quantile(0.99), quantile(0.999),
			fmt.Sprintf("%.1f %%", 100*float64(t.completed)/float64(max(1, all))), cores(used[key(o)]/float64(s.rounds)))
	}
	return nil
}
