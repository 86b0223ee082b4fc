package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
)

const (
	// pageLoads is how often each page is loaded.
	pageLoads = 7
	// pageRate is how many pages a second are loaded beside the API.
	pageRate = 50
	// pageLimit is the maximum time for one page.
	pageLimit = 10 * time.Second
)

// measureConsole loads each page of the console on the big book, or on a small
// one if there is none. Then it measures the rate of sales without and with 50
// page loads a second. All versions use the same book.
func (b *bank) measureConsole(ctx context.Context, s settings, r *report, progress io.Writer) (err error) {
	o := b.stores[len(b.stores)-1]
	if s.book == 0 {
		if o, err = b.openStore(ctx, "console", b.versions[0].binary, bookStep, s.service); err != nil {
			return err
		}
	}
	defer func(binary string) { o.program.binary = binary }(o.program.binary)
	for _, v := range b.versions {
		if err := o.stop(); err != nil {
			return err
		}
		o.program.binary = v.binary
		if err := b.measurePages(ctx, o, v.name, s, r, progress); err != nil {
			return err
		}
	}
	return nil
}

func (b *bank) measurePages(ctx context.Context, o *store, name string, s settings, r *report, progress io.Writer) error {
	if err := o.serve(ctx, name, "console.enabled=true"); err != nil {
		return err
	}
	served := o.served[len(o.served)-1]
	visitor, err := signIn(ctx, served.server.log.Name())
	if err != nil {
		return err
	}
	pages, err := visitor.pages(ctx)
	if err != nil {
		return err
	}
	waitQuiet(ctx, b.patience)
	for _, p := range pages {
		var all latencies
		for range pageLoads {
			took, err := visitor.load(ctx, p)
			if err != nil {
				return err
			}
			all.record(took)
		}
		first := all[0]
		fmt.Fprintf(progress, "%s, %s, %s: %s, first %s\n", b.engine.name(), name, p.name, short(all.quantile(0.5)), short(first))
		r.add(fmt.Sprintf("Pages of the console, %d loads of each.", pageLoads), []string{"engine", "side", "page", "median", "first", "slowest"},
			b.engine.name(), name, p.name, short(all.quantile(0.5)), short(first), short(all.quantile(1)))
	}
	return b.measureBeside(ctx, served, visitor, pages, s, r, progress)
}

// measureBeside measures the rate of sales with 64 connections, in turn alone
// and while pages are loaded: first the one that refreshes itself, then each.
func (b *bank) measureBeside(ctx context.Context, served *overHTTP, visitor *visitor, pages []page, s settings, r *report, progress io.Writer) error {
	sale, err := findWork("sale")
	if err != nil {
		return err
	}
	for _, what := range []struct {
		name  string
		pages []page
	}{{pages[0].name, pages[:1]}, {"each page in turn", pages}} {
		var alone, beside, ratios []float64
		var times latencies
		busy := 0
		for range s.rounds {
			without, err := b.measure(ctx, served, sale, 64, s.length())
			if err != nil {
				return err
			}
			surfing, stop := context.WithCancel(ctx)
			result := make(chan surfed, 1)
			go func() { result <- visitor.surf(surfing, what.pages) }()
			with, err := served.run(ctx, sale, 64, s.length())
			stop()
			done := <-result
			if err = errors.Join(err, done.err); err != nil {
				return err
			}
			fmt.Fprintf(progress, "%s, sales %.0f/s alone, %.0f/s beside %d loads of %s\n", b.engine.name(), without.records, with.records, len(done.times), what.name)
			alone, beside, ratios = append(alone, without.records), append(beside, with.records), append(ratios, with.records/without.records)
			busy += done.busy
			times.merge(done.times)
		}
		number := func(all []float64) float64 { return median(all, func(f float64) float64 { return f }) }
		r.add(fmt.Sprintf("Sales with 64 connections, alone and beside %d page loads a second, medians.", pageRate),
			[]string{"engine", "side", "pages", "sales a second alone", "beside the pages", "ratio", "page loads", "refused as busy", "median of a page"},
			b.engine.name(), served.name(), what.name, fmt.Sprintf("%.0f", number(alone)), fmt.Sprintf("%.0f", number(beside)), fmt.Sprintf("**%.2f**", number(ratios)),
			fmt.Sprint(len(times)), fmt.Sprint(busy), short(times.quantile(0.5)))
	}
	return nil
}

// A visitor is an operator's browser. The console ends a session if another
// browser uses it, so every request has the same User-Agent.
type visitor struct {
	client *http.Client
	home   string // ends with a slash
	csrf   string
}

var (
	printedLink = regexp.MustCompile(`console: (http://\S+)`)
	formToken   = regexp.MustCompile(`name="csrf" value="([^"]+)"`)
	saleLink    = regexp.MustCompile(`/console/sale/[0-9a-f-]+`)
)

// signIn opens the link in the log of the service.
func signIn(ctx context.Context, log string) (*visitor, error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	link := printedLink.FindSubmatch(text)
	if link == nil {
		return nil, errors.New("the service printed no link to its console")
	}
	at, err := url.Parse(string(link[1]))
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	v := &visitor{
		client: &http.Client{Jar: jar, Timeout: pageLimit, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		home:   "http://" + at.Host + "/console/",
	}
	if _, _, err := v.open(ctx, page{path: string(link[1])}); err != nil {
		return nil, err
	}
	_, body, err := v.open(ctx, page{path: v.home})
	if err != nil {
		return nil, err
	}
	token := formToken.FindStringSubmatch(body)
	if token == nil {
		return nil, errors.New("the console has no form")
	}
	v.csrf = token[1]
	return v, nil
}

// A page is one that an operator looks at. If it has a form, it is posted.
type page struct {
	name, path string
	form       url.Values
	live       bool // the script of the page loads it again
}

var errBusyConsole = errors.New("the console is busy")

// open loads a page. It returns where it redirects to, or its text.
func (v *visitor) open(ctx context.Context, p page) (to, body string, err error) {
	method, content := http.MethodGet, io.Reader(nil)
	if p.form != nil {
		p.form.Set("csrf", v.csrf)
		method, content = http.MethodPost, strings.NewReader(p.form.Encode())
	}
	request, err := http.NewRequestWithContext(ctx, method, p.path, content)
	if err != nil {
		return "", "", err
	}
	request.Header.Set("User-Agent", "bench")
	if p.live {
		request.Header.Set("X-Live", "1")
	}
	if p.form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := v.client.Do(request)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(bufio.NewReader(response.Body))
	switch {
	case err != nil:
		return "", "", err
	case response.StatusCode == http.StatusServiceUnavailable:
		return "", "", fmt.Errorf("%s: %w", p.name, errBusyConsole)
	case response.StatusCode == http.StatusSeeOther:
		return response.Header.Get("Location"), "", nil
	case response.StatusCode != http.StatusOK:
		return "", "", fmt.Errorf("page %s: %s\n%s", p.name, response.Status, tail(text))
	}
	return "", string(text), nil
}

// load loads a page and returns how long it took.
func (v *visitor) load(ctx context.Context, p page) (time.Duration, error) {
	begun := time.Now()
	_, _, err := v.open(ctx, p)
	return time.Since(begun), err
}

// pages are the pages that are measured. Some exist only after a search.
func (v *visitor) pages(ctx context.Context) ([]page, error) {
	nothing := "nothing-has-this"
	customer := fmt.Sprint(customerNo(customers / 2))
	search := func(text string) url.Values { return url.Values{"q": {text}} }
	found, _, err := v.open(ctx, page{path: v.home + "search", form: search(customer)})
	if err != nil {
		return nil, err
	}
	_, sales, err := v.open(ctx, page{path: v.home + "sales?state=2"})
	if err != nil {
		return nil, err
	}
	sale := saleLink.FindString(sales)
	if found == "" || sale == "" {
		return nil, errors.New("the console finds no customer or no sale")
	}
	rare, _, err := v.open(ctx, page{path: v.home + "notifications", form: url.Values{"application": {nothing}}})
	if err != nil {
		return nil, err
	}
	user, _, err := v.open(ctx, page{path: v.home + "notifications", form: url.Values{"user": {"user-" + customer}}})
	if err != nil {
		return nil, err
	}
	at := func(path string) string { return strings.TrimSuffix(v.home, "/console/") + path }
	yesterday := time.Now().AddDate(0, 0, -1).Format(time.DateOnly)
	return []page{
		{"Today, refreshing itself", v.home, nil, true},
		{"Today", v.home, nil, false},
		{"Sales, newest", v.home + "sales", nil, false},
		{"Sales of a day", v.home + "sales?day=" + yesterday, nil, false},
		{"Sales, recorded", v.home + "sales?state=1", nil, false},
		{"Sales, failed", v.home + "sales?state=8", nil, false},
		{"Sales of a partner", v.home + "sales?partner=bench", nil, false},
		{"Sales of a partner without any", v.home + "sales?partner=" + nothing, nil, false},
		{"Sales, failed, of a partner without any", v.home + "sales?state=8&partner=" + nothing, nil, false},
		{"A sale", at(sale), nil, false},
		{"A customer", at(found), nil, false},
		{"A customer at a past day", at(found) + "?day=" + yesterday, nil, false},
		{"Notifications, newest", v.home + "notifications", nil, false},
		{"Notifications of a rare application", at(rare), nil, false},
		{"Notifications of a user", at(user), nil, false},
		{"Due", v.home + "due", nil, false},
		{"Refused operations, newest", v.home + "refusals", nil, false},
		{"Refused operations of a partner without any", v.home + "refusals?partner=" + nothing, nil, false},
		{"Refused operations with a rare code", v.home + "refusals?code=amount-mismatch", nil, false},
		{"Search for a customer", v.home + "search", search(customer), false},
		{"Search for a text that is nothing", v.home + "search", search(nothing), false},
		{"Search for an X-Request-Id", v.home + "search", search("request-4711"), false},
		{"Subscriptions", v.home + "subscriptions", nil, false},
		{"Proof", v.home + "proof", nil, false},
		{"Audit", v.home + "audit", nil, false},
	}, nil
}

// surfed is what a visitor loaded beside the API.
type surfed struct {
	times latencies
	busy  int // pages that the console was too busy for
	err   error
}

// surf loads the pages in turn, pageRate a second, until the context ends. It
// does not wait for a page before it loads the next one.
func (v *visitor) surf(ctx context.Context, pages []page) (s surfed) {
	var mu sync.Mutex
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(time.Second / pageRate)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			running.Wait()
			return s
		case <-tick.C:
		}
		running.Go(func() {
			p := pages[i%len(pages)]
			p.form = copied(p.form)
			took, err := v.load(context.WithoutCancel(ctx), p)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, errBusyConsole):
				s.busy++
			case err != nil:
				s.err = err
			default:
				s.times.record(took)
			}
		})
	}
}

// copied lets pages that are loaded at the same time share a form.
func copied(form url.Values) url.Values {
	if form == nil {
		return nil
	}
	return url.Values{"q": form["q"]}
}
