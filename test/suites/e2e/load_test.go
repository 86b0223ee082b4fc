package e2e_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"bankingapi/test/kit/payload"
)

// The bodies of successful responses.
const (
	recorded  = `{"Data":{"State":1}}`
	completed = `{"Data":{"State":2}}`
)

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

// load runs callers that sell and push, each on its own connection, until they
// get no response.
type load struct {
	done sync.WaitGroup

	mu           sync.Mutex
	acknowledged []string // CallerIds of sales and PushIds that were answered with State 2
}

// work starts callers of a service. Each sends sales and pushes in turn.
func work(t testing.TB, s *running, callers int) *load {
	t.Helper()
	l := new(load)
	for caller := range callers {
		client := s.connect(t, func(transport *http.Transport) {
			transport.MaxConnsPerHost = 1
			if caller%2 == 0 {
				overHTTP1(transport)
			}
		})
		l.done.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("load-%d-%d", caller, n)
				path, body := buyFund, sale(id, 1001+caller%2, "0.01", "")
				if n%2 == 1 {
					path, body = addPush, push(id)
				}
				got, err := s.tryPost(client, path, s.key, body)
				if err != nil {
					return
				}
				if got.body == completed {
					l.mu.Lock()
					l.acknowledged = append(l.acknowledged, id)
					l.mu.Unlock()
				}
			}
		})
	}
	return l
}

// reach waits until so many requests are acknowledged.
func (l *load) reach(t testing.TB, least int) {
	t.Helper()
	eventually(t, patience, "requests are acknowledged", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.acknowledged) >= least
	})
}
