package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi"
	"bankingapi/application/addpush"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/test/fake"
)

// stalling is the API on a store that stalls inside its transactions until the
// function is called.
func stalling(t *testing.T, writeTimeout time.Duration, now func() time.Time) (http.Handler, *fake.Store, func()) {
	t.Helper()
	release := make(chan struct{})
	stall := func(_ context.Context, m fake.Moment) error {
		if m == fake.Begin {
			<-release
		}
		return nil
	}
	store, ids := fake.NewStore(), new(fake.IDs)
	limits := commit.Limits{Batch: 10, Queue: 10, Timeout: time.Hour}
	adder, err := addpush.New(store.Inboxes(stall), addpush.Options{ParametersLimit: limit, Commit: limits, Now: now, NewID: ids.Next})
	require.NoError(t, err)
	buyer, err := buyfund.New(store.Books(stall), buyfund.Options{ParametersLimit: limit, Commit: limits, Now: now, NewID: ids.Next})
	require.NoError(t, err)
	handler, err := httpapi.New([]httpapi.Descriptor{httpapi.AddPush(adder), httpapi.BuyFund(buyer)}, callers{key: caller(nil)}, httpapi.Options{
		BodyLimit: bodyLimit, ParametersLimit: limit, WriteTimeout: writeTimeout, ErrorPages: "/docs/errors/", Now: now,
	})
	require.NoError(t, err)
	return handler, store, sync.OnceFunc(func() {
		close(release)
		require.NoError(t, adder.Close(context.Background()))
		require.NoError(t, buyer.Close(context.Background()))
	})
}

func pushOf(id string) string { return strings.Replace(pushBody, `"p"`, `"`+id+`"`, 1) }

func TestEveryRequestIsAnsweredBeforeTheWriteTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handler, store, release := stalling(t, 10*time.Second, func() time.Time { return time.Now().UTC() })
		s := &service{Handler: handler}
		began := time.Now()
		first := make(chan problem, 1)
		go func() { first <- problemIn(t, s.post(t, pushPath, pushOf("running"))) }()
		synctest.Wait()
		time.Sleep(time.Second)

		waiting := problemIn(t, s.post(t, pushPath, pushOf("waiting")))
		require.Equal(t, 10500*time.Millisecond, time.Since(began), "half a second before its own write timeout")
		require.Equal(t, http.StatusServiceUnavailable, waiting.Status)
		require.Equal(t, "overloaded", waiting.Errors[0].Code)
		require.Nil(t, waiting.Data, "its batch had not started, but an earlier attempt may have had an effect")
		running := <-first
		require.Equal(t, http.StatusServiceUnavailable, running.Status)
		require.Equal(t, "outcome-unknown", running.Errors[0].Code)
		require.Nil(t, running.Data, "its batch goes on")

		release()
		stored := store.Notifications()
		require.Len(t, stored, 1)
		require.Equal(t, "running", stored[0].Values.PushID)
	})
}

// net/http cuts a connection on which the answer is not written in time.
func TestAStalledStoreBreaksNoConnection(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"plain": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := serverOptions()
				if secure {
					o = selfSigned(t)
				}
				o.WriteTimeout = time.Second
				handler, _, release := stalling(t, o.WriteTimeout, func() time.Time { return time.Now().UTC() })
				defer release()
				transport := serveInMemory(t, handler, o)
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, inMemory(o)+salePath, strings.NewReader(saleBody))
						if !isNil(t, err) {
							return
						}
						r.Header.Set("Ocp-Apim-Subscription-Key", key)
						began := time.Now()
						answer, err := transport.RoundTrip(r)
						if !isNil(t, err) {
							return
						}
						defer func() { _ = answer.Body.Close() }()
						body, err := io.ReadAll(answer.Body)
						if !isNil(t, err) {
							return
						}
						if took := time.Since(began); answer.StatusCode != http.StatusServiceUnavailable || took != 900*time.Millisecond || !strings.Contains(string(body), `"errors":[`) {
							t.Errorf("%d after %s: %s", answer.StatusCode, took, body)
						}
					})
				}
				all.Wait()
			})
		})
	}
}

func isNil(t *testing.T, err error) bool {
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// A body that arrives late leaves less time for the operation.
func TestALateBodyLeavesLessTime(t *testing.T) {
	t.Parallel()
	now := today
	var limits []time.Duration
	s := newService(func(s *service) {
		s.options.WriteTimeout = 10 * time.Second
		s.options.Now = func() time.Time { return now }
		s.during = func(ctx context.Context) {
			q := commit.New(commit.Limits{Batch: 1, Queue: 1, Timeout: time.Hour}, func(int) int { return 1 }, nil, func(context.Context, []int) error { return nil }, commit.Observer{})
			began := time.Now()
			if q.Do(ctx, 1) != nil {
				limits = append(limits, time.Since(began))
			}
		}
	})
	s.do(post(pushPath, pushBody, func(r *http.Request) {
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(pushBody[:10]), readerFunc(func([]byte) (int, error) {
			now = now.Add(9600 * time.Millisecond)
			return 0, io.EOF
		}), strings.NewReader(pushBody[10:])))
	}))
	require.Len(t, limits, 1, "no time was left, so the queue did not take it")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
