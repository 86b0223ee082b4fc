package push_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/fault"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// report is an operation of these pushes by the subscription "mobile".
func report(callerID string, pushes ...push.Fields) *push.Operation {
	o := &push.Operation{Envelope: operation.Envelope{Subscription: "mobile", Header: operation.Header{CallerID: callerID}}}
	for _, f := range pushes {
		n, faults := push.New(f)
		if len(faults) > 0 {
			panic(faults)
		}
		o.Notifications = append(o.Notifications, n)
	}
	return o
}

func withID(id byte, o *push.Operation) *push.Operation {
	o.ID = operation.ID{id}
	return o
}

func userID(id string) push.Fields { return sent(func(f *push.Fields) { f.UserID = id }) }

// accept decides the operations in an inbox that knows of nothing.
func accept(operations ...*push.Operation) *push.Inbox {
	inbox := new(push.Inbox)
	inbox.Accept(operations)
	return inbox
}

func requireOutcome(t *testing.T, o *push.Operation, want operation.Outcome) {
	t.Helper()
	outcome, err := o.Outcome()
	require.NoError(t, err)
	outcome.ID = operation.ID{}
	require.Equal(t, want, outcome)
}

func requireConflict(t *testing.T, o *push.Operation) {
	t.Helper()
	outcome, err := o.Outcome()
	require.Equal(t, fault.Conflict, fault.KindOf(err))
	require.Equal(t, operation.Outcome{}, outcome)
}

var (
	completed = operation.Outcome{State: operation.Completed}
	replayed  = operation.Outcome{State: operation.Completed, Replayed: true}
)

// storedOf lists what is to be stored: operation and position of each.
func storedOf(inbox *push.Inbox) (stored []string) {
	for _, s := range inbox.ToStore() {
		stored = append(stored, s.Notification.Values().UserID)
	}
	return stored
}

func TestEveryRecordIsToBeStoredInOrderOfArrival(t *testing.T) {
	t.Parallel()
	first, second := withID(1, report("", userID("a"), userID("b"))), withID(2, report("", userID("c")))
	inbox := accept(first, second)
	requireOutcome(t, first, completed)
	requireOutcome(t, second, completed)
	require.Equal(t, []string{"a", "b", "c"}, storedOf(inbox))
	for i, want := range []struct {
		operation *push.Operation
		position  int
	}{{first, 0}, {first, 1}, {second, 0}} {
		got := inbox.ToStore()[i]
		require.Same(t, want.operation, got.Operation)
		require.Equal(t, want.position, got.Index)
		require.Same(t, &want.operation.Notifications[want.position], got.Notification)
	}
	require.Empty(t, inbox.Register.NewRecords(), "without a CallerId there is nothing to know")
}

func TestACallerIDIsKnownWithItsContent(t *testing.T) {
	t.Parallel()
	o := withID(7, report("c-1", userID("a")))
	inbox := accept(o)
	require.Len(t, inbox.Register.NewRecords(), 1)
	known := inbox.Register.NewRecords()[0]
	require.NotEqual(t, idempotency.Fingerprint{}, known.Fingerprint)
	require.Equal(t, idempotency.Record{
		Key:         idempotency.Key{CallerID: "c-1", Subscription: "mobile", Operation: operation.AddPushNotificationResponse},
		Fingerprint: known.Fingerprint, Outcome: operation.Outcome{ID: operation.ID{7}, State: operation.Completed},
	}, *known)
}

func TestTheSameCallerIDTwiceInABatchIsStoredOnce(t *testing.T) {
	t.Parallel()
	first, second := report("c-1", userID("a")), report("c-1", userID("a"))
	inbox := accept(first, second)
	requireOutcome(t, first, completed)
	requireOutcome(t, second, replayed)
	require.Equal(t, []string{"a"}, storedOf(inbox))
	require.Len(t, inbox.Register.NewRecords(), 1)
}

func TestACallerIDOfAnotherContentStoresNothing(t *testing.T) {
	t.Parallel()
	first, second, third := report("c-1", userID("a")), report("c-1", userID("b"), userID("c")), report("", userID("d"))
	inbox := accept(first, second, third)
	requireOutcome(t, first, completed)
	requireConflict(t, second)
	requireOutcome(t, third, completed)
	require.Equal(t, []string{"a", "d"}, storedOf(inbox))
	require.Len(t, inbox.Register.NewRecords(), 1)
}

func TestARepeatOfAKnownOperationStoresNothing(t *testing.T) {
	t.Parallel()
	known := *accept(report("c-1", userID("a"))).Register.NewRecords()[0]
	for _, tt := range []struct {
		name   string
		repeat *push.Operation
		check  func(*testing.T, *push.Operation)
		stored []string
	}{
		{"same content", report("c-1", userID("a")), func(t *testing.T, o *push.Operation) { t.Helper(); requireOutcome(t, o, replayed) }, nil},
		{"other content", report("c-1", userID("b")), requireConflict, nil},
		{"another CallerId", report("c-2", userID("a")), func(t *testing.T, o *push.Operation) { t.Helper(); requireOutcome(t, o, completed) }, []string{"a"}},
		{"no CallerId", report("", userID("a")), func(t *testing.T, o *push.Operation) { t.Helper(); requireOutcome(t, o, completed) }, []string{"a"}},
	} {
		inbox := new(push.Inbox)
		inbox.Register.Load(known)
		inbox.Accept([]*push.Operation{tt.repeat})
		tt.check(t, tt.repeat)
		require.Equal(t, tt.stored, storedOf(inbox), tt.name)
	}
}

func TestAnotherSubscriptionHasCallerIDsOfItsOwn(t *testing.T) {
	t.Parallel()
	ours, theirs := report("c-1", userID("a")), report("c-1", userID("b"))
	theirs.Subscription = "branch"
	inbox := accept(ours, theirs)
	requireOutcome(t, ours, completed)
	requireOutcome(t, theirs, completed)
	require.Equal(t, []string{"a", "b"}, storedOf(inbox))
}

func TestABatchDecidedAgainComesOutTheSame(t *testing.T) {
	t.Parallel()
	batch := []*push.Operation{report("c-1", userID("a")), report("c-1", userID("b")), report("c-1", userID("a")), report("", userID("c"))}
	for range 3 {
		inbox := accept(batch...)
		requireOutcome(t, batch[0], completed)
		requireConflict(t, batch[1])
		requireOutcome(t, batch[2], replayed)
		requireOutcome(t, batch[3], completed)
		require.Equal(t, []string{"a", "c"}, storedOf(inbox))
	}
	// The race on CallerId was lost meanwhile.
	lost := new(push.Inbox)
	lost.Register.Load(*accept(report("c-1", userID("b"))).Register.NewRecords()[0])
	lost.Accept(batch)
	requireConflict(t, batch[0])
	requireOutcome(t, batch[1], replayed)
	requireConflict(t, batch[2])
	require.Equal(t, []string{"c"}, storedOf(lost))
}

func TestKeysAreTheCallerIDsSortedAndOnce(t *testing.T) {
	t.Parallel()
	theirs := report("a", userID("x"))
	theirs.Subscription = "branch"
	key := func(callerID, subscription string) idempotency.Key {
		return idempotency.Key{CallerID: callerID, Subscription: subscription, Operation: operation.AddPushNotificationResponse}
	}
	require.Equal(t,
		[]idempotency.Key{key("a", "branch"), key("a", "mobile"), key("b", "mobile")},
		push.Keys([]*push.Operation{report("b", userID("x")), report("", userID("x")), report("a", userID("x")), theirs, report("b", userID("y"))}))
	require.Empty(t, push.Keys([]*push.Operation{report("", userID("x"))}))
	require.Empty(t, push.Keys(nil))
}

func fingerprint(o *push.Operation) idempotency.Fingerprint {
	o.Header.CallerID = "c-1"
	return accept(o).Register.NewRecords()[0].Fingerprint
}

func digest(t require.TestingT, subscription string, f push.Fields) push.Identity {
	n := notification(t, f)
	o := &push.Operation{Envelope: operation.Envelope{Subscription: subscription}, Notifications: []push.Notification{n}}
	return accept(o).ToStore()[0].Identity
}

func TestRecordsAreOneIfAllFieldsAreEqual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one := fields().Draw(t, "one")
		other := one
		if rapid.Bool().Draw(t, "differs") { // in about one field
			value, drawn := reflect.ValueOf(&other).Elem(), reflect.ValueOf(fields().Draw(t, "other"))
			i := rapid.IntRange(0, value.NumField()-1).Draw(t, "field")
			value.Field(i).Set(drawn.Field(i))
		}
		a, b := notification(t, one), notification(t, other)
		equal := cmp.Equal(*a.Values(), *b.Values(), cmpopts.EquateEmpty(), cmpopts.EquateComparable(a.Values().SendDate))
		require.Equal(t, equal, digest(t, "mobile", one) == digest(t, "mobile", other))
		require.Equal(t, equal, fingerprint(report("", one)) == fingerprint(report("", other)))
	})
}

func TestEveryFieldCountsForTheIdentityOfARecord(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*push.Fields){
		"ExternalApplicationCode": func(f *push.Fields) { f.ExternalApplicationCode += "x" },
		"ExternalTranCode":        func(f *push.Fields) { f.ExternalTranCode += "x" },
		"UserID":                  func(f *push.Fields) { f.UserID += "x" },
		"PushID":                  func(f *push.Fields) { f.PushID += "x" },
		"PushInteractionID":       func(f *push.Fields) { f.PushInteractionID = number("43") },
		"Platform":                func(f *push.Fields) { f.Platform = number("79") },
		"Subject":                 func(f *push.Fields) { f.Subject += "x" },
		"Content":                 func(f *push.Fields) { f.Content += "x" },
		"DeepLinkURL":             func(f *push.Fields) { f.DeepLinkURL += "x" },
		"SendStatus":              func(f *push.Fields) { f.SendStatus = number("0") },
		"SendDate":                func(f *push.Fields) { f.SendDate = "" },
		"TranData":                func(f *push.Fields) { f.TranData[1].Name += "x" },
	}
	for f := range reflect.TypeFor[push.Fields]().Fields() {
		require.NotNil(t, changes[f.Name], "add a change of %s to this test", f.Name)
	}
	original := digest(t, "mobile", sent())
	for field, change := range changes {
		require.NotEqual(t, original, digest(t, "mobile", sent(change)), field)
		require.NotEqual(t, fingerprint(report("", sent())), fingerprint(report("", sent(change))), field)
	}
	for name, change := range map[string]func(*push.Fields){
		"PushInteractionId absent": func(f *push.Fields) { f.PushInteractionID = number("") },
		"PushInteractionId 0":      func(f *push.Fields) { f.PushInteractionID = number("0") },
		"an item less":             func(f *push.Fields) { f.TranData = f.TranData[:1] },
		"an item more":             func(f *push.Fields) { f.TranData = append(f.TranData, push.TranDataItem{Code: "x"}) },
		"items in another order":   func(f *push.Fields) { f.TranData[0], f.TranData[1] = f.TranData[1], f.TranData[0] },
		"an item's other code":     func(f *push.Fields) { f.TranData[0].Code += "x" },
	} {
		require.NotEqual(t, original, digest(t, "mobile", sent(change)), name)
	}
	require.NotEqual(t,
		digest(t, "mobile", sent(func(f *push.Fields) { f.PushInteractionID = number("") })),
		digest(t, "mobile", sent(func(f *push.Fields) { f.PushInteractionID = number("0") })), "absent is not 0")
	require.NotEqual(t, original, digest(t, "branch", sent()), "of another subscription it is another record")
	require.Equal(t, original, digest(t, "mobile", sent(func(f *push.Fields) { f.Platform = number("6.5e1") })), "spelling does not count")
}

func TestAnItemCannotPassForARecord(t *testing.T) {
	t.Parallel()
	// The items spell, byte for byte, the record that follows in the other
	// content; only their number tells the two apart.
	first := sent(func(f *push.Fields) { f.TranData = nil })
	second := push.Fields{
		ExternalApplicationCode: "a", ExternalTranCode: "b", UserID: "c", PushID: "d", PushInteractionID: number("5000"),
		Platform: number("65"), Content: strings.Repeat("x", 125), SendStatus: number("1"),
	}
	forged := report("", first)
	record := *forged.Notifications[0].Values()
	record.TranData = []push.TranDataItem{
		{Code: "a", Name: "b"}, {Code: "c", Name: "d"}, {Code: "\x90\x4e", Name: "\x00\x7d" + second.Content + "\x00\x02\x00"},
	}
	forged.Notifications[0] = push.Restore(record) // today's rules refuse such a text
	require.NotEqual(t, fingerprint(report("", first, second)), fingerprint(forged))
}

func TestWhatCountsForTheContentOfAnOperation(t *testing.T) {
	t.Parallel()
	original := fingerprint(report("", userID("a"), userID("b")))
	require.NotEqual(t, original, fingerprint(report("", userID("b"), userID("a"))))
	require.NotEqual(t, original, fingerprint(report("", userID("a"))))
	require.NotEqual(t, original, fingerprint(report("", userID("a"), userID("b"), userID("b"))))

	header := func(change func(*operation.Header)) idempotency.Fingerprint {
		o := report("", userID("a"), userID("b"))
		change(&o.Header)
		return fingerprint(o)
	}
	require.NotEqual(t, original, header(func(h *operation.Header) { h.AppKey = "x" }))
	require.NotEqual(t, original, header(func(h *operation.Header) { h.Channel = "x" }))
	require.NotEqual(t, original, header(func(h *operation.Header) { h.TellerName = "x" }))
	require.Equal(t, original, header(func(h *operation.Header) { h.ChannelSessionID, h.ChannelRequestID, h.RequestID = "x", "y", "z" }))

	withOtherID := withID(9, report("", userID("a"), userID("b")))
	require.Equal(t, original, fingerprint(withOtherID))
}
