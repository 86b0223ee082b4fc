package prove_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// load runs callers. Each group has its own.
type load struct {
	d    *deployment
	seen *history
	// limit bounds the requests of a group, so that its history can be checked.
	limit int
	pause time.Duration // maximum time between two requests of a caller

	stop    context.CancelFunc
	callers sync.WaitGroup
	groups  []*groupOfCallers
	ids     atomic.Int64
	clients atomic.Int64
}

// groupOfCallers is the state that the callers of one group share.
type groupOfCallers struct {
	number int

	mu     sync.Mutex
	sales  []*sale // by CallerId
	pushes []*pushes
	rows   int // records of pushes
	count  int // requests
}

// start runs the given number of callers for each group until finish. Their
// requests and answers are added to the history.
func (d *deployment) start(t testing.TB, r *rand.Rand, seen *history, groups []int, callersOfGroup, limit int) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &load{d: d, seen: seen, limit: limit, pause: d.pause, stop: stop}
	l.ids.Store(int64(groups[0]) * 1_000_000)
	for _, g := range groups {
		group := &groupOfCallers{number: g}
		l.groups = append(l.groups, group)
		for range callersOfGroup {
			own := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
			client := int(l.clients.Add(1))
			l.callers.Go(func() { l.work(ctx, group, client, own) })
		}
		if d.past != nil {
			own := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
			l.callers.Go(func() { l.makeDue(ctx, group, own) })
		}
	}
	t.Cleanup(func() { stop(); l.callers.Wait() })
	return l
}

// work runs one caller.
func (l *load) work(ctx context.Context, group *groupOfCallers, client int, r *rand.Rand) {
	for ctx.Err() == nil {
		switch n := r.IntN(100); {
		case n < 15:
			l.look(ctx, group, client)
		case n < 25:
			l.list(ctx, group, client)
		case n < 45:
			if p, ok := group.nextPushes(r, l.limit); ok {
				l.push(ctx, client, p, r)
			}
		default:
			if s, ok := group.nextSale(r, l.limit); ok {
				l.sell(ctx, client, s, r)
			}
		}
		rest(ctx, time.Duration(r.Int64N(int64(l.pause))))
	}
}

// rest waits for a duration or until ctx ends.
func rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// awaitLimit waits until each group has as many requests as it may have, however slow the machine is.
func (l *load) awaitLimit(t testing.TB) {
	t.Helper()
	for _, g := range l.groups {
		for g.requests() < l.limit {
			require.NoError(t, t.Context().Err())
			rest(t.Context(), 5*time.Millisecond)
		}
	}
}

func (g *groupOfCallers) requests() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}

// nextSale chooses a sale: mostly a new one, sometimes one under a CallerId
// that was used before.
func (g *groupOfCallers) nextSale(r *rand.Rand, limit int) (*sale, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count >= limit {
		return nil, false
	}
	g.count++
	if len(g.sales) > 0 && r.IntN(4) == 0 {
		again := *g.sales[r.IntN(len(g.sales))]
		if r.IntN(6) == 0 {
			again.content, again.later = 1, false
			again.parts = []part{{0, 7}}
		}
		return &again, true
	}
	s := &sale{group: g.number, caller: len(g.sales)}
	for range 1 + r.IntN(2) {
		s.parts = append(s.parts, part{r.IntN(customersOfGroup), 1 + r.IntN(4)})
	}
	switch n := r.IntN(20); {
	case n == 0:
		s.later = true
	case n < 3:
		s.caller = -1
		return s, true
	}
	g.sales = append(g.sales, s)
	return s, true
}

func (g *groupOfCallers) nextPushes(r *rand.Rand, limit int) (*pushes, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count >= limit {
		return nil, false
	}
	g.count++
	p := &pushes{group: g.number}
	for range 1 + r.IntN(3) {
		p.records = append(p.records, g.rows)
		g.rows++
	}
	if r.IntN(4) == 0 { // with a record that may be stored already
		p.records = append(p.records, r.IntN(g.rows))
	}
	g.pushes = append(g.pushes, p)
	return p, true
}

// tries is how often a caller repeats a request whose outcome is unknown.
const tries = 5

// sell sends a sale. If it has a CallerId, it is repeated until the outcome is
// known.
func (l *load) sell(ctx context.Context, client int, s *sale, r *rand.Rand) {
	for range tries {
		got := l.request(ctx, client, buyFund, s, func(id string) string { return s.body(id, l.d.laterDay) }, r)
		if got.verdict > noEffect || s.caller < 0 || ctx.Err() != nil {
			return
		}
		rest(ctx, 10*time.Millisecond)
	}
}

// push sends records, and repeats them until they are stored: repeating is
// harmless.
func (l *load) push(ctx context.Context, client int, p *pushes, r *rand.Rand) {
	for range tries {
		got := l.request(ctx, client, addPush, p, p.body, r)
		if got.verdict > noEffect || ctx.Err() != nil {
			return
		}
		rest(ctx, 10*time.Millisecond)
	}
}

// request sends one request to a random replica and adds the result to the
// history. The end of the load does not interrupt a request.
func (l *load) request(ctx context.Context, client int, path string, input any, body func(id string) string, r *rand.Rand) result {
	replica := l.d.replicas[r.IntN(len(l.d.replicas))]
	id := fmt.Sprint("request-", l.ids.Add(1))
	e := event{client: client, id: id, input: input, call: l.seen.now()}
	a, err := l.d.post(context.WithoutCancel(ctx), replica.url(), path, body(id))
	e.end = l.seen.now()
	got, fine := judge(a, err)
	if !fine {
		l.seen.note("status %d: %s", a.status, a.body)
	}
	e.output = got
	l.seen.add(e)
	return got
}

// look reads the position of the group directly from the store.
func (l *load) look(ctx context.Context, group *groupOfCallers, client int) {
	e := event{client: client, input: look{group.number}, call: l.seen.now()}
	p, err := l.d.lookAt(ctx, group.number)
	if e.end, e.output = l.seen.now(), p; err == nil { // the store may be unreachable
		l.seen.add(e)
	}
}

func (l *load) list(ctx context.Context, group *groupOfCallers, client int) {
	e := event{client: client, input: list{group.number}, call: l.seen.now()}
	all, err := l.d.listOf(ctx, group.number)
	if e.end, e.output = l.seen.now(), all; err == nil {
		l.seen.add(e)
	}
}

// finish waits for the callers to finish, repeats every CallerId and every push
// without an answer, and reads all positions. The services must work again by
// then.
func (l *load) finish(t testing.TB, r *rand.Rand) {
	t.Helper()
	l.stop()
	l.callers.Wait()
	client := int(l.clients.Add(1))
	for _, g := range l.groups {
		for _, s := range g.sales {
			l.sell(context.Background(), client, s, r)
		}
		for _, p := range l.seen.open(g.pushes) {
			l.push(context.Background(), client, p, r)
		}
		l.look(context.Background(), g, client)
		l.list(context.Background(), g, client)
	}
	require.Empty(t, l.seen.strange, "answers that no fault explains")
}
