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
// a minute. The parts follow each other at once.
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
				d, err := b.drift(ctx, served, w, s.long)
				if err != nil {
					return err
				}
				fmt.Fprintf(progress, "%s, %s, %s: %.0f/s at the beginning and %.0f/s at the end\n", b.engine.name(), work, side.name(), d.first.records, d.last.records)
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
		r.add(title, []string{"engine", "work", "side", "per second, first", "last", "last to first", "p99, first", "last"},
			b.engine.name(), key.work, key.side,
			fmt.Sprintf("%.0f", median(all, func(d drift) float64 { return d.first.records })),
			fmt.Sprintf("%.0f", median(all, func(d drift) float64 { return d.last.records })),
			fmt.Sprintf("**%.2f**", median(all, drift.ratio)),
			short(median(all, func(d drift) time.Duration { return d.first.p99 })),
			short(median(all, func(d drift) time.Duration { return d.last.p99 })))
	}
	return nil
}

func (b *bank) drift(ctx context.Context, side *overHTTP, w work, length time.Duration) (d drift, err error) {
	if err := b.engine.checkpoint(ctx); err != nil {
		return d, err
	}
	waitQuiet(ctx, b.patience)
	for part := range steadyParts {
		if d.last, err = side.run(ctx, w, 64, length/steadyParts); err != nil {
			return d, err
		}
		if part == 0 {
			d.first = d.last
		}
	}
	return d, nil
}
