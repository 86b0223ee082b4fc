package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A chore is a command of an operator on a large book.
type chore struct {
	title string
	args  []string
}

// measureChores measures commands of an operator on a book with as many holdings and sales
// as -rows says, for all versions in turn.
func (b *bank) measureChores(ctx context.Context) error {
	held := perGap(b.rows) * customers
	due := held / 10
	chores := []chore{
		{fmt.Sprintf("import %d holdings", held), []string{"import", "holdings", "holdings.csv"}},
		{fmt.Sprintf("export %d sales", b.rows), []string{"export", "sales"}},
		{fmt.Sprintf("verify %d sales", b.rows), []string{"verify"}},
		{fmt.Sprintf("settle %d due sales", due), []string{"settle"}},
	}
	efforts := map[string][]effort{}
	run := func(o *store, c chore) error {
		e, err := o.effort(c.args...)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.progress, "%s, %s, %s: %s, %s of processor time, %.0f MB\n", b.engine.name(), c.title, o.title, e.took, e.cpu, float64(e.memory)/1e6)
		efforts[c.title+o.title] = append(efforts[c.title+o.title], e)
		return nil
	}

	// Every import needs an empty store. The last ones become the large books.
	books := map[version]*store{}
	for round := range b.rounds {
		for _, v := range b.versions {
			o, err := b.newStore(ctx, fmt.Sprintf("%s, chores %d", v.name, round), v)
			if err != nil {
				return err
			}
			if err := o.prepareImport(perGap(b.rows)); err != nil {
				return err
			}
			if err := run(o, chores[0]); err != nil {
				return err
			}
			books[v] = o
		}
	}
	for _, o := range books {
		o.Must(b.t, "import", "accounts", "accounts.csv")
		if err := b.fillBook(ctx, o, b.rows); err != nil {
			return err
		}
	}
	for round := range b.rounds {
		for _, c := range chores[1:] {
			for _, v := range b.versions {
				if c.args[0] == "settle" {
					if err := b.engine.fill(ctx, books[v].DSN, "due", fmt.Sprintf("%d AS round, %d AS sales", round, due)); err != nil {
						return err
					}
				}
				if err := run(books[v], c); err != nil {
					return err
				}
			}
		}
	}
	for _, c := range chores {
		for _, v := range b.versions {
			all := efforts[c.title+v.name]
			b.report.add("Commands on a large book, medians. The processor time is that of the command, without Postgres.",
				[]string{"engine", "command", "side", "seconds", "processor time", "peak memory"},
				b.engine.name(), c.title, v.name,
				fmt.Sprintf("%.2f", median(all, func(e effort) float64 { return e.took.Seconds() })),
				fmt.Sprintf("%.2f", median(all, func(e effort) float64 { return e.cpu.Seconds() })),
				fmt.Sprintf("%.0f MB", median(all, func(e effort) float64 { return float64(e.memory) / 1e6 })))
		}
	}
	for _, v := range b.versions {
		o := books[v]
		o.Must(b.t, "verify")
		if err := b.measurePages(o); err != nil {
			return err
		}
	}
	return nil
}

// A look is a page of the console. If link is set, it is the first such link on the page before.
type look struct {
	title, path string
	link        *regexp.Regexp
}

// looks are the pages whose cost may grow with the book, in an order in which an operator opens
// them.
var looks = []look{
	{title: "Today", path: "/console/"},
	{title: "Notifications", path: "/console/notifications"},
	{title: "Refusals", path: "/console/refusals"},
	{title: "Due, with its forecast", path: "/console/due"},
	{title: "Prices", path: "/console/prices"},
	{title: "Subscriptions", path: "/console/subscriptions"},
	{title: "Audit", path: "/console/audit"},
	{title: "Sales of a fund", path: "/console/sales?fund=F07"},
	{title: "Sales that failed", path: "/console/sales?state=8"},
	{title: "Sales", path: "/console/sales"},
	{title: "a sale", link: regexp.MustCompile(`/console/sale/[0-9a-f-]+`)},
	{title: "its customer", link: regexp.MustCompile(`/console/customer/[\w-]+`)},
}

// measurePages measures the start of the service on a large book, and pages of its console. Each
// page is opened as often as there are rounds.
func (b *bank) measurePages(o *store) error {
	o.Set("console.enabled", "true")
	begun := time.Now()
	if err := o.serve(1); err != nil {
		return err
	}
	defer o.stop()
	row := func(title string, took time.Duration) {
		b.report.add("The start of the service on a large book, and pages of its console. Medians.",
			[]string{"engine", "side", "rows", "page", "seconds"},
			b.engine.name(), o.title, strconv.Itoa(b.rows), title, fmt.Sprintf("%.3f", took.Seconds()))
	}
	row("start", time.Since(begun))
	process := o.services[0]
	v, err := visit(process.Ops, process.Await(b.t, process.Out, `(?m)^console: (\S+)$`))
	if err != nil {
		return err
	}
	for _, l := range looks {
		path := l.path
		if l.link != nil {
			path = l.link.FindString(v.page)
		}
		var all []time.Duration
		for range b.rounds {
			took, err := v.open(path)
			if err != nil {
				return fmt.Errorf("%s: %w", l.title, err)
			}
			all = append(all, took)
		}
		row(l.title, time.Duration(median(all, func(d time.Duration) float64 { return float64(d) })))
	}
	return nil
}

// A visitor is a browser that is signed in to the console.
type visitor struct {
	client  http.Client
	address string
	page    string // the last one
}

func visit(address, link string) (*visitor, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	v := &visitor{client: http.Client{Jar: jar}, address: address}
	_, err = v.open(strings.TrimPrefix(link, address))
	return v, err
}

// open opens a page and returns how long it took.
func (v *visitor) open(path string) (time.Duration, error) {
	begun := time.Now()
	response, err := v.client.Get(v.address + path)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s was answered with %s", path, response.Status)
	}
	v.page = string(page)
	return time.Since(begun), nil
}

// An effort is what one command took.
type effort struct {
	took   time.Duration
	cpu    time.Duration // of the command alone, not of Postgres
	memory int64         // the most that the command had
}

// memoryLook is how often the memory of a running command is read. Linux keeps
// its peak, so only what it adds at its end may be missed.
const memoryLook = 20 * time.Millisecond

// effort runs a command and measures it. Its output is thrown away.
func (o *store) effort(args ...string) (e effort, err error) {
	var stderr strings.Builder
	cmd := o.Command(args...)
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
		return e, fmt.Errorf("bankingapi %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	e.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return e, nil
}
