package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// partnerCommand is the only argument of a process that sends the load of one partner, which is JSON
// on its standard input, and writes the tally. Partners do not share a process: a victim would
// wait behind thousands of goroutines of its neighbours, and this would count as time of the service.
const partnerCommand = "partner"

// isPartner sends the load of a partner if the command line requests it, and reports whether it did.
func isPartner() bool {
	if len(os.Args) != 2 || os.Args[1] != partnerCommand {
		return false
	}
	var l load
	err := json.NewDecoder(os.Stdin).Decode(&l)
	if err == nil {
		var t *tally
		t, err = l.run(context.Background())
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(t)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: partner:", err)
		os.Exit(1)
	}
	return true
}

// runInProcess runs a load in a process of its own.
func (l load) runInProcess(ctx context.Context) (*tally, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	order, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, partnerCommand)
	cmd.Stdin = bytes.NewReader(order)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("partner: %w", err)
	}
	var t tally
	err = json.Unmarshal(out, &t)
	if err != nil {
		return nil, fmt.Errorf("partner: %w", err)
	}
	return &t, nil
}
