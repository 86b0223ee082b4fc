package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
)

// A growth is what one operation adds.
type growth struct{ stored, written float64 }

// measureBytes measures how many bytes a sale and a push add to a store, and how
// many are written meanwhile, with and without the trail. The connections are 64,
// because a larger batch writes less for each operation.
func (b *bank) measureBytes(ctx context.Context, s settings, r *report, progress io.Writer) error {
	for i, v := range b.versions {
		variants := map[bool]string{false: v.name}
		if i == 0 {
			variants = map[bool]string{false: v.name + ", no trail", true: v.name + ", with the trail"}
		}
		for _, trail := range []bool{false, true} {
			if name := variants[trail]; name != "" {
				if err := b.measureGrowth(ctx, v, name, trail, s, r, progress); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
	}
	return nil
}

func (b *bank) measureGrowth(ctx context.Context, v version, name string, trail bool, s settings, r *report, progress io.Writer) error {
	o, err := b.openStore(ctx, fmt.Sprintf("bytes_%s_%t", v.purpose(), trail), v.binary, 0, s.service)
	if err != nil {
		return err
	}
	switch {
	case trail && b.engine.name() == "sqlite": // it has a trail by default
	case trail:
		key := filepath.Join(o.program.dir, "trail.key")
		if _, err := o.program.output(ctx, "trail", "keygen", "bench.example/log", "--file", key); err != nil {
			return err
		}
		o.program = o.program.with("trail.key_file=" + key)
	case v.name == plainName: // other versions may not have the setting
		o.program = o.program.with("trail.enabled=false")
	}
	if err := o.serve(ctx, name); err != nil {
		return err
	}
	for _, work := range []string{"sale", "push"} {
		w, err := findWork(work)
		if err != nil {
			return err
		}
		// The first round is not counted: after a checkpoint the first change of
		// each page logs the whole page.
		var rounds []growth
		for round := range s.rounds + 1 {
			g, err := b.growth(ctx, o, w, s)
			if err != nil {
				return err
			}
			fmt.Fprintf(progress, "%s, bytes of a %s, %s, round %d: %.0f stored, %.0f written\n", b.engine.name(), work, name, round, g.stored, g.written)
			if round > 0 {
				rounds = append(rounds, g)
			}
		}
		r.add("Bytes of one operation with 64 connections, medians. Written: to the write-ahead log on Postgres, to all files on SQLite.",
			[]string{"engine", "operation", "side", "stored", "written"},
			b.engine.name(), work, name,
			fmt.Sprintf("%.0f", median(rounds, func(g growth) float64 { return g.stored })),
			fmt.Sprintf("%.0f", median(rounds, func(g growth) float64 { return g.written })))
	}
	return o.stop()
}

// growth runs the work once.
func (b *bank) growth(ctx context.Context, o *store, w work, s settings) (growth, error) {
	side := o.served[0]
	pid := side.server.cmd.Process.Pid
	rows := o.ledger.acknowledged[w.export]
	stored, written, err := b.engine.bytes(ctx, o.dsn, pid)
	if err != nil {
		return growth{}, err
	}
	if _, err := side.run(ctx, w, 64, s.length()); err != nil {
		return growth{}, err
	}
	storedAfter, writtenAfter, err := b.engine.bytes(ctx, o.dsn, pid)
	n := float64(o.ledger.acknowledged[w.export] - rows)
	return growth{stored: float64(storedAfter-stored) / n, written: float64(writtenAfter-written) / n}, err
}
