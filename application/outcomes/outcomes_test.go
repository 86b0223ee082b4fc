package outcomes_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
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
	made  int            // how many outcomes were made, also of those that were lost
	asked int            // how often LastOutcome was called
	read  int            // how often outcomes were listed
	of    map[string]int // how often those of a subscription were listed
	err   error
}

func (s *source) Secret(context.Context) ([]byte, error) { return []byte("secret"), nil }

func (s *source) end(subscription string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(subscription)
}

// add adds an outcome of an operation that no other outcome has.
func (s *source) add(subscription string) {
	s.made++
	s.ended = append(s.ended, fund.Ended{
		Number: int64(len(s.ended)) + 1, OperationID: operation.ID{15: byte(s.made)}, Subscription: subscription, State: operation.Completed,
	})
}

// lose goes back to the first n outcomes, as a restore does, and adds others.
func (s *source) lose(n int, others ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = s.ended[:n:n]
	for _, subscription := range others {
		s.add(subscription)
	}
}

func (s *source) listed(subscription string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[subscription]
}

func (s *source) Outcomes(_ context.Context, subscription string, after int64, limit int) (all []fund.Ended, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read++
	if s.of == nil {
		s.of = make(map[string]int)
	}
	s.of[subscription]++
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

func open(t *testing.T, s outcomes.Source) *outcomes.Feed {
	feed := outcomes.New(s)
	t.Cleanup(feed.Close)
	return feed
}

func TestPagesFollowEachOther(t *testing.T) {
	t.Parallel()
	s := new(source)
	for range 3 {
		s.end("a")
		s.end("b")
	}
	feed := open(t, s)
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
	page, err := feed.Page(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, outcomes.Page{Outcomes: []fund.Ended{}, Next: q.After}, page, "an empty page has the same cursor")
	page, err = feed.Page(t.Context(), outcomes.Query{Subscription: "none"})
	require.NoError(t, err)
	require.Empty(t, page.Outcomes)
	s.end("none")
	page, err = feed.Page(t.Context(), outcomes.Query{Subscription: "none", After: page.Next})
	require.NoError(t, err)
	require.Len(t, page.Outcomes, 1, "also the cursor of the beginning is one")
}

// next returns the cursor after the first limit outcomes of a subscription.
func next(t *testing.T, feed *outcomes.Feed, subscription string, limit int) string {
	t.Helper()
	page, err := feed.Page(t.Context(), outcomes.Query{Subscription: subscription, Limit: limit})
	require.NoError(t, err)
	require.Len(t, page.Outcomes, limit)
	return page.Next
}

func TestACursorBelongsToItsSubscriptionAndItsBook(t *testing.T) {
	t.Parallel()
	s := new(source)
	s.end("a")
	s.end("b")
	feed := open(t, s)
	ours := next(t, feed, "a", 1)
	require.Equal(t, ours, next(t, open(t, s), "a", 1), "another replica makes the same cursor")
	_, err := open(t, s).Page(t.Context(), outcomes.Query{Subscription: "a", After: ours})
	require.NoError(t, err)
	refused := []outcomes.Query{{Subscription: "b", After: ours}, {After: ours}, {Subscription: "a", After: next(t, feed, "b", 1)}}
	for i := range ours { // each character counts
		changed := []byte(ours)
		if changed[i]++; changed[i] == 'z'+1 || changed[i] == 'Z'+1 || changed[i] == '9'+1 {
			changed[i] = '_'
		}
		refused = append(refused, outcomes.Query{Subscription: "a", After: string(changed)})
	}
	for _, added := range []string{"\n", "\r", "=", "A", " "} { // the decoder of package base64 passes over ends of lines
		refused = append(refused, outcomes.Query{Subscription: "a", After: ours + added}, outcomes.Query{Subscription: "a", After: ours[:9] + added + ours[9:]})
	}
	for _, q := range refused {
		_, err = feed.Page(t.Context(), q)
		require.Equal(t, fault.Invalid, fault.KindOf(err), "%q", q.After)
	}
}

// The number of all outcomes is no business of a partner.
func TestACursorSaysNothingOfOthers(t *testing.T) {
	t.Parallel()
	few, many := new(source), new(source)
	for range 200 {
		many.end("b")
	}
	few.end("a")
	many.end("a")
	one, other := next(t, open(t, few), "a", 1), next(t, open(t, many), "a", 1)
	require.Len(t, other, len(one))
	require.NotContains(t, other, "201")
	for _, cursor := range []string{one, other} {
		content, err := base64.RawURLEncoding.DecodeString(cursor)
		require.NoError(t, err)
		require.NotContains(t, string(content), string([]byte{0, 0, 0, 0}), "the number is encrypted")
	}
}

func TestACursorIsLostWithItsOutcome(t *testing.T) {
	t.Parallel()
	for name, others := range map[string][]string{
		"nothing is at its place":                 nil,
		"another outcome of the partner is there": {"a", "a"},
		"an outcome of another partner is there":  {"b", "b"},
		"there are more outcomes than before":     {"b", "a", "a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := new(source)
			for range 3 {
				s.end("a")
			}
			feed := open(t, s)
			kept, lost := next(t, feed, "a", 1), next(t, feed, "a", 3)
			s.lose(1, others...)
			for _, wait := range []time.Duration{0, time.Second} {
				_, err := feed.Page(t.Context(), outcomes.Query{Subscription: "a", After: lost, Wait: wait})
				require.ErrorIs(t, err, outcomes.ErrCursorLost)
			}
			_, err := feed.Page(t.Context(), outcomes.Query{Subscription: "a", After: kept})
			require.NoError(t, err, "an outcome that is still there has its cursor")
		})
	}
}

// A page that waits while the book is restored learns of it, and so does one that begins to wait
// afterwards, although looks have found before that there is nothing new.
func TestACursorIsLostWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(source)
		s.end("a")
		s.end("a")
		feed := open(t, s)
		after := next(t, feed, "a", 2)
		lost := make(chan error, 1)
		go func() {
			_, err := feed.Page(t.Context(), outcomes.Query{Subscription: "a", After: after, Wait: 20 * time.Second})
			lost <- err
		}()
		time.Sleep(5 * time.Second)
		s.lose(1, "b", "b")
		require.ErrorIs(t, <-lost, outcomes.ErrCursorLost)
		_, err := feed.Page(t.Context(), outcomes.Query{Subscription: "a", After: after, Wait: 20 * time.Second})
		require.ErrorIs(t, err, outcomes.ErrCursorLost)
	})
}

func TestAWaitingCallerLearnsOfAnOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(source)
		feed := open(t, s)
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
		require.Less(t, s.asked, 30, "one looks for all")
		require.LessOrEqual(t, s.listed("b"), 51*2, "each reads at first, and after an outcome of its own")
	})
}

// Many pages wait. Those of other partners read nothing when one has an outcome.
func TestAnOutcomeWakesOnlyItsPartner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(source)
		const partners = 40
		for i := range partners {
			s.end(fmt.Sprint(i))
		}
		feed := open(t, s)
		var answers sync.WaitGroup
		for i := range partners {
			after := next(t, feed, fmt.Sprint(i), 1)
			for range outcomes.MaxWaits { // 4,000 in all
				answers.Go(func() {
					_, err := feed.Page(t.Context(), outcomes.Query{Subscription: fmt.Sprint(i), After: after, Wait: 20 * time.Second})
					assert.NoError(t, err)
				})
			}
		}
		time.Sleep(5 * time.Second)
		before := s.listed("1")
		require.LessOrEqual(t, before, 1+outcomes.MaxWaits)
		s.end("0")
		s.end("0")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, before, s.listed("1"))
		require.LessOrEqual(t, s.listed("0"), 1+2*outcomes.MaxWaits)
		answers.Wait()
		again := s.listed("1")
		for range 5 { // what the looks know is not read again
			page, err := feed.Page(t.Context(), outcomes.Query{Subscription: "1", After: next(t, feed, "1", 1), Wait: time.Second})
			require.NoError(t, err)
			require.Empty(t, page.Outcomes)
		}
		require.Equal(t, again+5, s.listed("1"), "only next has read")
	})
}

func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(source)
		feed := open(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		var waits sync.WaitGroup
		wait := func(subscription string) {
			waits.Go(func() {
				_, err := feed.Page(ctx, outcomes.Query{Subscription: subscription, Wait: outcomes.MaxWait})
				assert.NoError(t, err)
			})
		}
		for range outcomes.MaxWaits {
			wait("a")
		}
		synctest.Wait()
		_, err := feed.Page(ctx, outcomes.Query{Subscription: "a", Wait: time.Second})
		require.ErrorIs(t, err, outcomes.ErrTooManyWaits)
		page, err := feed.Page(ctx, outcomes.Query{Subscription: "a"})
		require.NoError(t, err, "a page that does not wait is none of them")
		for i := range outcomes.MaxAllWaits - outcomes.MaxWaits {
			wait(fmt.Sprint(i % 200))
		}
		synctest.Wait()
		began := time.Now()
		same, err := feed.Page(ctx, outcomes.Query{Subscription: "c", Wait: outcomes.MaxWait})
		require.NoError(t, err)
		require.Empty(t, same.Outcomes)
		require.Zero(t, time.Since(began), "an empty page at once")
		s.end("c")
		found, err := feed.Page(ctx, outcomes.Query{Subscription: "c", After: same.Next, Wait: outcomes.MaxWait})
		require.NoError(t, err)
		require.Len(t, found.Outcomes, 1)
		cancel()
		waits.Wait()
		_, err = feed.Page(t.Context(), outcomes.Query{Subscription: "a", After: page.Next, Wait: time.Second})
		require.NoError(t, err, "the places are free again")
	})
}

func TestAPageEndsWhenItsCallerMayReadNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		suspended := errors.New("suspended")
		var refused atomic.Bool
		q := outcomes.Query{Subscription: "a", Wait: outcomes.MaxWait, Check: func() error {
			if refused.Load() {
				return suspended
			}
			return nil
		}}
		s := new(source)
		feed := open(t, s)
		time.AfterFunc(5*time.Second, func() { refused.Store(true) })
		began := time.Now()
		_, err := feed.Page(t.Context(), q)
		require.ErrorIs(t, err, suspended)
		require.LessOrEqual(t, time.Since(began), 6*time.Second, "it does not wait any longer")

		s.end("a")
		_, err = feed.Page(t.Context(), q)
		require.ErrorIs(t, err, suspended, "and gets no outcome")
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
				feed := open(t, new(source))
				began := time.Now()
				go func() {
					time.Sleep(time.Second)
					end(feed, cancel)
				}()
				page, err := feed.Page(ctx, outcomes.Query{Wait: 20 * time.Second})
				require.NoError(t, err)
				require.Empty(t, page.Outcomes)
				require.NotEmpty(t, page.Next)
				require.Equal(t, name == "by itself", time.Since(began) >= 20*time.Second)
			})
		})
	}
}

func TestWhatAPageCannotBe(t *testing.T) {
	t.Parallel()
	s := new(source)
	s.end("a")
	feed := open(t, s)
	for _, q := range []outcomes.Query{
		{After: "1"}, {After: "x"}, {After: strings.Repeat("A", 70)}, {After: " "}, {Limit: -1}, {Limit: 1001}, {Wait: -1}, {Wait: 61 * time.Second},
	} {
		_, err := feed.Page(t.Context(), q)
		require.Equal(t, fault.Invalid, fault.KindOf(err), "%+v", q)
	}
	after := next(t, feed, "", 1)
	for _, q := range []outcomes.Query{{After: after, Limit: outcomes.MaxLimit}, {Wait: outcomes.MaxWait}} {
		_, err := open(t, s).Page(t.Context(), q)
		require.NoError(t, err, "a bound itself may be asked for")
	}
	s.err = errors.New("away")
	for _, q := range []outcomes.Query{{}, {After: after}, {After: after, Wait: time.Second}} {
		_, err := open(t, s).Page(t.Context(), q)
		require.ErrorIs(t, err, s.err, "a cursor that cannot be looked up is not wrong")
	}
}

// silence is a source that does not answer. If it has a last outcome, only its list does not.
type silence struct{ last int64 }

func (silence) Secret(context.Context) ([]byte, error) { return []byte("secret"), nil }

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
			feed, began := open(t, s), time.Now()
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

// held is a source whose reads of one subscription do not end before they are released.
type held struct {
	*source
	release chan struct{}
}

func (h held) Outcomes(ctx context.Context, subscription string, after int64, limit int) ([]fund.Ended, error) {
	if subscription == "many" {
		<-h.release
	}
	return h.source.Outcomes(ctx, subscription, after, limit)
}

// A partner that asks for many pages at the same time does not keep others from reading theirs.
func TestASubscriptionDoesNotReadAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := held{&source{}, make(chan struct{})}
		feed := open(t, s)
		const pages = 20
		ended := make(chan error, pages)
		for range pages {
			go func() {
				_, err := feed.Page(t.Context(), outcomes.Query{Subscription: "many"})
				ended <- err
			}()
		}
		synctest.Wait()
		_, err := feed.Page(t.Context(), outcomes.Query{Subscription: "other"})
		require.NoError(t, err)
		close(s.release)
		for range pages {
			require.NoError(t, <-ended)
		}
	})
}

// A page that may wait waits for its turn to read, and is empty if that does not come. One that may
// not wait is refused.
func TestWhoMayNotWaitForATurnToReadIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := held{&source{}, make(chan struct{})}
		feed := open(t, s)
		var pages sync.WaitGroup
		for range 20 {
			pages.Go(func() { _, _ = feed.Page(t.Context(), outcomes.Query{Subscription: "many"}) })
		}
		synctest.Wait()
		_, err := feed.Page(t.Context(), outcomes.Query{Subscription: "many"})
		require.Equal(t, fault.Busy, fault.KindOf(err))
		page, err := feed.Page(t.Context(), outcomes.Query{Subscription: "many", Wait: time.Second})
		require.NoError(t, err)
		require.Empty(t, page.Outcomes)
		close(s.release)
		pages.Wait()
	})
}

// The feed knows the newest outcome of a subscription. Whoever has read it waits for the next one, and
// whoever has not gets it at once.
func TestAnOldCursorDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(source)
		s.end("a")
		feed := open(t, s)
		old := next(t, feed, "a", 1)
		time.AfterFunc(time.Second, func() { s.end("a") })
		page, err := feed.Page(t.Context(), outcomes.Query{Subscription: "a", After: old, Wait: outcomes.MaxWait})
		require.NoError(t, err)
		require.Len(t, page.Outcomes, 1)
		began := time.Now()
		page, err = feed.Page(t.Context(), outcomes.Query{Subscription: "a", After: old, Wait: outcomes.MaxWait})
		require.NoError(t, err)
		require.Len(t, page.Outcomes, 1)
		require.Zero(t, time.Since(began))
		page, err = feed.Page(t.Context(), outcomes.Query{Subscription: "a", After: page.Next, Wait: time.Minute})
		require.NoError(t, err)
		require.Empty(t, page.Outcomes)
		require.Equal(t, time.Minute, time.Since(began))
	})
}

// broken is a source that cannot list the outcomes of a subscription, or has no secret.
type broken struct {
	*source
	secret, list error
}

func (b broken) Secret(context.Context) ([]byte, error) { return []byte("secret"), b.secret }

func (b broken) Outcomes(ctx context.Context, subscription string, after int64, limit int) ([]fund.Ended, error) {
	if subscription != "" && b.list != nil {
		return nil, b.list
	}
	return b.source.Outcomes(ctx, subscription, after, limit)
}

// A caller that waits learns that its page cannot be read. An empty page would say that nothing ended.
func TestAPageThatCannotBeReadIsNotEmpty(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for _, s := range []broken{{source: new(source), secret: away}, {source: new(source), list: away}} {
		for _, wait := range []time.Duration{0, time.Second} {
			_, err := open(t, s).Page(t.Context(), outcomes.Query{Subscription: "a", Wait: wait})
			require.ErrorIs(t, err, away)
		}
	}
}
