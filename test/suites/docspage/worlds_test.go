package docspage_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/demo"
	"bankingapi/test/kit/npm"
)

// The statuses with which a recipe ends.
const (
	done     = 0 // State 1 or 2
	noEffect = 1 // State 8, or not carried out
	notKnown = 2
)

// reply is one answer of a world.
type reply struct {
	status int
	header string // a line, or empty
	body   string
	cut    bool          // the connection is cut after the body, before its end
	early  time.Duration // the next request must not come before this time has passed
}

// world is a service that answers with its replies in turn, and then with the last one again.
type world struct {
	replies []reply
	want    int
	says    string // on stderr
	resumed bool   // the program gets the CallerId of an earlier attempt
	once    bool   // the program must not ask again
}

const (
	completed = `{"Data":{"State":2}}`
	htmlPage  = "<html><body><h1>Welcome to the network</h1></body></html>\n"
	problem   = `{"type":"about:blank","status":0,"errors":[{"pointer":"","code":"overloaded","detail":"x"}],"Error":{"Code":5002,"Description":"x"}}`
	refused   = `{"Data":{"State":8},"Error":{"Code":2002,"Description":"y"},"title":"x","detail":"y","errors":[{"pointer":"/Parameters/0/FundAmount","code":"holding-insufficient","detail":"z"}]}`
	invalid   = `{"status":400,"errors":[{"pointer":"/Parameters/0/FundAmount","code":"out-of-range","detail":"z"}],"Error":{"Code":1009,"Description":"y"},"Data":{"State":8}}`
)

func ok(body string) reply            { return reply{status: http.StatusOK, body: body} }
func fails(status int) reply          { return reply{status: status, body: problem} }
func with(r reply, line string) reply { r.header = line; return r }
func cut(body string) reply           { return reply{status: http.StatusOK, body: body, cut: true} }

// worlds has the rows of the table on the recipes page, and what a network makes of them.
func worlds() map[string]world {
	all := map[string]world{
		"completed":                      {replies: []reply{ok(completed)}, want: done, once: true},
		"recorded":                       {replies: []reply{ok(`{"Data":{"State":1}}`)}, want: done, once: true},
		"members that are new":           {replies: []reply{ok(`{"Data":{"State":2,"New":1},"new":[]}`)}, want: done, once: true},
		"indented by a gateway":          {replies: []reply{ok("{\n  \"Data\": {\n    \"State\": 2\n  }\n}\n")}, want: done, once: true},
		"refused":                        {replies: []reply{ok(refused)}, want: noEffect, says: "holding-insufficient", once: true},
		"invalid":                        {replies: []reply{{status: 400, body: invalid}}, want: noEffect, says: "out-of-range", once: true},
		"cut, then invalid":              {replies: []reply{cut(""), {status: 400, body: invalid}}, want: noEffect, says: "out-of-range"},
		"cut, then a wrong key":          {replies: []reply{cut(""), fails(401)}, want: notKnown, says: "401"},
		"503, then 422":                  {replies: []reply{fails(503), fails(422)}, want: notKnown, says: "422"},
		"an earlier attempt, then 401":   {replies: []reply{fails(401)}, want: notKnown, says: "401", resumed: true, once: true},
		"an earlier attempt, then done":  {replies: []reply{ok(completed)}, want: done, resumed: true, once: true},
		"503, then done":                 {replies: []reply{fails(503), ok(completed)}, want: done},
		"408, then done":                 {replies: []reply{fails(408), ok(completed)}, want: done},
		"a gateway's page, then done":    {replies: []reply{{status: 502, body: htmlPage}, ok(completed)}, want: done},
		"a page, then done":              {replies: []reply{ok(htmlPage), ok(completed)}, want: done},
		"half an answer, then done":      {replies: []reply{cut(completed[:9]), ok(completed)}, want: done},
		"429 with seconds, then done":    {replies: []reply{{status: 429, body: problem, header: "Retry-After: 1", early: time.Second}, ok(completed)}, want: done},
		"503 with a date, then done":     {replies: []reply{{status: 503, body: problem, header: "Retry-After: DATE", early: 500 * time.Millisecond}, ok(completed)}, want: done},
		"503 for an hour":                {replies: []reply{with(fails(503), "Retry-After: 3600")}, want: notKnown, says: "503", once: true},
		"Retry-After that is no number":  {replies: []reply{with(fails(503), "Retry-After: soon"), ok(completed)}, want: done},
		"429 to the end":                 {replies: []reply{fails(429)}, want: noEffect, says: "429"},
		"500 to the end":                 {replies: []reply{fails(500)}, want: notKnown, says: "500"},
		"504 to the end":                 {replies: []reply{{status: 504, body: htmlPage}}, want: notKnown, says: "504"},
		"cut to the end":                 {replies: []reply{cut("")}, want: notKnown},
		"half an answer to the end":      {replies: []reply{cut(completed[:9])}, want: notKnown},
		"a page":                         {replies: []reply{ok(htmlPage)}, want: notKnown},
		"nothing":                        {replies: []reply{ok("")}, want: notKnown},
		"a list":                         {replies: []reply{ok("[]")}, want: notKnown},
		"null":                           {replies: []reply{ok("null")}, want: notKnown},
		"a text":                         {replies: []reply{ok(`"Data"`)}, want: notKnown},
		"no State":                       {replies: []reply{ok(`{"Data":{}}`)}, want: notKnown},
		"a State of another service":     {replies: []reply{ok(`{"Data":{"State":4}}`)}, want: notKnown},
		"a State in quotes":              {replies: []reply{ok(`{"Data":{"State":"2"}}`)}, want: notKnown},
		"other letter case":              {replies: []reply{ok(`{"data":{"state":2}}`)}, want: notKnown},
		"JSON without its end":           {replies: []reply{ok(completed[:len(completed)-1])}, want: notKnown},
		"a redirect to a page that says": {replies: []reply{with(reply{status: 302}, "Location: /elsewhere")}, want: notKnown, says: "302", once: true},
		"a status that nobody knows":     {replies: []reply{{status: 418, body: completed}}, want: notKnown, says: "418", once: true},
	}
	for _, status := range []int{400, 401, 403, 404, 405, 413, 415, 422} {
		all["status "+strconv.Itoa(status)] = world{replies: []reply{fails(status)}, want: noEffect, says: strconv.Itoa(status), once: true}
	}
	return all
}

// serve plays the world. It returns the CallerIds that it was sent.
func (w world) serve(t *testing.T) (address string, callerIDs func() []string) {
	t.Helper()
	var mu sync.Mutex
	var sent []string
	var notBefore time.Time
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path != "/BankingApiV01/BuyFundFromCustomer" {
			sent = append(sent, "redirect followed")
			_, _ = io.WriteString(rw, completed)
			return
		}
		var body struct{ Header struct{ CallerId string } }
		_ = json.NewDecoder(r.Body).Decode(&body)
		now := time.Now()
		if now.Before(notBefore) {
			body.Header.CallerId = "too early"
		}
		sent = append(sent, body.Header.CallerId)
		reply := w.replies[min(len(sent), len(w.replies))-1]
		notBefore = now.Add(reply.early)
		if name, value, ok := strings.Cut(reply.header, ": "); ok {
			rw.Header().Set(name, strings.Replace(value, "DATE", now.Add(2*time.Second).UTC().Format(http.TimeFormat), 1))
		}
		if reply.cut && reply.body == "" {
			panic(http.ErrAbortHandler)
		}
		if reply.cut {
			rw.Header().Set("Content-Length", strconv.Itoa(len(reply.body)+1))
		}
		rw.WriteHeader(reply.status)
		_, _ = io.WriteString(rw, reply.body)
		if reply.cut {
			_ = http.NewResponseController(rw).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return sent
	}
}

// patience makes a program end after three seconds, not after two minutes.
var patience = []string{
	"120_000", "3_000", "PATIENCE = 120", "PATIENCE = 3", "patience=120", "patience=3",
	"ofSeconds(120)", "ofSeconds(3)", "FromSeconds(120)", "FromSeconds(3)", "client.Options{}", "client.Options{Patience: 3e9}",
}

// ended is how a program ended.
type ended struct {
	status      int
	out, causes string
}

// sellIn runs a program that sells. It must end by itself, before the two minutes of its patience.
func sellIn(t *testing.T, command []string, address string, arguments ...string) ended {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	program := exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], arguments...)...)
	program.Env = append(os.Environ(), "BANK_URL="+address, "BANK_KEY="+demo.Key, "no_proxy=*")
	var out, causes strings.Builder
	program.Stdout, program.Stderr = &out, &causes
	_ = program.Run()
	require.NoError(t, ctx.Err(), "the program did not end: %s", causes.String())
	return ended{program.ProcessState.ExitCode(), out.String(), causes.String()}
}

// worldsFor returns the worlds of a language. `make clients` plays all worlds to all languages.
// Every other run does so to Go, whose programs start fastest, and deals the worlds out to the
// other languages: so each world is played at least twice.
func worldsFor(t *testing.T, language string) map[string]world {
	t.Helper()
	all := worlds()
	if language == "Go" || npm.Allowed() {
		return all
	}
	others := slices.Sorted(maps.Keys(sellRecipes()))
	others = slices.DeleteFunc(others, func(name string) bool { return name == "Go" || name == "C#" }) // C# is rarely installed
	turn := max(0, slices.Index(others, language))
	t.Log("SKIPPED in part: make clients also plays the worlds of the other languages")
	some := map[string]world{}
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i%len(others) == turn {
			some[name] = all[name]
		}
	}
	return some
}

// TestRecipesTellTheTruth plays the worlds to the programs of the recipes page.
func TestRecipesTellTheTruth(t *testing.T) {
	t.Parallel()
	for language, prepare := range sellRecipes() {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			patient, impatient := prepare(t, t.TempDir()), prepare(t, t.TempDir(), patience...)
			turns := make(chan struct{}, 4)
			var running sync.WaitGroup
			for name, w := range worldsFor(t, language) {
				command := patient
				if len(w.replies) == 1 && !w.once { // otherwise it would take the two minutes
					command = impatient
				}
				running.Go(func() {
					turns <- struct{}{}
					defer func() { <-turns }()
					w.play(t, command, name)
				})
			}
			running.Wait()
		})
	}
}

// play runs a program in the world and compares how it ended. It may run in any goroutine.
func (w world) play(t *testing.T, command []string, name string) {
	address, callerIDs := w.serve(t)
	arguments := []string{"12.5"}
	if w.resumed {
		arguments = append(arguments, "earlier-attempt")
	}
	got := sellIn(t, command, address, arguments...)
	sent := callerIDs()
	check := func(holds bool, message string) {
		if !holds {
			t.Errorf("%s: %s: %d requests, %+v", name, message, len(sent), got)
		}
	}
	check(got.status == w.want, "ended with another status than "+strconv.Itoa(w.want))
	check(strings.Contains(got.causes, w.says), "does not say "+w.says)
	check((got.status == done) == (strings.HasPrefix(got.out, "State 1\n") || strings.HasPrefix(got.out, "State 2\n")), "State 1 or 2 on stdout means done")
	check(len(sent) > 0 && (!w.once || len(sent) == 1), "asked another number of times")
	for _, id := range sent {
		check(id == sent[0] && id != "", "every attempt must have the same CallerId")
		check(!w.resumed || id == "earlier-attempt", "the CallerId of the earlier attempt must be sent")
		check(w.want != notKnown || strings.Contains(got.causes, id), "the CallerId to send again must be named")
	}
	check(w.want != notKnown || strings.Contains(got.causes, "outcome not known"), "must say that the outcome is not known")
	check(w.want == notKnown || !strings.Contains(got.causes, "outcome not known"), "must not say that the outcome is not known")
}

// TestRecipesWithoutAConnection: nothing was sent. An untrusted certificate and an unknown host
// end at once, so these programs have their two minutes.
func TestRecipesWithoutAConnection(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := "http://" + listener.Addr().String()
	require.NoError(t, listener.Close())
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = silent()
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	const unknown = "no-such-host.invalid"
	_, err = net.DefaultResolver.LookupHost(t.Context(), unknown)
	noSuchHost, _ := errors.AsType[*net.DNSError](err)
	knowsHosts := noSuchHost != nil && noSuchHost.IsNotFound
	if !knowsHosts {
		t.Log("SKIPPED in part: this machine cannot tell that a host does not exist")
	}
	for language, prepare := range sellRecipes() {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			short := prepare(t, t.TempDir(), patience...)
			refusedConnection := sellIn(t, short, nobody)
			require.Equal(t, noEffect, refusedConnection.status, refusedConnection.causes)
			require.Contains(t, refusedConnection.causes, "not carried out")
			long := prepare(t, t.TempDir())
			certificate := sellIn(t, long, untrusted.URL)
			require.Equal(t, noEffect, certificate.status, certificate.causes)
			require.Contains(t, certificate.causes, "not carried out")
			require.Regexp(t, "(?i)certificate|PKIX|SSL", certificate.causes)
			if knowsHosts {
				host := sellIn(t, long, "https://"+unknown)
				require.Equal(t, noEffect, host.status, host.causes)
				require.Contains(t, host.causes, "not carried out")
				require.Regexp(t, "(?i)host|name or service|ENOTFOUND|UnresolvedAddress", host.causes)
			}
		})
	}
}

// TestRecipesHaveTheStatusesOfTheTable reads the table of the page, so that no recipe has
// other rules than it. It also checks the program in C#, which is compiled only where there is a
// compiler.
func TestRecipesHaveTheStatusesOfTheTable(t *testing.T) {
	t.Parallel()
	notCarriedOut, repeated := statusesOfTheTable(t)
	for _, name := range []string{"sell.mjs", "sell.py", "Sell.java", "Sell.cs"} {
		text := recipeText(t, name)
		require.Contains(t, text, notCarriedOut, name)
		require.Contains(t, text, repeated, name)
	}
}

// statusesOfTheTable returns the statuses after which an attempt was not carried out, and those
// after which it is sent again, as the table of the page has them.
func statusesOfTheTable(t *testing.T) (notCarriedOut, repeated string) {
	t.Helper()
	page, err := os.ReadFile("../../../adapters/httpapi/docs/pages/recipes.md.tmpl")
	require.NoError(t, err)
	var not, again []string
	for row := range strings.Lines(string(page)) {
		cells := strings.Split(row, "|")
		if len(cells) != 5 {
			continue
		}
		statuses := regexp.MustCompile(`\b[2-5][0-9]{2}\b`).FindAllString(cells[1], -1)
		if strings.Contains(cells[2], "not carried out") {
			not = append(not, statuses...)
		}
		if strings.Contains(strings.ToLower(cells[3]), "send it again") {
			again = append(again, statuses...)
		}
	}
	slices.Sort(not)
	slices.Sort(again)
	return strings.Join(not, ", "), strings.Join(again, ", ")
}

// parseCSharp says whether its argument is a program in C#, with the grammar of an editor.
const parseCSharp = `import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
const { Parser, Language } = createRequire(import.meta.url)("@vscode/tree-sitter-wasm");
await Parser.init();
const parser = new Parser();
parser.setLanguage(await Language.load("node_modules/@vscode/tree-sitter-wasm/wasm/tree-sitter-c-sharp.wasm"));
console.log(parser.parse(readFileSync(process.argv[2], "utf8")).rootNode.hasError ? "has errors" : "is a program");
`

// TestTheProgramInCSharpIsOne parses it, because few machines have a compiler. It compiles
// and runs in the other tests where there is one.
func TestTheProgramInCSharpIsOne(t *testing.T) {
	t.Parallel()
	npm.Require(t)
	requireTool(t, "node")
	folder := npm.Install(t, "@vscode/tree-sitter-wasm@0.3.1")
	if folder == "" {
		t.Skip("SKIPPED: cannot get @vscode/tree-sitter-wasm from npm; run: make clients, with a network")
	}
	text := recipeText(t, "Sell.cs")
	parser := filepath.Join(folder, "parse.mjs")
	require.NoError(t, os.WriteFile(parser, []byte(parseCSharp), 0o600))
	for says, program := range map[string]string{
		"is a program\n": text,
		"has errors\n":   strings.Replace(text, ";", "", 1),
	} {
		file := filepath.Join(t.TempDir(), "Sell.cs")
		require.NoError(t, os.WriteFile(file, []byte(program), 0o600))
		out, err := tool(t, folder, "node", parser, file)
		require.NoError(t, err, string(out))
		require.Equal(t, says, string(out))
	}
}

func silent() *log.Logger { return log.New(io.Discard, "", 0) }
