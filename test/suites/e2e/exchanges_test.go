package e2e_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"
	_ "time/tzdata" // the tests name zones too

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/test/kit/golden"
)

// TestExchanges sends the requests of testdata/exchanges, file by file in
// their order, and compares the answers: the same on both engines, on any day.
//
//	### what it shows
//	POST /path            (before it "until 429": again until it is answered so)
//	Name: value
//
//	the body
//
//	=> 200 OK             (what follows is written by make generate)
//
// Requests are text templates with these functions:
//
//	{{key "full"}}            the key of a subscription
//	{{today 1}}               a day of the bank, here tomorrow
//	{{push `A=1` `B="x"`}}    a valid record, with other values of some members
//	{{sale `A=1` (date 1)}}   the same; date is SelectedTransactionDate
//	{{repeat 200 "ş"}}        a long text
//	{{pad 4194304}}           blanks at the end, until the body has so many bytes
//	{{bytes "EF BB BF"}}
//
// In answers {{id}} stands for a request id that the service made, {{host}} for its address,
// and {{today}} and {{zone}} for the day and the time zone of the bank.
func TestExchanges(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		h := newHouse(t, b)
		files, err := filepath.Glob("testdata/exchanges/*.http")
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) { h.exchange(t, file) })
		}
		h.Verify(t)
	})
}

// house is a service with the book of testdata/book and several subscriptions.
type house struct {
	bank
	*running
	keys map[string]string
	zone *time.Location
}

func newHouse(t *testing.T, b bank) *house {
	t.Helper()
	h := &house{bank: b, keys: map[string]string{}}
	name, zone := noon(clock.Now())
	h.zone = zone
	b.rule(t, "--time-zone", name)
	book, err := filepath.Abs("testdata/book")
	require.NoError(t, err)
	b.Must(t, "import", "prices", book+"/prices.csv", "--force") // two holders have a fund AFA
	b.Must(t, "import", "holdings", book+"/holdings.csv")
	b.Must(t, "import", "accounts", book+"/accounts.csv")
	h.keys["full"] = b.Subscribe(t, "full")
	h.keys["other"] = b.Subscribe(t, "other")
	h.keys["push-only"] = b.Subscribe(t, "push-only", "--operation", "AddPushNotificationResponse")
	h.keys["limited"] = b.Subscribe(t, "limited", "--rate", "1")
	h.keys["defined"] = b.Subscribe(t, "defined", "--app-key", "app-1", "--channel", "WEB", "--teller-name", "Ayşe")
	h.keys["suspended"] = b.Subscribe(t, "suspended")
	b.Must(t, "subscriptions", "suspend", "suspended")
	h.running = b.serve(t)
	return h
}

// noon returns a time zone in which it is between 12:00 and 13:00, so that
// midnight does not pass during a test.
func noon(now time.Time) (string, *time.Location) {
	east := 12 - now.UTC().Hour()
	name := fmt.Sprintf("Etc/GMT%+d", -east) // their signs are those of POSIX
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return name, zone
}

// today returns the day of the bank, plus a number of days.
func (h *house) today(later int) string {
	return clock.Now().In(h.zone).AddDate(0, 0, later).Format(time.DateOnly)
}

// exchange is one request of a file and its response.
type exchange struct {
	source string // text of the request in the file
	until  int
	method string
	path   string
	header http.Header
	body   string
	answer string
}

func (h *house) exchange(t *testing.T, file string) {
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var answered []string
	for _, x := range h.parse(t, string(content)) {
		got := h.send(t, x)
		answered = append(answered, x.source+"\n\n"+got)
		if !*golden.Update {
			require.Empty(t, cmp.Diff(x.answer, got), "%s\nmake generate accepts it", x.source)
		}
	}
	if *golden.Update && h.Engine == "sqlite" { // run the test again without -update: Postgres must answer the same
		golden.Write(t, file, strings.Join(answered, "\n\n")+"\n")
	}
}

func (h *house) parse(t *testing.T, content string) []exchange {
	t.Helper()
	var all []exchange
	for i, part := range strings.Split("\n"+content, "\n### ") {
		if i == 0 {
			require.Empty(t, part, "a file begins with ###")
			continue
		}
		source, answer, _ := strings.Cut(strings.TrimSpace(part), "\n\n=> ")
		x := exchange{source: "### " + source, answer: "=> " + answer, header: http.Header{}}
		_, request, _ := strings.Cut(source, "\n")
		head, body, _ := strings.Cut(request, "\n\n")
		x.body = h.expand(t, body)
		for line := range strings.Lines(head) {
			line = strings.TrimSpace(line)
			if name, value, isHeader := strings.Cut(line, ":"); isHeader && x.path != "" {
				x.header.Add(name, h.expand(t, strings.TrimSpace(value)))
			} else if status, isUntil := strings.CutPrefix(line, "until "); isUntil {
				var err error
				x.until, err = strconv.Atoi(status)
				require.NoError(t, err)
			} else {
				x.method, x.path, _ = strings.Cut(h.expand(t, line), " ")
			}
		}
		all = append(all, x)
	}
	return all
}

func (h *house) send(t *testing.T, x exchange) string {
	t.Helper()
	const tries = 100
	for range tries {
		target, err := url.Parse(h.URL + x.path)
		require.NoError(t, err, x.source)
		r := &http.Request{Method: x.method, URL: target, Header: x.header.Clone(), ContentLength: int64(len(x.body))}
		r.Body = io.NopCloser(strings.NewReader(x.body))
		if r.Header.Get("Transfer-Encoding") == "chunked" {
			r.Header.Del("Transfer-Encoding")
			r.ContentLength = -1
		} else if x.body == "" {
			r.Body = http.NoBody
		}
		got, err := do(h.client, r)
		require.NoError(t, err, x.source)
		if x.until == 0 || got.status == x.until {
			return h.show(got)
		}
	}
	require.FailNow(t, "the response never had the expected status", x.source)
	return ""
}

var madeID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

// show formats a response as in a file.
func (h *house) show(got answer) string {
	lines := []string{fmt.Sprintf("=> %d %s", got.status, http.StatusText(got.status))}
	names := make([]string, 0, len(got.header))
	for name := range got.header {
		if name != "Date" && name != "Content-Length" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range got.header[name] {
			lines = append(lines, name+": "+value)
		}
	}
	text := strings.Join(lines, "\n") + "\n\n" + got.body
	text = strings.ReplaceAll(text, strings.TrimPrefix(h.URL, "https://"), "{{host}}")
	text = strings.ReplaceAll(text, h.today(0)+" in the time zone "+h.zone.String(), "{{today}} in the time zone {{zone}}")
	return madeID.ReplaceAllString(text, "{{id}}")
}

// expand executes the template functions of a text.
func (h *house) expand(t *testing.T, text string) string {
	t.Helper()
	if !strings.Contains(text, "{{") {
		return text
	}
	size := 0
	words, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"key":    func(name string) string { return h.keys[name] },
		"today":  h.today,
		"date":   func(later int) string { return `SelectedTransactionDate="` + h.today(later) + `"` },
		"push":   func(members ...string) (string, error) { return record(validPush, members) },
		"sale":   func(members ...string) (string, error) { return record(validSale, members) },
		"repeat": func(count int, texts ...string) string { return strings.Repeat(strings.Join(texts, ""), count) },
		"pad":    func(to int) string { size = to; return "" },
		"bytes": func(digits string) (string, error) {
			raw, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
			return string(raw), err
		},
	}).Parse(text)
	require.NoError(t, err, text)
	var expanded strings.Builder
	require.NoError(t, words.Execute(&expanded, nil), text)
	return expanded.String() + strings.Repeat(" ", max(0, size-expanded.Len()))
}

// The records that requests are made of.
const (
	validPush = `{"ExternalApplicationCode":"MOBILE","UserId":"user-1","PushId":"push-1","Platform":65,"SendStatus":1}`
	validSale = `{"CustomerNo":1001,"TransactionType":2,"FundAmount":1,` +
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
		name, value, _ := strings.Cut(each, "=")
		members[name] = json.RawMessage(value)
	}
	encoded, err := json.Marshal(members)
	return string(encoded), err
}
