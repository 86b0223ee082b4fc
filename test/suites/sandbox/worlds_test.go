package sandbox_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap"
	"bankingapi/domain/subscription"
)

// with returns the partner with another key.
func (p partner) with(key string) func(method, path, body string, header ...string) answer {
	return func(method, path, body string, header ...string) answer {
		p.Helper()
		return p.send(method, path, body, append(header, "Ocp-Apim-Subscription-Key", key)...)
	}
}

// makeKey asks for a key without one.
func (p partner) makeKey() string {
	p.Helper()
	got := p.send(http.MethodPost, "/_sandbox/keys", "", "Ocp-Apim-Subscription-Key", "")
	require.Equal(p, http.StatusOK, got.status, got.body)
	var made struct{ Key, Name string }
	require.NoError(p, json.Unmarshal([]byte(got.body), &made))
	require.Regexp(p, "^sandbox_[0-9a-f]{32}$", made.Key)
	require.Regexp(p, "^partner-[a-z0-9]{8}$", made.Name)
	return made.Key
}

// Each key has its own book, clock, requests and faults, on both engines and after a
// restart. Nothing of it reaches another key.
func TestEachKeyHasItsOwnWorld(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, settings bootstrap.Settings) {
		p := partnerOf(t, settings)
		key := p.makeKey()
		ada, bob := p.with(key), p.with(p.makeKey())
		sale := `{"Header":{"CallerId":"a"},"Parameters":[` + demoSale + `]}`
		empty := ada(http.MethodGet, "/_sandbox/book", "").body

		require.Equal(t, 2, ada(http.MethodPost, sellPath, sale).state())
		require.Equal(t, http.StatusOK, ada(http.MethodPut, "/_sandbox/clock", `{"advance":"240h"}`).status)
		require.Equal(t, http.StatusOK, ada(http.MethodPut, "/_sandbox/faults", `[{"fault":"internal","count":9}]`).status)
		for name, other := range map[string]func(string, string, string, ...string) answer{"bob": bob, "first": p.with(p.bank.Key)} {
			require.Zero(t, len(rows(t, other(http.MethodGet, "/_sandbox/book", ""), "sales")), name)
			require.Empty(t, rows(t, other(http.MethodGet, "/_sandbox/requests", ""), "requests"), name)
			require.JSONEq(t, "[]", other(http.MethodGet, "/_sandbox/faults", "").body, name)
			got := other(http.MethodPost, sellPath, sale)
			require.Equal(t, 2, got.state(), got.body)
			require.Empty(t, got.header.Get("Idempotent-Replayed"), "the CallerId is one of another world")
			clock, err := time.Parse(time.RFC3339, got.header.Get("Sandbox-Clock"))
			require.NoError(t, err)
			require.WithinDuration(t, now(), clock, time.Minute, name)
		}
		require.Equal(t, http.StatusOK, bob(http.MethodPost, "/_sandbox/reset", "").status)
		require.NotEqual(t, empty, ada(http.MethodGet, "/_sandbox/book", "").body, "a reset is one's own")

		suffixed := p.send(http.MethodPost, sellPath, sale, "Ocp-Apim-Subscription-Key", key+"-push-only")
		require.Equal(t, []string{"operation-not-granted"}, suffixed.codes())
		require.Equal(t, 2, ada(http.MethodPost, sellPath, sale, "Sandbox-Fault", "slow=0s").state(), "the key without a suffix may still sell")
		repeated := p.send(http.MethodPost, sellPath, sale, "Ocp-Apim-Subscription-Key", key+"-mobile", "Sandbox-Fault", "slow=0s")
		require.Equal(t, "true", repeated.header.Get("Idempotent-Replayed"), "a suffix changes what the key allows, not whose CallerIds it sees")

		require.NoError(t, p.bank.Close(context.WithoutCancel(t.Context())))
		again := partnerOf(t, settings)
		require.Len(t, rows(t, again.with(key)(http.MethodGet, "/_sandbox/book", ""), "sales"), 1)
		now := again.with(key)(http.MethodGet, "/_sandbox/clock", "")
		require.NotEqual(t, again.send(http.MethodGet, "/_sandbox/clock", "").body[:18], now.body[:18], "the clock of a world goes on")
	})
}

// rows are what an answer has under a name.
func rows(t *testing.T, a answer, name string) (found []json.RawMessage) {
	t.Helper()
	all := map[string][]json.RawMessage{}
	require.NoError(t, json.Unmarshal([]byte(a.body), &all), a.body)
	return all[name]
}

// A key that an operator makes has a world too. A key without the prefix of a sandbox works.
func TestKeysOfTheOperator(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	manager, err := p.bank.Manager(t.Context())
	require.NoError(t, err)
	key, _, err := manager.Create(t.Context(), subscription.Subscription{Name: "Ada & Co / tests"})
	require.NoError(t, err)
	for _, presented := range []string{key.Reveal(), "sandbox_" + key.Reveal()} {
		require.Equal(t, 2, p.with(presented)(http.MethodPost, sellPath, `{"Header":{"CallerId":"x"},"Parameters":[`+demoSale+`]}`).state())
	}
	require.Zero(t, p.sales())
	require.Equal(t, 2, p.sell("", demoSale, "Ocp-Apim-Subscription-Key", p.bank.Key[len("sandbox_"):]).state())
	require.Equal(t, 1, p.sales(), "the demo key without its prefix")
}

// A sandbox on the internet does not fill its disk: callers make keys at a rate, and there is a
// largest number of them. A key that nobody uses makes room for a new one.
func TestASandboxHasALimitOfKeys(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64 // the clock stands still, so that no key can be made by waiting
	start := now()
	p := newPartner(t, bootstrap.WithClock(func() time.Time { return start.Add(time.Duration(ahead.Load())) }))
	ask := func() answer { return p.send(http.MethodPost, "/_sandbox/keys", "", "Ocp-Apim-Subscription-Key", "") }
	var keys []string
	for len(keys) < 199 {
		if len(keys)%20 == 0 && len(keys) > 0 {
			got := ask()
			require.Equal(t, http.StatusTooManyRequests, got.status, got.body)
			require.Equal(t, "6", got.header.Get("Retry-After"))
			require.Contains(t, got.body, "Try again in 6 seconds.")
			ahead.Add(int64(2 * time.Minute))
		}
		keys = append(keys, p.makeKey())
	}
	require.Equal(t, http.StatusOK, p.with(keys[0])(http.MethodGet, "/_sandbox/clock", "").status)
	ahead.Add(int64(2 * time.Minute))
	got := ask()
	require.Equal(t, http.StatusForbidden, got.status)
	require.Contains(t, got.body, "Ask its operator for one.")

	ahead.Add(int64(time.Hour))
	another := p.makeKey()
	require.Equal(t, http.StatusOK, p.with(another)(http.MethodGet, "/_sandbox/clock", "").status)
	ended := 0
	for _, key := range keys {
		caller, err := p.bank.Caller(t.Context(), key)
		require.NoError(t, err)
		if caller == nil {
			ended++
			require.Equal(t, http.StatusUnauthorized, p.with(key)(http.MethodGet, "/_sandbox/clock", "").status)
		}
	}
	require.Equal(t, 1, ended, "the place of one unused key was taken")
}

// A key ends with its world. The next one may have its name, and nothing of its book.
func TestAKeyEnds(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, settings bootstrap.Settings) {
		p := partnerOf(t, settings)
		key, other := p.makeKey(), p.makeKey()
		sale := `{"Header":{"CallerId":"a"},"Parameters":[` + demoSale + `]}`
		require.Equal(t, 2, p.with(key)(http.MethodPost, sellPath, sale).state())
		require.Equal(t, 2, p.with(other)(http.MethodPost, sellPath, sale).state())

		ended := p.with(key)(http.MethodDelete, "/_sandbox/keys", "")
		require.Equal(t, http.StatusOK, ended.status, ended.body)
		require.Contains(t, ended.body, `{"ended":"partner-`)
		require.Equal(t, http.StatusUnauthorized, p.with(key)(http.MethodPost, sellPath, sale).status)
		require.Equal(t, http.StatusUnauthorized, p.with(key)(http.MethodDelete, "/_sandbox/keys", "").status)

		next := p.with(p.makeKey())
		require.Empty(t, rows(t, next(http.MethodGet, "/_sandbox/book", ""), "sales"))
		require.Empty(t, rows(t, next(http.MethodGet, "/_sandbox/requests", ""), "requests"))
		require.Empty(t, next(http.MethodPost, sellPath, sale).header.Get("Idempotent-Replayed"))
		require.Len(t, rows(t, p.with(other)(http.MethodGet, "/_sandbox/book", ""), "sales"), 1)

		require.Equal(t, http.StatusForbidden, p.send(http.MethodDelete, "/_sandbox/keys", "").status, "the key of the sandbox itself")
	})
}

// A world has a folder of its own beside the file of the sandbox.
func TestAWorldIsAFileOfItsOwn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p := partnerOf(t, settingsIn(folder))
	key := p.makeKey()
	require.NoDirExists(t, filepath.Join(folder, "worlds"))
	require.Equal(t, http.StatusOK, p.with(key)(http.MethodGet, "/_sandbox/book", "").status)
	found, err := filepath.Glob(filepath.Join(folder, "worlds", "*", "bankingapi.db"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, http.StatusOK, p.with(key)(http.MethodDelete, "/_sandbox/keys", "").status)
	left, err := os.ReadDir(filepath.Join(folder, "worlds"))
	require.NoError(t, err)
	require.Empty(t, left)
}
