package storage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
	"bankingapi/domain/push"
	"bankingapi/test/kit/pgproxy"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// officeOn is the back office on the day of these tests, by a person with a reason.
func officeOn(t *testing.T, s *store.Store) (*backoffice.Office, context.Context) {
	t.Helper()
	o := backoffice.New(s.Backoffice, audit.Acts{NewID: v7, Now: func() time.Time { return now }}, time.UTC)
	return o, audit.By(t.Context(), audit.Who{Actor: "ann", Reason: "ticket 7"})
}

// tell stores a message for a user with everything that is personal.
func tell(t *testing.T, s *store.Store, callerID, user string, at time.Time) (*push.Operation, operation.Outcome) {
	t.Helper()
	id, first := v7(), backoffice.FirstID(at)
	copy(id[:6], first[:])
	o := &push.Operation{Envelope: operation.Envelope{ID: id, Subscription: "shop", ReceivedAt: at, Header: operation.Header{CallerID: callerID, ChannelSessionID: "session of " + user}}}
	o.Notifications = []push.Notification{push.Restore(push.Values{
		ExternalApplicationCode: "MOBILE", UserID: user, PushID: "push", Platform: push.IOS, Sent: true,
		Subject: "secret subject", Content: "secret content", DeepLinkURL: "secret://link", TranData: []push.TranDataItem{{Code: "secret", Name: "secret"}},
	})}
	require.NoError(t, s.Inboxes.Update(t.Context(), push.Keys([]*push.Operation{o}), func(b *push.Inbox) { b.Accept([]*push.Operation{o}) }))
	outcome, err := o.Outcome()
	require.NoError(t, err)
	return o, outcome
}

func notificationsOf(t *testing.T, s *store.Store) []push.Entry {
	t.Helper()
	return all(t, s.Backoffice.Reader.Notifications(t.Context(), backoffice.Query{}))
}

func TestAnErasedMessageIsStoredOnceAndKeepsItsLeaf(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		s, _ := open(t)
		tell(t, s, "before", "ayşe", now) // older than the trail
		s.Trail.Writer.Use(trailKeys, v7)
		_, err := s.Trail.Origin.Adopt(t.Context())
		require.NoError(t, err)
		first, _ := tell(t, s, "c-1", "veli", now)
		_, _ = tell(t, s, "", "zeynep", now)
		_, _ = tell(t, s, "c-2", "veli", now) // stored before: its leaf leads to the stored one
		sealAll(t, s, new(proof.Tree))
		_, _ = tell(t, s, "", "fatma", now)

		office, ctx := officeOn(t, s)
		var told []int64
		for _, user := range []string{"veli", "ayşe", "fatma", "nobody"} {
			_, err := office.Eraser().EraseUser(ctx, user, func(n int64) { told = append(told, n) })
			require.NoError(t, err)
		}
		require.Equal(t, []int64{1, 1, 1, 0}, told)
		check := func() {
			t.Helper()
			rows := notificationsOf(t, s)
			require.Len(t, rows, 4)
			for i := range rows {
				if e := rows[i]; e.Values.UserID != "zeynep" {
					require.Equal(t, push.Values{ExternalApplicationCode: "MOBILE", PushID: "push", Platform: push.IOS, Sent: true}, e.Values)
					require.Equal(t, "ticket 7", e.Erasure.Reason)
					require.Empty(t, e.Header.ChannelSessionID)
				} else {
					require.Nil(t, e.Erasure)
				}
			}
			_, found := trailFindings(t, s)
			require.Empty(t, found)
		}
		_, err = office.Eraser().EraseUser(ctx, "", nil)
		require.Equal(t, fault.Invalid, fault.KindOf(err), "a user that a program forgot")
		check()
		acts := all(t, s.Backoffice.Reader.Acts(t.Context(), backoffice.Query{Action: audit.NotificationsErase}))
		require.Len(t, acts, 4)
		require.Equal(t, "one user", acts[0].Object)
		require.Equal(t, "messages: 1", acts[0].Details)
		require.Equal(t, "messages: 0", acts[3].Details, "an erasure that finds nothing is an act too")

		for _, user := range []string{"veli", "ayşe", "fatma", "zeynep"} { // again, with nothing and with new CallerIds
			_, outcome := tell(t, s, "", user, now)
			require.Equal(t, operation.Completed, outcome.State)
			_, outcome = tell(t, s, "again "+user, user, now)
			require.Equal(t, operation.Completed, outcome.State)
		}
		_, outcome := tell(t, s, "c-1", "veli", now)
		require.Equal(t, operation.Outcome{ID: first.ID, State: operation.Completed, Replayed: true}, outcome)
		_, outcome = tell(t, s, "before", "ayşe", now)
		require.True(t, outcome.Replayed)
		check()
		_, err = s.Trail.Finder.Leaves(t.Context(), first.ID)
		require.NoError(t, err, "an erasure keeps the leaf")

		require.NoError(t, storage.Exec(t.Context(), s, "UPDATE notifications SET send_status = 0 WHERE user_id = ''"))
		_, found := trailFindings(t, s)
		require.Len(t, found, 3)
		require.Contains(t, found[0], "act ")
	})
}

func TestMessagesBeforeADayAreErased(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		s, _ := open(t)
		office, ctx := officeOn(t, s)
		limit := today.Start(time.UTC)
		tell(t, s, "", "old", limit.Add(-time.Microsecond))
		tell(t, s, "", "new", limit)
		_, err := office.Eraser().EraseBefore(ctx, today.Plus(1), nil)
		require.ErrorIs(t, err, backoffice.ErrNotPast)
		wrong, right := errors.New("the clock is ahead"), office.CheckClock
		office.CheckClock = func(context.Context) error { return wrong }
		_, err = office.Eraser().KeepFor(ctx, 0)
		require.ErrorIs(t, err, wrong)
		require.Nil(t, notificationsOf(t, s)[0].Erasure, "the service settles nothing then, and erases nothing")
		office.CheckClock = right
		n, err := office.Eraser().KeepFor(ctx, 1)
		require.NoError(t, err)
		require.Zero(t, n)
		n, err = office.Eraser().KeepFor(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, int64(1), n)
		for _, e := range notificationsOf(t, s) {
			require.Equal(t, e.Values.UserID != "new", e.Erasure != nil)
		}
		done, err := s.Backoffice.Erasing.ErasedBefore(t.Context())
		require.NoError(t, err)
		require.Equal(t, today, done)
		n, err = office.Eraser().EraseBefore(ctx, today, nil)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// A clock that was ahead left a day in the future. Messages of the days until then are erased
// too, once these days are over.
func TestErasingGoesOnAfterAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		s, _ := open(t)
		office, ctx := officeOn(t, s)
		for _, erase := range []func() (int64, error){
			func() (int64, error) { return office.Eraser().KeepFor(ctx, 0) },
			func() (int64, error) { return office.Eraser().EraseBefore(ctx, today, nil) },
		} {
			require.NoError(t, s.Backoffice.Erasing.SetErasedBefore(ctx, today.Plus(365)))
			tell(t, s, "", "old", today.Start(time.UTC).Add(-time.Hour))
			n, err := erase()
			require.NoError(t, err)
			require.EqualValues(t, 1, n)
			done, err := s.Backoffice.Erasing.ErasedBefore(t.Context())
			require.NoError(t, err)
			require.Equal(t, today, done)
			require.NoError(t, storage.Exec(t.Context(), s, "DELETE FROM notifications"))
		}
	})
}

// If the time ends during the commit, the server may have the commit.
func TestAnErasureWhoseCommitIsCutShortIsNotKnown(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := storekit.OpenPostgres(t, dsn)
	tell(t, s, "", "veli", now)
	slow(t, dsn, "audits", atCommit, "pg_sleep(60)")
	office, ctx := officeOn(t, s)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := office.Eraser().EraseUser(ctx, "veli", nil)
		done <- err
	}()
	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	require.Eventually(t, func() bool {
		var commits int
		err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'").Scan(&commits)
		return err == nil && commits == 1
	}, time.Minute, 10*time.Millisecond)
	cancel()
	err := <-done
	require.Equal(t, fault.Indeterminate, fault.KindOf(err), "%v", err)
}

// SQLite leaves what it removes in the file, unless it is told not to.
func TestAnErasedTextIsNotInTheFile(t *testing.T) {
	t.Parallel()
	file := testdb.SQLite(t)
	s := storekit.OpenSQLite(t, file)
	for i := range 300 {
		tell(t, s, "", fmt.Sprintf("veli-%d", i), now.AddDate(0, 0, -1))
	}
	office, ctx := officeOn(t, s)
	erased, err := office.Eraser().EraseBefore(ctx, office.Today(), nil)
	require.NoError(t, err)
	require.EqualValues(t, 300, erased)
	require.NoError(t, s.Close())
	bytes, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(bytes), "MOBILE")
	for _, text := range []string{"secret", "session of"} {
		require.Zero(t, strings.Count(string(bytes), text), text)
	}
	require.Less(t, strings.Count(string(bytes), "veli"), 5, "a page may keep the key of a row until it is written again")
}

// A repeat that comes at the same moment is either that of the stored message or that of
// the erased one, and never a second message.
func TestARepeatDuringAnErasureIsNotStored(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		s, _ := open(t)
		office, ctx := officeOn(t, s)
		tell(t, s, "", "veli", now)
		var running sync.WaitGroup
		for range 4 {
			running.Go(func() {
				for range 10 {
					tell(t, s, "", "veli", now)
				}
			})
		}
		_, err := office.Eraser().EraseUser(ctx, "veli", nil)
		running.Wait()
		require.NoError(t, err)
		rows := notificationsOf(t, s)
		require.Len(t, rows, 1)
		require.NotNil(t, rows[0].Erasure)
	})
}

// A repeat that waits for an erasure finds the message by its identity.
func TestARepeatThatWaitsForAnErasureIsNotStored(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s, other := storekit.OpenPostgres(t, dsn), openAgain(t, dsn)
	tell(t, s, "", "veli", now)
	pool := s.Pools["all"]()
	tx, err := pool.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	within, err := s.Within(tx)
	require.NoError(t, err)
	office, ctx := officeOn(t, within)
	_, err = office.Eraser().EraseUser(ctx, "veli", nil)
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() { tell(t, other, "", "veli", now) })
	require.Eventually(t, func() bool {
		const waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
		var n int
		err := pool.QueryRowContext(t.Context(), waiting).Scan(&n)
		return err == nil && n == 1
	}, time.Minute, time.Millisecond)
	require.NoError(t, tx.Commit())
	running.Wait()
	tell(t, other, "again", "veli", now)
	rows := notificationsOf(t, s)
	require.Len(t, rows, 1)
	require.NotNil(t, rows[0].Erasure)
}

// An operation that sent stored messages again names the operations that stored them.
func TestARepeatNamesTheOperationThatStoredIt(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		s, _ := open(t)
		s.Trail.Writer.Use(trailKeys, v7)
		_, err := s.Trail.Origin.Adopt(t.Context())
		require.NoError(t, err)
		first, _ := tell(t, s, "c-1", "veli", time.Now())
		again, _ := tell(t, s, "c-2", "veli", time.Now())
		other, _ := tell(t, s, "", "zeynep", time.Now())
		both := &push.Operation{
			Envelope:      operation.Envelope{ID: v7(), Subscription: "shop", ReceivedAt: now},
			Notifications: []push.Notification{other.Notifications[0], push.Restore(push.Values{UserID: "new"}), first.Notifications[0]},
		}
		require.NoError(t, s.Inboxes.Update(t.Context(), nil, func(b *push.Inbox) { b.Accept([]*push.Operation{both}) }))
		for id, want := range map[operation.ID][]backoffice.Repeat{
			first.ID: nil,
			again.ID: {{StoredBy: first.ID}},
			both.ID:  {{Index: 0, StoredBy: other.ID}, {Index: 2, StoredBy: first.ID}},
		} {
			o, err := s.Backoffice.Lookups.Operation(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, want, o.Repeated)
		}
		o, err := s.Backoffice.OperationOf(t.Context(), idempotency.Key{CallerID: "c-2", Subscription: "shop", Operation: operation.AddPushNotificationResponse})
		require.NoError(t, err)
		require.Equal(t, []backoffice.Repeat{{StoredBy: first.ID}}, o.Repeated)
	})
}

// A push all of whose messages were stored before has a session too.
func TestSessionsOfPushesThatStoredNothingAreErased(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		s, _ := open(t)
		s.Trail.Writer.Use(trailKeys, v7)
		_, err := s.Trail.Origin.Adopt(t.Context())
		require.NoError(t, err)
		yesterday := now.AddDate(0, 0, -1)
		var ids []operation.ID
		for _, at := range []time.Time{yesterday, yesterday, now} { // the first stores the message
			o, _ := tell(t, s, "", "veli", at)
			ids = append(ids, o.ID)
		}
		sessions := func() (all []string) {
			for _, id := range ids {
				o, err := s.Backoffice.Lookups.Operation(t.Context(), id)
				require.NoError(t, err)
				all = append(all, o.Answered.Header.ChannelSessionID)
			}
			return all
		}
		require.Equal(t, []string{"session of veli", "session of veli", "session of veli"}, sessions())
		office, ctx := officeOn(t, s)
		erased, err := office.Eraser().EraseBefore(ctx, today, nil)
		require.NoError(t, err)
		require.EqualValues(t, 1, erased)
		require.Equal(t, []string{"", "", "session of veli"}, sessions())
		acts := all(t, s.Backoffice.Reader.Acts(t.Context(), backoffice.Query{Action: audit.NotificationsErase}))
		require.Equal(t, []string{"messages: 1", "sessions: 1"}, keys(acts, func(a audit.Act) string { return a.Details }))
		_, found := trailFindings(t, s)
		require.Empty(t, found)

		require.NoError(t, storage.Exec(t.Context(), s, "UPDATE operations SET channel_session_id = 'session of veli' WHERE channel_session_id = ''"))
		_, found = trailFindings(t, s)
		require.Len(t, found, 2, "a session that comes back is found")
	})
}

func TestABookWithATrailNeedsItsKeyToErase(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		s, _ := open(t)
		tell(t, s, "", "veli", now)
		require.NoError(t, storage.Exec(t.Context(), s, "UPDATE properties SET value = '1' WHERE name = 'log_begun'"))
		office, ctx := officeOn(t, s)
		_, err := office.Eraser().EraseUser(ctx, "veli", nil)
		require.Equal(t, fault.Unavailable, fault.KindOf(err))
		require.ErrorContains(t, err, "trail.key_file")
		require.NoError(t, storage.Exec(t.Context(), s, "DELETE FROM properties"))
		storage.Doubt(s)
		require.ErrorContains(t, s.Schema.Require(t.Context()), "messages_key")
	})
}

// If the answer to the commit is lost, it is not known whether messages were erased. The same
// transaction once more would find none, and say so.
func TestAnErasureWhoseAnswerIsLostIsNotKnown(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	direct, p := storekit.OpenPostgres(t, dsn), pgproxy.New(t, dsn)
	office, ctx := officeOn(t, openAgain(t, p.DSN))
	tell(t, direct, "", "veli", now)
	_, err := office.Eraser().EraseUser(ctx, "zeynep", nil) // knows the schema now
	require.NoError(t, err)
	p.AfterCommit.Store(1)
	_, err = office.Eraser().EraseUser(ctx, "veli", nil)
	require.Equal(t, fault.Indeterminate, fault.KindOf(err), "%v", err)
	acts := all(t, direct.Backoffice.Reader.Acts(t.Context(), backoffice.Query{Action: audit.NotificationsErase}))
	require.Equal(t, []string{"messages: 0", "messages: 1"}, keys(acts, func(a audit.Act) string { return a.Details }))
}
