package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// logLevels are compared. The first is the default.
var logLevels = [2]string{"info", "warn"}

// logTurn is how long each level is on. Two long runs of one level differ by more
// than the cost of the lines, so the level changes often during one run.
const logTurn = 200 * time.Millisecond

// measureLog measures what the log lines of requests cost the service: its
// processor time for a request with log.level info against warn, in turn.
func (b *bank) measureLog(ctx context.Context, s settings, r *report, progress io.Writer) error {
	for _, v := range b.versions {
		o, err := b.openStore(ctx, "log_"+v.purpose(), v.binary, 0, s.service)
		if err != nil {
			return err
		}
		if err := o.serve(ctx, "log, "+v.name); err != nil {
			return err
		}
		for _, name := range []string{"sale", "push"} {
			w, err := findWork(name)
			if err != nil {
				return err
			}
			var pairs []logPair
			for range s.rounds {
				waitQuiet(ctx, b.patience)
				more, err := logPairs(ctx, o.served[0], w, s.length())
				if err != nil {
					return err
				}
				fmt.Fprintf(progress, "%s, %s, %s: log.level=info needs %.1f %% more processor time than warn\n", b.engine.name(), name, v.name, median(more, logPair.more))
				pairs = append(pairs, more...)
			}
			side := func(i int) string {
				return median(pairs, func(p logPair) time.Duration { return p[i].Round(10 * time.Nanosecond) }).String()
			}
			r.add(fmt.Sprintf("Processor time of the service for one request with 64 connections, medians of %d pairs of turns.", len(pairs)),
				[]string{"engine", "work", "side", "log.level=info", "warn", "more"},
				b.engine.name(), name, v.name, side(0), side(1), fmt.Sprintf("**%.1f %%**", median(pairs, logPair.more)))
		}
		if err := o.stop(); err != nil {
			return err
		}
	}
	return nil
}

// A logPair is the processor time of one request with each of logLevels.
type logPair [2]time.Duration

// more returns by how many percent the first level costs more.
func (p logPair) more() float64 { return 100 * (float64(p[0])/float64(p[1]) - 1) }

// logPairs runs the work and changes the level again and again. The level that
// begins changes from pair to pair, because the store grows.
func logPairs(ctx context.Context, o *overHTTP, w work, length time.Duration) (pairs []logPair, err error) {
	length = max(length, 4*logTurn)
	var answered atomic.Int64
	ended := make(chan error, 1)
	go func() {
		_, err := o.load(ctx, load{work: w, connections: 64, length: length, answered: &answered})
		ended <- err
	}()
	defer func() { err = errors.Join(err, <-ended) }()
	pid := o.server.cmd.Process.Pid
	var pair logPair
	for i := range 2 * int(length/logTurn/2) {
		level := (i + i/2) % 2
		if err := setLogLevel(ctx, o.server, logLevels[level]); err != nil {
			return nil, err
		}
		requests, used := answered.Load(), threadTime(pid)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(logTurn):
		}
		used, requests = threadTime(pid)-used, answered.Load()-requests
		pair[level] = used / time.Duration(max(1, requests))
		if i%2 == 1 && i > 1 { // the first warms up
			pairs = append(pairs, pair)
		}
	}
	return pairs, nil
}

func setLogLevel(ctx context.Context, s *server, level string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+s.ops+"/log/level", strings.NewReader(`{"level":"`+level+`"}`))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("PUT /log/level: %s", answer.Status)
	}
	return nil
}
