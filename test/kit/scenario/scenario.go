// Package scenario plays files of requests and compares the answers. One file tells what a bank
// does, whatever its engine and however it is reached.
//
//	### what it shows
//	POST /path            (before it "until 429": again until it is answered so;
//	Name: value            "together 20": twenty times at the same moment)
//
//	the body
//
//	=> 200 OK             (what follows is written by make generate)
//
// Requests are text templates with these functions:
//
//	{{key "full"}}            the key of a subscription
//	{{today 1}}               a day of the bank, here one after the day on which the file begins
//	{{push `A=1` `B="x"`}}    a valid record, with other values of some members
//	{{sale `A=1` (date 1)}}   the same; date is SelectedTransactionDate
//	{{repeat 200 "ş"}}        a long text
//	{{pad 4194304}}           blanks at the end, until the body has so many bytes
//
// In answers {{id}} stands for a request id that the service made, {{host}} for its address,
// {{today 1}} for a day, and {{zone}} for the time zone of the bank.
//
// A file may also do what an operator does, in place of a request. It is played only on banks with
// a clock that tests set.
//
//	clock {{today 1}} 00:00:00 sets the clock to that time in the bank, and settles what is due
//	import prices             imports the file that is the body
//	rules CutOff=17:30        changes rules of the bank
//	book                      shows which holdings and accounts changed, and how many messages came, since the last time
package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/golden"
)

// Bank is where scenarios are played.
type Bank struct {
	URL    string
	Client *http.Client
	Keys   map[string]string // of the subscriptions
	Zone   *time.Location
	Now    func() time.Time
	// Writes is true for the bank whose answers make generate writes. All others must answer the same.
	Writes bool
	// Operator does what is no request: clock, import, rules and book. It is nil if the clock of the
	// bank is that of the machine.
	Operator func(t *testing.T, does, with, body string) string
}

// step is one request of a file and its answer.
type step struct {
	source   string // text of the request in the file
	until    int
	together int
	does     string // what the operator does
	method   string
	path     string
	header   http.Header
	body     string
	answer   string
}

// operations are what an operator does.
var operations = []string{"clock", "import", "rules", "book"}

// NeedsOperator reports whether a file has steps of an operator.
func NeedsOperator(t *testing.T, file string) bool {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return regexp.MustCompile(`(?m)^### .*\n(` + strings.Join(operations, "|") + `)\b`).Match(content)
}

// Play plays a file.
func (b *Bank) Play(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	p := &play{Bank: b, opened: b.Now()}
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	head, _, _ := strings.Cut("\n"+text, "\n### ")
	require.Empty(t, head, "%s: a file begins with ###", file)
	line := 1
	var answered []string
	for _, part := range strings.Split("\n"+text, "\n### ")[1:] {
		x, err := p.parse(part)
		require.NoError(t, err, "%s:%d: ### %s", file, line, part)
		got := p.send(t, x)
		answered = append(answered, x.source+"\n\n"+got)
		if !*golden.Update {
			require.Empty(t, cmp.Diff(strings.Split(x.answer, "\n"), strings.Split(got, "\n")), "%s:%d: %s\nmake generate accepts it", file, line, x.source)
		}
		line += strings.Count(part, "\n") + 1
	}
	if *golden.Update && b.Writes { // run the test again without -update: the other banks must answer the same
		golden.Write(t, file, strings.Join(answered, "\n\n")+"\n")
	}
}

// play is a file that is being played.
type play struct {
	*Bank
	opened time.Time
}

// isRequest matches the first line of a request.
var isRequest = regexp.MustCompile(`^[A-Z]+ /`)

// parse reads a step, without its ###.
func (p *play) parse(part string) (step, error) {
	source, answer, _ := strings.Cut(strings.TrimSpace(part), "\n\n=> ")
	x := step{source: "### " + source, answer: "=> " + answer, header: http.Header{}, together: 1}
	_, request, _ := strings.Cut(source, "\n")
	head, body, _ := strings.Cut(strings.TrimLeft(request, "\n"), "\n\n")
	var err error
	x.body, err = p.expand(body)
	if err != nil {
		return x, err
	}
	for line := range strings.Lines(head) {
		err = p.parseLine(&x, strings.TrimSpace(line))
		if err != nil {
			return x, err
		}
	}
	switch {
	case x.path == "" && x.does == "":
		return x, errors.New("it has no request, and nothing that an operator does")
	case x.does != "" && (x.until != 0 || x.together != 1):
		return x, errors.New("until and together stand before a request")
	}
	return x, nil
}

// parseLine reads a line above the body of a step.
func (p *play) parseLine(x *step, line string) error {
	line, err := p.expand(line)
	if err != nil {
		return err
	}
	word, rest, _ := strings.Cut(line, " ")
	name, value, isHeader := strings.Cut(line, ":")
	switch {
	case x.path != "" && isHeader:
		x.header.Add(name, strings.TrimSpace(value))
	case word == "until":
		x.until, err = strconv.Atoi(rest)
	case word == "together":
		x.together, err = strconv.Atoi(rest)
	case slices.Contains(operations, word):
		x.does = word
		x.path = rest
	case x.path == "" && isRequest.MatchString(line):
		x.method = word
		x.path = rest
	default:
		return fmt.Errorf("%q is no line of a step. A step is a request such as POST /path with its headers, perhaps after "+
			"together 20 or until 429, or what an operator does: %s", line, strings.Join(operations, ", "))
	}
	if err != nil {
		return fmt.Errorf("%q needs a number: %s 20", line, word)
	}
	return nil
}

func (p *play) send(t *testing.T, x step) string {
	t.Helper()
	if x.does != "" {
		require.NotNil(t, p.Operator, "this bank has no operator: %s", x.source)
		return p.named("=> " + p.Operator(t, x.does, x.path, x.body))
	}
	if x.together > 1 {
		return p.sendTogether(t, x)
	}
	const tries = 100
	for range tries {
		answer, status, err := p.sendOnce(x)
		require.NoError(t, err, x.source)
		if x.until == 0 || status == x.until {
			return answer
		}
	}
	require.FailNow(t, "the response never had the expected status", x.source)
	return ""
}

// sendTogether returns each different answer with the number of requests that got it.
func (p *play) sendTogether(t *testing.T, x step) string {
	t.Helper()
	var mu sync.Mutex
	var wait sync.WaitGroup
	var failed error
	answers := map[string]int{}
	for range x.together {
		wait.Go(func() {
			answer, _, err := p.sendOnce(x)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			answers[answer]++
		})
	}
	wait.Wait()
	require.NoError(t, failed, x.source)
	var all []string
	for answer, count := range answers {
		all = append(all, fmt.Sprintf("=> %d times %s", count, strings.TrimPrefix(answer, "=> ")))
	}
	slices.Sort(all)
	return strings.Join(all, "\n\n")
}

func (p *play) sendOnce(x step) (answer string, status int, err error) {
	target, err := url.Parse(p.URL + x.path)
	if err != nil {
		return "", 0, err
	}
	r := &http.Request{Method: x.method, URL: target, Header: x.header.Clone(), ContentLength: int64(len(x.body))}
	r.Body = io.NopCloser(strings.NewReader(x.body))
	if r.Header.Get("Transfer-Encoding") == "chunked" {
		r.Header.Del("Transfer-Encoding")
		r.ContentLength = -1
	} else if x.body == "" {
		r.Body = http.NoBody
	}
	response, err := p.Client.Do(r)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return p.show(response, string(body)), response.StatusCode, err
}

// show formats a response as in a file.
func (p *play) show(response *http.Response, body string) string {
	lines := []string{fmt.Sprintf("=> %d %s", response.StatusCode, http.StatusText(response.StatusCode))}
	names := make([]string, 0, len(response.Header))
	for name := range response.Header {
		if name != "Date" && name != "Content-Length" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range response.Header[name] {
			lines = append(lines, name+": "+value)
		}
	}
	return p.named(strings.Join(lines, "\n") + "\n\n" + body)
}

var (
	madeID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	aDay   = regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b`)
)

// named replaces what differs from bank to bank, and from day to day.
func (p *play) named(text string) string {
	text = strings.ReplaceAll(text, strings.TrimPrefix(p.URL, "https://"), "{{host}}")
	text = strings.ReplaceAll(text, "in the time zone "+p.Zone.String(), "in the time zone {{zone}}")
	opened, err := time.Parse(time.DateOnly, p.today(0))
	text = aDay.ReplaceAllStringFunc(text, func(day string) string {
		of, failed := time.Parse(time.DateOnly, day)
		days := int(of.Sub(opened).Hours()) / 24
		if err != nil || failed != nil || days < -9 || days > 400 { // prices of the book began long before
			return day
		}
		return fmt.Sprintf("{{today %d}}", days)
	})
	return strings.TrimRight(madeID.ReplaceAllString(text, "{{id}}"), "\n")
}

// key returns the key of a subscription.
func (p *play) key(name string) (string, error) {
	key, isThere := p.Keys[name]
	if !isThere {
		return "", fmt.Errorf("this bank has no subscription %q", name)
	}
	return key, nil
}

// today returns the day on which the file begins, plus a number of days.
func (p *play) today(later int) string {
	return p.opened.In(p.Zone).AddDate(0, 0, later).Format(time.DateOnly)
}

// Expand executes the template functions of a text on the day of the bank.
func (b *Bank) Expand(t *testing.T, text string) string {
	t.Helper()
	expanded, err := (&play{b, b.Now()}).expand(text)
	require.NoError(t, err, text)
	return expanded
}

// expand executes the template functions of a text.
func (p *play) expand(text string) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	size := 0
	words, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"key":    p.key,
		"today":  p.today,
		"date":   func(later int) string { return `SelectedTransactionDate="` + p.today(later) + `"` },
		"push":   func(members ...string) (string, error) { return record(ValidPush, members) },
		"sale":   func(members ...string) (string, error) { return record(ValidSale, members) },
		"repeat": func(count int, texts ...string) string { return strings.Repeat(strings.Join(texts, ""), count) },
		"pad":    func(to int) string { size = to; return "" },
	}).Parse(text)
	if err != nil {
		return "", err
	}
	var expanded strings.Builder
	err = words.Execute(&expanded, nil)
	if err != nil {
		return "", err
	}
	return expanded.String() + strings.Repeat(" ", max(0, size-expanded.Len())), nil
}

// The records that requests are made of.
const (
	ValidPush = `{"ExternalApplicationCode":"MOBILE","UserId":"user-1","PushId":"push-1","Platform":65,"SendStatus":1}`
	ValidSale = `{"CustomerNo":1001,"TransactionType":2,"FundAmount":1,` +
		`"DestinationAccount":{"BranchCode":1,"CustomerNo":1001,"AccountSuffix":1,"CurrencyCode":"TRY"},` +
		`"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy","PriceID":1}}`
)

// record returns a valid record with added or replaced members, each NAME=JSON.
func record(valid string, changed []string) (string, error) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(valid), &members); err != nil {
		return "", err
	}
	for _, each := range changed {
		name, value, isMember := strings.Cut(each, "=")
		if !isMember || !json.Valid([]byte(value)) {
			return "", fmt.Errorf("%q is not NAME=JSON, such as FundAmount=2 or CurrencyCode=\"TRY\"", each)
		}
		members[name] = json.RawMessage(value)
	}
	encoded, err := json.Marshal(members)
	return string(encoded), err
}
