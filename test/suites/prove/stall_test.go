//go:build unix

package prove_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// TestEveryCallerIsAnsweredWhenPostgresStalls stops the server for twice as
// long as a response may take. Each caller gets a response within
// http.write_timeout, and its connection stays open. The response is true: a
// request without effect has no effect when the server continues, and a request
// with an unknown outcome takes effect once when it is repeated.
//
// The service answers half a second before http.write_timeout. A machine that gives
// no time to its processes for a part of that may lose answers. So a lost answer is
// a failure only if this process was never paused that long.
func TestEveryCallerIsAnsweredWhenPostgresStalls(t *testing.T) {
	t.Parallel()
	const (
		writeTimeout = 10 * time.Second // the default
		stall        = 20 * time.Second
		callers      = 8
	)
	s := newServer(t)
	d := deployOn(t, service.NewBank(t, testdb.EnginePostgres).On(s.dsn), 1, 1, func(b *service.Bank) {
		b.Set("tls.mode", "self-signed").Set("storage.statement_timeout", "4s").Set("http.write_timeout", writeTimeout.String())
	})
	d.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	url := strings.Replace(d.replicas[0].url(), "http:", "https:", 1)
	d.client.Timeout = service.Patience
	send := func(caller int, path, body string) (answer, time.Duration, error) {
		began := time.Now()
		a, err := d.post(t.Context(), url, path, body)
		return a, time.Since(began), err
	}
	sell := func(caller int) string {
		return (&sale{caller: caller, parts: []part{{0, 1}}}).body(fmt.Sprint("stall-", caller), "")
	}
	push := func(record int) string { return (&pushes{records: []int{record}}).body(fmt.Sprint("stall-", record)) }
	a, _, err := send(0, buyFund, sell(0))
	require.NoError(t, err)
	require.Equal(t, 2, a.state, a.body)

	paused := pauses(t)
	thaw := s.freeze(t)
	over := time.Now().Add(stall)
	type outcome struct {
		result
		took time.Duration
	}
	var (
		mu       sync.Mutex
		outcomes = map[int][]outcome{} // by caller and push
		took     []time.Duration
		all      sync.WaitGroup
	)
	for c := range callers {
		all.Go(func() {
			for n := 0; time.Now().Before(over); n++ {
				id := 10 + c*100 + n
				path, body := buyFund, sell(id)
				if c%2 == 1 {
					path, body = addPush, push(id)
				}
				a, long, err := send(id, path, body)
				if longest := paused(); err != nil && longest < 100*time.Millisecond {
					t.Errorf("no answer, after %s: %v", long, err)
					return
				}
				got, fine := judge(a, err)
				if !fine {
					t.Errorf("%d %s", a.status, a.body)
				}
				mu.Lock()
				outcomes[id] = append(outcomes[id], outcome{got, long})
				took = append(took, long)
				mu.Unlock()
				rest(t.Context(), 200*time.Millisecond)
			}
		})
	}
	rest(t.Context(), time.Until(over))
	thaw()
	all.Wait()
	eventually(t, service.Patience, "requests succeed again", func() bool {
		a, _, err := send(1, buyFund, sell(1))
		return err == nil && a.state == 2
	})
	// By then the server has run everything that was in its buffers.
	eventually(t, service.Patience, "no transaction is open", func() bool {
		return s.value(t, "SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' AND pid <> pg_backend_pid() AND backend_type = 'client backend'") == "0"
	})
	sold, stored := map[string]bool{}, map[int]bool{}
	for _, row := range d.bank.Export(t, "sales") {
		sold[row["ChannelRequestId"]] = true
	}
	for _, record := range d.mustList(t, 0) {
		stored[record] = true
	}
	counts := map[verdict]int{}
	for id, answers := range outcomes {
		isPush := (id-10)/100%2 == 1
		happened := sold[fmt.Sprint("stall-", id)]
		if isPush {
			happened = stored[id]
		}
		for _, o := range answers {
			counts[o.verdict]++
			if o.verdict == completed {
				require.True(t, happened, "push %d was answered Completed but is not stored", id)
			}
			if o.verdict == noEffect {
				require.False(t, happened, "push %d was answered as without effect after %s but is stored", id, o.took)
			}
		}
	}
	for id := range outcomes {
		path, body := buyFund, sell(id)
		if (id-10)/100%2 == 1 {
			path, body = addPush, push(id)
		}
		a, _, err := send(id, path, body)
		require.NoError(t, err)
		require.Contains(t, []int{2, 8}, a.state, a.body)
	}
	d.bank.Verify(t)
	require.NotEmpty(t, took)
	slices.Sort(took)
	figure(t, "Postgres stalled for %s: %d answers (%d unknown, %d without effect, %d completed), the slowest after %s",
		stall, len(took), counts[unknown], counts[noEffect], counts[completed], took[len(took)-1].Round(10*time.Millisecond))
}
