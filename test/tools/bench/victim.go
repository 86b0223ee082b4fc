package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// victimCommand is the first argument of a process that is the victim. Partners do not share a
// process: in that of its neighbours the victim would wait behind thousands of their goroutines,
// and this would count as time of the service.
const victimCommand = "victim"

// victimOrder is what the victim does. It is JSON on its standard input.
type victimOrder struct {
	Addresses []string
	Key       string
	Work      string // the name of plainSale or plainPush
	Length    time.Duration
}

// victimTally is the tally of the victim, as JSON on its standard output.
type victimTally struct {
	Completed, Late, Missed, Broken int
	Statuses                        map[int]int
	Example                         string
	Latency                         latencies
}

// isVictim runs the victim if the command line requests it, and reports whether it did.
func isVictim() bool {
	if len(os.Args) != 2 || os.Args[1] != victimCommand {
		return false
	}
	err := runVictim(context.Background(), os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: victim:", err)
		os.Exit(1)
	}
	return true
}

func runVictim(ctx context.Context, in io.Reader, out io.Writer) error {
	var o victimOrder
	err := json.NewDecoder(in).Decode(&o)
	if err != nil {
		return err
	}
	w := plainSale
	if o.Work == plainPush.name {
		w = plainPush
	}
	l := load{addresses: o.Addresses, key: o.Key, work: w.at(victimRate), connections: victimConnections, length: o.Length}
	t, err := l.run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(victimTally{
		Completed: t.completed, Late: t.late, Missed: t.missed, Broken: t.broken,
		Statuses: t.statuses, Example: t.example, Latency: t.latency,
	})
}

// measureVictim sends the work of a victim from a process of its own, and notes its rows.
func (n *neighbourhood) measureVictim(ctx context.Context, w work, length time.Duration) (*tally, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	l := n.load(n.key, w, victimConnections, length)
	order, err := json.Marshal(victimOrder{Addresses: l.addresses, Key: l.key, Work: w.name, Length: length})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, victimCommand)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(order), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("victim: %w", err)
	}
	var v victimTally
	err = json.Unmarshal(out, &v)
	if err != nil {
		return nil, fmt.Errorf("victim: %w", err)
	}
	t := &tally{
		completed: v.Completed, late: v.Late, missed: v.Missed, broken: v.Broken,
		statuses: v.Statuses, example: v.Example, latency: v.Latency,
	}
	n.noteRows(w, t)
	return t, nil
}
