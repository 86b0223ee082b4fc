package addpush_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAddStoresAllRecords(t *testing.T) {
	t.Parallel()
	b := open(t, with{})
	header := operation.Header{
		AppKey: "app", Channel: "channel", TellerName: "teller", CallerID: "caller", ChannelSessionID: "session", ChannelRequestID: "request",
	}
	outcome, err := b.Add(t.Context(), ours, header, []push.Fields{record("a"), record("b")})
	require.NoError(t, err)
	requireOutcome(t, completed, outcome)
	b.stored("a", "b")

	for i, n := range b.store.Notifications() {
		require.Equal(t, i, n.Index)
		require.Equal(t, fake.NewID(1), n.ID)
		require.Equal(t, "ours", n.Subscription)
		require.Equal(t, header, n.Header)
		require.Equal(t, noon, n.ReceivedAt)
	}
}

func TestARecordIsStoredOnce(t *testing.T) {
	t.Parallel()
	b := open(t, with{})
	requireOutcome(t, completed, b.mustAdd("", record("a"), record("b"), record("a")))
	requireOutcome(t, completed, b.mustAdd("", record("b"), record("c")))
	requireOutcome(t, completed, b.mustAdd("caller", record("a")))
	b.stored("a", "b", "c")

	// Of another subscription it is another record, and so it is with any other value.
	outcome, err := b.Add(t.Context(), theirs, operation.Header{}, []push.Fields{record("a")})
	require.NoError(t, err)
	requireOutcome(t, completed, outcome)
	zero := record("a")
	zero.PushInteractionID = decimal.Int(0)
	requireOutcome(t, completed, b.mustAdd("", zero))
	b.stored("a", "b", "c", "a", "a")
}

func TestAddReportsAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	header := operation.Header{AppKey: strings.Repeat("x", 201), ChannelRequestID: strings.Repeat("x", 201)}
	tooLong := []string{"too-long /Header/AppKey", "too-long /Header/ChannelRequestId"}
	broken := record("b")
	broken.UserID, broken.Platform = "", decimal.Int(66)
	for name, c := range map[string]struct {
		header     operation.Header
		parameters []push.Fields
		faults     []string
	}{
		"no record":        {header, nil, append(tooLong[:2:2], "too-few /Parameters")},
		"too many records": {header, []push.Fields{record("a"), record("b"), record("c"), record("d")}, append(tooLong[:2:2], "too-many /Parameters")},
		"the header":       {header, []push.Fields{record("a"), record("b"), record("c")}, tooLong},
		"some fields": {operation.Header{}, []push.Fields{broken, record("a"), broken}, []string{
			"required /Parameters/0/UserId", "not-allowed /Parameters/0/Platform", "required /Parameters/2/UserId", "not-allowed /Parameters/2/Platform",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, with{})
			c.header.CallerID = "caller"
			// What is defined for the caller does not matter yet: 400 is before 403.
			strict := &subscription.Subscription{Name: "ours", AppKey: "other", Channel: "other"}
			for _, caller := range []*subscription.Subscription{ours, strict} {
				_, err := b.Add(t.Context(), caller, c.header, c.parameters)
				fails(t, fault.Invalid, err, c.faults...)
				require.NotContains(t, err.Error(), "xxx")
			}
			require.Equal(t, c.faults, described(b.Faults(c.header, c.parameters)))
			b.stored()
			requireOutcome(t, completed, b.mustAdd("caller", record("a")), "it left a trace")
		})
	}
}

func TestFaultsOfAGoodRequestAreNone(t *testing.T) {
	t.Parallel()
	b := open(t, with{})
	require.Empty(t, b.Faults(operation.Header{CallerID: "c"}, []push.Fields{record("a"), record("b"), record("c")}))
	b.stored()
}

func TestBusyIsWhatAddWouldAnswerNow(t *testing.T) {
	t.Parallel()
	b := open(t, with{})
	require.NoError(t, b.Busy(ours))
	require.NoError(t, b.Close(t.Context()))
	_, err := b.Add(t.Context(), ours, operation.Header{}, []push.Fields{record("a")})
	fails(t, fault.Busy, err, "shutting-down ")
	require.Equal(t, err, b.Busy(ours))
}

func TestStoreTakesWhatAGoProgramHas(t *testing.T) {
	t.Parallel()
	b := open(t, with{})
	n, faults := push.New(record("a"))
	require.Empty(t, faults)
	outcome, err := b.Store(t.Context(), ours, operation.Header{CallerID: "caller"}, []push.Notification{n})
	require.NoError(t, err)
	requireOutcome(t, completed, outcome)
	requireOutcome(t, replayed, b.mustAdd("caller", record("a")), "both are one content")
	b.stored("a")

	_, err = b.Store(t.Context(), ours, operation.Header{}, []push.Notification{n, {}})
	require.Equal(t, fault.Invalid, fault.KindOf(err), "a notification that no constructor made")
	_, err = b.Store(t.Context(), ours, operation.Header{}, nil)
	fails(t, fault.Invalid, err, "too-few /Parameters")
	b.stored("a")
}

func TestACallerIDMayBeRequired(t *testing.T) {
	t.Parallel()
	b := open(t, with{})
	strict := &subscription.Subscription{Name: "strict", RequireCallerID: true}
	broken := record("a")
	broken.UserID = ""
	_, err := b.Add(t.Context(), strict, operation.Header{}, []push.Fields{broken})
	fails(t, fault.Invalid, err, "required /Header/CallerId", "required /Parameters/0/UserId")
	outcome, err := b.Add(t.Context(), strict, operation.Header{CallerID: "caller"}, []push.Fields{record("a")})
	require.NoError(t, err)
	requireOutcome(t, completed, outcome)
}

func TestAddHoldsTheHeaderAgainstTheSubscription(t *testing.T) {
	t.Parallel()
	b := open(t, with{})
	strict := &subscription.Subscription{Name: "strict", AppKey: "app", Channel: "channel"}
	_, err := b.Add(t.Context(), strict, operation.Header{AppKey: "App", Channel: "x"}, []push.Fields{record("a")})
	fails(t, fault.Forbidden, err, "contradicts-subscription /Header/AppKey", "contradicts-subscription /Header/Channel")
	_, err = b.Add(t.Context(), nil, operation.Header{}, []push.Fields{record("a")})
	fails(t, fault.Forbidden, err) // a key that opens no subscription
	b.stored()

	outcome, err := b.Add(t.Context(), strict, operation.Header{Channel: "channel", TellerName: "teller"}, []push.Fields{record("a")})
	require.NoError(t, err)
	requireOutcome(t, completed, outcome)
	require.Equal(t, operation.Header{AppKey: "app", Channel: "channel", TellerName: "teller"}, b.store.Notifications()[0].Header)
}

func TestTheSameCallerIDHasOneEffect(t *testing.T) {
	t.Parallel()
	b := open(t, with{})
	requireOutcome(t, completed, b.mustAdd("caller", record("a"), record("b")))
	requireOutcome(t, replayed, b.mustAdd("caller", record("a"), record("b")))
	requireOutcome(t, completed, b.mustAdd("Caller", record("a"), record("c")))
	b.stored("a", "b", "c")

	// Another subscription has CallerIds of its own.
	outcome, err := b.Add(t.Context(), theirs, operation.Header{CallerID: "caller"}, []push.Fields{record("d")})
	require.NoError(t, err)
	requireOutcome(t, completed, outcome)
	b.stored("a", "b", "c", "d")
}

func TestAnotherContentIsAConflict(t *testing.T) {
	t.Parallel()
	full := push.Fields{
		ExternalApplicationCode: "application", ExternalTranCode: "tran", UserID: "user", PushID: "push",
		PushInteractionID: decimal.Int(1), Platform: decimal.Int(65), Subject: "subject", Content: "content",
		DeepLinkURL: "app://link", SendStatus: decimal.Int(1), SendDate: "2026-11-20", TranData: []push.TranDataItem{{Code: "c", Name: "n"}},
	}
	header := operation.Header{AppKey: "app", Channel: "channel", TellerName: "teller", CallerID: "caller"}
	change := func(change func(*push.Fields)) func(*operation.Header, *[]push.Fields) {
		return func(_ *operation.Header, p *[]push.Fields) { change(&(*p)[1]) }
	}
	for name, other := range map[string]func(*operation.Header, *[]push.Fields){
		"ExternalApplicationCode": change(func(f *push.Fields) { f.ExternalApplicationCode += "x" }),
		"ExternalTranCode":        change(func(f *push.Fields) { f.ExternalTranCode = "" }),
		"UserId":                  change(func(f *push.Fields) { f.UserID = "User" }),
		"PushId":                  change(func(f *push.Fields) { f.PushID += " " }),
		"PushInteractionId":       change(func(f *push.Fields) { f.PushInteractionID = decimal.Int(2) }),
		"no PushInteractionId":    change(func(f *push.Fields) { f.PushInteractionID = decimal.Decimal{} }),
		"Platform":                change(func(f *push.Fields) { f.Platform = decimal.Int(73) }),
		"Subject":                 change(func(f *push.Fields) { f.Subject, f.Content = "subjectc", "ontent" }),
		"Content":                 change(func(f *push.Fields) { f.Content = "" }),
		"DeepLinkUrl":             change(func(f *push.Fields) { f.DeepLinkURL = "" }),
		"SendStatus":              change(func(f *push.Fields) { f.SendStatus = decimal.Int(0) }),
		"SendDate":                change(func(f *push.Fields) { f.SendDate = "2026-11-21" }),
		"no TranData":             change(func(f *push.Fields) { f.TranData = nil }),
		"TranData Code":           change(func(f *push.Fields) { f.TranData = []push.TranDataItem{{Code: "C", Name: "n"}} }),
		"TranData Name":           change(func(f *push.Fields) { f.TranData = []push.TranDataItem{{Code: "c", Name: ""}} }),
		"more TranData":           change(func(f *push.Fields) { f.TranData = append(f.TranData[:1:1], f.TranData...) }),
		"fewer records":           func(_ *operation.Header, p *[]push.Fields) { *p = (*p)[:1] },
		"the same record again":   func(_ *operation.Header, p *[]push.Fields) { *p = append(*p, (*p)[1]) },
		"another order":           func(_ *operation.Header, p *[]push.Fields) { (*p)[0], (*p)[1] = (*p)[1], (*p)[0] },
		"AppKey":                  func(h *operation.Header, _ *[]push.Fields) { h.AppKey = "" },
		"Channel":                 func(h *operation.Header, _ *[]push.Fields) { h.Channel = "x" },
		"TellerName":              func(h *operation.Header, _ *[]push.Fields) { h.TellerName = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, with{})
			content := []push.Fields{record("a"), full}
			first, err := b.Add(t.Context(), ours, header, content)
			require.NoError(t, err)

			h, p := header, []push.Fields{record("a"), full}
			other(&h, &p)
			outcome, err := b.Add(t.Context(), ours, h, p)
			fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
			require.Equal(t, operation.Outcome{ID: first.ID}, outcome)
			b.stored("a", "content")

			// What does not count: the tracking fields and the spelling of numbers.
			h = header
			h.ChannelSessionID, h.ChannelRequestID = "x", "y"
			content[1].Platform, err = decimal.Parse("6.5e1")
			require.NoError(t, err)
			outcome, err = b.Add(t.Context(), ours, h, content)
			require.NoError(t, err)
			requireOutcome(t, replayed, outcome)
		})
	}
}

func TestTheOrderOfTheChecks(t *testing.T) {
	t.Parallel()
	b := open(t, with{})
	requireOutcome(t, completed, b.mustAdd("caller", record("a")))
	strict := &subscription.Subscription{Name: ours.Name, Channel: "channel"}
	wrong := operation.Header{CallerID: "caller", Channel: "other"}
	broken := record("b")
	broken.UserID = ""

	// 400 before 422 before 403.
	_, err := b.Add(t.Context(), strict, wrong, []push.Fields{broken})
	fails(t, fault.Invalid, err, "required /Parameters/0/UserId")
	_, err = b.Add(t.Context(), strict, wrong, []push.Fields{record("b")})
	fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
	wrong.CallerID = "new"
	_, err = b.Add(t.Context(), strict, wrong, []push.Fields{record("b")})
	fails(t, fault.Forbidden, err, "contradicts-subscription /Header/Channel")
	_, err = b.add("caller", record("b"))
	fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
	b.stored("a")
}

func TestTheSameCallerIDTwiceInOneBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		b := open(t, with{strike: shut(gate)})
		b.together(gate, func() {},
			func() { requireOutcome(t, completed, b.mustAdd("caller", record("a"))) },
			func() { requireOutcome(t, replayed, b.mustAdd("caller", record("a"))) },
			func() {
				_, err := b.add("caller", record("b"))
				fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
			},
			func() { requireOutcome(t, completed, b.mustAdd("", record("a"), record("c"))) },
			func() { requireOutcome(t, replayed, b.mustAdd("caller", record("a"))) })
		b.stored("first", "a", "c")
	})
}

func TestTwentyAtTheSameMoment(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 3, 100} { // of one batch, and of many
		for _, replicas := range []int{1, 3} {
			t.Run(fmt.Sprintf("batch %d, replicas %d", batch, replicas), func(t *testing.T) {
				t.Parallel()
				b := open(t, with{})
				var adders []*addpush.Adder
				for range replicas {
					adders = append(adders, b.replica(with{options: func(o *addpush.Options) { o.Commit.Batch = batch }}))
				}
				var mu sync.Mutex
				first, again := 0, 0
				var done sync.WaitGroup
				for i := range 20 {
					done.Go(func() {
						outcome, err := adders[i%replicas].Add(t.Context(), ours, operation.Header{CallerID: "caller"}, []push.Fields{record("a")})
						mu.Lock()
						defer mu.Unlock()
						switch {
						case err != nil || outcome.State != operation.Completed:
							t.Error(outcome, err)
						case outcome.Replayed:
							again++
						default:
							first++
						}
					})
				}
				done.Wait()
				require.Equal(t, [2]int{1, 19}, [2]int{first, again})
				b.stored("a")
			})
		}
	}
}

func TestAddWhenTheStorageFails(t *testing.T) {
	t.Parallel()
	lost := fault.New(fault.Unavailable, "lost")
	unsure := fault.New(fault.Indeterminate, "unsure")
	for name, c := range map[string]struct {
		at    fake.Moment
		err   error
		kind  fault.Kind
		again operation.Outcome // of the same request, repeated
	}{
		"before":                     {fake.Begin, lost, fault.Unavailable, completed},
		"during the commit":          {fake.Commit, lost, fault.Unavailable, completed},
		"during a commit that came":  {fake.Committed, unsure, fault.Indeterminate, replayed},
		"during one that never came": {fake.Commit, unsure, fault.Indeterminate, completed},
		"for no known reason":        {fake.Commit, errors.New("defect"), fault.Internal, completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, with{strike: struck(c.at, c.err)})
			outcome, err := b.add("caller", record("a"))
			fails(t, c.kind, err)
			require.Zero(t, outcome)
			requireOutcome(t, c.again, b.mustAdd("caller", record("a")))
			b.stored("a")
		})
	}
}

func TestAddDecidesAgainAfterALostRace(t *testing.T) {
	t.Parallel()
	b := open(t, with{strike: struck(fake.Commit, fake.ErrConflict)})
	requireOutcome(t, completed, b.mustAdd("caller", record("a"), record("b")))
	b.stored("a", "b")
}

func TestAPoisonousRequestFailsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		b := open(t, with{strike: shut(gate), inboxes: func(i addpush.Inboxes) addpush.Inboxes { return poisoned{i} }})
		b.together(gate, func() {},
			func() { requireOutcome(t, completed, b.mustAdd("", record("a"))) },
			func() {
				_, err := b.add("failing", record("b"))
				require.ErrorIs(t, err, errPoison)
			},
			func() {
				defer func() { require.Equal(t, "poison", recover().(*commit.Panic).Value) }()
				_, _ = b.add("panicking", record("c"))
			},
			func() { requireOutcome(t, completed, b.mustAdd("", record("d"))) })
		b.stored("first", "a", "d")
	})
}

// poisoned is an inbox that cannot take some CallerIds.
type poisoned struct{ addpush.Inboxes }

var errPoison = errors.New("poison")

func (p poisoned) Update(ctx context.Context, callers []idempotency.Key, accept func(*push.Inbox)) error {
	for _, key := range callers {
		switch key.CallerID {
		case "failing":
			return errPoison
		case "panicking":
			panic("poison")
		}
	}
	return p.Inboxes.Update(ctx, callers, accept)
}

func TestAddHasRoomForSoMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		b := open(t, with{strike: shut(gate), options: func(o *addpush.Options) { o.Commit.Queue = 1 }})
		b.together(gate, func() {},
			func() { requireOutcome(t, completed, b.mustAdd("", record("a"))) },
			func() {
				_, err := b.add("", record("b"))
				require.Equal(t, fault.Busy, fault.KindOf(err))
			})
		b.stored("first", "a")
	})
}

func TestAddOfACallerWhoLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		b := open(t, with{strike: shut(gate)})
		ctx, cancel := context.WithCancel(t.Context())
		b.together(gate, func() {
			cancel()
			synctest.Wait()
		}, func() {
			_, err := b.Add(ctx, ours, operation.Header{}, []push.Fields{record("a")})
			fails(t, fault.Unavailable, err)
		})
		b.stored("first")
	})
}

func TestCloseFinishesWhatWasTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		b := open(t, with{strike: shut(gate)})
		b.together(gate, func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.ErrorIs(t, b.Close(ctx), context.DeadlineExceeded)
			_, err := b.add("", record("b"))
			fails(t, fault.Busy, err, "shutting-down ")
		}, func() { requireOutcome(t, completed, b.mustAdd("", record("a"))) })
		require.NoError(t, b.Close(t.Context()))
		require.NoError(t, b.Close(t.Context()))
		b.stored("first", "a")
	})
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
		three := func() { requireOutcome(t, completed, b.mustAdd("", record("a"), record("b"), record("c"))) }
		two := func() { requireOutcome(t, completed, b.mustAdd("", record("a"), record("b"))) }
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
	ids   *fake.IDs
}

// with changes how an inbox is opened.
type with struct {
	strike  fake.Strike
	inboxes func(addpush.Inboxes) addpush.Inboxes
	options func(*addpush.Options)
}

var (
	noon   = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	ours   = &subscription.Subscription{Name: "ours"}
	theirs = &subscription.Subscription{Name: "theirs"}

	completed = operation.Outcome{State: operation.Completed}
	replayed  = operation.Outcome{State: operation.Completed, Replayed: true}
)

// requireOutcome compares all of an outcome but its ID, which every decided
// operation must have.
func requireOutcome(t testing.TB, want, got operation.Outcome, message ...any) {
	t.Helper()
	require.NotZero(t, got.ID, message...)
	got.ID, want.ID = operation.ID{}, operation.ID{}
	require.Equal(t, want, got, message...)
}

func open(t *testing.T, w with) *inbox {
	t.Helper()
	b := &inbox{t: t, store: fake.NewStore(), ids: new(fake.IDs)}
	b.Adder = b.replica(w)
	return b
}

// replica is one more Adder over the same store.
func (b *inbox) replica(w with) *addpush.Adder {
	b.t.Helper()
	options := addpush.Options{
		ParametersLimit: 3,
		Commit:          commit.Limits{Batch: 100, Queue: 100, Timeout: 10 * time.Second},
		Now:             fake.NewClock(noon).Now,
		NewID:           b.ids.Next,
	}
	if w.options != nil {
		w.options(&options)
	}
	var inboxes addpush.Inboxes = b.store.Inboxes(w.strike)
	if w.inboxes != nil {
		inboxes = w.inboxes(inboxes)
	}
	adder, err := addpush.New(inboxes, options)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, adder.Close(context.Background())) })
	return adder
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
	calls = append([]func(){func() { requireOutcome(b.t, completed, b.mustAdd("", record("first"))) }}, calls...)
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

// struck fails once, at that moment.
func struck(at fake.Moment, err error) fake.Strike {
	return func(_ context.Context, m fake.Moment) error {
		if m != at {
			return nil
		}
		defer func() { err = nil }()
		return err
	}
}

func record(content string) push.Fields {
	return push.Fields{
		ExternalApplicationCode: "application", UserID: "user", PushID: "push",
		Platform: decimal.Int(65), SendStatus: decimal.Int(1), Content: content,
	}
}

// fails checks the kind of an error and the codes and pointers of its faults,
// each as "code pointer".
func fails(t *testing.T, kind fault.Kind, err error, faults ...string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, kind, fault.KindOf(err), "%v", err)
	require.Empty(t, cmp.Diff(faults, described(fault.Of(err)), cmpopts.EquateEmpty()))
}

func described(faults []fault.Fault) (all []string) {
	for _, f := range faults {
		all = append(all, f.Code+" "+f.Pointer)
	}
	return all
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
	for _, port := range []addpush.Inboxes{nil, inboxes} {
		_, err = addpush.New(port, addpush.Options{})
		require.EqualError(t, err, "addpush.New needs the port inboxes, and Now and NewID of its options")
	}
}
