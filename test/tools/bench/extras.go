package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// rateConnections is the number of connections of a run with a rate. It is more than
// any side needs at a rate that it can carry.
const rateConnections = 256

var rateColumns = []string{"engine", "work", "requests a second", "side", "p50", "p99", "p99.9", "answered in time", "cores of service and database"}

// row returns the cells of rateColumns.
func (o *trial) row(engine string) []string {
	latency := o.total.Latency
	return []string{
		engine, o.work.Title, strconv.Itoa(o.work.Rate), o.side.name(), short(quantile(latency, 0.5)), short(quantile(latency, 0.99)), short(quantile(latency, 0.999)),
		fmt.Sprintf("%.1f %%", 100*float64(o.total.Completed)/float64(max(1, o.total.all()))),
		cores(o.median(func(m measure) float64 { return m.used.service + m.used.database })),
	}
}

// atRates returns every work at every rate on every side.
func (b *bank) atRates(works []work, sides ...side) (all []*trial) {
	for _, w := range works {
		for _, rate := range b.rates {
			for _, side := range sides {
				all = append(all, &trial{work: w.at(rate), side: side, connections: rateConnections})
			}
		}
	}
	return all
}

// measureRates measures the latency of sales and pushes that arrive at fixed rates.
// On Postgres it also measures both peers.
func (b *bank) measureRates(ctx context.Context) error {
	var sides []side
	for _, o := range b.stores {
		sides = append(sides, o)
	}
	if b.peer != nil {
		pipelined, err := startPeer(b.t, b.peer.dsn, pipelinedName)
		if err != nil {
			return err
		}
		sides = append(sides, b.peer, pipelined)
	}
	all := b.atRates([]work{plainSale, plainPush}, sides...)
	if err := b.inTurn(ctx, all); err != nil {
		return err
	}
	for _, o := range all {
		b.report.add("Latency from the moment at which a request was due. Requests arrive at random at a fixed rate.", rateColumns, o.row(b.engine.name())...)
	}
	return nil
}

// refusedShares are the shares of refused sales, in percent, whose rates are compared
// with that of sales that all complete.
var refusedShares = []int{0, 1, 5, 20, 50, 95}

// refusalConnections is the number of connections, at which a batch has some tens of sales.
const refusalConnections = 64

// measureRefusals measures what refused sales cost the others in their batches. A
// sale is refused because the customer does not have the fund.
func (b *bank) measureRefusals(ctx context.Context) error {
	for _, o := range b.stores {
		var all []*trial
		for _, share := range refusedShares {
			w := plainSale
			w.Refused = share
			w.Title = fmt.Sprintf("sale, %d %% refused", share)
			all = append(all, &trial{work: w, side: o, connections: refusalConnections})
		}
		if err := b.inTurn(ctx, all); err != nil {
			return err
		}
		for _, t := range all {
			rate := t.median(records)
			b.report.add(fmt.Sprintf("Sales of which some are refused, with %d connections: operations decided.", refusalConnections),
				[]string{"engine", "side", "refused", "decided a second", "to none refused"},
				b.engine.name(), o.name(), strconv.Itoa(t.work.Refused)+" %", fmt.Sprintf("%.0f", rate), fmt.Sprintf("%.2f", rate/all[0].median(records)))
		}
	}
	return nil
}

// untilSealed is longer than the service waits before it adds what is new to the log.
const untilSealed = 3 * time.Second

// measureBytes measures how much a sale and a push add to a store of their own.
func (b *bank) measureBytes(ctx context.Context) error {
	for _, v := range b.versions {
		for _, w := range []work{plainSale, plainPush} {
			if err := b.bytesOf(ctx, v, w); err != nil {
				return fmt.Errorf("%s: %w", w.Name, err)
			}
		}
	}
	return nil
}

func (b *bank) bytesOf(ctx context.Context, v version, w work) error {
	o, err := b.openStore(ctx, v.name+", bytes of "+w.Name, v)
	if err != nil {
		return err
	}
	if _, err := o.run(ctx, w, 16, b.length()/5); err != nil {
		return err
	}
	pause(ctx, untilSealed)
	stored, logged, err := b.engine.used(ctx, o.DSN)
	if err != nil {
		return err
	}
	done := 0
	for done < b.records && ctx.Err() == nil {
		t, err := o.run(ctx, w, 16, b.length())
		if err != nil {
			return err
		}
		done += t.Completed * w.Records
	}
	pause(ctx, untilSealed)
	storedNow, loggedNow, err := b.engine.used(ctx, o.DSN)
	if err != nil {
		return err
	}
	log := "not measured"
	if loggedNow > 0 {
		log = strconv.FormatInt((loggedNow-logged)/int64(done), 10)
	}
	b.report.add("What one record adds to the database, with its indexes and the trail, and to the log that the database writes.",
		[]string{"engine", "side", "work", "records", "bytes stored of one", "bytes in the database's log of one"},
		b.engine.name(), v.name, w.Title, strconv.Itoa(done), strconv.FormatInt((storedNow-stored)/int64(done), 10), log)
	return b.prove(o)
}
