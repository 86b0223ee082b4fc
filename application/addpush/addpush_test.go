package addpush_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"bankingapi/application/addpush"
	"bankingapi/application/commit"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
	"bankingapi/test/kit/expect"
	"bankingapi/test/kit/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBusyIsWhatAddWouldAnswerNow(t *testing.T) {
	t.Parallel()
	b := open(t, with{})
	require.NoError(t, b.Busy(ours))
	require.NoError(t, b.Close(t.Context()))
	_, err := b.Add(t.Context(), ours, operation.Header{}, []push.Fields{record("a")})
	expect.Fails(t, fault.Busy, err, "shutting-down ")
	require.Equal(t, err, b.Busy(ours))
}

func TestStoreTakesWhatAGoProgramHas(t *testing.T) {
	t.Parallel()
	b := open(t, with{})
	n, faults := push.New(record("a"))
	require.Empty(t, faults)
	outcome, err := b.Store(t.Context(), ours, operation.Header{CallerID: "caller"}, []push.Notification{n})
	require.NoError(t, err)
	expect.Outcome(t, completed, outcome)
	expect.Outcome(t, replayed, b.mustAdd("caller", record("a")), "both are one content")
	b.stored("a")

	_, err = b.Store(t.Context(), ours, operation.Header{}, []push.Notification{n, {}})
	require.Equal(t, fault.Invalid, fault.KindOf(err), "a notification that no constructor made")
	_, err = b.Store(t.Context(), ours, operation.Header{}, nil)
	expect.Fails(t, fault.Invalid, err, "too-few /Parameters")
	require.Equal(t, fault.Of(err), b.Faults(operation.Header{}, nil))
	require.Empty(t, b.Faults(operation.Header{}, []push.Fields{record("a")}))
	_, err = b.Add(t.Context(), nil, operation.Header{}, []push.Fields{record("a")})
	expect.Fails(t, fault.Forbidden, err)
	b.stored("a")
}

// forgetful is a port that returns before it has decided anything.
type forgetful struct{ addpush.Inboxes }

func (forgetful) Update(context.Context, []idempotency.Key, func(*push.Inbox)) error { return nil }

// A port that decides nothing has stored nothing.
func TestAPortThatDecidesNothing(t *testing.T) {
	t.Parallel()
	kit := memory.New(noon)
	b := kit.Adder(t, forgetful{kit.Store.Inboxes(nil)}, func(*addpush.Options) {})
	_, err := b.Add(t.Context(), ours, operation.Header{}, []push.Fields{record("a")})
	require.Equal(t, fault.Internal, fault.KindOf(err))
}

func TestBatchesAreAsHeavyAsTheirRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var weights []int
		b := open(t, with{strike: shut(gate), options: func(o *addpush.Options) {
			o.Commit.Batch = 5
			o.Observer = commit.Observer{Now: o.Now, Batch: func(c commit.Batch) { weights = append(weights, c.Weight) }}
		}})
		three := func() { expect.Outcome(t, completed, b.mustAdd("", record("a"), record("b"), record("c"))) }
		two := func() { expect.Outcome(t, completed, b.mustAdd("", record("a"), record("b"))) }
		b.together(gate, func() {}, three, two, three, three, two)
		require.NoError(t, b.Close(t.Context()))
		require.Equal(t, []int{1, 5, 3, 5}, weights)
	})
}

// inbox is an Adder over a store of its own, with a clock that stands at noon.
type inbox struct {
	*addpush.Adder
	t     *testing.T
	store *fake.Store
}

// with changes how an inbox is opened.
type with struct {
	strike  fake.Strike
	options func(*addpush.Options)
}

var (
	noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	ours = &subscription.Subscription{Name: "ours"}

	completed = operation.Outcome{State: operation.Completed}
	replayed  = operation.Outcome{State: operation.Completed, Replayed: true}
)

func open(t *testing.T, w with) *inbox {
	t.Helper()
	kit := memory.New(noon)
	b := &inbox{t: t, store: kit.Store}
	b.Adder = kit.Adder(t, b.store.Inboxes(w.strike), func(o *addpush.Options) {
		o.ParametersLimit = 3
		if w.options != nil {
			w.options(o)
		}
	})
	return b
}

func (b *inbox) add(callerID string, parameters ...push.Fields) (operation.Outcome, error) {
	return b.Add(b.t.Context(), ours, operation.Header{CallerID: callerID}, parameters)
}

// mustAdd is add where nothing is wrong with the request.
func (b *inbox) mustAdd(callerID string, parameters ...push.Fields) operation.Outcome {
	b.t.Helper()
	outcome, err := b.add(callerID, parameters...)
	require.NoError(b.t, err)
	return outcome
}

// stored checks the contents of all that is stored, in order.
func (b *inbox) stored(contents ...string) {
	b.t.Helper()
	var got []string
	for _, n := range b.store.Notifications() {
		got = append(got, n.Values.Content)
	}
	require.Equal(b.t, contents, got)
}

// together has all the calls arrive, in their order, while an earlier
// transaction is held up by the gate, so that they share the next batch;
// meanwhile is what happens while they wait. It has to be called in a bubble.
func (b *inbox) together(gate chan struct{}, meanwhile func(), calls ...func()) {
	b.t.Helper()
	var done sync.WaitGroup
	calls = append([]func(){func() { expect.Outcome(b.t, completed, b.mustAdd("", record("first"))) }}, calls...)
	for _, call := range calls {
		done.Go(call)
		synctest.Wait()
	}
	meanwhile()
	close(gate)
	done.Wait()
}

// shut holds every transaction at its beginning until the gate is closed.
func shut(gate chan struct{}) fake.Strike {
	return func(_ context.Context, m fake.Moment) error {
		if m == fake.Begin {
			<-gate
		}
		return nil
	}
}

func record(content string) push.Fields {
	return push.Fields{
		ExternalApplicationCode: "application", UserID: "user", PushID: "push",
		Platform: decimal.Int(65), SendStatus: decimal.Int(1), Content: content,
	}
}

// New says what is missing, and the rest has defaults.
func TestNewNeedsAPortAClockAndIDs(t *testing.T) {
	t.Parallel()
	inboxes, o := fake.NewStore().Inboxes(nil), addpush.Options{Now: fake.NewClock(noon).Now, NewID: new(fake.IDs).Next}
	adder, err := addpush.New(inboxes, o)
	require.NoError(t, err)
	_, err = adder.Add(t.Context(), ours, operation.Header{}, make([]push.Fields, 1001))
	require.ErrorContains(t, err, "The request breaks a rule.")
	require.NoError(t, adder.Close(t.Context()))
	const needs = "addpush.New needs the port inboxes, and Now and NewID of its options"
	_, err = addpush.New(nil, o)
	require.EqualError(t, err, needs)
	_, err = addpush.New(inboxes, addpush.Options{Now: o.Now})
	require.EqualError(t, err, needs)
	_, err = addpush.New(inboxes, addpush.Options{NewID: o.NewID})
	require.EqualError(t, err, needs)
}
