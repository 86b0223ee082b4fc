package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// steadyParts is how many parts a long run has. The first is compared with the
// last.
const steadyParts = 6

// A drift is the first and the last part of a long run.
type drift struct{ first, last measure }

func (d drift) ratio() float64 { return d.last.records / d.first.records }

// measureSteady measures whether the rate with 64 connections stays the same for
// a minute. The parts follow each other at once. If the rate falls, but the
// processor time of an operation is the same, other programs had the processor.
func (b *bank) measureSteady(ctx context.Context, s settings, r *report, progress io.Writer) error {
	type row struct{ work, side string }
	var order []row
	drifts := map[row][]drift{}
	for range s.rounds {
		for _, work := range []string{"sale", "push"} {
			w, err := findWork(work)
			if err != nil {
				return err
			}
			for _, side := range b.sides() {
				served, ok := side.(*overHTTP)
				if !ok {
					continue
				}
				d, err := b.drift(ctx, served, w, s.long, progress)
				if err != nil {
					return err
				}
				key := row{work, side.name()}
				if drifts[key] == nil {
					order = append(order, key)
				}
				drifts[key] = append(drifts[key], d)
			}
		}
	}
	title := fmt.Sprintf("Runs of %s with 64 connections: the first and the last %s, medians.", s.long, s.long/steadyParts)
	for _, key := range order {
		all := drifts[key]
		r.add(title, []string{"engine", "work", "side", "per second, first", "last", "last to first", "p99, first", "last", "processor time, first", "last", "cores of others, first", "last"},
			b.engine.name(), key.work, key.side,
			fmt.Sprintf("%.0f", median(all, func(d drift) float64 { return d.first.records })),
			fmt.Sprintf("%.0f", median(all, func(d drift) float64 { return d.last.records })),
			fmt.Sprintf("**%.2f**", median(all, drift.ratio)),
			short(median(all, func(d drift) time.Duration { return d.first.p99 })),
			short(median(all, func(d drift) time.Duration { return d.last.p99 })),
			median(all, func(d drift) time.Duration { return d.first.perRecord() }).String(),
			median(all, func(d drift) time.Duration { return d.last.perRecord() }).String(),
			fmt.Sprintf("%.2f", median(all, func(d drift) float64 { return d.first.used.foreign })),
			fmt.Sprintf("%.2f", median(all, func(d drift) float64 { return d.last.used.foreign })))
	}
	return nil
}

func (b *bank) drift(ctx context.Context, side *overHTTP, w work, length time.Duration, progress io.Writer) (d drift, err error) {
	if err := b.engine.checkpoint(ctx); err != nil {
		return d, err
	}
	waitQuiet(ctx, b.patience)
	pid := side.server.cmd.Process.Pid
	for part := range steadyParts {
		before := readClock(pid)
		if d.last, err = side.run(ctx, w, 64, length/steadyParts); err != nil {
			return d, err
		}
		d.last.used = readClock(pid).since(before)
		fmt.Fprintf(progress, "%s, %s, %s, part %d: %.0f/s, p99 %s, %s of the service's processor time each; other programs %.2f cores\n",
			b.engine.name(), w.name, side.name(), part+1, d.last.records, short(d.last.p99), d.last.perRecord(), d.last.used.foreign)
		if part == 0 {
			d.first = d.last
		}
	}
	return d, nil
}

// perRecord returns the processor time of the service for one record.
func (m measure) perRecord() time.Duration {
	if m.records == 0 {
		return 0
	}
	return time.Duration(m.used.service / m.records * float64(time.Second)).Round(100 * time.Nanosecond)
}
