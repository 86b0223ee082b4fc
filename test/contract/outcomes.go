package contract

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// forLater are operations of one sale each for day 3: every second one of the
// subscription b, the others of a.
func (o office) forLater(first, n int, units int64) (batch []*fund.Operation) {
	o.t.Helper()
	for i := range n {
		one := order(first+i, fmt.Sprint("later-", first+i), later(3, sale(units, 1, 1)))
		one.Subscription = string("ab"[i%2])
		batch = append(batch, one)
	}
	o.settle(0, batch...)
	return batch
}

// asDue are recorded operations as SettleDue hands them in.
func asDue(recorded ...*fund.Operation) []*fund.Operation {
	return these(recorded, func(r *fund.Operation) *fund.Operation {
		return &fund.Operation{Envelope: r.Envelope, Sales: r.Sales, Due: true}
	})
}

func (o office) outcomes(subscription string, after int64, limit int) []fund.Ended {
	o.t.Helper()
	found, err := o.Outcomes.Outcomes(o.t.Context(), subscription, after, limit)
	require.NoError(o.t, err)
	return found
}

func testOutcomes(t *testing.T, o office) {
	o.aDay()
	var next atomic.Int64
	next.Store(0x200)
	before, err := o.Outcomes.LastOutcome(t.Context())
	require.NoError(t, err)
	good := o.forLater(0x300, 2, 1)
	bad := o.forLater(0x310, 1, 1_000_000_000)
	require.Empty(t, o.outcomes("", before, 10), "what is recorded has not ended")

	require.NoError(t, o.correctorOf(2, &next).Cancel(o.by(), good[1].ID))
	o.settle(3, asDue(bad[0], good[0])...)
	o.settle(3, asDue(good[0])...) // it is settled already
	o.done(o.correctorOf(4, &next).Reverse(o.by(), good[0].ID))
	_, err = o.correctorOf(5, &next).Reverse(o.by(), good[0].ID)
	require.ErrorIs(t, err, fund.ErrReversed)

	refused := func(code string) []fault.Fault { return operation.UnderParameter(0, []fault.Fault{fund.Refusal(code)}) }
	want := []fund.Ended{
		{OperationID: good[1].ID, Subscription: "b", CallerID: "later-769", State: operation.Failed, Faults: refused(fault.Cancelled), At: at(48)},
		{OperationID: bad[0].ID, Subscription: "a", CallerID: "later-784", State: operation.Failed, Faults: refused(fault.HoldingInsufficient), At: at(72)},
		{OperationID: good[0].ID, Subscription: "a", CallerID: "later-768", State: operation.Completed, At: at(72)},
		{OperationID: good[0].ID, Subscription: "a", CallerID: "later-768", State: operation.Completed, Reversed: true, At: at(96)},
	}
	for i := range want {
		want[i].Number = before + int64(i) + 1
	}
	equal(t, want, o.outcomes("", before, 10))
	equal(t, want[:3], o.outcomes("", before, 3))
	equal(t, want[2:], o.outcomes("", want[1].Number, 10))
	equal(t, want[1:], o.outcomes("a", before, 10))
	equal(t, want[:1], o.outcomes("b", before, 10))
	require.Empty(t, o.outcomes("c", 0, 10))
	require.Empty(t, o.outcomes("b", want[0].Number, 10))
	last, err := o.Outcomes.LastOutcome(t.Context())
	require.NoError(t, err)
	require.Equal(t, want[3].Number, last)
	o.holds()
}

// Many end at once: a reader who asks after its last outcome again and again misses
// none and sees none twice, in whatever order the transactions commit.
func testOutcomesAtOnce(t *testing.T, o office) {
	o.aDay()
	const writers, each = 8, 6
	var ids atomic.Int64
	ids.Store(0x200)
	batch := o.forLater(0x300, writers*each, 1)
	after, err := o.Outcomes.LastOutcome(t.Context())
	require.NoError(t, err)
	written := make(chan error, 1)
	go func() {
		written <- errors.Join(together(writers, func(n int) (err error) {
			for i, one := range batch[n*each : (n+1)*each] {
				if i%2 == 0 {
					err = errors.Join(err, o.correctorOf(2, &ids).Cancel(o.by(), one.ID))
				} else {
					err = errors.Join(err, settle(t.Context(), o.Books, 3, func() {}, asDue(one)...))
				}
			}
			return err
		})...)
	}()
	seen := make(map[operation.ID]bool)
	next := after
	read := func() {
		for _, e := range o.outcomes("", next, 5) {
			require.Equal(t, next+1, e.Number, "numbers have no gap that is filled later")
			require.False(t, seen[e.OperationID])
			seen[e.OperationID], next = true, e.Number
		}
	}
	for done := false; !done; {
		select {
		case err := <-written:
			require.NoError(t, err)
			done = true
		default:
			read()
		}
	}
	for range writers * each {
		read()
	}
	require.Len(t, seen, writers*each)
	o.holds()
}
