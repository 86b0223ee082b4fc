package outcomes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/outcomes"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// source is a list of outcomes.
type source struct {
	mu    sync.Mutex
	ended []fund.Ended
	asked int // how often LastOutcome was called
	read  int // how many pages were read
	err   error
}

func (s *source) end(subscription string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, fund.Ended{Number: int64(len(s.ended)) + 1, Subscription: subscription, State: operation.Completed})
}

func (s *source) Outcomes(_ context.Context, subscription string, after int64, limit int) (all []fund.Ended, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read++
	for _, e := range s.ended {
		if e.Number > after && (subscription == "" || e.Subscription == subscription) && len(all) < limit {
			all = append(all, e)
		}
	}
	return all, s.err
}

func (s *source) LastOutcome(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return int64(len(s.ended)), s.err
}

func TestPagesFollowEachOther(t *testing.T) {
	t.Parallel()
	s := new(source)
	for range 3 {
		s.end("a")
		s.end("b")
	}
	feed := outcomes.New(s)
	var numbers []int64
	q := outcomes.Query{Subscription: "a", Limit: 2}
	for range 3 {
		page, err := feed.Page(t.Context(), q)
		require.NoError(t, err)
		for _, e := range page.Outcomes {
			require.Equal(t, "a", e.Subscription)
			numbers = append(numbers, e.Number)
		}
		q.After = page.Next
	}
	require.Equal(t, []int64{1, 3, 5}, numbers)
	require.Equal(t, "5", q.After, "an empty page has the same cursor")
}

func TestAWaitingCallerLearnsOfAnOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(source)
		feed := outcomes.New(s)
		for range 50 { // they share the looks
			go func() {
				_, _ = feed.Page(t.Context(), outcomes.Query{Subscription: "b", Wait: 20 * time.Second})
			}()
		}
		began := time.Now()
		go func() {
			time.Sleep(3 * time.Second)
			s.end("b")
			time.Sleep(3 * time.Second)
			s.end("a")
		}()
		page, err := feed.Page(t.Context(), outcomes.Query{Subscription: "a", Wait: 20 * time.Second})
		require.NoError(t, err)
		require.Len(t, page.Outcomes, 1)
		require.Less(t, time.Since(began), 8*time.Second)
		synctest.Wait()
		require.Less(t, s.asked, 30, "one caller looks for all")
		require.LessOrEqual(t, s.read, 51*3, "each reads at first, and after each of the two outcomes")
	})
}

func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*outcomes.Feed, context.CancelFunc){
		"by itself":        func(*outcomes.Feed, context.CancelFunc) {},
		"with the context": func(_ *outcomes.Feed, cancel context.CancelFunc) { cancel() },
		"with the service": func(f *outcomes.Feed, _ context.CancelFunc) { f.Close(); f.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				feed := outcomes.New(new(source))
				began := time.Now()
				go func() {
					time.Sleep(time.Second)
					end(feed, cancel)
				}()
				page, err := feed.Page(ctx, outcomes.Query{Wait: 20 * time.Second})
				require.NoError(t, err)
				require.Equal(t, outcomes.Page{Next: "0"}, page)
				require.Equal(t, name == "by itself", time.Since(began) >= 20*time.Second)
			})
		})
	}
}

func TestWhatAPageCannotBe(t *testing.T) {
	t.Parallel()
	s := new(source)
	s.end("a")
	feed := outcomes.New(s)
	for _, q := range []outcomes.Query{
		{After: "2"}, {After: "-1"}, {After: "x"}, {After: "01"}, {After: "+1"}, {Limit: -1}, {Limit: 1001}, {Wait: -1}, {Wait: 61 * time.Second},
	} {
		_, err := feed.Page(t.Context(), q)
		require.Equal(t, fault.Invalid, fault.KindOf(err), "%+v", q)
	}
	s.end("a") // a cursor may be younger than the last look
	_, err := feed.Page(t.Context(), outcomes.Query{After: "2"})
	require.NoError(t, err)
	for _, q := range []outcomes.Query{{After: "2", Limit: outcomes.MaxLimit}, {Wait: outcomes.MaxWait}} {
		_, err = outcomes.New(s).Page(t.Context(), q)
		require.NoError(t, err, "a bound itself may be asked for")
	}
	s.err = errors.New("away")
	for _, after := range []string{"", "2", "3"} {
		_, err = outcomes.New(s).Page(t.Context(), outcomes.Query{After: after})
		require.ErrorIs(t, err, s.err, "a cursor that cannot be looked up is not wrong")
	}
}

// silence is a source that does not answer. If it has a last outcome, only its list does not.
type silence struct{ last int64 }

func (silence) Outcomes(ctx context.Context, _ string, _ int64, _ int) ([]fund.Ended, error) {
	<-ctx.Done()
	return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "away")
}

func (s silence) LastOutcome(ctx context.Context) (int64, error) {
	if s.last == 0 {
		<-ctx.Done()
	}
	return s.last, ctx.Err()
}

// While the database does not answer, callers neither wait for each other nor for ever.
func TestNoCallerWaitsLongForTheDatabase(t *testing.T) {
	t.Parallel()
	for _, s := range []silence{{last: 1}, {}} {
		synctest.Test(t, func(t *testing.T) {
			feed, began := outcomes.New(s), time.Now()
			const callers = 5
			errs := make(chan error, callers)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for range callers {
				go func() {
					_, err := feed.Page(ctx, outcomes.Query{Wait: 20 * time.Second})
					errs <- err
				}()
			}
			for range callers {
				require.Error(t, <-errs)
			}
			require.LessOrEqual(t, time.Since(began), 2*time.Second)
			time.Sleep(time.Second) // the last look becomes old
		})
	}
}
