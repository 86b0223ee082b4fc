package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A report is everything that was found, and how it is written down.
type report struct {
	machine   []fact
	measures  []measure
	overloads []overload
	proofs    []string
}

// A comparison is our side beside another one on the same work: medians over
// the rounds.
type comparison struct {
	engine       string
	work         work
	connections  int
	ours, theirs measure
	goal         float64 // least ratio; 0: none
}

// ratio is 0 when only one side was measured, or one did nothing in time.
func (c comparison) ratio() float64 {
	if c.ours.records == 0 || c.theirs.records == 0 {
		return 0
	}
	return c.ours.records / c.theirs.records
}

// ownGoals are the least shares of its own plain rate that the service must
// reach otherwise.
var ownGoals = map[string]float64{secureName: tlsGoal, bookName: bookGoal}

// comparisons pairs the sides in the order in which they were measured first:
// the plain service with the database alone, then the others with the plain.
func (r *report) comparisons() []comparison {
	type place struct {
		engine, work string
		connections  int
	}
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
		w, err := findWork(p.work)
		if err != nil {
			panic(err) // measured, hence known
		}
		plain := medians(sides[p][plainName])
		against := comparison{
			engine: p.engine, work: w, connections: p.connections,
			ours: plain, goal: w.goals[goalKey{p.engine, p.connections}],
		}
		for name, measures := range sides[p] {
			if name != plainName && ownGoals[name] == 0 {
				against.theirs = medians(measures)
			}
		}
		found = append(found, against)
		for _, name := range []string{secureName, bookName} {
			if measures := sides[p][name]; len(measures) > 0 {
				found = append(found, comparison{
					engine: p.engine, work: w, connections: p.connections,
					ours: medians(measures), theirs: plain, goal: ownGoals[name],
				})
			}
		}
	}
	return found
}

// medians takes the middle of each figure on its own.
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

func median[T cmp.Ordered](measures []measure, of func(measure) T) T {
	var values []T
	for _, m := range measures {
		values = append(values, of(m))
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// writeMarkdown writes the tables for a person, and for the README.
func (r *report) writeMarkdown(to io.Writer) error {
	var b strings.Builder
	for _, f := range r.machine {
		fmt.Fprintf(&b, "- %s: %s\n", f.name, f.value)
	}
	comparisons := r.comparisons()
	writeRates(&b, comparisons)
	writeCores(&b, comparisons)
	r.writeOverloads(&b)
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

// writeRates is the table that the goals are about.
func writeRates(b *strings.Builder, comparisons []comparison) {
	if len(comparisons) == 0 {
		return
	}
	b.WriteString("\nRecords stored per second, medians; the goal is the least ratio.\n\n")
	b.WriteString("| engine | work | connections | side | per second | p50 | p99 | against | per second | p50 | p99 | ratio | goal | reached |\n")
	b.WriteString("|---|---|--:|---|--:|--:|--:|---|--:|--:|--:|--:|--:|---|\n")
	for _, c := range comparisons {
		ratio, goal, reached := "", "", ""
		if c.ratio() > 0 {
			ratio = fmt.Sprintf("**%.2f**", c.ratio())
			if c.goal > 0 {
				goal, reached = strconv.FormatFloat(c.goal, 'f', -1, 64), yesNo(c.ratio() >= c.goal)
			}
		}
		fmt.Fprintf(b, "| %s | %s | %d | %s | %s | %s | %s | %s |\n",
			c.engine, c.work.title, c.connections, rateCells(c.ours), rateCells(c.theirs), ratio, goal, reached)
	}
	for _, c := range comparisons {
		if c.engine == "postgres" && c.work.name == "sale" && c.connections == 1 && c.ours.side == plainName && c.ratio() > 0 {
			ratio := float64(c.ours.p50) / float64(c.theirs.p50)
			fmt.Fprintf(b, "\nLatency of one connection: the median sale takes %s, %s needs %s: **%.2f** times, goal at most %.1f, reached: %s.\n",
				short(c.ours.p50), c.theirs.side, short(c.theirs.p50), ratio, latencyGoal, yesNo(ratio <= latencyGoal))
		}
	}
}

// rateCells are the four cells of one side, empty when it was not measured.
func rateCells(m measure) string {
	if m.side == "" {
		return "| | |"
	}
	return fmt.Sprintf("%s | %.0f | %s | %s", m.side, m.records, short(m.p50), short(m.p99))
}

// writeCores shows where the time goes: what limits a rate is whatever fills
// the cores.
func writeCores(b *strings.Builder, comparisons []comparison) {
	if len(comparisons) == 0 {
		return
	}
	b.WriteString("\nCores in use meanwhile (their kernel time included), and the memory of the service.\n\n")
	b.WriteString("| engine | work | connections | side | service | Postgres | load generator | other programs | memory |\n")
	b.WriteString("|---|---|--:|---|--:|--:|--:|--:|--:|\n")
	for _, c := range comparisons {
		for _, m := range []measure{c.ours, c.theirs} {
			// The plain side is in a row of its own already.
			if m.side == "" || m == c.theirs && m.side == plainName {
				continue
			}
			memory := ""
			if m.memory > 0 {
				memory = fmt.Sprintf("%.0f MB", float64(m.memory)/1e6)
			}
			fmt.Fprintf(b, "| %s | %s | %d | %s | %.2f | %.2f | %.2f | %.2f | %s |\n",
				c.engine, c.work.title, c.connections, m.side, m.used.service, m.used.database, m.used.generator, m.used.foreign, memory)
		}
	}
}

func (r *report) writeOverloads(b *strings.Builder) {
	if len(r.overloads) == 0 {
		return
	}
	b.WriteString("\nSales beyond what the service can do. Goals: 0.9 of the best rate, refusals within 50 ms. The cores of the generator are cores that the service lacks.\n\n")
	b.WriteString("| engine | offered | best per second | offered per second | completed per second | share of best | p99 | refused with 503 | p99 of refusals | best rate again after | cores of generator, service, Postgres | answers |\n")
	b.WriteString("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|---|\n")
	for _, o := range r.overloads {
		recovered := "not within the run"
		if o.recovery >= 0 {
			recovered = o.recovery.String()
		}
		fmt.Fprintf(b, "| %s | %s | %.0f on %d connections | %.0f on %d | %.0f | **%.2f** | %s | %d | %s | %s | %.2f, %.2f, %.2f | %s |\n",
			o.engine, o.kind, o.best, o.bestConnections, o.offered, o.connections, o.goodput, o.goodput/o.best,
			short(o.latency), o.refused, short(o.refusal), recovered, o.used.generator, o.used.service, o.used.database, o.answers)
	}
}

// writeDoubts says what speaks against the figures: answers that were no
// success, and other programs that used the machine.
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

// writeCSV writes every single run.
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

// String is the line that shows progress.
func (m measure) String() string {
	return fmt.Sprintf("%s, %s, %d connections, %s, round %d: %.0f/s, p50 %s, p99 %s, %.2f cores used by others",
		m.engine, m.work, m.connections, m.side, m.round, m.records, short(m.p50), short(m.p99), m.used.foreign)
}

func cores(n float64) string { return strconv.FormatFloat(n, 'f', 2, 64) }

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// short rounds a latency to what can be read.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	default:
		return d.Round(time.Millisecond).String()
	}
}
