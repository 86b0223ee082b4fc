package contract

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	"bankingapi/application/subscriptions"
	application "bankingapi/application/trail"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

// TrailUnderTest is an implementation of the ports of package application/trail,
// with the ports whose transactions it records.
type TrailUnderTest struct {
	OfficeUnderTest
	Trail         application.Ports
	Subscriptions subscriptions.Repository
}

// Trail is the suite of the ports of package application/trail.
func Trail(t *testing.T, open func(t *testing.T) TrailUnderTest) {
	run := each(t, func(t *testing.T) trails {
		u := open(t)
		return trails{office{u.OfficeUnderTest, t}, u.Trail, u.Subscriptions}
	})
	run("without keys nothing is written", testNoTrail)
	run("every transaction writes leaves", testLeaves)
	run("a transaction without effect writes no leaf", testNoLeaf)
	run("a commit that fails writes all or nothing", testFailedCommit)
	run("a transaction that is run again writes its leaves once", testLeavesOnce)
	run("a settled sale has its newest leaf", testNewestLeaf)
	run("a reversal has a leaf of its own", testReversal)
	run("batches are sealed in their order", testSeal)
	run("a seal that fails changes nothing", testSealFails)
	run("callers seal in turn", testSealRace)
	run("a log is of the keys that made it", testIsOf)
	run("what is older is adopted once", testAdopt)
	run("a log that is cleared begins again", testClear)
	run("a mark is a batch without leaves", testMark)
	run("an error says that the trail cannot be reached", testTrailUnreachable)
}

type trails struct {
	office
	trail         application.Ports
	subscriptions subscriptions.Repository
}

var trailKeys = proof.NewKeys([]byte("the secret of a test"))

// record starts the trail of a book that is older.
func (k trails) record() {
	k.t.Helper()
	k.aDay()
	k.begin()
}

func (k trails) begin() {
	var next atomic.Int64
	next.Store(0x1000)
	k.trail.Writer.Use(trailKeys, func() operation.ID { return id(int(next.Add(1))) })
}

// leaf returns the newest leaf of an ID. There must be leaves of these kinds.
func (k trails) leaf(of operation.ID, kinds ...proof.Kind) application.Leaf {
	k.t.Helper()
	found, err := k.trail.Finder.Leaves(k.t.Context(), of)
	require.NoError(k.t, err)
	require.Len(k.t, found, len(kinds))
	for i := range found {
		decoded, err := proof.Decode(found[i].Content)
		require.NoError(k.t, err)
		require.Equal(k.t, of, decoded.ID)
		require.Equal(k.t, kinds[i].String(), decoded.Kind)
		entry := found[i].Batch.Entries[found[i].Index]
		require.Equal(k.t, of, entry.ID)
		require.Equal(k.t, tlog.RecordHash(found[i].Content), entry.Leaf)
	}
	return found[len(found)-1]
}

func (k trails) noLeaf(of operation.ID) {
	k.t.Helper()
	_, err := k.trail.Finder.Leaves(k.t.Context(), of)
	require.ErrorIs(k.t, err, application.ErrNotFound)
}

// sealed is what a notary would return: one hash for each record, here that of a leaf, and the size
// as the checkpoint.
func sealed(state application.State, records [][]byte) application.Sealed {
	size := state.Size + int64(len(records))
	return application.Sealed{First: state.Size, Checkpoint: strconv.FormatInt(size, 10), Hashes: these(records, tlog.RecordHash)}
}

// seal seals everything and returns the records.
func (k trails) seal(limit int) (all [][]byte) {
	k.t.Helper()
	for {
		round, err := k.trail.Log.Seal(k.t.Context(), limit, false, func(state application.State, records [][]byte, _ proof.Hashes) (application.Sealed, error) {
			require.LessOrEqual(k.t, len(records), limit)
			all = append(all, records...)
			return sealed(state, records), nil
		})
		require.NoError(k.t, err)
		if round.Sealed == 0 {
			return all
		}
	}
}

func (k trails) state() application.State {
	k.t.Helper()
	state, err := k.trail.Log.State(k.t.Context())
	require.NoError(k.t, err)
	return state
}

func (k trails) isOf(keys *proof.Keys) bool {
	k.t.Helper()
	own, err := k.trail.Log.IsOf(k.t.Context(), keys)
	require.NoError(k.t, err)
	return own
}

func testNoTrail(t *testing.T, k trails) {
	k.aDay()
	adopted, err := k.trail.Origin.Adopt(t.Context())
	require.NoError(t, err)
	require.Zero(t, adopted)
	k.noLeaf(id(1))
	require.Empty(t, k.seal(10))
	require.Equal(t, application.State{}, k.state())
	require.True(t, k.isOf(nil))
}

func testLeaves(t *testing.T, k trails) {
	k.record()
	ctx := t.Context()
	k.settle(3, order(11, "x", sale(1, 1, 2)), order(12, "", sale(2, 2, 1), sale(1, 1, 1)))
	k.leaf(id(11), proof.Sale)
	both := k.leaf(id(12), proof.Sale)
	require.Equal(t, k.leaf(id(11), proof.Sale).Batch, both.Batch, "one commit is one batch")
	k.settle(3, order(13, "y", sale(9_000_000, 1, 2)))
	require.Contains(t, string(k.leaf(id(13), proof.Sale).Content), fault.HoldingInsufficient)

	for n, callerID := range map[int]string{14: "p", 15: ""} {
		o := &push.Operation{
			Envelope:      operation.Envelope{ID: id(n), Subscription: "shop", Header: operation.Header{CallerID: callerID}, ReceivedAt: at(n)},
			Notifications: []push.Notification{note("u"+callerID, "a secret text")},
		}
		require.NoError(t, k.Inboxes.Update(ctx, push.Keys([]*push.Operation{o}), func(b *push.Inbox) { b.Accept([]*push.Operation{o}) }))
		require.NotContains(t, string(k.leaf(id(n), proof.Push).Content), "a secret text")
	}

	k.done(k.Imports.Holdings(ctx, lines(fund.Holding{Key: holdingOf(9), Units: 1}), under(id(16))))
	k.leaf(id(16), proof.Act)
	act := audit.Act{ID: id(17), At: at(17), Who: who, Action: "subscriptions.create", Object: "shop"}
	require.NoError(t, k.subscriptions.Create(audit.With(ctx, act), named("shop")))
	require.Contains(t, string(k.leaf(id(17), proof.Act).Content), "subscriptions.create")
	k.noLeaf(id(18))
}

func testNoLeaf(t *testing.T, k trails) {
	k.record()
	ctx, cancel := context.WithCancel(t.Context())
	require.Error(t, settle(ctx, k.Books, 3, cancel, order(11, "x", sale(1, 1, 2))))
	k.noLeaf(id(11))
	require.NoError(t, k.Books.Update(t.Context(), fund.NewLockSet(nil, on(3)), func(*fund.Book) {}))
	broken := errors.New("the file is broken")
	_, err := k.Imports.Holdings(t.Context(), func(yield func(int64, fund.Holding) error) error {
		return errors.Join(yield(2, fund.Holding{Key: holdingOf(9), Units: 1}), broken)
	}, under(id(12)))
	require.ErrorIs(t, err, broken)
	k.noLeaf(id(12))
	require.Empty(t, k.seal(10))

	k.settle(3, order(13, "again", sale(1, 1, 2)))
	require.Len(t, k.seal(10), 1)
	k.settle(3, order(14, "again", sale(1, 1, 2)))
	k.noLeaf(id(14))
	require.Empty(t, k.seal(10), "a repeat writes nothing")
}

func testFailedCommit(t *testing.T, k trails) {
	if lacks(t, k.FailCommit, "commit that fails on demand") {
		return
	}
	k.record()
	k.FailCommit()
	_ = settle(t.Context(), k.Books, 3, func() {}, order(11, "x", sale(1, 1, 2))) // it may be run again
	if _, err := k.Lookups.Operation(t.Context(), id(11)); err == nil {
		k.leaf(id(11), proof.Sale)
		require.Len(t, k.seal(10), 1)
	} else {
		k.noLeaf(id(11))
		require.Empty(t, k.seal(10))
	}
}

func testLeavesOnce(t *testing.T, k trails) {
	if lacks(t, k.LoseRace, "race that is lost on demand") {
		return
	}
	k.record()
	k.LoseRace()
	k.settle(3, order(11, "x", sale(1, 1, 2)))
	k.leaf(id(11), proof.Sale)
	require.Len(t, k.seal(10), 1)
}

func testNewestLeaf(t *testing.T, k trails) {
	k.record()
	k.settle(3, order(11, "x", later(9, sale(1, 1, 2))))
	first := k.leaf(id(11), proof.Sale)
	k.settle(9, listDue(t.Context(), t, k.Books, 9, nil, 10)...)
	second := k.leaf(id(11), proof.Sale, proof.End)
	require.NotEqual(t, first.Batch.ID, second.Batch.ID)
	k.leaf(id(5), proof.End) // it was recorded before the trail began
}

func testReversal(t *testing.T, k trails) {
	k.record()
	k.settle(3, order(11, "x", sale(1, 1, 2)))
	k.leaf(id(11), proof.Sale)
	k.done(k.corrector(3).Reverse(k.by(), id(11)))
	found := k.leaf(id(11), proof.Sale, proof.End)
	require.Contains(t, string(found.Content), "Reversal")
}

func testSeal(t *testing.T, k trails) {
	k.record()
	require.Equal(t, application.State{}, k.state())
	var batches []proof.Batch
	for n := range 5 {
		k.settle(3, order(11+n, "", sale(1, 1, 2)))
		found := k.leaf(id(11+n), proof.Sale)
		require.EqualValues(t, -1, found.BatchIndex, "it is not sealed yet")
		batches = append(batches, found.Batch)
	}
	records := k.seal(2)
	require.Len(t, records, 5)
	for n := range batches {
		require.Equal(t, batches[n].Record(), records[n])
		require.EqualValues(t, n, k.leaf(id(11+n), proof.Sale).BatchIndex)
	}
	require.Equal(t, application.State{Size: 5, Checkpoint: "5"}, k.state())

	k.settle(3, order(16, "", sale(1, 1, 2)))
	round, err := k.trail.Log.Seal(t.Context(), 2, false, func(state application.State, records [][]byte, hashes proof.Hashes) (application.Sealed, error) {
		require.Equal(t, application.State{Size: 5, Checkpoint: "5"}, state)
		stored, err := hashes([]int64{3, 0, 3})
		require.NoError(t, err)
		require.Equal(t, []proof.Hash{tlog.RecordHash(batches[3].Record()), tlog.RecordHash(batches[0].Record()), tlog.RecordHash(batches[3].Record())}, stored)
		return sealed(state, records), nil
	})
	require.NoError(t, err)
	require.Equal(t, application.Round{Sealed: 1}, round)
	stored, err := k.trail.Log.Hashes(t.Context(), []int64{5, 1})
	require.NoError(t, err)
	require.Equal(t, tlog.RecordHash(batches[1].Record()), stored[1])
	_, err = k.trail.Log.Hashes(t.Context(), []int64{1, 6})
	require.Error(t, err, "it is not stored")
	none, err := k.trail.Log.Hashes(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, none)

	round, err = k.trail.Log.Seal(t.Context(), 2, false, nil)
	require.NoError(t, err, "seal is not called if nothing is open")
	require.Zero(t, round)
}

func testSealFails(t *testing.T, k trails) {
	k.record()
	k.settle(3, order(11, "", sale(1, 1, 2)))
	refused := errors.New("the log was changed")
	_, err := k.trail.Log.Seal(t.Context(), 2, false, func(application.State, [][]byte, proof.Hashes) (application.Sealed, error) {
		return application.Sealed{}, refused
	})
	require.ErrorIs(t, err, refused)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = k.trail.Log.Seal(ctx, 2, false, func(state application.State, records [][]byte, _ proof.Hashes) (application.Sealed, error) {
		cancel()
		return sealed(state, records), nil
	})
	fails(t, fault.Unavailable, err)
	require.Equal(t, application.State{}, k.state())
	require.EqualValues(t, -1, k.leaf(id(11), proof.Sale).BatchIndex)
	require.Len(t, k.seal(2), 1)
}

func testSealRace(t *testing.T, k trails) {
	k.record()
	for n := range callers {
		k.settle(3, order(11+n, "", sale(1, 1, 2)))
	}
	var places [callers]atomic.Int64
	errs := together(3, func(int) (err error) {
		var round application.Round
		for round.Sealed = 1; round.Sealed > 0 && err == nil; {
			var state application.State
			round, err = k.trail.Log.Seal(t.Context(), 2, false, func(s application.State, records [][]byte, _ proof.Hashes) (application.Sealed, error) {
				state = s
				return sealed(s, records), nil
			})
			for p := range round.Sealed {
				places[state.Size+int64(p)].Add(1)
			}
		}
		return err
	})
	require.NoError(t, errors.Join(errs...))
	for p := range places {
		require.EqualValues(t, 1, places[p].Load(), "place %d", p)
	}
	require.Equal(t, application.State{Size: callers, Checkpoint: strconv.Itoa(callers)}, k.state())
}

func testIsOf(t *testing.T, k trails) {
	others := proof.NewKeys([]byte("another secret"))
	k.record()
	require.True(t, k.isOf(nil))
	require.True(t, k.isOf(others), "the log is empty")
	k.settle(3, order(11, "", sale(1, 1, 2)))
	for range 2 {
		require.False(t, k.isOf(nil))
		require.False(t, k.isOf(others))
		require.True(t, k.isOf(trailKeys))
		k.seal(10)
	}
}

func testAdopt(t *testing.T, k trails) {
	k.aDay()
	require.NoError(t, k.subscriptions.Create(t.Context(), &subscription.Subscription{Name: "shop", State: subscription.Active}))
	k.begin()
	k.settle(3, order(11, "", sale(1, 1, 2)))
	k.noLeaf(id(1))
	_, err := k.trail.Origin.Adopt(ended(t))
	fails(t, fault.Unavailable, err)

	adopted, err := k.trail.Origin.Adopt(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, adopted, int64(10), "7 operations, a price, an import of holdings and a subscription")
	for n := 1; n <= 7; n++ {
		kinds := []proof.Kind{proof.Sale}
		if n > 5 { // it was recorded first, and has ended
			kinds = append(kinds, proof.End)
		}
		k.leaf(id(n), kinds...)
	}
	k.leaf(id(0x100), proof.Act)
	sealed := len(k.seal(10))
	again, err := k.trail.Origin.Adopt(t.Context())
	require.NoError(t, err)
	require.Zero(t, again)
	require.Empty(t, k.seal(10))
	require.EqualValues(t, sealed, k.state().Size)
	k.leaf(id(11), proof.Sale)
	taken, err := k.trail.Origin.TakeIn(t.Context(), func([]string) audit.Act {
		t.Error("an act of nothing")
		return audit.Act{}
	})
	require.NoError(t, err)
	require.Empty(t, taken, "everything is in the log")
}

func testClear(t *testing.T, k trails) {
	k.record()
	k.settle(3, order(11, "x", sale(1, 1, 2)))
	k.done(k.trail.Origin.Adopt(t.Context()))
	k.seal(10)
	act := audit.Act{ID: id(0x999), At: at(9), Who: who, Action: audit.TrailRekey, Object: "the new key", Details: "the last\n\ncheckpoint\n"}
	before := k.acts()
	require.Error(t, k.trail.Origin.Clear(ended(t), act))
	require.Equal(t, before, k.acts(), "the log goes on")
	require.NoError(t, k.trail.Origin.Clear(t.Context(), act))
	kept := act
	kept.ID = operation.ID{} // acts leaves it out
	require.Equal(t, append(before, kept), k.acts())
	require.True(t, k.isOf(nil))
	require.Equal(t, application.State{}, k.state())
	_, err := k.trail.Log.Hashes(t.Context(), []int64{0})
	require.Error(t, err)
	k.noLeaf(id(11))
	adopted, err := k.trail.Origin.Adopt(t.Context())
	require.NoError(t, err)
	require.Positive(t, adopted)
	k.leaf(id(11), proof.Sale)
	k.leaf(act.ID, proof.Act)
}

func testMark(t *testing.T, k trails) {
	k.record()
	k.settle(3, order(11, "", sale(1, 1, 2)))
	var tree proof.Tree
	for size := range int64(2) {
		round, err := k.trail.Log.Seal(t.Context(), 10, true, func(state application.State, records [][]byte, _ proof.Hashes) (application.Sealed, error) {
			_, leaves, err := proof.ParseRecord(records[0])
			require.NoError(t, err)
			require.Zero(t, leaves)
			s := application.Sealed{First: proof.StoredHashes(state.Size), Checkpoint: "signed"}
			for _, r := range records {
				s.Hashes = append(s.Hashes, tree.Append(r)...)
			}
			return s, nil
		})
		require.NoError(t, err)
		require.EqualValues(t, 2-size, round.Sealed, "also without an open batch")
		require.Empty(t, k.seal(10))
	}
	require.EqualValues(t, 3, k.state().Size)
	require.EqualValues(t, 1, k.leaf(id(11), proof.Sale).BatchIndex)
}

func testTrailUnreachable(t *testing.T, k trails) {
	k.record()
	k.settle(3, order(11, "", sale(1, 1, 2)))
	k.seal(10)
	unreachable(t, k.Trouble, func(ctx context.Context) []error {
		_, state := k.trail.Log.State(ctx)
		_, seal := k.trail.Log.Seal(ctx, 10, false, nil)
		_, hashes := k.trail.Log.Hashes(ctx, []int64{0})
		_, isOf := k.trail.Log.IsOf(ctx, trailKeys)
		_, leaf := k.trail.Finder.Leaves(ctx, id(11))
		_, adopt := k.trail.Origin.Adopt(ctx)
		return []error{state, seal, hashes, isOf, leaf, adopt, k.trail.Origin.Clear(ctx, audit.Act{ID: id(0x999), At: at(9)})}
	})
}
