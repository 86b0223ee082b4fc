package prove_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/pgproxy"
	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// splitDeployment starts a service behind a proxy that ends every pipeline
// after each command. It settles two sales first, so that prices are cached and
// the next sales use the optimistic commit.
func splitDeployment(t *testing.T, groups int) *deployment {
	t.Helper()
	d := deploy(t, testdb.EnginePostgres, 1, groups, unhurried)
	d.client.Timeout = service.Patience
	require.Equal(t, result{verdict: completed}, d.sell(t, 0))
	require.Equal(t, result{verdict: completed}, d.sell(t, 1))
	d.replicas[0].proxy.Split.Store(true)
	return d
}

// TestSplitPipeline checks that a middlebox that splits a pipeline does not
// split a sale. All commands of a batch must be in one transaction, however
// they are sent.
func TestSplitPipeline(t *testing.T) {
	t.Parallel()
	sold := position{units: [2]int{opening - 2, opening}, balance: 2 * perUnit}

	t.Run("more units than the holding has", func(t *testing.T) {
		t.Parallel()
		d := splitDeployment(t, 1)
		for range 2 { // the second sells what the first left
			s := &sale{caller: 7, parts: []part{{0, opening + 5000}}}
			a, err := d.post(t.Context(), d.replicas[0].url(), buyFund, s.body("too-many", ""))
			require.NoError(t, err)
			require.Equal(t, []string{"holding-insufficient"}, a.codes, a.body)
		}
		require.Equal(t, sold, d.mustLookAt(t, 0), "no money without units")
		d.bank.Verify(t)
	})
	t.Run("an account that does not exist", func(t *testing.T) {
		t.Parallel()
		d := splitDeployment(t, 1)
		d.exec(t, "DELETE FROM adjustments WHERE leg = 2")
		d.exec(t, "DELETE FROM accounts")
		s := &sale{caller: 7, parts: []part{{0, 1}}}
		for range 2 {
			a, err := d.post(t.Context(), d.replicas[0].url(), buyFund, s.body("no-account", ""))
			require.NoError(t, err)
			require.Equal(t, []string{"account-not-found"}, a.codes, a.body)
		}
		require.Equal(t, sold.units, d.mustLookAt(t, 0).units, "no units without money")
	})
	t.Run("one CallerId twice", func(t *testing.T) {
		t.Parallel()
		d := splitDeployment(t, 1)
		require.Equal(t, result{completed, true}, d.sell(t, 0))
		require.Equal(t, result{completed, true}, d.sell(t, 1))
		require.Equal(t, sold, d.mustLookAt(t, 0), "the repeat sells nothing")
		require.Equal(t, result{verdict: completed}, d.sell(t, 2))
		require.Equal(t, result{completed, true}, d.sell(t, 2))
		require.Equal(t, opening-3, d.mustLookAt(t, 0).units[0])
		d.bank.Verify(t)
	})
	t.Run("one CallerId on two replicas at once", func(t *testing.T) {
		t.Parallel()
		d := splitDeployment(t, 1)
		other := d.bank.Replica(t)
		p := pgproxy.New(t, d.bank.DSN)
		p.Split.Store(true)
		other.On(p.DSN).Set("http.address", service.FreeAddress(t)).Set("ops.address", service.FreeAddress(t)).Set("tls.mode", "off")
		r := &replica{bank: other, proxy: p}
		r.start(t)
		const callers = 20
		for c := range callers {
			s := &sale{caller: 100 + c, parts: []part{{0, 1}}}
			var both sync.WaitGroup
			for _, url := range []string{d.replicas[0].url(), r.url()} {
				both.Go(func() {
					a, err := d.post(t.Context(), url, buyFund, s.body("at-once", ""))
					if err != nil || a.state != 2 {
						t.Errorf("%v %s", err, a.body)
					}
				})
			}
			both.Wait()
		}
		require.Equal(t, opening-2-callers, d.mustLookAt(t, 0).units[0], "each CallerId sells once")
		d.bank.Verify(t)
	})
	t.Run("under load", func(t *testing.T) {
		t.Parallel()
		d, r, h := splitDeployment(t, 3), chance(t), newHistory()
		l := d.start(t, r, h, []int{1, 2}, 6, 200)
		rest(t.Context(), 500*time.Millisecond)
		l.finish(t, r)
		require.Zero(t, h.count()[unknown]+h.count()[noEffect], "%s", h)
		requireLinearizable(t, h)
		d.bank.Verify(t)
		figure(t, "every pipeline was split after each command: %s; no sale was partial or doubled", h)
	})
}
