package subscriptions_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/subscriptions"
	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
)

func TestFindByEitherKey(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	first, second := o.create("one")
	other, _ := o.create("two")
	require.Equal(t, "one", o.find(first))
	require.Equal(t, "one", o.find(second))
	require.Equal(t, "two", o.find(other))
	for _, key := range []string{"", "x", first + "0", first[1:], "000102030405060708090A0B0C0D0E0F"} {
		require.Empty(t, o.find(key))
	}
}

// used keeps the uses that a directory hands on.
type used struct{ uses []subscriptions.Use }

func (u *used) KeepUses(_ context.Context, uses []subscriptions.Use) error {
	u.uses = append(u.uses, uses...)
	return nil
}

// Whoever replaces a key must know which one is still used.
func TestTheUseOfEachKeyIsNoted(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	primary, secondary := o.create("one")
	first := o.clock.Now()
	require.Equal(t, "one", o.find(primary))
	o.clock.Advance(time.Second)
	require.Equal(t, "one", o.find(secondary))
	var kept used
	require.NoError(t, o.directory.KeepUsage(t.Context(), &kept))
	require.Equal(t, []subscriptions.Use{{Name: "one", Primary: first, Secondary: first.Add(time.Second)}}, kept.uses)
	require.NoError(t, o.directory.KeepUsage(t.Context(), &kept))
	require.Len(t, kept.uses, 1, "nothing was used since")
}

func TestANewKeyWorksAtOnce(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	known, _ := o.create("known")
	require.Equal(t, "known", o.find(known))
	created, _ := o.create("new")
	o.clock.Advance(100*time.Millisecond - time.Microsecond)
	require.Empty(t, o.find(created))
	o.clock.Advance(time.Microsecond)
	require.Equal(t, "new", o.find(created))
	require.EqualValues(t, 2, o.reads.Load())
}

// The directory may have read just before the key was made.
func TestAKeyOfThisProcessWorksAtOnce(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	o.manager.KeyMade = o.directory.KeyMade
	known, _ := o.create("known")
	require.Equal(t, "known", o.find(known))
	created, _ := o.create("new")
	require.Equal(t, "new", o.find(created))
	renewed, err := o.manager.Regenerate(t.Context(), "new", subscription.Primary)
	require.NoError(t, err)
	require.Equal(t, "new", o.find(renewed.Reveal()))
	require.EqualValues(t, 3, o.reads.Load())
	require.Empty(t, o.find("unknown"))
	require.EqualValues(t, 3, o.reads.Load(), "another unknown key causes no read")
}

// partly is a repository with a subscription that cannot be read.
type partly struct {
	subscriptions.Repository
	unreadable error
}

func (p partly) All(ctx context.Context) ([]*subscription.Subscription, error) {
	all, _ := p.Repository.All(ctx)
	return all, p.unreadable
}

// A subscription that cannot be read shuts out no other caller.
func TestASubscriptionThatCannotBeReadStopsNoOther(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	key, _ := o.create("name")
	damaged := errors.New("damaged")
	directory := subscriptions.NewDirectory(partly{o, damaged}, o.clock.Now)
	for range 3 {
		found, err := directory.Find(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, "name", found.Name)
		found, err = directory.Find(t.Context(), "unknown")
		require.NoError(t, err)
		require.Nil(t, found)
		require.ErrorIs(t, directory.Refresh(t.Context()), damaged, "the service tells it")
		o.clock.Advance(time.Minute)
	}
}

func TestAChangeIsSeenWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(o *office){
		"suspended": func(o *office) { o.setState("name", subscription.Suspended) },
		"cancelled": func(o *office) { o.setState("name", subscription.Cancelled) },
		"regenerated": func(o *office) {
			_, err := o.manager.Regenerate(o.t.Context(), "name", subscription.Primary)
			require.NoError(o.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := openOffice(t)
			key, _ := o.create("name")
			require.Equal(t, "name", o.find(key))
			change(o)
			o.clock.Advance(4*time.Second - time.Microsecond)
			require.Equal(t, "name", o.find(key), "a known key causes no read before")
			require.EqualValues(t, 1, o.reads.Load())
			o.clock.Advance(time.Microsecond)
			require.Empty(t, o.find(key))
		})
	}
}

func TestASuspendedSubscriptionComesBack(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	key, _ := o.create("name")
	o.setState("name", subscription.Suspended)
	require.Empty(t, o.find(key))
	o.setState("name", subscription.Active)
	o.clock.Advance(100 * time.Millisecond)
	require.Equal(t, "name", o.find(key))
}

func TestAFloodOfUnknownKeysReadsTenTimesASecond(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]*fault.Error{"reading": nil, "failing to read": fault.New(fault.Unavailable, "lost")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := openOffice(t)
			key, _ := o.create("name")
			require.Equal(t, "name", o.find(key))
			o.fail(failure)
			for range 3000 { // in three seconds
				_, err := o.directory.Find(t.Context(), "unknown")
				if failure == nil {
					require.NoError(t, err)
				}
				require.Equal(t, "name", o.find(key))
				o.clock.Advance(time.Millisecond)
			}
			require.LessOrEqual(t, o.reads.Load(), int64(31))
			require.GreaterOrEqual(t, o.reads.Load(), int64(30))
		})
	}
}

func TestWhileTheStorageIsDownTheOldCopyServes(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	key, _ := o.create("name")
	require.Equal(t, "name", o.find(key))
	lost := fault.New(fault.Unavailable, "lost")
	o.fail(lost)

	o.clock.Advance(4*time.Second - time.Microsecond)
	require.Equal(t, "name", o.find(key))
	_, err := o.directory.Find(t.Context(), "unknown")
	require.ErrorIs(t, err, lost, "it may be a new one")
	require.Equal(t, "name", o.find(key))

	o.clock.Advance(time.Microsecond)
	_, err = o.directory.Find(t.Context(), key)
	require.ErrorIs(t, err, lost)

	o.fail(nil)
	o.clock.Advance(99 * time.Millisecond)
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err = o.directory.Find(gone, key)
	require.ErrorIs(t, err, lost, "who leaves reads nothing")
	require.Equal(t, "name", o.find(key), "the storage is back: nobody gets a failure from before")
	require.Empty(t, o.find("unknown"))
}

// A failure is forgotten, too, when the clock steps back before it.
func TestAClockThatStepsBack(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	key, _ := o.create("name")
	require.Equal(t, "name", o.find(key))
	o.setState("name", subscription.Suspended)
	o.clock.Advance(-time.Microsecond)
	require.Empty(t, o.find(key), "a copy from the future was trusted")

	lost := fault.New(fault.Unavailable, "lost")
	o.fail(lost)
	o.clock.Advance(time.Hour)
	_, err := o.directory.Find(t.Context(), key)
	require.ErrorIs(t, err, lost)
	o.fail(nil)
	o.clock.Advance(-time.Microsecond)
	require.Empty(t, o.find(key))
}

// However long a reading takes, it answers all who waited for it.
func TestOneReadingAnswersAllWhoWait(t *testing.T) {
	t.Parallel()
	lost := fault.New(fault.Unavailable, "lost")
	for name, failure := range map[string]*fault.Error{"it succeeds": nil, "it fails": lost} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const callers = 20
			o := openOffice(t)
			o.create("name")
			require.Empty(t, o.find("unknown"))
			o.clock.Advance(time.Second)
			o.fail(failure)
			o.looks.Store(0)
			o.during(func(context.Context) {
				// Each has looked at the clock twice for either age; one of them
				// once more, to begin to read.
				for o.looks.Load() < 4*callers+1 {
					runtime.Gosched()
				}
				o.clock.Advance(time.Minute)
			})
			var done sync.WaitGroup
			for range callers {
				done.Go(func() {
					found, err := o.directory.Find(t.Context(), "unknown")
					if found != nil || (err != nil) != (failure != nil) {
						t.Error(found, err)
					}
				})
			}
			done.Wait()
			require.EqualValues(t, 2, o.reads.Load())
		})
	}
}

// Who arrives when a reading is old already needs another one.
func TestAReadingAnswersOnlyWhoCameInTime(t *testing.T) {
	t.Parallel()
	for wait, reads := range map[time.Duration]int64{100*time.Millisecond - time.Microsecond: 2, 100 * time.Millisecond: 3} {
		o := openOffice(t)
		require.Empty(t, o.find("unknown"))
		o.clock.Advance(time.Second)
		var late sync.WaitGroup
		o.during(func(context.Context) {
			o.during(func(context.Context) {})
			o.clock.Advance(wait)
			o.looks.Store(0)
			late.Go(func() {
				if _, err := o.directory.Find(t.Context(), "late"); err != nil {
					t.Error(err)
				}
			})
			for o.looks.Load() < 4 { // until it knows when it came
				runtime.Gosched()
			}
		})
		require.Empty(t, o.find("unknown"))
		late.Wait()
		require.Equal(t, reads, o.reads.Load())
	}
}

func TestACallerWhoLeavesSpoilsNothing(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	key, _ := o.create("name")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	found, err := o.directory.Find(ctx, key)
	require.NoError(t, err)
	require.Equal(t, "name", found.Name)
}

func TestAReadingEndsAfterTwoSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := openOffice(t)
		key, _ := o.create("name")
		o.during(func(ctx context.Context) { <-ctx.Done() })
		begin := fake.BubbleNow()
		_, err := o.directory.Find(t.Context(), key)
		require.Equal(t, fault.Unavailable, fault.KindOf(err))
		require.Equal(t, 2*time.Second, fake.BubbleNow().Sub(begin))
	})
}

func TestRefreshKeepsTheDirectoryFresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := openOffice(t)
		o.directory = subscriptions.NewDirectory(o, fake.BubbleNow)
		key, _ := o.create("name")
		var reported []error
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { // as the service does
			for ctx.Err() == nil {
				time.Sleep(subscriptions.RefreshEvery)
				if err := o.directory.Refresh(ctx); err != nil && ctx.Err() == nil {
					reported = append(reported, err)
				}
			}
		})
		begin := fake.BubbleNow()
		until := func(d time.Duration) {
			time.Sleep(d - fake.BubbleNow().Sub(begin))
			synctest.Wait()
		}

		until(2*time.Second - 1)
		require.Zero(t, o.reads.Load())
		until(2 * time.Second)
		require.EqualValues(t, 1, o.reads.Load())
		require.Equal(t, "name", o.find(key))
		o.setState("name", subscription.Suspended)
		until(4 * time.Second)
		require.Empty(t, o.find(key))
		require.EqualValues(t, 2, o.reads.Load(), "only the background task read")

		// It says what goes wrong, and goes on.
		lost := fault.New(fault.Unavailable, "lost")
		o.setState("name", subscription.Active)
		o.fail(lost)
		until(7 * time.Second)
		require.Equal(t, []error{lost}, reported)
		o.fail(nil)
		until(8 * time.Second)
		require.Equal(t, "name", o.find(key))
		require.EqualValues(t, 4, o.reads.Load())

		// A reading that its end cuts short is no failure.
		o.during(func(ctx context.Context) { <-ctx.Done() })
		until(10 * time.Second)
		cancel()
		done.Wait()
		require.Len(t, reported, 1)
		require.EqualValues(t, 5, o.reads.Load())
	})
}

// office is a Directory and a Manager over one repository, with a clock that
// is moved by hand.
type office struct {
	subscriptions.Repository
	t         *testing.T
	manager   *subscriptions.Manager
	directory *subscriptions.Directory
	clock     *fake.Clock
	looks     atomic.Int64                          // at the clock
	reads     atomic.Int64                          // of the repository
	meanwhile atomic.Pointer[func(context.Context)] // happens in every reading
	failure   atomic.Pointer[fault.Error]           // of every reading
}

func openOffice(t *testing.T) *office {
	o := &office{
		Repository: fake.NewStore().Subscriptions(nil), t: t,
		clock: fake.NewClock(time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)),
	}
	o.during(func(context.Context) {})
	o.manager = subscriptions.NewManager(o, counting())
	o.directory = subscriptions.NewDirectory(o, func() time.Time {
		defer o.looks.Add(1)
		return o.clock.Now()
	})
	return o
}

// All is what the Directory reads.
func (o *office) All(ctx context.Context) ([]*subscription.Subscription, error) {
	o.reads.Add(1)
	(*o.meanwhile.Load())(ctx)
	if failure := o.failure.Load(); failure != nil {
		return nil, failure
	}
	return o.Repository.All(ctx)
}

// during has something happen in every reading.
func (o *office) during(f func(context.Context)) { o.meanwhile.Store(&f) }

// fail makes every reading fail, nil makes them succeed again.
func (o *office) fail(failure *fault.Error) { o.failure.Store(failure) }

func (o *office) create(name string) (primary, secondary string) {
	o.t.Helper()
	first, second, err := o.manager.Create(o.t.Context(), subscription.Subscription{Name: name})
	require.NoError(o.t, err)
	return first.Reveal(), second.Reveal()
}

func (o *office) setState(name string, state subscription.State) {
	o.t.Helper()
	require.NoError(o.t, o.manager.SetState(o.t.Context(), name, state))
}

// find is the name of the subscription that the key opens.
func (o *office) find(key string) string {
	o.t.Helper()
	found, err := o.directory.Find(o.t.Context(), key)
	require.NoError(o.t, err)
	if found == nil {
		return ""
	}
	return found.Name
}
