package storage_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	application "bankingapi/application/trail"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/pgproxy"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

var trailKeys = proof.NewKeys([]byte("a secret of this test"))

func v7() operation.ID { return operation.ID(uuid.Must(uuid.NewV7())) }

// sealAll seals with a tree of its own: the signature is the state.
func sealAll(t *testing.T, s *store.Store, tree *proof.Tree) {
	t.Helper()
	for {
		round, err := s.Trail.Log.Seal(t.Context(), 3, false, func(state application.State, records [][]byte, _ proof.Hashes) (application.Sealed, error) {
			require.Equal(t, tree.Size(), state.Size)
			return appendTo(tree, records), nil
		})
		require.NoError(t, err)
		if round.Sealed == 0 {
			return
		}
	}
}

// Two commands that read the book at the same moment find the same rows outside the log.
func TestRowsAreTakenIntoTheLogOnce(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		s, _ := open(t)
		tell(t, s, "", "veli", now)
		s.Trail.Writer.Use(trailKeys, v7)
		require.NoError(t, storage.Exec(t.Context(), s, "UPDATE properties SET value = '1' WHERE name = 'log_begun'"))
		act := func([]string) audit.Act { return audit.Act{ID: v7(), At: now, Action: "trail.adopt"} }
		_, err := s.Trail.Origin.TakeIn(t.Context(), func(taken []string) audit.Act {
			others, err := s.Trail.Origin.TakeIn(t.Context(), act)
			require.NoError(t, err)
			require.Equal(t, taken, others)
			return act(taken)
		})
		require.Equal(t, fault.Unavailable, fault.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "Somebody else")
		again, err := s.Trail.Origin.TakeIn(t.Context(), act)
		require.NoError(t, err)
		require.Empty(t, again)

		for range 2 { // more rows may have to be taken later
			s.Trail.Writer.Use(nil, v7)
			tell(t, s, "", "veli", now)
			s.Trail.Writer.Use(trailKeys, v7)
			taken, err := s.Trail.Origin.TakeIn(t.Context(), act)
			require.NoError(t, err)
			require.Len(t, taken, 1)
		}
		var tree proof.Tree
		sealAll(t, s, &tree)
		_, found := trailFindings(t, s)
		require.Empty(t, found)
	})
}

// closeDays makes the days the whole calendar.
func closeDays(t *testing.T, s *store.Store, days ...day.Day) {
	t.Helper()
	var closed []fund.ClosedDay
	for _, each := range days {
		closed = append(closed, fund.ClosedDay{Day: each, Reason: "holiday"})
	}
	_, err := s.Backoffice.Imports.ClosedDays(t.Context(), lines(closed...), backoffice.ImportOptions{})
	require.NoError(t, err)
}

// grant changes what the subscription "one" may call.
func grant(t *testing.T, s *store.Store, names ...string) {
	t.Helper()
	require.NoError(t, s.Subscriptions.Change(t.Context(), "one", func(s *subscription.Subscription) error {
		s.Operations = names
		return nil
	}))
}

// What is changed twice has the newest leaf, also if the machine that changed it first has a clock
// that is ahead.
func TestTheClocksOfReplicasDoNotOrderChanges(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		s, _ := open(t)
		adopted(t, s)
		price := priceOn(today.Plus(2))
		price.ID = 77
		ahead := clock.IDs(func() time.Time { return time.Now().Add(time.Minute) })
		s.Trail.Writer.Use(trailKeys, ahead)
		require.NoError(t, s.Subscriptions.Create(t.Context(), &subscription.Subscription{Name: "one", State: subscription.Active}))
		require.NoError(t, importPrices(t.Context(), s, lines(price), quiet))
		grant(t, s, operation.AllNames()...)
		closeDays(t, s, today.Plus(3))

		s.Trail.Writer.Use(trailKeys, v7)
		grant(t, s)
		require.NoError(t, s.Backoffice.Withdrawing.WithdrawPrice(t.Context(), price.ID, today))
		closeDays(t, s, today.Plus(4))
		_, found := trailFindings(t, s)
		require.Empty(t, found)

		s.Trail.Writer.Use(trailKeys, ahead)
		grant(t, s, operation.AllNames()...)
		s.Trail.Writer.Use(trailKeys, v7)
		require.NoError(t, storage.Exec(t.Context(), s, // a service without a trail changes it
			"UPDATE subscriptions SET requests_per_second = 7 WHERE name = 'one'"))
		_, err := s.Trail.Origin.TakeIn(t.Context(), func([]string) audit.Act { return audit.Act{ID: v7(), At: now, Action: "trail.adopt"} })
		require.NoError(t, err)
		_, found = trailFindings(t, s)
		require.Empty(t, found)
		sealAll(t, s, new(proof.Tree))
		_, found = trailFindings(t, s)
		require.Empty(t, found)
	})
}

// A log begins when a service seals it first. Commands with the key may have written leaves long
// before, while the service went on without it.
func TestALogBeginsWithItsService(t *testing.T) {
	t.Parallel()
	file := testdb.SQLite(t)
	for engine, open := range keylessToo(file) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			command, service := open(t)
			command.Trail.Writer.Use(trailKeys, idsIn(-72*time.Hour))
			tell(t, command, "by a command", "veli", time.Now().Add(-72*time.Hour))
			tell(t, service, "without the key", "veli", time.Now().Add(-48*time.Hour))

			service.Trail.Writer.Use(trailKeys, v7)
			_, err := service.Trail.Origin.Adopt(t.Context())
			require.NoError(t, err)
			var tree proof.Tree
			sealAll(t, service, &tree)
			_, found := trailFindings(t, service)
			require.Empty(t, found)
		})
	}
}

// What a service without the key may change has leaves of how it was before. It is taken in all the
// same, and what no service does is not.
func TestChangesOfAServiceWithoutTheKeyAreTakenIn(t *testing.T) {
	t.Parallel()
	file := testdb.SQLite(t)
	for engine, open := range keylessToo(file) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s, keyless := open(t)
			takeChangesIn(t, s, keyless)
		})
	}
}

// keylessToo returns functions that open a book twice, on each engine.
func keylessToo(file string) map[string]func(t *testing.T) (s, keyless *store.Store) {
	return map[string]func(t *testing.T) (s, keyless *store.Store){
		testdb.EngineSQLite: func(t *testing.T) (s, keyless *store.Store) {
			t.Helper()
			return storekit.OpenSQLite(t, file), storekit.OpenSQLite(t, file)
		},
		testdb.EnginePostgres: func(t *testing.T) (s, keyless *store.Store) {
			t.Helper()
			dsn := testdb.Postgres(t)
			return storekit.OpenPostgres(t, dsn), storekit.OpenPostgres(t, dsn)
		},
	}
}

func takeChangesIn(t *testing.T, s, keyless *store.Store) {
	t.Helper()
	adopted(t, s)
	withdrawn, wrong := priceOn(today.Plus(2)), priceOn(today.Plus(3))
	withdrawn.ID, wrong.ID = 77, 78
	require.NoError(t, s.Subscriptions.Create(t.Context(), &subscription.Subscription{Name: "one", State: subscription.Active}))
	grant(t, s, operation.AllNames()...)
	require.NoError(t, importPrices(t.Context(), s, lines(withdrawn, wrong), quiet))
	closeDays(t, s, today.Plus(3))

	grant(t, keyless) // as it was at first
	require.NoError(t, keyless.Backoffice.Withdrawing.WithdrawPrice(t.Context(), withdrawn.ID, today))
	closeDays(t, keyless)
	require.NoError(t, storage.Exec(t.Context(), s, "UPDATE prices SET price = price + 1 WHERE price_id = 78"))

	act := func([]string) audit.Act { return audit.Act{ID: v7(), At: now, Action: "trail.adopt"} }
	taken, err := s.Trail.Origin.TakeIn(t.Context(), act)
	require.NoError(t, err)
	require.Subset(t, taken, []string{"price 77", `subscription "one"`, "the calendar of closed days"}, "the names of verify")
	_, found := trailFindings(t, s)
	require.Equal(t, []string{"trail-unchanged price 78: was changed after it was written"}, found)

	taken, err = s.Trail.Origin.TakeIn(t.Context(), act)
	require.NoError(t, err)
	require.Empty(t, taken, "they are in the log now")
}

// A row that is changed while the rows are taken in has a newer leaf, and keeps it.
func TestARowThatIsChangedMeanwhileIsNotTakenIntoTheLog(t *testing.T) {
	t.Parallel()
	price, closed := priceOn(today.Plus(1)), fund.ClosedDay{Day: today.Plus(3), Reason: "holiday"}
	price.ID = 77
	onEachEngine(t, func(t *testing.T, open opener) {
		s, _ := open(t)
		require.NoError(t, importPrices(t.Context(), s, lines(price), quiet))
		require.NoError(t, s.Subscriptions.Create(t.Context(), &subscription.Subscription{Name: "one", State: subscription.Active}))
		closeDays := func(days ...fund.ClosedDay) error {
			_, err := s.Backoffice.Imports.ClosedDays(t.Context(), lines(days...), backoffice.ImportOptions{})
			return err
		}
		require.NoError(t, closeDays(closed))
		s.Trail.Writer.Use(trailKeys, v7)
		require.NoError(t, storage.Exec(t.Context(), s, "UPDATE properties SET value = '1' WHERE name = 'log_begun'"))
		take := func(change func() error) error {
			_, err := s.Trail.Origin.TakeIn(t.Context(), func([]string) audit.Act {
				assert.NoError(t, change())
				return audit.Act{ID: v7(), At: now, Action: "trail.adopt"}
			})
			return err
		}
		for name, change := range map[string]func() error{
			"price":    func() error { return s.Backoffice.Withdrawing.WithdrawPrice(t.Context(), price.ID, today) },
			"calendar": func() error { return closeDays() },
			"subscription": func() error {
				return s.Subscriptions.Change(t.Context(), "one", func(s *subscription.Subscription) error {
					s.State = subscription.Suspended
					return nil
				})
			},
		} {
			err := take(change)
			require.Equal(t, fault.Unavailable, fault.KindOf(err), "%s: %v", name, err)
			require.ErrorContains(t, err, "was changed")
		}
		require.NoError(t, take(func() error { return nil }))
		var tree proof.Tree
		sealAll(t, s, &tree)
		_, found := trailFindings(t, s)
		require.Empty(t, found)
	})
}

// The chore that seals does not wait for a connection that hangs: the next round has another one.
func TestNobodySealsOnAConnectionThatHangs(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	storekit.OpenPostgres(t, dsn)
	p := pgproxy.New(t, dsn)
	s := openAgain(t, p.DSN)
	s.Trail.Writer.Use(trailKeys, v7)
	_, err := s.Trail.Log.Seal(t.Context(), 3, false, nil)
	require.NoError(t, err)
	p.Stall()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // each asks for 2 seconds
	defer cancel()
	_, err = s.Trail.Log.Seal(ctx, 3, false, nil)
	require.Equal(t, fault.Unavailable, fault.KindOf(err))
	_, err = s.Trail.Log.State(ctx)
	require.Equal(t, fault.Unavailable, fault.KindOf(err))
	require.NoError(t, ctx.Err(), "both have returned before")
	p.Flow()
	_, err = s.Trail.Log.Seal(t.Context(), 3, false, nil)
	require.NoError(t, err)
}

// sealStored seals one round, as a service that begins: on the hashes that are stored.
func sealStored(t *testing.T, s *store.Store, tree *proof.Tree) (application.Round, error) {
	t.Helper()
	return s.Trail.Log.Seal(t.Context(), 3, false, func(state application.State, records [][]byte, hashes proof.Hashes) (sealed application.Sealed, err error) {
		stored, err := proof.LoadTree(state.Size, hashes)
		if err != nil {
			return sealed, err
		}
		require.Equal(t, tree.Root(), stored.Root())
		return appendTo(tree, records), nil
	})
}

func appendTo(tree *proof.Tree, records [][]byte) application.Sealed {
	sealed := application.Sealed{First: proof.StoredHashes(tree.Size())}
	for _, r := range records {
		sealed.Hashes = append(sealed.Hashes, tree.Append(r)...)
	}
	root := tree.Root()
	sealed.Checkpoint = fmt.Sprintf("%d %x", tree.Size(), root[:])
	return sealed
}

func openTestCheckpoint(signed string) (base proof.Base, err error) {
	var text string
	if _, err = fmt.Sscanf(signed, "%d %s", &base.Size, &text); err == nil {
		_, err = hex.Decode(base.Root[:], []byte(text))
	}
	return base, err
}

// trailFindings verifies book and trail.
func trailFindings(t *testing.T, s *store.Store, against ...string) (result backoffice.Proof, found []string) {
	t.Helper()
	result, found, err := verified(t, s, against...)
	require.NoError(t, err)
	return result, found
}

func verified(t *testing.T, s *store.Store, against ...string) (result backoffice.Proof, found []string, err error) {
	t.Helper()
	c := backoffice.TrailCheck{Keys: trailKeys, Open: openTestCheckpoint}
	for _, signed := range against {
		base, err := openTestCheckpoint(signed)
		require.NoError(t, err)
		c.Earlier = append(c.Earlier, backoffice.Earlier{Checkpoints: []proof.Base{base}})
	}
	result, err = backoffice.Verify(t.Context(), s.Backoffice.Evidence, &c, backoffice.Watch{Found: func(f backoffice.Finding) { found = append(found, f.Rule+" "+f.Text) }})
	return result, found, err
}

func notify(t *testing.T, s *store.Store, callerID string, subjects ...string) {
	t.Helper()
	notifyAs(t, s, v7(), callerID, subjects...)
}

func notifyAs(t *testing.T, s *store.Store, id operation.ID, callerID string, subjects ...string) {
	t.Helper()
	o := &push.Operation{Envelope: operation.Envelope{ID: id, Subscription: "shop", Header: operation.Header{CallerID: callerID}, ReceivedAt: now}}
	for _, subject := range subjects {
		o.Notifications = append(o.Notifications, push.Restore(push.Values{
			ExternalApplicationCode: "MOBILE", UserID: "user", PushID: "push", Platform: push.IOS, Subject: subject, Sent: true,
		}))
	}
	require.NoError(t, s.Inboxes.Update(t.Context(), push.Keys([]*push.Operation{o}), func(b *push.Inbox) { b.Accept([]*push.Operation{o}) }))
}

// aDayInTheTrail makes one of everything, in two halves: older than the trail,
// and in it.
func aDayInTheTrail(t *testing.T, s *store.Store, tree *proof.Tree) {
	t.Helper()
	b := newBank(t, s, 4)
	half := func(name string, first int) {
		tomorrow := order(v7(), name+"-later", on(today.Plus(1), sale(3, 1, 2)))
		b.sell(operation.Recorded, tomorrow)
		due, err := s.Books.Due(t.Context(), buyfund.Due{Until: today.Plus(1)}, nil, 10)
		require.NoError(t, err)
		require.NoError(t, settle(t.Context(), s, today.Plus(1), due...))
		b.sell(operation.Recorded, order(v7(), "", on(today.Plus(9), sale(1, 1, 1))))
		wrong, withdrawn := v7(), v7()
		b.sell(operation.Completed, order(wrong, name+"-wrong", sale(1, 1, 1)))
		b.sell(operation.Recorded, order(withdrawn, "", on(today.Plus(9), sale(1, 1, 1))))
		by := audit.By(t.Context(), audit.Who{Actor: "ann"})
		office := backoffice.New(s.Backoffice, audit.Acts{NewID: v7, Now: func() time.Time { return now }}, time.UTC)
		_, err = backoffice.BeginRules(by, s.Backoffice.RuleBook, office.Acts, fund.DefaultRules())
		require.NoError(t, err)
		_, _, err = office.ChangeRules(by, fund.RulesFields{CutOff: fmt.Sprintf("17:%02d", first)})
		require.NoError(t, err)
		_, err = office.Corrector().Reverse(by, wrong)
		require.NoError(t, err)
		require.NoError(t, office.Corrector().Cancel(by, withdrawn))
		for i := range 4 {
			b.sell(operation.Completed, order(v7(), fmt.Sprintf("%s-%d", name, i), sale(1, 1, 2), sale(2, 3, 4)))
			b.sell(operation.Completed, order(v7(), "", on(today, sale(int64(first+i), 2, 2))))
		}
		b.sell(operation.Failed, order(v7(), name+"-refused", sale(999_999_999, 1, 2)))
		b.sell(operation.Failed, order(v7(), "", sale(999_999_999, 1, 2)))
		notify(t, s, name, name+" 1", name+" 2", name+" 1")
		notify(t, s, "", name+" 1", name+" 3")
		sub := &subscription.Subscription{Name: name, State: subscription.Active, Operations: operation.AllNames()}
		ctx := audit.With(t.Context(), audit.Act{ID: v7(), At: now, Who: audit.Who{Actor: "ann"}, Action: "create", Object: name})
		require.NoError(t, s.Subscriptions.Create(ctx, sub))
		require.NoError(t, s.Subscriptions.Change(t.Context(), name, func(s *subscription.Subscription) error {
			s.RequestsPerSecond++
			return nil
		}))
		price := fund.Price{ID: int64(100 + first), Fund: afa, PerUnit: 1, Currency: lira, ValidFrom: today.Plus(-9)}
		later := price
		later.ID, later.ValidFrom = int64(200+first), today.Plus(20)
		ctx = audit.With(t.Context(), audit.Act{ID: v7(), At: now, Who: audit.Who{Actor: "ann"}, Action: "import.prices"})
		require.NoError(t, importPrices(ctx, s, lines(price, later), quiet))
		ctx = audit.With(t.Context(), audit.Act{ID: v7(), At: now, Who: audit.Who{Actor: "ann"}, Action: "prices.withdraw"})
		require.NoError(t, s.Backoffice.Withdrawing.WithdrawPrice(ctx, later.ID, today))
		require.NoError(t, importHoldings(t.Context(), s, v7(), lines(fund.Holding{Key: holdingOf(50 + first), Units: 7}, fund.Holding{Key: holdingOf(60 + first)}), quiet))
		require.NoError(t, importAccounts(t.Context(), s, v7(), lines(fund.Account{Key: accountOf(60 + first)}), quiet))
		_, err = s.Backoffice.Imports.ClosedDays(t.Context(), lines(
			fund.ClosedDay{Day: today.Plus(30 + first), Reason: "Feast"}, fund.ClosedDay{Day: today.Plus(40)}), backoffice.ImportOptions{})
		require.NoError(t, err)
	}
	half("before", 1)
	s.Trail.Writer.Use(trailKeys, v7)
	_, found := trailFindings(t, s)
	require.Empty(t, found, "the trail has not begun")
	adopted, err := s.Trail.Origin.Adopt(t.Context())
	require.NoError(t, err)
	require.Positive(t, adopted)
	again, err := s.Trail.Origin.Adopt(t.Context())
	require.NoError(t, err)
	require.Zero(t, again)
	half("after", 2)
	sealAll(t, s, tree)
}

func TestTheTrailHolds(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		var tree proof.Tree
		aDayInTheTrail(t, s, &tree)
		result, found := trailFindings(t, s)
		require.Empty(t, found)
		require.Equal(t, tree.Size(), result.Batches)
		require.Zero(t, result.Unsealed)
		require.Equal(t, backoffice.Compared{Messages: 6, Refusals: 4, Prices: 5, Subscriptions: 2, Acts: 19}, result.Trail.Compared)

		earlier, err := s.Trail.Log.State(t.Context())
		require.NoError(t, err)
		newBank(t, s, 4).sell(operation.Completed, order(v7(), "", sale(1, 1, 2)))
		result, found = trailFindings(t, s, earlier.Checkpoint)
		require.Empty(t, found)
		require.NotZero(t, result.Unsealed)
		sealAll(t, s, &tree)
		_, found = trailFindings(t, s, earlier.Checkpoint)
		require.Empty(t, found)

		_, found = trailFindings(t, s, "999 "+strings.Repeat("00", 32))
		require.Len(t, found, 1)
		require.Contains(t, found[0], "trail-extends the log has become shorter")
		_, found = trailFindings(t, s, "2 "+strings.Repeat("00", 32))
		require.Len(t, found, 1)
		require.Contains(t, found[0], "trail-extends the log has changed")
	})
}

// mixed settles due operations beside new ones in one commit, so that a due one
// comes first, last and between two new ones. newID makes the IDs of the new ones and of their
// batch. It returns all of them.
func (b bank) mixed(newID func() operation.ID) []*fund.Operation {
	b.t.Helper()
	ctx, tomorrow := b.t.Context(), today.Plus(1)
	for i := range 4 {
		b.sell(operation.Recorded, order(v7(), fmt.Sprintf("due-%d", i), on(tomorrow, sale(1, 1, 2)), on(tomorrow, sale(2, 3, 4))))
	}
	due, err := b.Books.Due(ctx, buyfund.Due{Until: tomorrow}, nil, 10)
	require.NoError(b.t, err)
	require.Len(b.t, due, 4)
	for _, o := range due {
		o.Due = true
	}
	b.Trail.Writer.Use(trailKeys, newID)
	fresh := func(terms ...fund.Terms) *fund.Operation { return order(newID(), newID().String(), terms...) }
	all := []*fund.Operation{
		due[0], fresh(sale(1, 1, 2)), due[1], due[2], fresh(sale(3, 2, 1), sale(1, 4, 2)),
		fresh(sale(999_999_999, 1, 2)), fresh(on(tomorrow.Plus(1), sale(1, 1, 1))), order(newID(), "", on(tomorrow, sale(1, 2, 3))), due[3],
	}
	require.NoError(b.t, settle(ctx, b.Store, tomorrow, all...))
	return all
}

// Due sales and new ones of one commit have their own leaves.
func TestDueSalesBesideNewOnesHaveTheirOwnLeaves(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		b := newBank(t, s, 4)
		s.Trail.Writer.Use(trailKeys, v7)
		_, err := s.Trail.Origin.Adopt(t.Context())
		require.NoError(t, err)
		for _, o := range b.mixed(v7) {
			want := 1
			if o.Due {
				want = 2
			}
			found, err := s.Trail.Finder.Leaves(t.Context(), o.ID)
			require.NoError(t, err)
			require.Len(t, found, want)
		}
		_, found := trailFindings(t, s)
		require.Empty(t, found)
	})
}

// adopted is a bank whose trail has begun.
func adopted(t *testing.T, s *store.Store) bank {
	t.Helper()
	b := newBank(t, s, 4)
	s.Trail.Writer.Use(trailKeys, v7)
	_, err := s.Trail.Origin.Adopt(t.Context())
	require.NoError(t, err)
	return b
}

// follow tells the writer how far the log has come.
func follow(t *testing.T, s *store.Store) {
	t.Helper()
	state, err := s.Trail.Log.State(t.Context())
	require.NoError(t, err)
	base, err := openTestCheckpoint(state.Checkpoint)
	require.NoError(t, err)
	s.Trail.Writer.Follow(base)
}

// Batches that the service did not make are named, and everything else is sealed and proved.
func TestABatchThatIsNotGenuineIsLeftOut(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		b := adopted(t, s)
		var tree proof.Tree
		sealAll(t, s, &tree)
		for range 9 { // more than the limit of a round
			forged := order(v7(), "", sale(1, 1, 2))
			b.sell(operation.Completed, forged)
			execute(t, db, "UPDATE trail_batches SET mac = entries WHERE position IS NULL")
			_, err := s.Trail.Finder.Leaves(t.Context(), forged.ID)
			require.ErrorIs(t, err, application.ErrNotFound)
		}
		honest := order(v7(), "", sale(1, 1, 2))
		b.sell(operation.Completed, honest)
		sealAll(t, s, &tree)
		found, err := s.Trail.Finder.Leaves(t.Context(), honest.ID)
		require.NoError(t, err)
		require.NotEqual(t, int64(-1), found[0].BatchIndex)

		round, err := s.Trail.Log.Seal(t.Context(), 3, false, nil)
		require.NoError(t, err)
		require.Equal(t, 9, round.Foreign)
		require.Zero(t, round.Sealed)
		_, findings := trailFindings(t, s)
		for _, id := range round.LeftOut {
			require.Contains(t, strings.Join(findings, "\n"), "batch "+id.String())
		}
	})
}

// A batch of a copy with the same key is genuine there only.
func TestABatchOfACopyIsNotGenuine(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		b := adopted(t, s)
		var tree proof.Tree
		sealAll(t, s, &tree)
		follow(t, s)
		common := order(v7(), "", sale(1, 1, 2))
		b.sell(operation.Completed, common)
		sealAll(t, s, &tree)
		follow(t, s)

		// The copy has the log so far, and goes on by itself.
		var of proof.Tree
		for range tree.Size() + 1 {
			of.Append([]byte("the log of the copy"))
		}
		s.Trail.Writer.Follow(proof.Base{Size: of.Size(), Root: of.Root()})
		sealAll(t, s, &tree)
		foreign := order(v7(), "", sale(1, 1, 2))
		b.sell(operation.Completed, foreign)
		follow(t, s)

		round, err := s.Trail.Log.Seal(t.Context(), 3, false, nil)
		require.NoError(t, err)
		require.Equal(t, 1, round.Foreign)
		_, err = s.Trail.Finder.Leaves(t.Context(), foreign.ID)
		require.ErrorIs(t, err, application.ErrNotFound)
		name := fmt.Sprintf("trail-batch batch %s of the trail: it was made for another log, by a copy of this book or before a restore", round.LeftOut[0])
		_, found := trailFindings(t, s)
		require.Equal(t, []string{name}, found)

		// A writer of the database puts it into the log all the same.
		execute(t, db, fmt.Sprintf("UPDATE trail_batches SET position = %d WHERE position IS NULL", tree.Size()))
		_, found = trailFindings(t, s)
		require.Contains(t, found, name)
		_, err = s.Trail.Finder.Leaves(t.Context(), common.ID)
		require.NoError(t, err)
	})
}

// Stored hashes follow from the batches. Those that somebody deleted, or that a trigger
// swallowed, are written again, and stop neither the sealing nor accuse a batch.
func TestLostHashesAreWrittenAgain(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]string{
		"the last one":     "hash_index = (SELECT MAX(hash_index) FROM trail_hashes)",
		"an inner one too": "hash_index IN (1, 2)",
		"all":              "hash_index >= 0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
				b := adopted(t, s)
				var tree proof.Tree
				sealAll(t, s, &tree)
				follow(t, s)
				first := order(v7(), "", sale(1, 1, 2))
				b.sell(operation.Completed, first)
				for tree.Size() < 3 { // hash 2 is the root of the first two batches
					sealAll(t, s, &tree)
					b.sell(operation.Completed, order(v7(), "", sale(1, 1, 2)))
				}
				s.Trail.Writer.Follow(proof.Base{Root: new(proof.Tree).Root()}) // as a replica that begins
				execute(t, db, "DELETE FROM trail_hashes WHERE "+lost)
				_, found := trailFindings(t, s)
				require.NotEmpty(t, found)
				for _, f := range found {
					require.Contains(t, f, "trail-hashes hash ")
				}

				round, err := sealStored(t, s, &tree)
				require.NoError(t, err)
				require.Equal(t, 1, round.Sealed)
				require.Zero(t, round.Foreign)
				_, found = trailFindings(t, s)
				require.Empty(t, found)
				_, err = s.Trail.Finder.Leaves(t.Context(), first.ID)
				require.NoError(t, err)
			})
		})
	}
}

// A repair reads the whole log. If it does not hold, not every round tries again, but a service
// that begins does.
func TestARepairThatDoesNotHold(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		b := adopted(t, s)
		var tree proof.Tree
		sealAll(t, s, &tree)
		b.sell(operation.Completed, order(v7(), "", sale(1, 1, 2)))
		swallow, drop := []string{"CREATE TRIGGER swallows BEFORE INSERT ON trail_hashes BEGIN SELECT RAISE(IGNORE); END"}, "DROP TRIGGER swallows"
		if !b.isSQLite() {
			swallow = []string{"CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
				"CREATE TRIGGER swallows BEFORE INSERT ON trail_hashes FOR EACH ROW EXECUTE FUNCTION swallow()"}
			drop += " ON trail_hashes"
		}
		execute(t, db, append(swallow, "DELETE FROM trail_hashes")...)
		_, err := sealStored(t, s, &tree)
		require.Error(t, err)
		execute(t, db, drop)
		_, err = sealStored(t, s, &tree)
		require.ErrorContains(t, err, "a stored hash of the log is missing")

		s.Trail.Writer.Use(trailKeys, v7) // as at the start
		_, err = sealStored(t, s, &tree)
		require.NoError(t, err)
		_, found := trailFindings(t, s)
		require.Empty(t, found)
	})
}

// A row that is read has the leaf with which it was written, whatever its
// values are.
func TestWhatIsReadHasTheLeafOfWhatWasWritten(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		rapid.Check(t, func(r *rapid.T) {
			wrote, read, err := storage.WrittenAndRead(t.Context(), s, func(c batch.Column, field any) { fillExtreme(r, c, field) })
			require.NoError(r, err)
			require.Len(r, wrote, 7)
			require.Equal(r, wrote, read)
		})
	})
}

// fillExtreme sets a column to a value that a database may keep in another form.
func fillExtreme(r *rapid.T, c batch.Column, field any) {
	least, most := int64(math.MinInt64), int64(math.MaxInt64)
	switch c.Name {
	case "position", "line":
		least, most = math.MinInt32, math.MaxInt32
	case "state", "operation", "leg", "kind", "platform", "send_status":
		least, most = math.MinInt16, math.MaxInt16
	}
	numbers := []int64{most, 1, min(1_000_000_007, most)}
	if c.Name != "units" && c.Name != "price" { // these are positive
		numbers = append(numbers, least, -1, 0)
	}
	instant := func() time.Time {
		at := time.Date(rapid.IntRange(1, 9999).Draw(r, "year"), 12, 31, 23, 59, 59, rapid.SampledFrom([]int{0, 1, 999, 1000, 123_456_789, 999_999_999}).Draw(r, "nanosecond"), time.UTC)
		return at.In(time.FixedZone("", rapid.SampledFrom([]int{0, 3 * 60 * 60, -43_200}).Draw(r, "zone")))
	}
	empty := !c.Key && rapid.IntRange(0, 3).Draw(r, c.Name+" is empty") == 0
	text := strings.ReplaceAll(rapid.OneOf(rapid.SampledFrom([]string{" ", "\n", "ŞçİĞ", "e\u0301", "\U0010ffff", "0", "1e3", "\\x00", "NULL"}), rapid.StringN(1, 30, 60)).Draw(r, c.Name), "\x00", "")
	switch f := field.(type) {
	case *int64:
		if *f = rapid.SampledFrom(numbers).Draw(r, c.Name); empty && len(numbers) > 3 {
			*f = 0
		}
	case *sql.NullInt64:
		if !empty {
			*f = sql.NullInt64{Int64: rapid.SampledFrom(numbers).Draw(r, c.Name), Valid: true}
		}
	case *string:
		if *f = text; empty {
			*f = ""
		}
	case *[]byte:
		if *f = []byte(text); empty {
			*f = []byte{}
		}
	case *batch.UUID:
		copy(f[:], text)
	case *batch.Day:
		if !empty || !c.Nullable {
			*f = batch.Day(instant().Format(time.DateOnly))
		}
	case *batch.Instant:
		if f.Time = instant(); empty && c.Nullable {
			f.Time = time.Time{}
		}
	default:
		r.Fatalf("column %s is a %T", c.Name, field)
	}
}

// An import is sorted by key, and its lines have their own numbers.
func TestAnImportInTheOrderOfItsKeysIsInTheTrail(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		s.Trail.Writer.Use(trailKeys, v7)
		_, err := s.Trail.Origin.Adopt(t.Context())
		require.NoError(t, err)
		require.NoError(t, importHoldings(t.Context(), s, v7(), func(yield func(int64, fund.Holding) error) error {
			for i, line := range []int64{9, 2, 7, 3} {
				if err := yield(line, fund.Holding{Key: holdingOf(1 + i), Units: 5}); err != nil {
					return err
				}
			}
			return nil
		}, quiet))
		_, found := trailFindings(t, s)
		require.Empty(t, found)
	})
}

// Two replicas begin the log at once: the rows that are older get their leaves once.
func TestTwoReplicasBeginTheLogOnce(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		b := newBank(t, s, 1)
		b.sell(operation.Completed, order(v7(), "", sale(1, 1, 1)))
		s.Trail.Writer.Use(trailKeys, v7)
		begin := make(chan struct{})
		total, running := new(atomic.Int64), new(sync.WaitGroup)
		for range 8 {
			running.Go(func() {
				<-begin
				adopted, err := s.Trail.Origin.Adopt(t.Context())
				assert.NoError(t, err)
				total.Add(adopted)
			})
		}
		close(begin)
		running.Wait()
		require.EqualValues(t, 5, total.Load(), "the price, the openings of the holding and of the account, the sale, and the calendar as always")
		_, found := trailFindings(t, s)
		require.Empty(t, found)
	})
}

// A log of many batches is not that of another key, although a service with that key has written
// a batch. The oldest ones say it, however many there are.
func TestTheOldestBatchesSayWhoseLogItIs(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		isOf := func(keys *proof.Keys) bool {
			is, err := s.Trail.Log.IsOf(t.Context(), keys)
			require.NoError(t, err)
			return is
		}
		other := proof.NewKeys([]byte("another secret"))
		s.Trail.Writer.Use(trailKeys, v7)
		for i := range 200 {
			notify(t, s, "", fmt.Sprint(i))
		}
		s.Trail.Writer.Use(other, v7)
		notify(t, s, "", "written with another key")
		require.True(t, isOf(trailKeys))
		require.False(t, isOf(other))
		require.False(t, isOf(nil))
	})
}
