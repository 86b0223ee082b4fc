package contract

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/addpush"
	"bankingapi/application/commit"
	"bankingapi/domain/fault"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/value"
)

// InboxesUnderTest is an implementation of addpush.Inboxes, with a function
// that reads its contents.
type InboxesUnderTest struct {
	addpush.Inboxes
	// Notifications reads all stored notifications, in any order.
	Notifications func(t *testing.T) []push.Entry
	Trouble
}

// Inboxes is the suite of the port addpush.Inboxes.
func Inboxes(t *testing.T, open func(t *testing.T) InboxesUnderTest) {
	run := each(t, func(t *testing.T) inboxes { return inboxes{open(t), t} })
	run("every field comes back as it was", func(t *testing.T, b inboxes) {
		full := &push.Operation{
			Envelope: operation.Envelope{ID: id(1), Subscription: odd(100, "subscription"), Header: header(odd(200, "caller")), ReceivedAt: at(1)},
			Notifications: []push.Notification{
				push.Restore(push.Values{
					ExternalApplicationCode: odd(100, "application"),
					ExternalTranCode:        odd(100, "tran code"),
					UserID:                  odd(200, "user"),
					PushID:                  odd(200, "push"),
					PushInteractionID:       math.MaxInt64,
					HasPushInteractionID:    true,
					Platform:                push.Android,
					Subject:                 odd(1000, "subject"),
					Content:                 odd(10_000, "content"),
					DeepLinkURL:             odd(2048, "link"),
					Sent:                    true,
					SendDate:                on(1),
					TranData:                oddTranData(100),
				}),
				push.Restore(push.Values{
					UserID: "b", PushInteractionID: math.MinInt64, HasPushInteractionID: true, Platform: push.IOS,
					SendDate: value.Day("0001-01-01"), TranData: []push.TranDataItem{{Code: "2"}, {Code: "1"}, {Code: "2"}},
				}),
				// A 0 in a request differs from a missing field. The last day
				// of the calendar is valid.
				push.Restore(push.Values{UserID: "c", HasPushInteractionID: true, Platform: push.Other, SendDate: value.Day("9999-12-31")}),
				push.Restore(push.Values{UserID: "d", Platform: push.Other}),
			},
		}
		fields := reflect.ValueOf(full.Notifications[0].Values()).Elem()
		for i := range fields.NumField() {
			require.False(t, fields.Field(i).IsZero(), "add %s to this record in test/contract/addpush.go", fields.Type().Field(i).Name)
		}
		bare := b.operation(2, "s", "", note("e", ""))
		b.accept(full, bare)
		b.stored(full, bare)
	})

	run("text that cannot be kept never reaches the storage", func(t *testing.T, b inboxes) {
		adder, err := addpush.New(b, addpush.Options{
			ParametersLimit: 1, Commit: commit.Limits{Batch: 1, Timeout: time.Minute},
			Now: func() time.Time { return at(0) }, NewID: func() operation.ID { return id(1) },
		})
		require.NoError(t, err)
		unkeepable(t, func(caller *subscription.Subscription, header operation.Header, text string) error {
			n := note("u", text)
			_, err := adder.Add(t.Context(), caller, header, []push.Fields{n.Values().Fields()})
			return err
		})
		require.Empty(t, b.all())
	})

	run("a stored record is not changed", func(t *testing.T, b inboxes) {
		first := b.operation(1, "s", "", note("u", "a"), note("u", "b"))
		again := b.operation(2, "s", "", note("u", "c"), note("u", "b"), note("u", "c"))
		sameBatch := b.operation(3, "s", "", note("u", "c"))
		b.accept(first)
		b.accept(again, sameBatch)
		for _, o := range []*push.Operation{first, again, sameBatch} {
			outcome, err := o.Outcome()
			require.NoError(t, err)
			require.Equal(t, operation.Outcome{ID: o.ID, State: operation.Completed}, outcome)
		}
		places := these(b.all(), func(n push.Entry) place { return place{number(n.ID), n.Index} })
		equal(t, []place{{1, 0}, {1, 1}, {2, 0}}, places)
	})

	run("an operation whose records were all stored before is kept with its CallerId", func(t *testing.T, b inboxes) {
		b.accept(b.operation(1, "s", "", note("u", "a")))
		second := b.operation(2, "s", "caller", note("u", "a"))
		b.accept(second)
		repeat := b.operation(3, "s", "caller", note("u", "a"))
		other := b.operation(4, "s", "caller", note("u", "b"))
		b.accept(repeat, other)
		outcome, err := repeat.Outcome()
		require.NoError(t, err)
		require.Equal(t, operation.Outcome{ID: second.ID, State: operation.Completed, Replayed: true}, outcome)
		_, err = other.Outcome()
		fails(t, fault.Conflict, err)
		require.Len(t, b.all(), 1)
	})

	run("similar records are different records", func(t *testing.T, b inboxes) {
		var notes []push.Notification
		alike := []string{"i", "I", "ı", "İ", " i", "i ", "\u00ed", "i\u0301", "i\x01", "i\t", "i\n"}
		for _, text := range alike {
			notes = append(notes, note(text, "same"), note("same", text))
		}
		ours := b.operation(1, "s", "", notes...)
		theirs := b.operation(2, "S", "", notes...)
		b.accept(ours)
		b.accept(theirs)
		b.stored(ours, theirs)
	})

	run("one transaction takes many of the largest requests", func(t *testing.T, b inboxes) {
		batch := make([]*push.Operation, 3)
		for i := range batch {
			notes := make([]push.Notification, 1000)
			for n := range notes {
				notes[n] = note("user "+strconv.Itoa(n%7), strconv.Itoa(i)+"/"+strconv.Itoa(n))
			}
			batch[i] = b.operation(i, "s", "caller "+strconv.Itoa(i), notes...)
		}
		b.accept(batch...)
		b.stored(batch...)
	})

	run("a CallerId is known after its first request", func(t *testing.T, b inboxes) {
		callerID := odd(200, "caller")
		first := b.operation(1, "s", callerID, note("u", "a"))
		b.accept(first)
		repeat := b.operation(2, "s", callerID, note("u", "a"))
		other := b.operation(3, "s", callerID, note("u", "b"))
		elsewhere := b.operation(4, "S", callerID, note("u", "c"))
		capitals := b.operation(5, "s", callerID[:len(callerID)-1]+"x", note("u", "d"))
		b.accept(repeat, other, elsewhere, capitals)

		outcome, err := repeat.Outcome()
		require.NoError(t, err)
		require.NotEqual(t, repeat.ID, outcome.ID, "a repeat returns the ID of the first operation")
		outcome.ID = operation.ID{}
		require.Equal(t, operation.Outcome{State: operation.Completed, Replayed: true}, outcome)
		_, err = other.Outcome()
		fails(t, fault.Conflict, err)
		b.stored(first, elsewhere, capitals)
	})

	run("a CallerId keeps its answer whatever is defined for its caller", func(t *testing.T, b inboxes) {
		caller := &subscription.Subscription{Name: "s", AppKey: "app", Channel: "first"}
		arrive := func(n int, callerID, channel, pushID string) *push.Operation {
			t.Helper()
			recorded, checked, err := caller.Check(operation.Header{CallerID: callerID, Channel: channel})
			require.NoError(t, err)
			o := b.operation(n, "s", "", note("u", pushID))
			o.Header = recorded
			o.Checked = checked
			return o
		}
		silent := arrive(1, "silent", "", "a")
		named := arrive(2, "named", "first", "b")
		b.accept(silent, named)

		caller.AppKey = ""
		caller.Channel = "second"
		caller.TellerName = "teller"
		repeats := []*push.Operation{arrive(3, "silent", "", "a"), arrive(4, "named", "first", "b")}
		others := []*push.Operation{arrive(5, "silent", "second", "a"), arrive(6, "named", "second", "b"), arrive(7, "named", "first", "c")}
		contradicting := arrive(8, "new", "first", "d")
		fresh := arrive(9, "fresh", "", "e")
		for _, o := range append(slices.Concat(repeats, others), contradicting) {
			b.accept(o) // alone: there is nothing to store
		}
		// A batch that also stores something, and so may be tried on an assumption.
		last := arrive(10, "named", "first", "b")
		b.accept(last, fresh)
		for _, o := range append(repeats, last) {
			outcome, err := o.Outcome()
			require.NoError(t, err)
			require.True(t, outcome.Replayed)
			require.Equal(t, operation.Completed, outcome.State)
		}
		for _, o := range others {
			_, err := o.Outcome()
			fails(t, fault.Conflict, err)
		}
		_, err := contradicting.Outcome()
		fails(t, fault.Forbidden, err)
		unknown(t, contradicting, b.registers)
		b.stored(silent, named, fresh)
		require.Equal(t, "first", silent.Header.Channel, "the value that was defined at the first request is recorded")
	})

	run("one of twenty requests with the same CallerId takes effect", func(t *testing.T, b inboxes) {
		operations := make([]*push.Operation, callers)
		for i := range operations {
			operations[i] = b.operation(i, "s", "one", note("u", "a"))
		}
		var winners []*push.Operation
		b.race(operations)
		for _, o := range operations {
			outcome, err := o.Outcome()
			require.NoError(t, err)
			require.Equal(t, operation.Completed, outcome.State)
			if !outcome.Replayed {
				winners = append(winners, o)
			}
		}
		require.Len(t, winners, 1)
		b.stored(winners...)
	})

	run("one of twenty requests with the same CallerId and different contents succeeds", func(t *testing.T, b inboxes) {
		operations := make([]*push.Operation, callers)
		for i := range operations {
			operations[i] = b.operation(i, "s", "one", note("u", strconv.Itoa(i)))
		}
		var winners []*push.Operation
		b.race(operations)
		for _, o := range operations {
			if _, err := o.Outcome(); err == nil {
				winners = append(winners, o)
			} else {
				require.Equal(t, fault.Conflict, fault.KindOf(err))
			}
		}
		require.Len(t, winners, 1)
		b.stored(winners...)
	})

	run("twenty requests with the same records store each once", func(t *testing.T, b inboxes) {
		operations := make([]*push.Operation, callers)
		for i := range operations {
			notes := []push.Notification{note("u", "a"), note("v", "b"), note("w", "c")}
			if i%2 == 1 {
				slices.Reverse(notes) // another order must not cause a deadlock
			}
			operations[i] = b.operation(i, "s", "", notes...)
		}
		b.race(operations)
		require.ElementsMatch(t, []string{"u", "v", "w"}, these(b.Notifications(t), userOf))
	})

	t.Run("transaction", func(t *testing.T) {
		transactions(t, func(t *testing.T) transaction {
			b := inboxes{open(t), t}
			o := b.operation(1, "s", "caller", note("u", "a"), note("u", "b"))
			return transaction{
				Trouble: b.Trouble,
				run: func(ctx context.Context, during func()) error {
					return b.Update(ctx, push.Keys([]*push.Operation{o}), func(inbox *push.Inbox) {
						inbox.Accept([]*push.Operation{o})
						during()
					})
				},
				nothing: func(t *testing.T) {
					require.Empty(t, b.Notifications(t))
					unknown(t, o, b.registers)
				},
				once: func(t *testing.T) {
					outcome, err := o.Outcome()
					require.NoError(t, err)
					require.Equal(t, operation.Outcome{ID: o.ID, State: operation.Completed}, outcome)
					b.stored(o)
				},
			}
		})
	})
}

// inboxes is the implementation that one test uses.
type inboxes struct {
	InboxesUnderTest
	t *testing.T
}

func (b inboxes) operation(n int, subscription, callerID string, notes ...push.Notification) *push.Operation {
	return &push.Operation{
		Envelope: operation.Envelope{ID: id(n), Subscription: subscription, Header: operation.Header{CallerID: callerID}, ReceivedAt: at(n)}, Notifications: notes,
	}
}

func (b inboxes) registers(keys []idempotency.Key, change func(*idempotency.Register)) error {
	return b.Update(b.t.Context(), keys, func(inbox *push.Inbox) { change(&inbox.Register) })
}

func (b inboxes) try(batch ...*push.Operation) error {
	return b.Update(b.t.Context(), push.Keys(batch), func(inbox *push.Inbox) { inbox.Accept(batch) })
}

func (b inboxes) accept(batch ...*push.Operation) {
	b.t.Helper()
	require.NoError(b.t, b.try(batch...))
}

// race accepts the operations at the same moment, each in its own transaction.
func (b inboxes) race(operations []*push.Operation) {
	b.t.Helper()
	require.NoError(b.t, errors.Join(together(len(operations), func(i int) error { return b.try(operations[i]) })...))
}

// stored checks that exactly the notifications of the operations are stored.
func (b inboxes) stored(operations ...*push.Operation) {
	b.t.Helper()
	var want []push.Entry
	for _, o := range operations {
		for i := range o.Notifications {
			want = append(want, push.Entry{
				Envelope: o.Envelope, Index: i,
				Values: *o.Notifications[i].Values(),
			})
		}
	}
	slices.SortFunc(want, compareNotifications)
	equal(b.t, want, b.all())
}

func (b inboxes) all() []push.Entry {
	b.t.Helper()
	all := slices.SortedFunc(slices.Values(b.Notifications(b.t)), compareNotifications)
	for i := range all {
		all[i].Identity = push.Identity{} // depends on the key of the book
	}
	return all
}

func compareNotifications(x, y push.Entry) int {
	return cmp.Or(bytes.Compare(x.ID[:], y.ID[:]), cmp.Compare(x.Index, y.Index))
}

func note(userID, content string) push.Notification {
	return push.Restore(push.Values{
		ExternalApplicationCode: "a", UserID: userID, PushID: "p", Platform: push.Other, Content: content,
	})
}

func oddTranData(n int) []push.TranDataItem {
	items := make([]push.TranDataItem, n)
	for i := range items {
		items[i] = push.TranDataItem{Code: odd(100, strconv.Itoa(i)), Name: odd(1000, strconv.Itoa(-i))}
	}
	return items
}
