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

// A table has the results of an extra measurement, a row for each.
type table struct {
	title   string
	columns []string
	rows    [][]string
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

// A comparison is one side next to another on the same work, as medians of the rounds.
type comparison struct {
	place
	ours, theirs measure
}

// A place is what the sides are compared at.
type place struct {
	engine, work string
	connections  int
}

// ratio returns 0 if only one side was measured or one side completed nothing.
func (c comparison) ratio() float64 {
	if c.ours.records == 0 || c.theirs.records == 0 {
		return 0
	}
	return c.ours.records / c.theirs.records
}

// comparisons pairs the sides in the order in which they were measured: the
// plain service with the database alone, with the peer and with the other
// version, then the others with the plain service.
func (r *report) comparisons() []comparison {
	var places []place
	sides := map[place]map[string][]measure{}
	for _, m := range r.measures {
		p := place{m.engine, m.work, m.connections}
		if sides[p] == nil {
			sides[p] = map[string][]measure{}
			places = append(places, p)
		}
		sides[p][m.side] = append(sides[p][m.side], m)
	}
	var found []comparison
	for _, p := range places {
		plain, alone := medians(sides[p][plainName]), measure{}
		for name, measures := range sides[p] {
			if !slices.Contains([]string{plainName, bookName, peerName, otherName}, name) {
				alone = medians(measures)
			}
		}
		found = append(found, comparison{p, plain, alone})
		for _, name := range []string{peerName, otherName} {
			if measures := sides[p][name]; len(measures) > 0 {
				found = append(found, comparison{p, plain, medians(measures)})
			}
		}
		if measures := sides[p][bookName]; len(measures) > 0 {
			found = append(found, comparison{p, medians(measures), plain})
		}
	}
	return found
}

// medians returns the median of each figure.
func medians(measures []measure) measure {
	if len(measures) == 0 {
		return measure{}
	}
	m := measures[0]
	m.records = median(measures, func(m measure) float64 { return m.records })
	m.p50 = median(measures, func(m measure) time.Duration { return m.p50 })
	m.p99 = median(measures, func(m measure) time.Duration { return m.p99 })
	m.used = usage{
		service:   median(measures, func(m measure) float64 { return m.used.service }),
		generator: median(measures, func(m measure) float64 { return m.used.generator }),
		database:  median(measures, func(m measure) float64 { return m.used.database }),
		foreign:   median(measures, func(m measure) float64 { return m.used.foreign }),
	}
	m.memory = median(measures, func(m measure) int64 { return m.memory })
	return m
}

func median[M any, T cmp.Ordered](measures []M, of func(M) T) T {
	var values []T
	for _, m := range measures {
		values = append(values, of(m))
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// writeMarkdown writes the tables for README.md.
func (r *report) writeMarkdown(to io.Writer) error {
	var b strings.Builder
	for _, f := range r.machine {
		fmt.Fprintf(&b, "- %s: %s\n", f.name, f.value)
	}
	for _, t := range append(r.compared(), r.tables...) {
		t.write(&b)
	}
	if len(r.proofs) > 0 {
		b.WriteString("\nAfterwards:\n")
	}
	for _, proof := range r.proofs {
		fmt.Fprintf(&b, "- %s\n", proof)
	}
	r.writeDoubts(&b)
	_, err := io.WriteString(to, b.String())
	return err
}

// compared returns the rates of both sides, and the processor time of each program: the
// program that fills the cores limits the rate.
func (r *report) compared() []*table {
	var made report
	for _, c := range r.comparisons() {
		w, _ := findWork(c.work) // only known works are measured
		at := []string{c.engine, w.title, strconv.Itoa(c.connections)}
		ratio := ""
		if c.ratio() > 0 {
			ratio = fmt.Sprintf("**%.2f**", c.ratio())
		}
		made.add("Records stored per second, medians.",
			[]string{"engine", "work", "connections", "side", "per second", "p50", "p99", "against", "per second", "p50", "p99", "ratio"},
			slices.Concat(at, rateCells(c.ours), rateCells(c.theirs), []string{ratio})...)
		for _, m := range []measure{c.ours, c.theirs} {
			// The plain side has its own row, once.
			again := m.side == plainName && (m == c.theirs || c.theirs.side == peerName || c.theirs.side == otherName)
			if m.side == "" || again {
				continue
			}
			memory := ""
			if m.memory > 0 {
				memory = fmt.Sprintf("%.0f MB", float64(m.memory)/1e6)
			}
			made.add("Cores in use meanwhile (their kernel time included), and the memory of the service.",
				[]string{"engine", "work", "connections", "side", "service", "Postgres", "load generator", "other programs", "memory"},
				append(at, m.side, cores(m.used.service), cores(m.used.database), cores(m.used.generator), cores(m.used.foreign), memory)...)
		}
	}
	return made.tables
}

// rateCells returns the four cells of one side. They are empty if it was not measured.
func rateCells(m measure) []string {
	if m.side == "" {
		return make([]string, 4)
	}
	return []string{m.side, strconv.FormatFloat(m.records, 'f', 0, 64), short(m.p50), short(m.p99)}
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

// writeDoubts writes what makes the figures doubtful: requests that did not
// complete, and other programs that used the machine.
func (r *report) writeDoubts(b *strings.Builder) {
	noisy := 0
	for _, m := range r.measures {
		if m.failed > 0 {
			fmt.Fprintf(b, "\nNot completed: %d answers in %s.\n", m.failed, m)
		}
		if m.used.foreign >= quietCores {
			noisy++
		}
	}
	if noisy > 0 {
		fmt.Fprintf(b, "\nThe machine was not quiet: during %d of %d runs other programs used more than %.2f cores.\n", noisy, len(r.measures), quietCores)
	}
}

// writeCSV writes every run.
func (r *report) writeCSV(to io.Writer) error {
	w := csv.NewWriter(to)
	rows := [][]string{{"engine", "work", "connections", "side", "round", "records_per_second", "p50_us", "p99_us", "not_completed", "service_cores", "postgres_cores", "generator_cores", "other_cores", "memory_bytes"}}
	for _, m := range r.measures {
		rows = append(rows, []string{
			m.engine, m.work, strconv.Itoa(m.connections), m.side, strconv.Itoa(m.round),
			strconv.FormatFloat(m.records, 'f', 1, 64),
			strconv.FormatInt(m.p50.Microseconds(), 10), strconv.FormatInt(m.p99.Microseconds(), 10), strconv.Itoa(m.failed),
			cores(m.used.service), cores(m.used.database), cores(m.used.generator), cores(m.used.foreign), strconv.FormatInt(m.memory, 10),
		})
	}
	return w.WriteAll(rows)
}

// String returns the progress line.
func (m measure) String() string {
	return fmt.Sprintf("%s, %s, %d connections, %s, round %d: %.0f/s, p50 %s, p99 %s, %.2f cores used by others",
		m.engine, m.work, m.connections, m.side, m.round, m.records, short(m.p50), short(m.p99), m.used.foreign)
}

func cores(n float64) string { return strconv.FormatFloat(n, 'f', 2, 64) }

// short rounds a latency for printing.
func short(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }
