package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"bankingapi/test/kit/service"
)

// overHTTP is the side of the service: a running service and the load
// generator.
type overHTTP struct {
	title  string
	server *service.Process
	key    string
	ledger ledger
}

func (o *overHTTP) name() string { return o.title }

func (o *overHTTP) run(ctx context.Context, w work, connections int, length time.Duration) (measure, error) {
	t, err := o.load(ctx, load{work: w, connections: connections, length: length})
	if err != nil {
		return measure{}, err
	}
	if t.completed+t.late == 0 {
		return measure{}, fmt.Errorf("nothing completed (%s); one answer: %s", t, t.example)
	}
	return t.measure(w, length), nil
}

// measure returns the figures of a run.
func (t *tally) measure(w work, length time.Duration) measure {
	return measure{
		records: float64(t.completed*w.records) / length.Seconds(),
		p50:     t.latency.quantile(0.5), p99: t.latency.quantile(0.99), failed: t.failed(), tally: t,
	}
}

// load runs the generator against this service and updates the ledger.
func (o *overHTTP) load(ctx context.Context, l load) (*tally, error) {
	l.address, l.key = strings.TrimPrefix(o.server.URL, "http://"), o.key
	t, err := l.run(ctx)
	if t != nil {
		o.ledger.acknowledged[l.work.export] += (t.completed + t.late - t.rowless) * l.work.records
		o.ledger.unknown[l.work.export] += t.broken * l.work.records
	}
	return t, err
}
