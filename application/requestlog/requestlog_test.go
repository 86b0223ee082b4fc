package requestlog_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/requestlog"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/test/fake"
)

var now = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)

func open(strike fake.Strike) (*requestlog.Log, func() []summary.Answered) {
	store, ids := fake.NewStore(), new(fake.IDs)
	log := requestlog.New(store.Requests(strike), audit.Acts{NewID: ids.Next, Now: func() time.Time { return now }})
	return log, func() (kept []summary.Answered) {
		for entry, err := range store.Backoffice(nil, time.Now).Reader.Requests(context.Background(), backoffice.Query{}) {
			if err == nil {
				kept = append(kept, entry)
			}
		}
		return kept
	}
}

// Errors and repeats are kept. What a new operation answered has its IDs already.
func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	log, kept := open(nil)
	codes := []string{"required"}
	for _, x := range []summary.Exchange{{Status: 200}, {Status: 200, Replayed: true}, {Status: 400, Codes: codes}, {Status: 304}, {Status: 503}} {
		x.Subscription = "shop"
		log.Add(&x)
	}
	codes[0] = "used again"
	require.Empty(t, kept(), "nothing is written before its time")
	require.NoError(t, log.Write(t.Context()))
	require.NoError(t, log.Write(t.Context()), "nothing waits")
	found := kept()
	require.Len(t, found, 3)
	require.True(t, found[0].Replayed)
	require.Equal(t, []string{"required"}, found[1].Codes)
	require.Equal(t, 503, found[2].Status)
	require.Equal(t, now, found[2].At)
}

// In a flood the log is a sample: a partner who sends many leaves room for others. The last
// entry says how many are missing, also those of a write that failed.
func TestAFloodIsSampled(t *testing.T) {
	t.Parallel()
	var failed error
	log, kept := open(func(context.Context, fake.Moment) error { return failed })
	ask := func(n int, partner string) {
		for range n {
			log.Add(&summary.Exchange{Status: 401, Subscription: partner})
		}
	}
	ask(1000, "loud")
	ask(1, "quiet")
	require.NoError(t, log.Write(t.Context()))
	found := kept()
	require.Len(t, found, 21)
	require.Equal(t, "quiet", found[20].Subscription)
	require.EqualValues(t, 980, found[20].Omitted)

	failed = errors.New("a row that can never be written")
	ask(25, "loud")
	require.ErrorIs(t, log.Write(t.Context()), failed)
	require.NoError(t, log.Write(t.Context()), "they are lost")
	failed = nil
	for n := range 300 {
		ask(1, strconv.Itoa(n))
	}
	require.NoError(t, log.Write(t.Context()))
	found = kept()[21:]
	require.Len(t, found, 200)
	require.EqualValues(t, 25+100, found[199].Omitted)
	require.Zero(t, found[198].Omitted)
}

// Whoever sends requests without a key takes no place of a partner.
func TestStrangersAreFew(t *testing.T) {
	t.Parallel()
	clock := fake.NewClock(time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC))
	store := fake.NewStore()
	log := requestlog.New(store.Requests(nil), audit.Acts{NewID: new(fake.IDs).Next, Now: clock.Now})
	for range 3 {
		for range 100 {
			log.Add(&summary.Exchange{Status: 401})
			log.Add(&summary.Exchange{Status: 404})
		}
		log.Add(&summary.Exchange{Status: 401, Subscription: "partner"})
		require.NoError(t, log.Write(t.Context()))
		clock.Set(clock.Now().Add(time.Second))
	}
	strangers, omitted := 0, int64(0)
	entries := 0
	for entry, err := range store.Backoffice(nil, clock.Now).Reader.Requests(t.Context(), backoffice.Query{}) {
		require.NoError(t, err)
		entries++
		omitted += entry.Omitted
		if entry.Subscription == "" {
			strangers++
		}
	}
	require.Equal(t, 6, strangers, "two a second")
	require.Equal(t, 9, entries)
	require.EqualValues(t, 600-6, omitted)
}

// A partner whose requests fail for days does not push out the entries of others.
func TestAPartnerHasAShareOfTheLog(t *testing.T) {
	t.Parallel()
	clock := fake.NewClock(time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC))
	kept := new(counter)
	log := requestlog.New(kept, audit.Acts{NewID: new(fake.IDs).Next, Now: clock.Now})
	ask := func(seconds int) {
		for range seconds {
			for range 20 {
				log.Add(&summary.Exchange{Status: 400, Subscription: "loud"})
			}
			require.NoError(t, log.Write(t.Context()))
			clock.Set(clock.Now().Add(time.Second))
		}
	}
	ask(1100)
	require.InDelta(t, 20_000+1100/3, kept.entries, 1)
	log.Add(&summary.Exchange{Status: 400, Subscription: "quiet"})
	clock.Set(clock.Now().Add(-time.Hour))
	before := kept.entries
	ask(300)
	require.InDelta(t, before+1+300/3, kept.entries, 1, "also after the clock went back")
}

// counter counts the entries that are added, and forgets none.
type counter struct {
	entries int
}

func (c *counter) Add(_ context.Context, entries []summary.Answered) error {
	c.entries += len(entries)
	return nil
}

func (c *counter) Forget(context.Context, time.Time, int, int) error { return nil }

// Repeats are harmless. However many there are, they leave half of the room of a partner, and
// of all, for errors.
func TestRepeatsLeaveRoomForErrors(t *testing.T) {
	t.Parallel()
	log, kept := open(nil)
	ask := func(n int, x summary.Exchange) {
		for range n {
			log.Add(&x)
		}
	}
	ask(1000, summary.Exchange{Status: 200, Replayed: true, Subscription: "loud"})
	ask(6, summary.Exchange{Status: 422, Subscription: "loud"})
	for n := range 20 {
		ask(10, summary.Exchange{Status: 200, Replayed: true, Subscription: strconv.Itoa(n)})
	}
	ask(100, summary.Exchange{Status: 200, Replayed: true, Subscription: "loud"})
	ask(1, summary.Exchange{Status: 503, Subscription: "another"})
	require.NoError(t, log.Write(t.Context()))
	errors := 0
	found := kept()
	for _, entry := range found {
		if entry.Status >= 400 {
			errors++
		}
	}
	require.Equal(t, 7, errors)
	require.Len(t, found, 101)
	require.EqualValues(t, 990+200-84+100, found[100].Omitted)
}

// What was answered while the storage was away is written when it is back, in the room of one
// batch, and also if nobody fails again.
func TestEntriesWaitForTheStorage(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.Unavailable, fault.Indeterminate} {
		var failed error = fault.New(kind, "away")
		log, kept := open(func(context.Context, fake.Moment) error { return failed })
		for n := range 30 {
			log.Add(&summary.Exchange{Status: 503, RequestID: strconv.Itoa(n), Subscription: "loud"})
			require.ErrorIs(t, log.Write(t.Context()), failed)
		}
		log.Add(&summary.Exchange{Status: 503, RequestID: "another", Subscription: "quiet"})
		failed = nil
		require.NoError(t, log.Write(t.Context()))
		found := kept()
		require.Len(t, found, 21)
		require.Equal(t, "0", found[0].RequestID)
		require.Equal(t, "another", found[20].RequestID)
		require.EqualValues(t, 10, found[20].Omitted)
		log.Add(&summary.Exchange{Status: 503, Subscription: "loud"})
		require.NoError(t, log.Write(t.Context()))
		require.Len(t, kept(), 22, "there is room again")
		require.Zero(t, kept()[21].Omitted)
	}
}

// A partner has the room of one batch, also with requests that come while others are written.
func TestWhatComesDuringAWriteTakesRoom(t *testing.T) {
	t.Parallel()
	var ask func(n int)
	during := 5
	log, kept := open(func(context.Context, fake.Moment) error {
		ask(during)
		during = 0
		return nil
	})
	ask = func(n int) {
		for range n {
			log.Add(&summary.Exchange{Status: 401, Subscription: "loud"})
		}
	}
	ask(1)
	require.NoError(t, log.Write(t.Context()))
	ask(1000)
	require.NoError(t, log.Write(t.Context()))
	require.Len(t, kept(), 1+20)
}
