package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

// partnerCommand is the first argument of a process that sends the work of one partner. Partners do
// not share a process: a victim would wait behind thousands of goroutines of its neighbours, and
// this would count as time of the service.
const partnerCommand = "partner"

// partnerOrder is what a partner does. It is JSON on its standard input.
type partnerOrder struct {
	Addresses   []string
	Key         string
	Work        string // the name of a work of partnerWorks
	Rate        int    // as in work
	Connections int
	Length      time.Duration
	Waits       bool // as in load
}

var partnerWorks = []work{plainSale, plainPush, arrayOfSales, arrayOfPushes}

// partnerTally is the tally of a partner, as JSON on its standard output.
type partnerTally struct {
	Completed, Late, Missed, Broken int
	Statuses                        map[int]int
	Example                         string
	Latency                         latencies
	Records                         float64
}

// isPartner sends the work of a partner if the command line requests it, and reports whether it did.
func isPartner() bool {
	if len(os.Args) != 2 || os.Args[1] != partnerCommand {
		return false
	}
	err := runPartner(context.Background(), os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: partner:", err)
		os.Exit(1)
	}
	return true
}

func runPartner(ctx context.Context, in io.Reader, out io.Writer) error {
	var o partnerOrder
	err := json.NewDecoder(in).Decode(&o)
	if err != nil {
		return err
	}
	l := load{addresses: o.Addresses, key: o.Key, connections: o.Connections, length: o.Length, waits: o.Waits}
	of := slices.IndexFunc(partnerWorks, func(w work) bool { return w.name == o.Work })
	if of < 0 {
		return fmt.Errorf("there is no work %q", o.Work)
	}
	l.work = partnerWorks[of].at(o.Rate)
	t, err := l.run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(partnerTally{
		Completed: t.completed, Late: t.late, Missed: t.missed, Broken: t.broken,
		Statuses: t.statuses, Example: t.example, Latency: t.latency, Records: t.records,
	})
}

// inProcess sends a load from a process of its own.
func inProcess(ctx context.Context, l load) (*tally, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	order, err := json.Marshal(partnerOrder{
		Addresses: l.addresses, Key: l.key, Work: l.work.name, Rate: l.work.rate,
		Connections: l.connections, Length: l.length, Waits: l.waits,
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, partnerCommand)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(order), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("partner: %w", err)
	}
	var p partnerTally
	err = json.Unmarshal(out, &p)
	if err != nil {
		return nil, fmt.Errorf("partner: %w", err)
	}
	return &tally{
		completed: p.Completed, late: p.Late, missed: p.Missed, broken: p.Broken,
		statuses: p.Statuses, example: p.Example, latency: p.Latency, records: p.Records,
	}, nil
}

// measureVictim sends the work of a victim, and notes its rows.
func (n *neighbourhood) measureVictim(ctx context.Context, w work, length time.Duration) (*tally, error) {
	t, err := inProcess(ctx, n.load(n.key, w.at(victimRate), victimConnections, length))
	if err != nil {
		return nil, err
	}
	n.noteRows(w, t)
	return t, nil
}

// send sends the work of the neighbour, and notes its rows. Like a client of ours, a neighbour
// waits for a second after a 503.
func (n *neighbourhood) send(ctx context.Context, w work, connections int, length time.Duration) (*tally, error) {
	l := n.load(n.neighbour, w, connections, length)
	l.waits = w.rate == 0
	t, err := inProcess(ctx, l)
	if err != nil {
		return &tally{}, err
	}
	n.noteRows(w, t)
	return t, nil
}
