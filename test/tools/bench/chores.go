package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// A chore is a command of an operator on a large book.
type chore struct {
	title string
	args  []string
}

// An effort is what one command took.
type effort struct {
	took   time.Duration
	cpu    time.Duration // of the command alone, not of Postgres
	memory int64         // the most that the command had
}

// measureChores measures the commands on a book with as many holdings and sales
// as -rows says, for all versions in turn.
func (b *bank) measureChores(ctx context.Context, s settings, r *report, progress io.Writer) error {
	perGap := s.rows / customers
	due := s.rows / 10
	imports := chore{fmt.Sprintf("import %d holdings", s.rows), []string{"import", "holdings", "holdings.csv"}}
	others := []chore{
		{fmt.Sprintf("export %d sales", s.rows), []string{"export", "sales"}},
		{fmt.Sprintf("verify %d sales", s.rows), []string{"verify"}},
		{fmt.Sprintf("settle %d due sales", due), []string{"settle"}},
	}
	type row struct{ chore, side string }
	efforts := map[row][]effort{}
	run := func(o *store, c chore, v version, round int) error {
		e, err := o.program.effort(c.args...)
		if err != nil {
			return err
		}
		fmt.Fprintf(progress, "%s, %s, %s, round %d: %s, %s of processor time, %.0f MB\n", b.engine.name(), c.title, v.name, round, e.took, e.cpu, float64(e.memory)/1e6)
		key := row{c.title, v.name}
		efforts[key] = append(efforts[key], e)
		return nil
	}

	// Every import needs an empty store. The last ones become the large books.
	books := map[version]*store{}
	for round := range s.rounds {
		for _, v := range b.versions {
			o, err := b.newStore(ctx, fmt.Sprintf("chores_%s_%d", v.purpose(), round), v.binary, s.service)
			if err != nil {
				return err
			}
			if err := o.program.prepareImport(perGap); err != nil {
				return err
			}
			if err := run(o, imports, v, round); err != nil {
				return err
			}
			books[v] = o
		}
	}
	for _, v := range b.versions {
		books[v].program.Must(b.t, "import", "accounts", "accounts.csv")
		if err := b.fillBook(ctx, books[v], perGap, 1); err != nil {
			return err
		}
	}
	for round := range s.rounds {
		for _, c := range others {
			for _, v := range b.versions {
				if c.args[0] == "settle" {
					if err := b.engine.fill(ctx, books[v].dsn, "due", fmt.Sprintf("%d AS round, %d AS sales", round, due)); err != nil {
						return err
					}
				}
				if err := run(books[v], c, v, round); err != nil {
					return err
				}
			}
		}
	}
	for _, c := range append([]chore{imports}, others...) {
		for _, v := range b.versions {
			all := efforts[row{c.title, v.name}]
			r.add("Commands on a large book, medians. The processor time is that of the command, without Postgres.",
				[]string{"engine", "command", "side", "seconds", "processor time", "peak memory"},
				b.engine.name(), c.title, v.name,
				fmt.Sprintf("%.2f", median(all, func(e effort) float64 { return e.took.Seconds() })),
				fmt.Sprintf("%.2f", median(all, func(e effort) float64 { return e.cpu.Seconds() })),
				fmt.Sprintf("%.0f MB", float64(median(all, func(e effort) int64 { return e.memory }))/1e6))
		}
	}
	for _, v := range b.versions {
		books[v].program.Must(b.t, "verify")
	}
	return nil
}

// memoryLook is how often the memory of a running command is read. Linux keeps
// its peak, so only what it adds at its end may be missed.
const memoryLook = 20 * time.Millisecond

// effort runs a command and measures it. Its output is thrown away.
func (p program) effort(args ...string) (e effort, err error) {
	var stderr bytes.Buffer
	cmd := p.Command(args...)
	cmd.Stderr = &stderr
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return e, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	for running := true; running; {
		select {
		case err = <-exited:
			running = false
		case <-time.After(memoryLook):
			e.memory = max(e.memory, memoryBytes(cmd.Process.Pid, "VmHWM"))
		}
	}
	e.took = time.Since(begun)
	if err != nil {
		return e, fmt.Errorf("bankingapi %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	e.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return e, nil
}
