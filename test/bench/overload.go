package main

import (
	"context"
	"errors"
	"io"
	"time"
)

// overloadFactor is the offered load as a multiple of the best rate.
const overloadFactor = 3

// An overload is the result of offering more load than the service can handle.
type overload struct {
	engine, kind    string
	best            float64 // best sales per second of callers that wait for responses
	bestConnections int
	offered         float64 // requests per second sent
	connections     int
	goodput         float64 // sales per second completed meanwhile
	latency         time.Duration
	refused         int
	refusal         time.Duration // p99 of the responses with 503
	recovery        time.Duration // time until 90 % of the best rate after the overload ends; negative if not within the run
	answers         string
	used            usage // cores; the generator and the service share them
}

// measureOverload finds the best rate and overloads the service in two ways.
// After each it returns to the load of the best rate.
func (b *bank) measureOverload(ctx context.Context, s settings, r *report, _ io.Writer) error {
	length := s.length()
	service := b.stores[0].served[0]
	sale, err := findWork("sale")
	if err != nil {
		return err
	}
	best := overload{engine: b.engine.name()}
	for _, connections := range []int{64, 256} {
		t, err := service.load(ctx, load{work: sale, connections: connections, length: length})
		if err != nil {
			return err
		}
		if rate := float64(t.completed) / length.Seconds(); rate > best.best {
			best.best, best.bestConnections = rate, connections
		}
	}
	if best.best == 0 {
		return errors.New("nothing completed")
	}
	for _, more := range []struct {
		kind string
		load load
	}{
		{"three times the connections", load{connections: overloadFactor * best.bestConnections}},
		{"three times the rate", load{connections: b.crowd, rate: overloadFactor * best.best}},
	} {
		o := best
		o.kind = more.kind
		more.load.work, more.load.length = sale, length
		if err := o.measure(ctx, service, more.load); err != nil {
			return err
		}
		r.overloads = append(r.overloads, o)
	}
	return nil
}

func (o *overload) measure(ctx context.Context, service *overHTTP, more load) error {
	pid := service.server.cmd.Process.Pid
	before := readClock(pid)
	t, err := service.load(ctx, more)
	if err != nil {
		return err
	}
	o.used = readClock(pid).since(before)
	sent := t.broken
	for _, n := range t.statuses {
		sent += n
	}
	seconds := more.length.Seconds()
	o.offered, o.connections = float64(sent)/seconds, more.connections
	o.goodput, o.latency = float64(t.completed)/seconds, t.latency.quantile(0.99)
	o.refused, o.refusal = t.statuses[503], t.refusal.quantile(0.99)
	o.answers = t.String()

	after, err := service.load(ctx, load{work: more.work, connections: o.bestConnections, length: more.length})
	if err != nil {
		return err
	}
	o.recovery = recovery(after.slots, 0.9*o.best*slotLength.Seconds())
	return nil
}

// steadySlots is how many consecutive slots must reach the rate together. A
// single slot may reach it by chance.
const steadySlots = 5

// recovery returns the time until the completions per slot reach the rate and
// stay there. It is negative if they do not.
func recovery(slots []int, enough float64) time.Duration {
	for i := 0; i+steadySlots <= len(slots); i++ {
		sum := 0
		for _, n := range slots[i : i+steadySlots] {
			sum += n
		}
		if float64(sum) >= enough*steadySlots {
			return time.Duration(i) * slotLength
		}
	}
	return -1
}
