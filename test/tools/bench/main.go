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
	extras      []extra
	connections []int
	rates       []int
	seconds     float64
	patience    time.Duration // how long all runs of an engine together wait for other programs to finish
	rounds      int
	rows        int // sales of the book for the chores
	records     int
	alone       bool   // measure the service alone
	otherBinary string // another version of the service; empty for none
	book        int
	postgres    string
	standby     bool
	out         string
	service     map[string]string // settings of the service
}

func (s settings) length() time.Duration { return time.Duration(s.seconds * float64(time.Second)) }

// An extra is a measurement other than the rate of a work. It adds a table to the report.
type extra struct {
	name    string
	measure func(*bank, context.Context) error
}

var extras = []extra{
	{"chores", (*bank).measureChores},
	{"rate", (*bank).measureRates},
	{"replicas", (*bank).measureReplicas},
	{"neighbours", (*bank).measureNeighbours},
	{"bytes", (*bank).measureBytes},
	{"refusals", (*bank).measureRefusals},
}

func main() {
	if isPeer() || isPartner() {
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
	err = guard("", func(t *runner) error {
		fmt.Fprintln(os.Stderr, "building the service")
		binary := service.Build(t, "bankingapi/cmd/bankingapi")
		defer service.Remove()
		return measureAll(ctx, "", s, binary, os.Stdout, os.Stderr)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// parse reads the command line.
func parse(args []string, usage io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	var names []string
	for _, w := range allWorks {
		names = append(names, w.Name)
	}
	for _, e := range extras {
		names = append(names, e.name)
	}
	engine := flags.String("engine", "all", "sqlite, postgres or all")
	works := flags.String("work", "sale,sale-mixed,push,refusals,bytes", "what to measure: "+strings.Join(names, ", "))
	connections := flags.String("connections", "1,16,64,256", "numbers of connections, in this order")
	rates := flags.String("rates", "100,500,1000,2000,4000", "requests a second of the works rate and replicas, in this order")
	flags.Float64Var(&s.seconds, "seconds", 1, "length of each run")
	flags.DurationVar(&s.patience, "wait", time.Minute, "how long all runs of an engine together wait for other programs to leave the machine quiet")
	flags.IntVar(&s.rows, "rows", 1_000_000, "sales in the book for the work chores (a multiple of 10000, beyond 1000000 one of 1000000); a million customers at most")
	flags.IntVar(&s.records, "records", 20_000, "sales and pushes that the work bytes stores; with fewer, the first pages of the tables count")
	flags.IntVar(&s.rounds, "rounds", 3, "runs of each side; the table shows medians")
	flags.BoolVar(&s.alone, "alone", false, "measure the service alone")
	flags.StringVar(&s.otherBinary, "other-binary", "", "measure this binary, another version of the service, as well")
	flags.IntVar(&s.book, "book", 0, "measure a store with this many past sales and pushes as well; a number as for -rows")
	flags.StringVar(&s.postgres, "postgres", defaultDSN(), "Postgres server on which bench creates temporary databases; without sslmode, drivers try TLS first")
	flags.BoolVar(&s.standby, "standby", false, "start such a server, and another one as its synchronous standby")
	flags.StringVar(&s.out, "out", "", "folder for bench.csv and bench.md (default: write none)")
	s.service = map[string]string{}
	flags.Func("set", "setting of the service as name=value, repeatable (http.body_limit=64KiB)", func(pair string) error {
		name, value, found := strings.Cut(pair, "=")
		if !found {
			return errors.New("want name=value")
		}
		s.service[name] = value
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	s.engines = []string{*engine}
	if *engine == "all" {
		s.engines = []string{"postgres", "sqlite"}
	}
	for name := range strings.SplitSeq(*works, ",") {
		w := slices.IndexFunc(allWorks, func(w work) bool { return w.Name == name })
		e := slices.IndexFunc(extras, func(e extra) bool { return e.name == name })
		switch {
		case w >= 0:
			s.works = append(s.works, allWorks[w])
		case e >= 0:
			s.extras = append(s.extras, extras[e])
		default:
			return s, fmt.Errorf("unknown work %q", name)
		}
	}
	if s.connections, err = numbers(*connections); err != nil {
		return s, err
	}
	if s.rates, err = numbers(*rates); err != nil {
		return s, err
	}
	for _, wrong := range []struct {
		is   bool
		text string
	}{
		{flags.NArg() > 0, "unknown argument " + flags.Arg(0)},
		{!slices.Contains([]string{"all", "sqlite", "postgres"}, *engine), "unknown engine " + *engine},
		{s.seconds <= 0 || s.rounds < 1 || s.records < 1, "-seconds, -rounds and -records must be positive"},
		{!isBook(s.rows) || s.book != 0 && !isBook(s.book), "-rows and -book must be multiples of 10000, beyond 1000000 of 1000000"},
	} {
		if wrong.is {
			return s, errors.New(wrong.text)
		}
	}
	if s.otherBinary == "" {
		return s, nil
	}
	if s.otherBinary, err = filepath.Abs(s.otherBinary); err != nil { // the programs run in folders of their own
		return s, err
	}
	_, err = os.Stat(s.otherBinary)
	return s, err
}

// numbers reads a list of positive numbers.
func numbers(list string) (all []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a positive number", text)
		}
		all = append(all, n)
	}
	return all, nil
}

// isBook reports whether a book can have so many sales: as many of each customer.
func isBook(sales int) bool { return sales >= customers && sales%(customers*perGap(sales)) == 0 }

// measureAll measures every engine with a built binary and writes the report. The folder is for
// temporary files; without a name it is that of the system.
func measureAll(ctx context.Context, folder string, s settings, binary string, stdout, progress io.Writer) error {
	r := &report{machine: describeMachine()}
	for _, engine := range s.engines {
		err := guard(folder, func(t *runner) error {
			b := &bank{settings: s, dir: filepath.Join(t.TempDir(), engine), t: t, report: r, progress: progress}
			return b.measureEngine(ctx, engine, binary)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
	}
	return r.write(s.out, stdout)
}

func (b *bank) measureEngine(ctx context.Context, engine, binary string) error {
	if err := b.open(ctx, engine, binary); err != nil {
		return err
	}
	var all []*trial
	for _, w := range b.works {
		for _, connections := range b.connections {
			for _, side := range b.sides() {
				all = append(all, &trial{work: w, side: side, connections: connections})
			}
		}
	}
	if err := b.inTurn(ctx, all); err != nil {
		return err
	}
	b.report.compare(b.engine.name(), all)
	for _, e := range b.extras {
		if err := e.measure(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	for _, s := range b.stores {
		if err := b.prove(s); err != nil {
			return fmt.Errorf("after the runs: %w", err)
		}
	}
	return nil
}

// A side is one of the compared programs. run does the work for the given time
// and returns what it reached. It may be called more than once.
type side interface {
	name() string
	pids() []int // of its services
	run(ctx context.Context, w work, connections int, length time.Duration) (*tally, error)
}

// A trial is a work on one side, with the results of all rounds.
type trial struct {
	work        work
	side        side
	connections int
	measures    []measure
	total       tally
}

// inTurn runs each trial once in a round. The first one may have a quieter machine, so
// the next round has the other order. A run before them fills pools, caches and plans.
func (b *bank) inTurn(ctx context.Context, trials []*trial) error {
	warm := map[string]bool{}
	for _, o := range trials {
		key := o.side.name() + o.work.Name
		if !warm[key] {
			warm[key] = true
			if _, err := o.side.run(ctx, o.work, 16, b.length()/5); err != nil {
				return fmt.Errorf("%s, warming up %s: %w", o.side.name(), o.work.Name, err)
			}
		}
	}
	trials = slices.Clone(trials)
	for round := 1; round <= b.rounds; round++ {
		for _, o := range trials {
			if err := b.measure(ctx, o, round); err != nil {
				return fmt.Errorf("%s, %s, %d connections: %w", o.side.name(), o.work.Name, o.connections, err)
			}
		}
		slices.Reverse(trials)
	}
	return nil
}

// measure runs a trial and measures the processor time meanwhile.
func (b *bank) measure(ctx context.Context, o *trial, round int) error {
	if err := b.engine.checkpoint(ctx); err != nil {
		return err
	}
	b.waitQuiet(ctx)
	pids := o.side.pids()
	before := readClock(pids...)
	t, err := o.side.run(ctx, o.work, o.connections, b.length())
	if err != nil {
		return err
	}
	if t.Records == 0 && t.Late == 0 {
		return fmt.Errorf("nothing completed (%s); one answer: %s", t, t.Example)
	}
	m := measure{
		engine: b.engine.name(), side: o.side.name(), work: o.work.Title, connections: o.connections, round: round, rate: o.work.Rate,
		records: t.Records, p50: quantile(t.Latency, 0.5), p99: quantile(t.Latency, 0.99), failed: t.failed(), used: readClock(pids...).since(before),
	}
	for _, pid := range pids {
		m.memory += memoryBytes(pid, "VmRSS")
	}
	if m.failed > 0 {
		fmt.Fprintf(b.progress, "answers: %s; one: %s\n", t, t.Example)
	}
	o.measures = append(o.measures, m)
	o.total.merge(t)
	b.report.measures = append(b.report.measures, m)
	fmt.Fprintln(b.progress, m)
	return nil
}

// median returns the median of a figure of all rounds.
func (o *trial) median(figure func(measure) float64) float64 { return median(o.measures, figure) }

func records(m measure) float64 { return m.records }
