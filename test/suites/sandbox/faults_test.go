package sandbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/sandbox"
)

// outcomes are the status of each fault and whether the sale happened.
var outcomes = map[string]struct {
	status, state int
	done          bool
}{
	"unavailable-before": {503, 0, false},
	"unavailable-after":  {503, 0, true},
	"cut-before":         {0, 0, false},
	"cut-after":          {0, 0, true},
	"slow":               {200, 2, true},
	"rate-limited":       {429, 0, false},
	"internal":           {500, 0, false},
	"overloaded":         {503, 0, false},
	"shutting-down":      {503, 0, false},
}

// TestFaults orders each fault in each way. A repeat with the same CallerId
// gets the true outcome, and the sale happens once.
func TestFaults(t *testing.T) {
	t.Parallel()
	require.Len(t, sandbox.Orders(), len(outcomes))
	for _, order := range sandbox.Orders() {
		want := outcomes[order.Name()]
		customer := strings.Replace(demoSale, `"CustomerNo":1001`, fmt.Sprintf(`"CustomerNo":%d`, order.CustomerNo), 1)
		for name, way := range map[string]func(p partner) answer{
			"header":   func(p partner) answer { return p.sell("a", demoSale, "Sandbox-Fault", order.Header) },
			"CallerId": func(p partner) answer { return p.sell("sandbox-"+order.Name()+"-1", demoSale) },
			"customer": func(p partner) answer { return p.sell("a", customer) },
		} {
			t.Run(order.Name()+" by "+name, func(t *testing.T) {
				t.Parallel()
				p := newPartner(t)
				begun := time.Now()
				got := way(p)
				if order.Name() == "slow" {
					require.GreaterOrEqual(t, time.Since(begun), 2*time.Second)
				}
				require.Equal(t, want.status, got.status, got.body)
				require.Equal(t, want.state, got.state(), got.body)
				done := 0
				if want.done {
					done = 1
				}
				require.Equal(t, done, p.sales())

				var repeat answer
				switch name {
				case "header":
					repeat = p.sell("a", demoSale)
				default:
					repeat = way(p)
				}
				require.Equal(t, 2, repeat.state(), repeat.body)
				replayed := repeat.header.Get("Idempotent-Replayed")
				require.Equal(t, want.done, replayed == "true")
				require.Equal(t, 1, p.sales())
			})
		}
	}
}

func TestFaultsOfPushMessages(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	message := `{"Header":{},"Parameters":[{"ExternalApplicationCode":"APP","UserId":"sandbox-cut-after","PushId":"p","Platform":65,"SendStatus":1}]}`
	require.Zero(t, p.send(http.MethodPost, pushPath, message).status)
	require.Len(t, p.book()["notifications"], 1)
	require.Equal(t, 2, p.send(http.MethodPost, pushPath, message).state())
	require.Len(t, p.book()["notifications"], 1)
}

func TestUnknownFault(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	for _, name := range []string{"explode", "slow=-1s", "slow=2h", "slow=x", "cut-after=2s", ""} {
		got := p.sell("", demoSale, "Sandbox-Fault", name)
		if name == "" {
			require.Equal(t, 2, got.state())
			continue
		}
		require.Equal(t, http.StatusBadRequest, got.status, name)
		require.Equal(t, []string{"not-allowed"}, got.codes())
	}
	require.Equal(t, 1, p.sales())
}

// A request that breaks a rule gets its 400, and not the fault.
func TestFaultsDoNotHideFaultsOfTheRequest(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	got := p.send(http.MethodPost, sellPath, `{}`, "Sandbox-Fault", "unavailable-after")
	require.Equal(t, http.StatusBadRequest, got.status)
	got = p.sell("", demoSale, "Sandbox-Fault", "internal", "Ocp-Apim-Subscription-Key", "other")
	require.Equal(t, http.StatusUnauthorized, got.status)
}

// An ordered fault hits the next requests, also those of other callers.
func TestFaultsOfTheNextRequests(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	require.NoError(t, p.bank.OrderFault("rate-limited", 2))
	require.Equal(t, http.StatusServiceUnavailable, p.sell("a", demoSale, "Sandbox-Fault", "overloaded").status)
	for _, want := range []int{http.StatusTooManyRequests, http.StatusTooManyRequests, http.StatusOK} {
		require.Equal(t, want, p.sell("a", demoSale).status)
	}
	require.Error(t, p.bank.OrderFault("explode", 1))
	require.NoError(t, p.bank.OrderFault("cut-after", 1))
	require.NoError(t, p.bank.OrderFault("", 0))
	require.Equal(t, http.StatusOK, p.sell("b", demoSale).status)
	require.NoError(t, p.bank.OrderFault("cut-after", 1))
	require.NoError(t, p.bank.Reset(t.Context()))
	require.Equal(t, http.StatusOK, p.sell("b", demoSale).status)
}
