package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// skewedSale has Zipf's distribution with the exponent 2.
var skewedSale = work{Name: "sale-zipf", Title: "sale, Zipf 2.0 among 10,000 customers", Records: 1, Sellers: skewedSellers}

// replicas is the side of services on one store. Sales become due meanwhile, for which the
// services compete.
type replicas struct {
	*store
	title string
	count int
	found *counts
}

func (r replicas) name() string { return r.title }

func (r replicas) run(ctx context.Context, w work, connections int, length time.Duration) (*tally, error) {
	due, stop := context.WithCancel(ctx)
	added := make(chan error, 1)
	go func() { added <- r.becomeDue(due, 1+w.Rate/10) }()
	t, err := r.store.run(ctx, w, connections, length)
	stop()
	return t, errors.Join(err, <-added)
}

// becomeDue adds some sales that are due every second, until the context ends.
func (o *store) becomeDue(ctx context.Context, some int) error {
	size := fmt.Sprintf("(extract(epoch FROM now()) * 10)::bigint %% 16777216 AS round, %d AS sales", some)
	for every := time.Tick(time.Second); ctx.Err() == nil; {
		if err := fillWith(context.WithoutCancel(ctx), "pgx", o.DSN, "postgres", "due", size, ""); err != nil {
			return err
		}
		o.ledger["sales"].before += some
		select {
		case <-every:
		case <-ctx.Done():
		}
	}
	return nil
}

// counts are what a database has counted: deadlocks, and due sales that were settled.
type counts struct{ deadlocks, settled int }

// counts ends the connections of services that have stopped, because Postgres counts what a
// connection did at the latest when it ends.
func (o *store) counts(ctx context.Context) (c counts, err error) {
	conn, err := pgx.Connect(ctx, o.DSN)
	if err != nil {
		return c, err
	}
	defer conn.Close(ctx)
	if _, err = conn.Exec(ctx, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
		WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`); err != nil {
		return c, err
	}
	err = conn.QueryRow(ctx, `SELECT deadlocks, (SELECT count(ended_at) FROM operations WHERE due_on IS NOT NULL)
		FROM pg_stat_database WHERE datname = current_database()`).Scan(&c.deadlocks, &c.settled)
	return c, err
}

// measureReplicas measures sales that arrive at fixed rates at one service and at three on
// the same Postgres.
func (b *bank) measureReplicas(ctx context.Context) error {
	if b.engine.name() != "postgres" {
		return nil // a file of SQLite is for one service
	}
	o, err := b.newStore(ctx, "replicas", b.versions[0])
	if err != nil {
		return err
	}
	if err := o.prepare(1); err != nil {
		return err
	}
	var all []*trial
	for _, w := range []work{plainSale, skewedSale} {
		for _, rate := range b.rates {
			for _, side := range []replicas{{o, "one replica", 1, &counts{}}, {o, "three replicas", 3, &counts{}}} {
				all = append(all, &trial{work: w.at(rate), side: side, connections: rateConnections})
			}
		}
	}
	for round := range b.rounds {
		for _, t := range all {
			if err := b.measureReplica(ctx, o, t, round+1); err != nil {
				return err
			}
		}
		slices.Reverse(all)
	}
	columns := slices.Concat(rateColumns, []string{"errors", "deadlocks", "due sales settled meanwhile"})
	for _, t := range all {
		found := t.side.(replicas).found
		b.report.add("Replicas of the service on one Postgres. Latency from the moment at which a request was due.", columns, append(t.row(b.engine.name()),
			strconv.Itoa(t.total.failed()), strconv.Itoa(found.deadlocks), strconv.Itoa(found.settled))...)
	}
	return b.prove(o)
}

// measureReplica starts the services of a trial, warms them up and measures them.
func (b *bank) measureReplica(ctx context.Context, o *store, t *trial, round int) error {
	side := t.side.(replicas)
	before, err := o.counts(ctx)
	if err != nil {
		return err
	}
	if err := o.serve(side.count); err != nil {
		return err
	}
	if _, err := o.run(ctx, plainSale, 16, b.length()/5); err != nil {
		return err
	}
	if err := b.measure(ctx, t, round); err != nil {
		return err
	}
	o.stop()
	after, err := o.counts(ctx)
	side.found.deadlocks += after.deadlocks - before.deadlocks
	side.found.settled += after.settled - before.settled
	return err
}
