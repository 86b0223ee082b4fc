package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/testdb"
)

// TestTerminateUnderLoad checks that SIGTERM loses no acknowledged request, and
// that every request with an effect was acknowledged.
func TestTerminateUnderLoad(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s := b.serve(t, "--demo")
		l := work(t, s, 16, 0)
		l.reach(t, 200)
		require.NoError(t, s.Signal(syscall.SIGTERM))
		require.Zero(t, s.Ended(t), s.Err)
		l.done.Wait()
		require.ElementsMatch(t, l.acknowledged, b.stored(t))
		require.NotContains(t, s.Err.String(), `"level":"error"`)
		b.Verify(t)
	})
}

// TestSecondSignal checks that a second signal ends the service at once.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	s := newBank(t, testdb.EngineSQLite).with("shutdown.delay", "1h").serve(t)
	require.NoError(t, s.Signal(syscall.SIGTERM))
	eventually(t, patience, "the service stops being ready", func() bool { return !s.IsReady() })
	status, ready := s.Get(t, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, ready, "[-]shutdown failed: The service is stopping.")
	status, _ = s.Get(t, "/livez")
	require.Equal(t, http.StatusOK, status, "the liveness check still succeeds")
	require.Equal(t, http.StatusUnauthorized, s.post(t, addPush, "nobody", "{}").status, "the API still answers")
	require.NoError(t, s.Signal(syscall.SIGTERM))
	require.Equal(t, -1, s.Ended(t), "the signal ended it")
}

// TestRollingReplacement: two replicas behind a balancer are replaced one after
// the other, and no request fails.
func TestRollingReplacement(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EnginePostgres).with("storage.migrate", "true")
	b.Set("shutdown.delay", "5s") // longer than the balancer needs to notice
	first := b.serve(t, "--demo")
	balancer := &balancer{replicas: []*running{first, b.replica(t).serve(t)}}

	l := &load{end: make(chan struct{})}
	for caller := range 8 {
		l.done.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-l.end:
					return
				default:
				}
				each := request(fmt.Sprintf("load-%d-%d", caller, n), caller, n)
				s := balancer.choose(n)
				got, err := s.tryPost(s.client, each.path, first.key, each.body)
				l.note(each, got, err)
			}
		})
	}
	for range 2 {
		l.reach(t, 50)
		old := balancer.choose(0)
		require.NoError(t, old.Signal(syscall.SIGTERM))
		eventually(t, patience, "the service stops being ready", func() bool { return !old.IsReady() })
		balancer.remove(old)
		balancer.add(b.replica(t).serve(t))
		require.Zero(t, old.Ended(t), old.Err)
	}
	l.reach(t, 50)
	l.stop()
	require.Empty(t, l.failures)
	require.Empty(t, l.unknown)
	require.Empty(t, l.refused)
	require.ElementsMatch(t, l.acknowledged, b.stored(t))
	b.Verify(t)
}

// balancer sends each request to one of its replicas.
type balancer struct {
	mu       sync.Mutex
	replicas []*running
}

func (r *balancer) choose(n int) *running {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replicas[n%len(r.replicas)]
}

func (r *balancer) remove(old *running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replicas = slices.DeleteFunc(r.replicas, func(s *running) bool { return s == old })
}

func (r *balancer) add(s *running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replicas = append(r.replicas, s)
}
