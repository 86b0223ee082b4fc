package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"bankingapi/test/kit/service"
)

// overHTTP is the side of the service: a running service, or several on one store,
// and the load generator.
type overHTTP struct {
	title   string
	servers []*service.Process
	key     string
	ledger  ledger
}

func (o *overHTTP) name() string { return o.title }

func (o *overHTTP) pids() (all []int) {
	for _, server := range o.servers {
		all = append(all, server.Pid)
	}
	return all
}

// run also updates the ledger.
func (o *overHTTP) run(ctx context.Context, w work, connections int, length time.Duration) (measure, error) {
	l := load{key: o.key, work: w, connections: connections, length: length}
	for _, server := range o.servers {
		l.addresses = append(l.addresses, strings.TrimPrefix(server.URL, "http://"))
	}
	t, err := l.run(ctx)
	if t == nil {
		return measure{}, err
	}
	o.ledger.acknowledged[w.export()] += (t.completed + t.late - t.rowless) * w.records
	o.ledger.unknown[w.export()] += t.broken * w.records
	if err == nil && t.completed+t.late == 0 {
		err = fmt.Errorf("nothing completed (%s); one answer: %s", t, t.example)
	}
	return t.measure(w, length), err
}

// measure returns the figures of a run.
func (t *tally) measure(w work, length time.Duration) measure {
	return measure{
		records: float64(t.completed*w.records) / length.Seconds(),
		p50:     t.latency.quantile(0.5), p99: t.latency.quantile(0.99), failed: t.failed(), tally: t,
	}
}
