package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// The receipt of a repeat costs the storage and the signer nothing.
func TestAReceiptIsKeptForAWhile(t *testing.T) {
	t.Parallel()
	now, made, content := today, 0, ""
	s := newService(func(s *service) {
		s.outcome.ID = operation.ID{1}
		s.options.Now = func() time.Time { return now }
		s.options.Receipt = func(context.Context, operation.ID) string {
			made++
			return content
		}
	})
	receipt := func(id byte) string {
		s.outcome.ID = operation.ID{id}
		w := s.do(post(pushPath, pushBody, func(r *http.Request) { r.Header.Set("Want-Receipt", "1") }))
		require.Equal(t, http.StatusOK, w.Code)
		return w.Header().Get("Receipt")
	}
	require.Empty(t, receipt(1))
	content = "first"
	require.Equal(t, "first", receipt(1), "what could not be made is tried again")
	content = "second"
	require.Equal(t, "first", receipt(1))
	require.Equal(t, "second", receipt(2), "each operation has its own")
	s.outcome.State = operation.Recorded
	content = "third"
	require.Equal(t, "third", receipt(2), "and each answer to it")
	s.outcome.State = operation.Completed
	require.Equal(t, "second", receipt(2))
	require.Equal(t, 4, made)

	now = now.Add(10 * time.Minute)
	require.Equal(t, "third", receipt(1), "a kept receipt has an end")
	require.Equal(t, 5, made)

	content = strings.Repeat("x", 1<<20)
	for id := range byte(9) {
		require.Equal(t, content, receipt(10+id))
	}
	made = 0
	receipt(18)
	require.Zero(t, made)
	receipt(10)
	require.Equal(t, 1, made, "the oldest of many is forgotten")
}

// Each receipt reads the storage. A subscription has two made at a time, so that it
// does not take all connections to the database.
func TestASubscriptionHasTwoReceiptsMadeAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var inProgress, made atomic.Int32
		finish := make(chan struct{})
		s := newService(func(s *service) {
			s.outcome.ID = operation.ID{1}
			s.callers["other"] = caller(func(c *subscription.Subscription) { c.Name = "other" })
			s.options.Receipt = func(_ context.Context, id operation.ID) string {
				inProgress.Add(1)
				defer inProgress.Add(-1)
				<-finish
				made.Add(1)
				return id.String()
			}
		})
		var all sync.WaitGroup
		var without atomic.Int32
		ask := func(key string) {
			all.Go(func() {
				w := s.do(post(pushPath, pushBody, func(r *http.Request) {
					r.Header.Set("Want-Receipt", "1")
					r.Header.Set("Ocp-Apim-Subscription-Key", key)
				}))
				if w.Code == http.StatusOK && w.Header().Get("Receipt") == "" {
					without.Add(1)
				}
			})
		}
		for range 100 {
			ask(key)
		}
		synctest.Wait()
		require.EqualValues(t, 2, inProgress.Load())
		require.Zero(t, without.Load())
		time.Sleep(3 * time.Second) // of the bubble
		require.EqualValues(t, 98, without.Load(), "their answers do not wait long")
		ask(key)
		ask("other")
		synctest.Wait()
		require.EqualValues(t, 3, inProgress.Load())
		close(finish)
		all.Wait()
		require.EqualValues(t, 3, made.Load(), "the one that waited finds it")
		require.EqualValues(t, 98, without.Load())
	})
}
