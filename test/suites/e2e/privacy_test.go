package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"bankingapi/adapters/clock"
	"bankingapi/test/kit/pgproxy"
	"bankingapi/test/kit/testdb"
)

// collector is an OpenTelemetry collector that keeps what it is sent, as text.
type collector struct {
	*httptest.Server
	mu   sync.Mutex
	text strings.Builder
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		var sent tracepb.TracesData
		if err == nil {
			err = proto.Unmarshal(content, &sent)
		}
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.text.WriteString(prototext.Format(&sent))
	}))
	t.Cleanup(c.Close)
	return c
}

// String is all that was sent.
func (c *collector) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// Every text that a caller sends begins with one of these. Only the store may
// contain them.
const (
	secretCustomer = "98765012345"
	secretAccount  = "31415926535"
	secretWord     = "OPENSESAME"
)

// callerID is the field of a log line.
var callerID = regexp.MustCompile(`"caller_id":"caller-[0-9]"`)

// TestNothingPrivateIsTold in a whole life of the service, with everything
// logged, measured and traced: no keys, no numbers of customers and accounts,
// no texts.
func TestNothingPrivateIsTold(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		traces := newCollector(t)
		var d *pgproxy.Proxy
		if b.Engine == testdb.EnginePostgres {
			d = pgproxy.New(t, withPassword(t, b.DSN, secretWord))
			b.On(d.DSN)
		}
		name, zone := farWest(clock.Now())
		tomorrow := clock.Now().In(zone).AddDate(0, 0, 1).Format("2006-01-02")
		b.rule(t, "--time-zone", name)
		b.Set("log.level", "debug").Set("telemetry.otlp_endpoint", traces.URL)
		b.Load(t, "prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom", "1,AFA,"+secretWord+" Portfoy,1.25,TRY,2024-01-01",
			"2,AFA,"+secretWord+" Portfoy,1.25,TRY,"+tomorrow)
		b.Load(t, "holdings", "CustomerNo,IMKBCode,HolderCorporationName,Units", secretCustomer+",AFA,"+secretWord+" Portfoy,1000")
		b.Load(t, "accounts", "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance", secretAccount+","+secretCustomer+","+secretAccount+",TRY,0")
		key := b.Subscribe(t, "partner", "--app-key", secretWord+"-app")
		other := b.Subscribe(t, "other", "--operation", "BuyFundFromCustomer")
		secrets := []string{secretCustomer, secretAccount, secretWord, strings.ToLower(secretWord), key, other}
		s := b.serve(t)

		var answers strings.Builder
		send := func(adjust func(*http.Request), path, key, body string) answer {
			t.Helper()
			r, err := http.NewRequest(http.MethodPost, s.URL+path, strings.NewReader(body))
			require.NoError(t, err)
			r.Header.Set("Ocp-Apim-Subscription-Key", key)
			r.Header.Set("User-Agent", secretWord)
			r.Header.Set("X-Forwarded-For", secretWord)
			r.Header.Set("Baggage", "customer="+secretCustomer)
			r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
			r.Header.Set("Tracestate", "customer="+secretCustomer)
			if adjust != nil {
				adjust(r)
			}
			got, err := do(s.client, r)
			require.NoError(t, err)
			answers.WriteString(got.body + "\n")
			for name, values := range got.header {
				answers.WriteString(name + ": " + strings.Join(values, ",") + "\n")
			}
			return got
		}
		sell := func(caller, units, more string) string {
			return `{"Header":{"CallerId":"caller-` + caller + `","TellerName":"` + secretWord + `","ChannelRequestId":"request-` + caller + `"},` +
				`"Parameters":[{"CustomerNo":` + secretCustomer + `,"TransactionType":2,"FundAmount":` + units +
				`,"DestinationAccount":{"BranchCode":` + secretAccount + `,"CustomerNo":` + secretCustomer + `,"AccountSuffix":` + secretAccount + `,"CurrencyCode":"TRY"}` +
				`,"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":"` + secretWord + ` Portfoy","PriceID":1}` + more + `}]}`
		}
		tell := func(more string) string {
			return `{"Header":{"CallerId":"push"},"Parameters":[{"ExternalApplicationCode":"` + secretWord + `","UserId":"` + secretWord +
				`","PushId":"` + secretWord + `","Platform":65,"Subject":"` + secretWord + `","Content":"` + secretWord + `","DeepLinkUrl":"https://` +
				secretWord + `/","SendStatus":1,"TranData":[{"Code":"` + secretWord + `","Name":"` + secretWord + `"}]` + more + `}]}`
		}
		require.Equal(t, completed, send(nil, buyFund, key, sell("1", "1", "")).body)
		require.Equal(t, completed, send(nil, buyFund, key, sell("1", "1", "")).body)
		require.Equal(t, completed, send(nil, addPush, key, tell("")).body)
		require.Equal(t, recorded, send(nil, buyFund, key, sell("2", "1", `,"SelectedTransactionDate":"`+tomorrow+`"`)).body)
		require.Equal(t, recorded, send(nil, buyFund, key, sell("3", "5000", `,"SelectedTransactionDate":"`+tomorrow+`"`)).body)
		require.Contains(t, send(nil, buyFund, key, sell("4", "5000", "")).body, "holding-insufficient")
		for status, refused := range map[int][]answer{
			http.StatusBadRequest: {
				send(nil, addPush, key, tell(`,"Colour":"`+secretWord+`"`)),
				send(nil, addPush, key, strings.ReplaceAll(tell(""), `"`+secretWord+`"`, secretCustomer)),
				send(nil, addPush, key, tell("")+secretWord),
				send(nil, addPush, key, `{"Header":{"AppKey":"`+secretWord+"\xff"),
				send(nil, buyFund, key, strings.ReplaceAll(sell("5", "1", ""), secretCustomer, `"`+secretCustomer+`"`)),
				send(nil, buyFund, key, strings.ReplaceAll(sell("5", "1", ""), secretCustomer, "-"+secretCustomer)),
				send(nil, buyFund, key, strings.ReplaceAll(sell("5", "1", ""), secretCustomer, secretCustomer+".5")),
			},
			http.StatusUnauthorized: {
				send(nil, addPush, key+secretWord, tell("")),
				send(nil, addPush+"?subscription-key="+key, "", tell("")),
			},
			http.StatusForbidden: {
				send(nil, addPush, other, tell("")),
				send(nil, buyFund, key, strings.Replace(sell("6", "1", ""), `"Header":{`, `"Header":{"AppKey":"`+secretWord+`",`, 1)),
			},
			http.StatusNotFound:              {send(nil, "/"+secretWord+"/"+key+"?"+secretCustomer, key, "")},
			http.StatusMethodNotAllowed:      {send(func(r *http.Request) { r.Method = secretWord }, addPush, key, "")},
			http.StatusRequestEntityTooLarge: {send(nil, addPush, key, strings.Repeat(secretWord, 800_000))},
			http.StatusUnsupportedMediaType:  {send(func(r *http.Request) { r.Header.Set("Content-Type", "text/"+secretWord) }, addPush, key, "")},
			http.StatusUnprocessableEntity:   {send(nil, buyFund, key, sell("1", "2", ""))},
		} {
			for i, got := range refused {
				require.Equal(t, status, got.status, "%d %s", i, got.body)
			}
		}
		// What is no HTTPS at all.
		if plain, err := http.Get("http" + strings.TrimPrefix(s.URL, "https") + "/" + secretWord); err == nil {
			plain.Body.Close()
		}
		if d != nil { // what drivers say when the database goes away
			d.Refuse()
			require.Equal(t, http.StatusServiceUnavailable, send(nil, buyFund, key, sell("7", "1", "")).status)
			require.Equal(t, http.StatusServiceUnavailable, send(nil, addPush, key, tell(`,"SendDate":"2026-11-20"`)).status)
			eventually(t, patience, "it notices", func() bool { return !s.IsReady() })
			d.Accept()
			eventually(t, patience, "it is back", s.IsReady)
		}
		_, metrics := s.Get(t, "/metrics")
		later := b.moved(t, "Etc/GMT-14").serve(t)
		eventually(t, patience, "one of both settles, because both follow the rules of the book", func() bool {
			return strings.Contains(s.Err.String()+later.Err.String(), "due sales are settled")
		})
		_, more := later.Get(t, "/metrics")
		later.Stop(t)
		s.Stop(t) // which sends the last traces
		b.moved(t, name)
		b.Verify(t)

		told := map[string]string{
			"log": s.Err.String() + later.Err.String(), "standard output": s.Out.String() + later.Out.String(),
			"metrics": metrics + more, "traces": traces.String(), "answers": answers.String(),
		}
		for where, text := range told {
			for _, secret := range secrets {
				if at := strings.Index(text, secret); at >= 0 {
					require.Fail(t, "something private is told", "%s: %s", where, text[max(0, at-200):min(len(text), at+200)])
				}
			}
		}
		// A CallerId is one field of the log line of its request. It is in no metric, no
		// trace, no URL, no answer and no text of an error.
		require.Contains(t, told["log"], `"caller_id":"caller-1"`)
		for where, text := range told {
			require.NotRegexp(t, `caller-[0-9]`, callerID.ReplaceAllString(text, ""), where)
		}
		// That the logs and traces say nothing private is not because they are empty.
		require.Contains(t, told["log"], `"channel_request_id":"request-1"`)
		require.Contains(t, told["log"], `"trace_id":"0af7651916cd43dd8448eb211c80319c"`)
		require.Contains(t, told["log"], `"subscription":"partner"`)
		for _, name := range []string{`"POST ` + buyFund + `"`, `"BuyFundFromCustomer"`, `"find holdings"`, `"commit"`, `"holding-insufficient"`} {
			require.Contains(t, told["traces"], name)
		}
	})
}

// withPassword adds a password to the URL of a database. A server with trust
// authentication ignores it.
func withPassword(t testing.TB, dsn, password string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	if _, ok := u.User.Password(); !ok {
		u.User = url.UserPassword(u.User.Username(), password)
	}
	return u.String()
}
