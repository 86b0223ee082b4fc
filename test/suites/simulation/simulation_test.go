package simulation

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	firstSeed = flag.Uint64("seed", 1, "the seed of the first run")
	runs      = flag.Int("runs", 100, "how many runs, each with the next seed")
	traced    = flag.Bool("trace", false, "print what happens in the first run")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if underRace {
		*runs = min(*runs, 20)
	}
	debug.SetGCPercent(400) // runs are short and small, so garbage collection dominates
	os.Exit(m.Run())
}

func TestARunIsDecidedByItsSeed(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for seed := range uint64(8) {
		var first, again, alone bytes.Buffer
		runtime.GOMAXPROCS(4)
		a := Play(t, seed, nil, &first)
		b := Play(t, seed, nil, &again)
		runtime.GOMAXPROCS(1)
		c := Play(t, seed, nil, &alone)
		require.Equal(t, a, b)
		require.Equal(t, a, c)
		require.Equal(t, first.String(), again.String())
		require.Equal(t, first.String(), alone.String())
	}
}

// TestSeeds is what make simulate runs.
func TestSeeds(t *testing.T) {
	if *traced {
		Play(t, *firstSeed, nil, os.Stdout)
	}
	began := time.Now()
	seeds := play(t, *firstSeed, *runs)
	if t.Failed() {
		return
	}
	t.Log(seeds.report(*firstSeed, time.Since(began)))
	if *runs < 100 {
		return
	}
	for s, n := range seeds.tally.Seen {
		require.Positive(t, n, "the runs had no %s, so they do not test them", Situation(s))
	}
}

// played is the result of many runs.
type played struct {
	hashes []uint64
	mu     sync.Mutex
	tally  Tally
}

// play runs that many seeds, one per processor at a time.
func play(t *testing.T, first uint64, runs int) *played {
	p := &played{hashes: make([]uint64, runs)}
	var next atomic.Int64
	t.Run("runs", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for i := next.Add(1) - 1; int(i) < runs; i = next.Add(1) - 1 {
					r := Play(t, first+uint64(i), nil, nil)
					if r.Err != nil {
						next.Add(int64(runs)) // stop the other runs
						explain(t, r)
						return
					}
					p.hashes[i] = r.Hash
					p.mu.Lock()
					p.tally.Add(r.Tally)
					p.mu.Unlock()
					if i > 0 && i%5000 == 0 {
						t.Logf("%d runs", i)
					}
				}
			})
		}
	})
	return p
}

// explain repeats a failed run to print its trace.
func explain(t *testing.T, r Result) {
	t.Helper()
	const shown = 60
	var trace bytes.Buffer
	again := Play(t, r.Seed, nil, &trace)
	lines := bytes.Split(bytes.TrimSpace(trace.Bytes()), []byte("\n"))
	before := max(0, len(lines)-shown)
	t.Errorf("%v\n\n… %d lines before\n%s\n\nto repeat it with the full trace: make simulate SEED=%d RUNS=1 TRACE=1",
		r.Err, before, bytes.Join(lines[before:], []byte("\n")), r.Seed)
	if again.Hash != r.Hash {
		t.Errorf("the second run of the seed differs: the simulation is not deterministic")
	}
}

func (p *played) report(first uint64, took time.Duration) string {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, p.hashes)
	var b bytes.Buffer
	n := func(n int) float64 { return float64(n) / took.Seconds() }
	fmt.Fprintf(&b, "%d runs from seed %d, trace hash %016x\n", len(p.hashes), first, h.Sum64())
	fmt.Fprintf(&b, "%d business days, %d requests, %d events in %v with %d processors:\n",
		p.tally.Days, p.tally.Operations, p.tally.Events, took.Round(time.Second/10), runtime.GOMAXPROCS(0))
	fmt.Fprintf(&b, "%.0f runs, %.0f business days, %.0f requests a second\n", n(len(p.hashes)), n(p.tally.Days), n(p.tally.Operations))
	for s, n := range p.tally.Seen {
		fmt.Fprintf(&b, "%10d %s\n", n, Situation(s))
	}
	return b.String()
}
