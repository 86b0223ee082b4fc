package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// logLevels are compared. The first is the default.
var logLevels = []string{"info", "warn"}

// measureLog measures what the log lines of requests cost the service: its
// processor time for a request with log.level=info against warn, in turn.
func (b *bank) measureLog(ctx context.Context, s settings, r *report, progress io.Writer) error {
	o, err := b.openStore(ctx, "log", b.versions[0].binary, 0, s.service)
	if err != nil {
		return err
	}
	for _, level := range logLevels {
		if err := o.serve(ctx, "log.level="+level, "log.level="+level); err != nil {
			return err
		}
	}
	for _, work := range []string{"sale", "push"} {
		w, err := findWork(work)
		if err != nil {
			return err
		}
		var costs [2][]measure
		for round := range s.rounds + 1 {
			for i, side := range o.served {
				m, err := b.measure(ctx, side, w, 64, s.length())
				if err != nil {
					return err
				}
				fmt.Fprintf(progress, "%s, %s, round %d of %s: %s of the service's processor time for a request\n", b.engine.name(), work, round, side.name(), m.perRequest())
				if round > 0 { // the first warms up
					costs[i] = append(costs[i], m)
				}
			}
		}
		info, warn := median(costs[0], measure.perRequest), median(costs[1], measure.perRequest)
		r.add("Processor time of the service for one request with 64 connections, medians.",
			[]string{"engine", "work", "log.level=info", "warn", "more"},
			b.engine.name(), work, info.String(), warn.String(), fmt.Sprintf("**%.1f %%**", 100*(float64(info)/float64(warn)-1)))
	}
	return o.stop()
}

// perRequest returns the processor time of the service for one request of one
// record.
func (m measure) perRequest() time.Duration {
	if m.records == 0 {
		return 0
	}
	return time.Duration(m.used.service / m.records * float64(time.Second)).Round(100 * time.Nanosecond)
}
