package e2e_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/payload"
)

// The bodies of successful responses.
const (
	recorded  = `{"Data":{"State":1}}`
	completed = `{"Data":{"State":2}}`
)

func number(n int) string { return strconv.Itoa(n) }

// sale returns a request to sell units of AFA, the fund of the demo book. day
// is its SelectedTransactionDate.
func sale(callerID string, customer int, units, day string) string {
	return payload.Request(payload.CallerID(callerID), payload.Demo(customer, units, day).String())
}

// push returns a request to store a push message.
func push(pushID string) string {
	return `{"Header":{},"Parameters":[{"ExternalApplicationCode":"MOBILE","UserId":"user-1","PushId":"` + pushID +
		`","Platform":73,"SendStatus":1}]}`
}

// sent is a request of a load. id is the CallerId of a sale or the PushId of a
// push.
type sent struct{ id, path, body string }

// load runs callers that sell and push, each on its own connection, until they
// are stopped or get no response.
type load struct {
	end  chan struct{}
	done sync.WaitGroup

	mu           sync.Mutex
	acknowledged []string // IDs of requests answered with State 2
	refused      []string // IDs of requests answered with State 8, which have no effect
	unknown      []sent   // requests with an unknown outcome
	failures     []error  // errors of requests without a response
}

var loads atomic.Int64

// work starts callers of a service. Each sends sales and pushes in turn. If the
// number of requests is not 0, each caller stops after it.
func work(t testing.TB, s *running, callers, most int) *load {
	t.Helper()
	l := &load{end: make(chan struct{})}
	run := loads.Add(1)
	for caller := range callers {
		client := s.connect(t, func(transport *http.Transport) {
			transport.MaxConnsPerHost = 1
			if caller%2 == 0 {
				overHTTP1(transport)
			}
		})
		l.done.Go(func() {
			for n := 0; most == 0 || n < most; n++ {
				select {
				case <-l.end:
					return
				default:
				}
				each := request(fmt.Sprintf("load-%d-%d-%d", run, caller, n), caller, n)
				got, err := s.tryPost(client, each.path, s.key, each.body)
				if l.note(each, got, err); err != nil {
					return
				}
			}
		})
	}
	return l
}

// request returns the n-th request of a caller: a sale, a push, a sale and so
// on.
func request(id string, caller, n int) sent {
	if n%2 == 1 {
		return sent{id, addPush, push(id)}
	}
	return sent{id, buyFund, sale(id, 1001+caller%2, "0.01", "")}
}

// note records the result of a request.
func (l *load) note(each sent, got answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.unknown = append(l.unknown, each)
		l.failures = append(l.failures, err)
	case got.body == completed:
		l.acknowledged = append(l.acknowledged, each.id)
	case got.status == http.StatusServiceUnavailable && !strings.Contains(got.body, "outcome-unknown"):
		l.refused = append(l.refused, each.id)
	default:
		l.unknown = append(l.unknown, each)
	}
}

// count returns the number of acknowledged requests so far.
func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acknowledged)
}

// reach waits until that many more requests are acknowledged.
func (l *load) reach(t testing.TB, more int) {
	t.Helper()
	least := l.count() + more
	eventually(t, patience, "requests are acknowledged", func() bool { return l.count() >= least })
}

// stop stops the callers and returns the acknowledged IDs.
func (l *load) stop() []string {
	close(l.end)
	l.done.Wait()
	return l.acknowledged
}

// TestManyConnections sells from 20 connections at once. Nothing may be lost or
// sold twice, and the sums must be exact.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s := b.serve(t, "--demo")
		const callers, each = 20, 30
		l := work(t, s, callers, each)
		l.done.Wait()
		require.Empty(t, l.failures)
		require.Len(t, l.acknowledged, callers*each)
		require.ElementsMatch(t, l.acknowledged, b.stored(t), "each request has one effect")
		// Each customer has 10 callers. Each caller sells 0.01 units 15 times,
		// and each sale brings 0.0125 lira, rounded to 0.01.
		require.Equal(t, "998.5", b.holding(t, 1001))
		require.Equal(t, "498.5", b.holding(t, 1002))
		balances := map[string]string{}
		for _, account := range b.Export(t, "accounts") {
			balances[account["CustomerNo"]+" "+account["CurrencyCode"]] = account["Balance"]
		}
		require.Equal(t, map[string]string{"1001 TRY": "1.50", "1001 USD": "0.00", "1002 TRY": "1.50"}, balances)
		b.Verify(t)
	})
}
