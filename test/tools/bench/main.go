// Command bench measures the service as its users see it. It builds the binary,
// starts it on a temporary database and sends requests over HTTP. It runs the
// same work in turn on the database alone: pgbench on Postgres, a Go loop on
// SQLite. Compare the ratios that it prints. Rates depend on the machine.
//
// It uses only the HTTP contract and the commands of the service, and connects
// only to 127.0.0.1. Each run has a fixed duration. Afterwards it checks that
// every acknowledged operation is stored and that the book balances.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bankingapi/test/kit/service"
)

// settings is the command line.
type settings struct {
	engines     []string
	works       []work
	connections []int
	seconds     float64
	patience    time.Duration // how long a run waits for other programs to finish
	rounds      int
	extras      []extra
	rates       []int
	rows        int // holdings and sales of the book for the chores
	records     int
	only        string // "service" or "other": measure one side alone
	otherBinary string // another version of the service; empty for none
	book        int
	postgres    string
	standby     bool
	out         string
	service     []string // name=value pairs for the service, as in its settings file
}

func (s settings) length() time.Duration { return time.Duration(s.seconds * float64(time.Second)) }

func main() {
	if isPeer() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	s, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if err := run(ctx, s, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// parse reads the command line. It returns an error for unknown options.
func parse(args []string, usage io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	var names []string
	for _, w := range allWorks {
		names = append(names, w.name)
	}
	for _, e := range extras {
		names = append(names, e.name)
	}
	engine := flags.String("engine", "all", "sqlite, postgres or all")
	connections := flags.String("connections", "1,16,64,256", "numbers of connections, in this order")
	works := flags.String("work", "sale,sale-hot,sale-mixed,push,push100", "what to measure: "+strings.Join(names, ", "))
	flags.Float64Var(&s.seconds, "seconds", 5, "length of each run")
	flags.DurationVar(&s.patience, "wait", 10*time.Second, "how long a run waits for other programs to leave the machine quiet")
	rates := flags.String("rates", "100,500,1000,2000,4000", "requests a second of the works rate and replicas, in this order")
	flags.IntVar(&s.rows, "rows", 1_000_000, "holdings and sales in the book for the work chores (a multiple of 10000, at most 1000000); a tenth of it is due")
	flags.IntVar(&s.records, "records", 20_000, "sales and pushes that the work bytes stores; with fewer, the first pages of the tables count")
	flags.IntVar(&s.rounds, "rounds", 3, "runs of each side; the table shows medians")
	flags.StringVar(&s.only, "only", "", "measure one side alone: service or other")
	flags.StringVar(&s.otherBinary, "other-binary", "", "measure this binary, another version of the service, as well")
	flags.IntVar(&s.book, "book", 0, "measure a store with this many past sales and pushes as well (a multiple of 100000; a million customers from 10000000 on)")
	flags.StringVar(&s.postgres, "postgres", defaultDSN(), "Postgres server on which bench creates temporary databases")
	flags.BoolVar(&s.standby, "standby", false, "start such a server, and another one as its synchronous standby")
	flags.StringVar(&s.out, "out", "", "folder for bench.csv and bench.md (default: write none)")
	flags.Func("set", "setting of the service as name=value, repeatable (http.body_limit=64KiB)", func(pair string) error {
		if !strings.Contains(pair, "=") {
			return errors.New("want name=value")
		}
		s.service = append(s.service, pair)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}

	switch *engine {
	case "all":
		s.engines = []string{"postgres", "sqlite"}
	case "sqlite", "postgres":
		s.engines = []string{*engine}
	default:
		return s, fmt.Errorf("unknown engine %q", *engine)
	}
	for name := range strings.SplitSeq(*works, ",") {
		if i := slices.IndexFunc(extras, func(e extra) bool { return e.name == name }); i >= 0 {
			s.extras = append(s.extras, extras[i])
			continue
		}
		w, err := findWork(name)
		if err != nil {
			return s, err
		}
		s.works = append(s.works, w)
	}
	for _, list := range []struct {
		text, of string
		to       *[]int
	}{{*connections, "connections", &s.connections}, {*rates, "requests a second", &s.rates}} {
		for text := range strings.SplitSeq(list.text, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return s, fmt.Errorf("%q is not a number of %s", text, list.of)
			}
			*list.to = append(*list.to, n)
		}
	}
	if s.seconds <= 0 || s.rounds < 1 {
		return s, errors.New("-seconds and -rounds must be positive")
	}
	if s.records < 1 {
		return s, errors.New("-records must be positive")
	}
	if s.rows < customers || s.rows%customers != 0 || s.rows > mostPerGap*customers {
		return s, fmt.Errorf("-rows must be a multiple of %d, at most %d", customers, mostPerGap*customers)
	}
	if perGap := min(mostPerGap, max(1, s.book/bookStep)); s.book < 0 || s.book%(customers*perGap) != 0 || s.book > 0 && s.book < bookStep {
		return s, fmt.Errorf("-book must be a multiple of %d, beyond %d one of %d", bookStep, mostPerGap*bookStep, mostPerGap*customers)
	}
	if s.otherBinary != "" {
		// The programs run in folders of their own.
		if s.otherBinary, err = filepath.Abs(s.otherBinary); err != nil {
			return s, err
		}
		if _, err := os.Stat(s.otherBinary); err != nil {
			return s, err
		}
	}
	if s.only != "" && s.only != "service" && s.only != "other" {
		return s, fmt.Errorf("unknown side %q", s.only)
	}
	return s, nil
}

// run builds the service and measures it. It writes its progress to progress
// and the report to stdout.
func run(ctx context.Context, s settings, stdout, progress io.Writer) error {
	return guard("", func(t *runner) error {
		var binary string
		if s.only != "other" {
			fmt.Fprintln(progress, "building the service")
			binary = service.Build(t, "bankingapi/cmd/bankingapi")
			defer service.Remove()
		}
		return measureAll(ctx, t, s, t.TempDir(), binary, stdout, progress)
	})
}

// measureAll measures every engine with a built binary and writes the report.
func measureAll(ctx context.Context, t *runner, s settings, dir, binary string, stdout, progress io.Writer) error {
	report := report{machine: describeMachine()}
	for _, engine := range s.engines {
		if err := measureEngine(ctx, t, s, engine, dir, binary, &report, progress); err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
	}
	return report.write(s.out, stdout)
}

// An extra is a measurement other than the rate of a work. It adds a table to the report.
type extra struct {
	name    string
	measure func(b *bank, ctx context.Context, s settings, r *report, progress io.Writer) error
}

var extras = []extra{
	{"chores", (*bank).measureChores},
	{"rate", (*bank).measureRates},
	{"replicas", (*bank).measureReplicas},
	{"neighbours", (*bank).measureNeighbours},
	{"bytes", (*bank).measureBytes},
	{"refusals", (*bank).measureRefusals},
}

// writeFile creates a file and calls write with it.
func writeFile(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// A side is one of the compared programs. run does the work for the given time
// and returns what it reached. It may be called more than once.
type side interface {
	name() string
	run(ctx context.Context, w work, connections int, length time.Duration) (measure, error)
}

// A measure is the result of one side in one run.
type measure struct {
	engine, side, work string
	connections, round int
	records            float64 // stored per second
	p50, p99           time.Duration
	failed             int // answers other than a completed operation
	used               usage
	memory             int64 // bytes resident, of the service, after the run
	tally              *tally
}

// warmUp fills pools, caches and plans, so that the first round is like the others.
func warmUp(ctx context.Context, length time.Duration, works []work, sides ...side) error {
	for _, w := range works {
		for _, side := range sides {
			if _, err := side.run(ctx, w, 16, length/5); err != nil {
				return fmt.Errorf("%s, warming up %s: %w", side.name(), w.name, err)
			}
		}
	}
	return nil
}

// measureEngine runs all sides on one engine in turn and adds the results to the report.
func measureEngine(ctx context.Context, t *runner, s settings, engine, dir, binary string, r *report, progress io.Writer) (err error) {
	bank, err := openBank(ctx, t, engine, dir, binary, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bank.close()) }()
	r.machine = append(r.machine, bank.describe...)

	sides := bank.sides()
	length := s.length()
	if err := warmUp(ctx, length, s.works, sides...); err != nil {
		return err
	}
	for round := 1; round <= s.rounds; round++ {
		for _, w := range s.works {
			for _, connections := range s.connections {
				for _, side := range sides {
					m, err := bank.measure(ctx, side, w, connections, length)
					if err != nil {
						return fmt.Errorf("%s, %s, %d connections: %w", side.name(), w.name, connections, err)
					}
					m.round = round
					r.measures = append(r.measures, m)
					fmt.Fprintln(progress, m)
				}
			}
			// The first side may have a quieter machine, so change the order.
			slices.Reverse(sides)
		}
	}
	if len(bank.stores) == 0 {
		return nil
	}
	for _, e := range s.extras {
		if err := e.measure(bank, ctx, s, r, progress); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	proofs, err := bank.prove()
	if err != nil {
		return fmt.Errorf("after the runs: %w", err)
	}
	r.proofs = append(r.proofs, proofs...)
	return nil
}
