package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A report has all results.
type report struct {
	machine  []fact
	measures []measure
	tables   []*table
	proofs   []string
}

// A table has a row for each result.
type table struct {
	title   string
	columns []string
	rows    [][]string
}

// A measure is the result of one side in one run.
type measure struct {
	engine, side, work       string
	rate, connections, round int
	records                  float64 // stored per second
	p50, p99                 time.Duration
	failed                   int // answers other than a completed operation
	used                     usage
	memory                   int64 // bytes resident, of the services, after the run
}

// String returns the progress line.
func (m measure) String() string {
	return fmt.Sprintf("%s, %s, %d connections, %s, round %d: %.0f/s, p50 %s, p99 %s, %.2f cores used by others",
		m.engine, m.work, m.connections, m.side, m.round, m.records, short(m.p50), short(m.p99), m.used.foreign)
}

// add adds a row to the table with the title. It creates the table first if there is none.
func (r *report) add(title string, columns []string, row ...string) {
	i := slices.IndexFunc(r.tables, func(t *table) bool { return t.title == title })
	if i < 0 {
		i = len(r.tables)
		r.tables = append(r.tables, &table{title: title, columns: columns})
	}
	r.tables[i].rows = append(r.tables[i].rows, row)
}

// compare adds the rates of the trials, with the ratio of the service to each other side at the
// same work and connections, and the processor time of each program: the program that fills the
// cores limits the rate.
func (r *report) compare(engine string, trials []*trial) {
	for _, o := range trials {
		ratio := ""
		for _, ours := range trials {
			same := ours.work.Name == o.work.Name && ours.connections == o.connections
			if same && ours.side.name() == plainName && ours != o && o.median(records) > 0 {
				ratio = fmt.Sprintf("**%.2f**", ours.median(records)/o.median(records))
			}
		}
		used := func(figure func(measure) float64) string { return cores(o.median(figure)) }
		r.add("Records stored per second, cores in use meanwhile (their kernel time included), and the memory of the service. Medians.",
			[]string{"engine", "work", "connections", "side", "per second", "bankingapi to it", "p50", "p99", "service", "Postgres", "load generator", "other programs", "memory"},
			engine, o.work.Title, strconv.Itoa(o.connections), o.side.name(), fmt.Sprintf("%.0f", o.median(records)), ratio,
			short(median(o.measures, func(m measure) time.Duration { return m.p50 })), short(median(o.measures, func(m measure) time.Duration { return m.p99 })),
			used(func(m measure) float64 { return m.used.service }), used(func(m measure) float64 { return m.used.database }),
			used(func(m measure) float64 { return m.used.generator }), used(func(m measure) float64 { return m.used.foreign }),
			fmt.Sprintf("%.0f MB", o.median(func(m measure) float64 { return float64(m.memory) / 1e6 })))
	}
}

// median returns the median of a figure. Of an even number, it is the lower one of the two.
func median[M any, T cmp.Ordered](measures []M, figure func(M) T) T {
	var values []T
	for _, m := range measures {
		values = append(values, figure(m))
	}
	return quantile(values, 0.5)
}

// quantile returns the value that a share q (0 to 1) did not exceed. It sorts the values, and
// returns zero if there is none.
func quantile[T cmp.Ordered](values []T, q float64) (value T) {
	if len(values) == 0 {
		return value
	}
	slices.Sort(values)
	return values[max(1, int(q*float64(len(values))+0.5))-1]
}

// write writes the tables to stdout, and all files to the folder if it has a name.
func (r *report) write(folder string, stdout io.Writer) error {
	if err := r.writeMarkdown(stdout); err != nil || folder == "" {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return errors.Join(
		writeFile(filepath.Join(folder, "bench.csv"), r.writeCSV),
		writeFile(filepath.Join(folder, "bench.md"), r.writeMarkdown),
	)
}

// writeFile creates a file and calls write with it.
func writeFile(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// writeMarkdown writes the tables, and what makes the figures doubtful: requests that did not
// complete, and other programs that used the machine.
func (r *report) writeMarkdown(to io.Writer) error {
	var b strings.Builder
	for _, f := range r.machine {
		fmt.Fprintf(&b, "- %s: %s\n", f.name, f.value)
	}
	for _, t := range r.tables {
		t.write(&b)
	}
	b.WriteString("\nAfterwards:\n")
	for _, proof := range r.proofs {
		fmt.Fprintf(&b, "- %s\n", proof)
	}
	noisy := 0
	for _, m := range r.measures {
		if m.failed > 0 {
			fmt.Fprintf(&b, "\nNot completed: %d answers in %s.\n", m.failed, m)
		}
		if m.used.foreign >= quietCores {
			noisy++
		}
	}
	if noisy > 0 {
		fmt.Fprintf(&b, "\nThe machine was not quiet: during %d of %d runs other programs used more than %.2f cores.\n", noisy, len(r.measures), quietCores)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// write aligns the columns of numbers to the right.
func (t *table) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n\n| %s |\n", t.title, strings.Join(t.columns, " | "))
	for _, cell := range t.rows[0] {
		if strings.ContainsAny(cell[:min(1, len(cell))], "*0123456789") {
			b.WriteString("|--:")
		} else {
			b.WriteString("|---")
		}
	}
	b.WriteString("|\n")
	for _, row := range t.rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
}

// writeCSV writes every run.
func (r *report) writeCSV(to io.Writer) error {
	w := csv.NewWriter(to)
	rows := [][]string{{"engine", "work", "rate", "connections", "side", "round", "records_per_second", "p50_us", "p99_us", "not_completed", "service_cores", "postgres_cores", "generator_cores", "other_cores", "memory_bytes"}}
	for _, m := range r.measures {
		rows = append(rows, []string{
			m.engine, m.work, strconv.Itoa(m.rate), strconv.Itoa(m.connections), m.side, strconv.Itoa(m.round),
			strconv.FormatFloat(m.records, 'f', 1, 64),
			strconv.FormatInt(m.p50.Microseconds(), 10), strconv.FormatInt(m.p99.Microseconds(), 10), strconv.Itoa(m.failed),
			cores(m.used.service), cores(m.used.database), cores(m.used.generator), cores(m.used.foreign), strconv.FormatInt(m.memory, 10),
		})
	}
	return w.WriteAll(rows)
}

func cores(n float64) string { return strconv.FormatFloat(n, 'f', 2, 64) }

// short rounds a latency for printing. pgbench tells none.
func short(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.Round(10 * time.Microsecond).String()
}
