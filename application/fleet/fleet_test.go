package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/fleet"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
)

// noon is the time at which the replicas of these tests begin.
var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// replica is a replica whose clock and troubles a test sets.
type replica struct {
	*fleet.Watch
	t           *testing.T
	passed      *atomic.Int64 // since noon, by the clock of the machine and of the storage
	checks      []summary.Check
	activity    *fleet.Activity
	certificate time.Time
	state       fleet.State
}

func open(t *testing.T, store *fake.Store, passed *atomic.Int64, n byte) *replica {
	r := &replica{t: t, passed: passed}
	r.activity = fleet.NewActivity(noon)
	r.Watch = fleet.NewWatch(fleet.Options{
		ID: operation.ID{n}, Name: fmt.Sprintf("bank-%d:8443", n), Version: "1.0.0", Replicas: store.Replicas(nil, r.now), Every: time.Second,
		Checks: func() []summary.Check { return r.checks }, Activity: r.activity, Machine: r.now,
		CertificateEnd: func() time.Time { return r.certificate },
		State:          func(context.Context) (fleet.State, error) { return r.state, nil },
	})
	t.Cleanup(r.Wait)
	return r
}

func (r *replica) now() time.Time { return noon.Add(time.Duration(r.passed.Load())) }

// lines are the lines of the bar, after everything was read again.
func (r *replica) lines() []string {
	r.t.Helper()
	r.look()
	var lines []string
	for _, trouble := range r.Status().Troubles {
		require.NotRegexp(r.t, "^Do ", trouble.Next, "the bar writes Do before it")
		require.NotRegexp(r.t, "^Ask ", trouble.Partners, "it is said to partners")
		lines = append(lines, strings.TrimSpace(trouble.Kind+" "+trouble.Where)+": "+trouble.Text)
	}
	return lines
}

// look reads everything again.
func (r *replica) look() {
	r.Wait()
	r.passed.Add(int64(20 * time.Second))
	require.NoError(r.t, r.Keep(r.t.Context()))
	r.Status()
	r.Wait()
	r.Status()
	r.Wait()
}

func alone(t *testing.T) *replica { return open(t, fake.NewStore(), new(atomic.Int64), 1) }

func TestAReplicaSpeaksForAllOthers(t *testing.T) {
	t.Parallel()
	store, passed := fake.NewStore(), new(atomic.Int64)
	one, other := open(t, store, passed, 1), open(t, store, passed, 2)
	for _, r := range []*replica{one, other} {
		require.NoError(t, r.Keep(t.Context()))
	}
	require.Empty(t, one.lines()[1:], "the other one has not reported for 20 seconds")
	require.Equal(t, []string{"replicas: 1 replica stopped reporting: bank-2:8443."}, one.lines())

	other.checks = []summary.Check{{Name: "clock", Problem: "The clock is 90 s ahead."}}
	other.look()
	require.NoError(t, other.Keep(t.Context()))
	one.Status()
	one.Wait()
	status := one.Status()
	require.Len(t, status.Replicas, 2)
	require.Len(t, status.Troubles, 1)
	trouble := status.Troubles[0]
	require.Equal(t, "clock", trouble.Kind)
	require.Equal(t, "on bank-2:8443", trouble.Where)
	require.Equal(t, "The clock is 90 s ahead.", trouble.Text)
	require.Contains(t, trouble.Next, "NTP")
	require.Contains(t, trouble.Partners, "same CallerId")

	one.checks = []summary.Check{{Name: "clock", Problem: "The clock is 70 s ahead."}}
	one.look()
	require.NoError(t, other.Keep(t.Context()))
	one.passed.Add(int64(time.Second))
	one.Status()
	one.Wait()
	status = one.Status()
	require.Len(t, status.Troubles, 1, "the same trouble of two replicas is one line")
	require.Equal(t, "on all 2 replicas that report", status.Troubles[0].Where)

	require.NoError(t, other.Remove(t.Context()))
	one.look()
	status = one.Status()
	require.Len(t, status.Replicas, 1, "a replica that stops in order leaves no line")
	require.Empty(t, status.Troubles[0].Where)
}

// A start that fails before the first row asks the storage for nothing: it may not answer.
func TestAReplicaWithoutARowRemovesNone(t *testing.T) {
	t.Parallel()
	failed := false
	broken := fake.NewStore().Replicas(func(context.Context, fake.Moment) error { failed = true; return errors.New("no answer") }, time.Now)
	w := fleet.NewWatch(fleet.Options{Replicas: broken, Machine: time.Now})
	require.NoError(t, w.Remove(t.Context()))
	require.False(t, failed)
}

// Such a replica never had a row: the operator has read already why nothing could be written, as
// in a database without tables.
func TestAReplicaThatCouldNotWriteARowNeedNotDeleteOne(t *testing.T) {
	t.Parallel()
	noTables := errors.New("no tables")
	broken := fake.NewStore().Replicas(func(context.Context, fake.Moment) error { return noTables }, time.Now)
	w := fleet.NewWatch(fleet.Options{
		Replicas: broken, Machine: time.Now, Activity: fleet.NewActivity(time.Now()),
		Checks:         func() []summary.Check { return nil },
		CertificateEnd: func() time.Time { return time.Time{} },
	})
	require.ErrorIs(t, w.Keep(t.Context()), noTables)
	require.NoError(t, w.Remove(t.Context()))
}

// A page may still be made when the service stops, and the storage is closed after that.
func TestAStoppedWatchReadsNothing(t *testing.T) {
	t.Parallel()
	r := alone(t)
	r.look()
	var pages sync.WaitGroup
	for range 4 {
		pages.Go(func() {
			for range 100 {
				r.passed.Add(int64(20 * time.Second))
				r.Status()
			}
		})
	}
	r.Stop()
	pages.Wait()
	r.Stop() // a second call does no harm
	before := r.Status().Troubles
	r.checks = []summary.Check{{Name: "clock", Problem: "The clock is 90 s ahead."}}
	r.passed.Add(int64(20 * time.Second))
	require.Equal(t, before, r.Status().Troubles)
}

// slowReplicas is a storage whose writes take a time. A row has the time at which its write began.
type slowReplicas struct {
	fake.Replicas
	store  *fake.Store
	now    func() time.Time
	passed *atomic.Int64
	takes  time.Duration
	during func() // called when the write has taken this time, before it ends
}

func (s *slowReplicas) Keep(ctx context.Context, r fleet.Replica, replaced time.Duration) error {
	began := s.now()
	s.passed.Add(int64(s.takes))
	if s.during != nil {
		s.during()
	}
	return s.store.Replicas(nil, func() time.Time { return began }).Keep(ctx, r, replaced)
}

// pulse is how often a replica on a server keeps its row.
const pulse = 500 * time.Millisecond

// slow is a replica on a storage that a test makes slow.
func slow(t *testing.T, store *fake.Store, passed *atomic.Int64, n byte) (*replica, *slowReplicas) {
	r := open(t, store, passed, n)
	storage := &slowReplicas{Replicas: store.Replicas(nil, r.now), store: store, now: r.now, passed: passed}
	r.Watch = fleet.NewWatch(fleet.Options{
		ID: operation.ID{n}, Name: fmt.Sprintf("bank-%d:8443", n), Replicas: storage, Every: pulse, Activity: r.activity,
		Checks: func() []summary.Check { return nil }, CertificateEnd: func() time.Time { return time.Time{} }, Machine: r.now,
		State: func(context.Context) (fleet.State, error) { return fleet.State{}, nil },
	})
	t.Cleanup(r.Wait)
	require.NoError(t, r.Keep(t.Context()))
	return r, storage
}

// bar is what the bar says, without the passing of time.
func (r *replica) bar() (lines []string) {
	r.Status()
	r.Wait()
	for _, trouble := range r.Status().Troubles {
		lines = append(lines, trouble.Text)
	}
	return lines
}

func TestAKilledReplicaIsSeenWithinThreeSeconds(t *testing.T) {
	t.Parallel()
	store, passed := fake.NewStore(), new(atomic.Int64)
	one, _ := slow(t, store, passed, 1)
	slow(t, store, passed, 2) // it is killed
	for at := time.Duration(0); at < 2500*time.Millisecond; at += pulse {
		require.NoError(t, one.Keep(t.Context()))
		require.Empty(t, one.bar(), at)
		passed.Add(int64(pulse))
	}
	require.NoError(t, one.Keep(t.Context()))
	require.Equal(t, []string{"1 replica stopped reporting: bank-2:8443."}, one.bar(), "after 2.5 seconds")
}

// A storage that is slow for all replicas says nothing about one of them.
func TestASlowStorageIsNoMissingReplica(t *testing.T) {
	t.Parallel()
	store, passed := fake.NewStore(), new(atomic.Int64)
	reader, _ := slow(t, store, passed, 1)
	other, storage := slow(t, store, passed, 2)
	storage.takes = 1900 * time.Millisecond
	storage.during = func() { require.Empty(t, reader.bar()) }
	for range 4 {
		passed.Add(int64(pulse))
		began := reader.now()
		require.NoError(t, other.Keep(t.Context()))
		// The reader wrote at the same time.
		require.NoError(t, store.Replicas(nil, func() time.Time { return began }).Keep(t.Context(), reader.Status().Replicas[0], 0))
	}
}

// When the storage answers again, the replica that writes first does not call the other one missing.
func TestAStorageThatAnswersAgainIsNoMissingReplica(t *testing.T) {
	t.Parallel()
	store, passed := fake.NewStore(), new(atomic.Int64)
	reader, _ := slow(t, store, passed, 1)
	other, _ := slow(t, store, passed, 2)
	passed.Add(int64(8 * time.Second))
	require.Empty(t, reader.bar(), "nobody could write")
	require.NoError(t, reader.Keep(t.Context()))
	passed.Add(int64(pulse))
	require.Empty(t, reader.bar())
	require.NoError(t, reader.Keep(t.Context()))
	require.NoError(t, other.Keep(t.Context()))
	for range 12 {
		passed.Add(int64(pulse))
		require.NoError(t, reader.Keep(t.Context()))
		reader.bar()
	}
	require.Equal(t, []string{"1 replica stopped reporting: bank-2:8443."}, reader.bar(), "it has ended")
}

// A replica that is slow alone says itself how long to wait for it.
func TestASlowReplicaIsNotMissing(t *testing.T) {
	t.Parallel()
	store, passed := fake.NewStore(), new(atomic.Int64)
	reader, _ := slow(t, store, passed, 1)
	other, storage := slow(t, store, passed, 2)
	storage.during = func() {
		require.NoError(t, reader.Keep(t.Context()))
		require.Empty(t, reader.bar())
	}
	for _, milliseconds := range []int64{0, 900, 1000, 1900, 1900, 1900} {
		passed.Add(int64(max(0, pulse-storage.takes)))
		storage.takes = time.Duration(milliseconds) * time.Millisecond
		require.NoError(t, other.Keep(t.Context()))
	}
	storage.takes, storage.during = 0, nil
	require.NoError(t, other.Keep(t.Context()))
	require.NoError(t, other.Keep(t.Context()))
	passed.Add(int64(2500 * time.Millisecond))
	require.NoError(t, reader.Keep(t.Context()))
	require.Len(t, reader.bar(), 1, "it is fast again, and silent")
}

// A process that was killed and started again is no missing replica, not even for a moment.
func TestARestartedReplicaReplacesItsRow(t *testing.T) {
	t.Parallel()
	store, passed := fake.NewStore(), new(atomic.Int64)
	killed, other := open(t, store, passed, 1), open(t, store, passed, 2)
	for _, r := range []*replica{killed, other} {
		require.NoError(t, r.Keep(t.Context()))
	}
	passed.Add(1)
	started := fleet.NewWatch(fleet.Options{
		ID: operation.ID{3}, Name: "bank-1:8443", Replicas: store.Replicas(nil, killed.now), Every: time.Second, Activity: killed.activity,
		Checks: func() []summary.Check { return nil }, CertificateEnd: func() time.Time { return time.Time{} }, Machine: killed.now,
		State: func(context.Context) (fleet.State, error) { return fleet.State{}, nil },
	})
	t.Cleanup(started.Wait)
	require.NoError(t, started.Keep(t.Context()))
	rows, err := store.Replicas(nil, killed.now).All(t.Context())
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, operation.ID{3}, rows[0].ID)
}

func TestACommandSeesWhatTheBarSays(t *testing.T) {
	t.Parallel()
	store, passed := fake.NewStore(), new(atomic.Int64)
	r := open(t, store, passed, 1)
	state := func(context.Context) (fleet.State, error) { return r.state, nil }
	rows := store.Replicas(nil, r.now)
	status, err := fleet.Look(t.Context(), rows, state)
	require.NoError(t, err)
	require.True(t, status.IsGood(), "a book that no replica serves is no trouble")

	r.checks = []summary.Check{{Name: "trail", Warnings: summary.Warnings([]string{"It is not kept."})}}
	r.look()
	require.NoError(t, r.Keep(t.Context()))
	status, err = fleet.Look(t.Context(), rows, state)
	require.NoError(t, err)
	require.False(t, status.IsGood())
	require.Equal(t, "It is not kept.", status.Troubles[0].Text)

	passed.Add(int64(time.Minute))
	status, err = fleet.Look(t.Context(), rows, state)
	require.NoError(t, err)
	require.Equal(t, "No replica reports. The last was bank-1:8443.", status.Troubles[0].Text)
	require.Equal(t, "Callers get no answer.", status.Troubles[0].Effect)
	require.True(t, status.Troubles[0].Bad)
}

// The replica that stopped last is named, whatever the order of the names.
func TestTheLastReplicaThatReported(t *testing.T) {
	t.Parallel()
	store, passed := fake.NewStore(), new(atomic.Int64)
	one, other := open(t, store, passed, 1), open(t, store, passed, 2)
	require.NoError(t, other.Keep(t.Context()))
	passed.Add(int64(time.Minute))
	require.NoError(t, one.Keep(t.Context()))
	stopped := one.now()
	passed.Add(int64(time.Minute))
	status, err := fleet.Look(t.Context(), store.Replicas(nil, one.now), func(context.Context) (fleet.State, error) { return fleet.State{}, nil })
	require.NoError(t, err)
	require.Equal(t, "No replica reports. The last was bank-1:8443.", status.Troubles[0].Text)
	require.Equal(t, stopped, status.Troubles[0].Since)
}

// What makes several checks fail is said once, with one time. Each other trouble has its own.
func TestOneLineForEachKind(t *testing.T) {
	t.Parallel()
	r := alone(t)
	r.checks = []summary.Check{{Name: "database", Problem: "No answer within 2s."}, {Name: "clock", Problem: "No answer within 2s."}, {Name: "trail", Warnings: summary.Warnings([]string{"One.", "Two."})}}
	require.Equal(t, []string{"database, clock: No answer within 2s.", "trail: One. Two."}, r.lines())
	since := r.Status().Troubles[0].Since
	r.checks[0].Problem, r.checks[1].Problem = "It is gone.", ""
	require.Equal(t, []string{"database: It is gone.", "trail: One. Two."}, r.lines())
	require.Equal(t, since, r.Status().Troubles[0].Since, "the service was not ready meanwhile")

	r.checks = []summary.Check{{Name: "trail", Warnings: summary.Warnings([]string{"It is 999 s late."})}}
	r.look()
	since = r.Status().Troubles[0].Since
	r.checks = []summary.Check{{Name: "trail", Warnings: summary.Warnings([]string{"It is 1,000 s late."})}}
	r.look()
	require.NotZero(t, since)
	require.Equal(t, since, r.Status().Troubles[0].Since, "a number that changes is no other trouble")
}

// A book with findings stands above a warning of a replica, and below what makes the replica not ready.
func TestTheWorstLineIsTheFirst(t *testing.T) {
	t.Parallel()
	r := alone(t)
	r.checks = []summary.Check{{Name: "trail", Warnings: summary.Warnings([]string{"Late."})}}
	r.state = fleet.State{Now: noon, Bank: noon, Zone: time.UTC, Checked: &audit.Act{At: noon, Details: backoffice.Proof{Findings: 3}.String()}}
	const findings = "book: The last check of the book has findings: see Proof."
	require.Equal(t, []string{findings, "trail: Late."}, r.lines())
	r.checks = append(r.checks, summary.Check{Name: "database", Problem: "It is gone."})
	require.Equal(t, []string{"database: It is gone.", findings, "trail: Late."}, r.lines())
}

// A replica whose clock is wrong by days does not know since when.
func TestAWrongClockSaysNotSinceWhen(t *testing.T) {
	t.Parallel()
	store := fake.NewStore()
	right, wrong := open(t, store, new(atomic.Int64), 1), open(t, store, new(atomic.Int64), 2)
	slow := summary.Check{Name: "trail", Warnings: summary.Warnings([]string{"Slow."})}
	right.checks = []summary.Check{slow}
	right.look()
	since := right.Status().Troubles[0].Since
	require.NotZero(t, since)
	wrong.passed.Add(int64(-72 * time.Hour))
	wrong.checks = []summary.Check{{Name: "clock", Problem: "72 h behind."}, slow}
	wrong.look()
	right.passed.Add(int64(time.Second))
	require.NoError(t, store.Replicas(nil, right.now).Keep(t.Context(), wrong.Status().Replicas[0], 0))
	right.Status()
	right.Wait()
	for _, trouble := range right.Status().Troubles {
		if trouble.Kind == "clock" {
			require.Zero(t, trouble.Since)
			continue
		}
		require.Equal(t, "on all 2 replicas that report", trouble.Where)
		require.Equal(t, since, trouble.Since, "of the replica whose clock is right")
	}
	require.Len(t, right.Status().Troubles, 2)
}

// While the storage does not answer, nothing is known of the clock, so that nobody should set it.
func TestACheckWithoutAStorageIsOfTheStorage(t *testing.T) {
	t.Parallel()
	r := alone(t)
	for _, name := range []string{"clock", "durability", "trail"} {
		r.checks = []summary.Check{{Name: name, Problem: "No answer within 2s.", OfStorage: true}}
		r.look()
		trouble := r.Status().Troubles[0]
		require.Contains(t, trouble.Next, "database server", name)
		require.Contains(t, trouble.Effect, "answered 503", name)
		require.Contains(t, trouble.Partners, "same CallerId", name)
	}
}

// A warning that follows from a failed check is no trouble of its own: what to do would be wrong.
func TestAWarningOfAFailedCheckIsNoTrouble(t *testing.T) {
	t.Parallel()
	r := alone(t)
	r.checks = []summary.Check{
		{Name: "clock", Problem: "The clock of this machine is 9m59s behind."},
		{Name: "trail", Warnings: summary.Warnings([]string{"The trail is not sealed: The clock of this machine is 9m58s behind."})},
	}
	require.Equal(t, []string{"clock: The clock of this machine is 9m59s behind."}, r.lines())

	r.checks[1].Warnings = summary.Warnings([]string{"No checkpoint is outside.", "The trail is not sealed: The clock of this machine is 9m58s behind."})
	require.Equal(t, []string{"clock: The clock of this machine is 9m59s behind.", "trail: No checkpoint is outside."}, r.lines(), "another warning stays")
	require.Contains(t, r.Status().Troubles[1].Next, "what the text names", "a trail has other troubles than its key")
}

func TestADatabaseThatIsUnsafeStillAnswers(t *testing.T) {
	t.Parallel()
	r := alone(t)
	r.checks = []summary.Check{{Name: "durability", Problem: "fsync is off."}}
	r.look()
	trouble := r.Status().Troubles[0]
	require.Contains(t, trouble.Effect, "Requests that come are answered.")
	require.Empty(t, trouble.Partners, "partners notice nothing")
	r.checks = []summary.Check{{Name: "durability", Warnings: []summary.Warning{{Text: "The database has no data checksums.", CanWait: true}}}}
	r.look()
	require.Equal(t, []string{"durability: The database has no data checksums."}, r.lines())
	require.True(t, r.Status().IsGood(), "a database stays set up as it is for months")

	r.checks[0].Warnings = append(r.checks[0].Warnings, summary.Warning{Text: "The log grows."})
	r.look()
	require.Equal(t, []string{"durability: The log grows.", "durability: The database has no data checksums."}, r.lines())
	require.False(t, r.Status().IsGood(), "a fault of today needs an operator, whatever the database is set up to")
}

// A replica that stops answers until its balancer leads elsewhere: there is nothing to tell partners.
func TestAReplicaThatStopsStillAnswers(t *testing.T) {
	t.Parallel()
	r := alone(t)
	r.checks = []summary.Check{{Name: "shutdown", Problem: "The service is stopping."}}
	r.look()
	trouble := r.Status().Troubles[0]
	require.Contains(t, trouble.Effect, "Requests that come are answered.")
	require.Empty(t, trouble.Partners)
}

func TestTheEndOfACertificate(t *testing.T) {
	t.Parallel()
	r := alone(t)
	r.certificate = noon.AddDate(0, 0, 15)
	require.Empty(t, r.lines())
	r.certificate = noon.AddDate(0, 0, 13)
	require.Equal(t, []string{"certificate: The TLS certificate ends on 9 Dec 2026 12:00 UTC, in 12 days."}, r.lines())
	require.True(t, r.Status().Troubles[0].Quiet)
	require.True(t, r.Status().IsGood(), "it can wait for days")
	r.certificate = noon
	require.Equal(t, []string{"certificate: The TLS certificate is over: callers refuse it."}, r.lines())
	require.True(t, r.Status().Troubles[0].Bad)
	require.False(t, r.Status().Troubles[0].Quiet)
}

func (r *replica) ask(n int, x summary.Exchange) {
	x.Start = r.now()
	for range n {
		r.activity.Request(&x)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	r := alone(t)
	r.ask(596, summary.Exchange{Operation: "BuyFundFromCustomer", Status: 200})
	r.ask(4, summary.Exchange{Operation: "BuyFundFromCustomer", Status: 503})
	require.Empty(t, r.lines(), "four are few")
	r.ask(2, summary.Exchange{Operation: "BuyFundFromCustomer", Status: 500})
	require.Empty(t, r.lines(), "six of 602 are few")
	r.ask(1, summary.Exchange{Operation: "BuyFundFromCustomer", Subscription: "shop", Status: 499}) // the caller left: there is no code
	require.Empty(t, r.lines())
	r.ask(1, summary.Exchange{Route: "/outcomes", Status: 503})
	require.Equal(t, []string{"errors: 7 of 604 requests of the last two minutes were answered 5xx."}, r.lines())
	r.passed.Add(int64(2 * time.Minute))
	require.Empty(t, r.lines())
}

// One request that fails for an unexpected reason, or whose outcome is not known, is a line.
func TestFailuresThatNeedAnOperator(t *testing.T) {
	t.Parallel()
	r := alone(t)
	r.ask(600, summary.Exchange{Operation: "BuyFundFromCustomer", Status: 200})
	r.ask(1, summary.Exchange{Route: "/quotes", Status: 500, Codes: []string{"internal-error"}})
	r.ask(2, summary.Exchange{Operation: "BuyFundFromCustomer", Status: 503, Codes: []string{"outcome-unknown"}})
	require.Equal(t, []string{
		"defect: 1 request of the last 15 minutes failed for an unexpected reason.",
		"unknown outcomes: The outcome of 2 requests of the last 15 minutes was not known: the database did not confirm a commit.",
	}, r.lines())
	r.passed.Add(int64(15 * time.Minute))
	require.Empty(t, r.lines())
}

// A flood, keys that are guessed and a wave of refusals are compared with the hour before.
func TestTrafficAgainstTheHourBefore(t *testing.T) {
	t.Parallel()
	r := alone(t)
	bought := summary.Exchange{Operation: "BuyFundFromCustomer", Subscription: "shop", Status: 200}
	refused := bought
	refused.State, refused.Codes = operation.Failed, []string{"price-not-current"}
	for range 30 {
		r.ask(100, bought)
		r.ask(2, refused)
		r.ask(1, summary.Exchange{Status: 401, KeyStart: "0000", KeyHash: 1})
		r.passed.Add(int64(time.Minute))
	}
	require.Empty(t, r.lines())
	r.passed.Add(int64(20 * time.Second))

	r.ask(5000, bought)
	require.Equal(t, []string{"flood: More than five times the requests of the hour before from shop (41/s)."}, r.lines())
	r.passed.Add(int64(2 * time.Minute))
	require.Empty(t, r.lines())

	r.ask(30, refused)
	require.Equal(t, []string{"refusals: Most requests of the last two minutes were refused, other than in the hour before: shop (30 of 30, most with price-not-current)."}, r.lines())
	r.passed.Add(int64(2 * time.Minute))
	require.Empty(t, r.lines())

	r.ask(200, summary.Exchange{Status: 401, KeyStart: "0001", KeyHash: 2})
	require.Equal(t, []string{"unknown keys: 200 requests of the last two minutes had a key of no subscription, always the same: a client may use an old key."}, r.lines())
	r.ask(1, summary.Exchange{Status: 401, KeyStart: "0001", KeyHash: 3})
	require.Equal(t, []string{"unknown keys: 201 requests of the last two minutes had a key of no subscription, always one of two: a client may use an old key."}, r.lines())
	for n := range 200 {
		r.ask(1, summary.Exchange{Status: 401, KeyStart: "0001", KeyHash: uint64(n)})
	}
	require.Contains(t, r.lines()[0], "someone may be guessing keys.")
}

func waits(code string, of day.Day, sales int64) buyfund.DueFund {
	return buyfund.DueFund{PriceDay: fund.PriceDay{Fund: fund.Fund{IMKBCode: code}, Day: of}, Sales: sales}
}

// The line of the prices leads with the fund for which most sales wait.
func TestSalesThatWait(t *testing.T) {
	t.Parallel()
	r := alone(t)
	today := day.Of(noon, time.UTC)
	r.state = fleet.State{Now: noon, Bank: noon, Zone: time.UTC}
	r.state.Due = buyfund.Waits{ForPrice: []buyfund.DueFund{waits("AFA", today, 1), waits("YAS", today, 122), waits("TI2", today, 7)}, PriceSales: 130}
	require.Equal(t, []string{"prices: 122 sales wait for the price of YAS of Thu 26 Nov 2026. 8 sales wait for 2 other prices."}, r.lines())
	require.False(t, r.Status().Troubles[0].Bad, "a price of today may still come")
	r.state.Due = buyfund.Waits{ForPrice: []buyfund.DueFund{waits("AFA", today, 1), waits("YAS", today, 122)}, PriceSales: 123}
	require.Equal(t, []string{"prices: 122 sales wait for the price of YAS of Thu 26 Nov 2026. 1 sale waits for 1 other price."}, r.lines())
	r.state.Due.PriceSales = 125
	require.Equal(t, []string{"prices: 122 sales wait for the price of YAS of Thu 26 Nov 2026. 1 sale waits for 1 other price." +
		" 2 sales wait with them: the sales of one operation settle together."}, r.lines())
	r.state.Due = buyfund.Waits{ForPrice: []buyfund.DueFund{waits("AFA", today.Plus(-1), 1)}, PriceSales: 1}
	require.Equal(t, []string{"prices: 1 sale waits for the price of AFA of Wed 25 Nov 2026."}, r.lines())
	require.True(t, r.Status().Troubles[0].Bad)
	require.Contains(t, r.Status().Troubles[0].Next, "import prices")

	r.state.Due = buyfund.Waits{ForSettling: 1200, Since: noon.Add(-4 * time.Minute)}
	require.Empty(t, r.lines())
	r.state.Due.Since = noon.Add(-6 * time.Minute)
	require.Equal(t, []string{"due sales: 1,200 sales should be settled and are not."}, r.lines())
	require.False(t, r.Status().Troubles[0].Bad)
	r.state.Due.Since = noon.Add(-16 * time.Minute)
	r.look()
	require.True(t, r.Status().Troubles[0].Bad, "as the alert says")
}

// All keys that end are one line, which is not in the bar.
func TestKeysThatEnd(t *testing.T) {
	t.Parallel()
	r := alone(t)
	r.state = fleet.State{Now: noon, Bank: noon, Zone: time.UTC}
	for n := range 9 {
		of := &subscription.Subscription{Name: fmt.Sprint("shop-", n), State: subscription.Active}
		of.PrimaryKey.Expires = noon.AddDate(0, 0, 10-n*2)
		r.state.Subscriptions = append(r.state.Subscriptions, of)
	}
	cancelled := &subscription.Subscription{Name: "gone", State: subscription.Cancelled}
	cancelled.PrimaryKey.Expires = noon
	r.state.Subscriptions = append(r.state.Subscriptions, cancelled)
	lines := r.lines()
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "keys: 3 keys ended: primary of shop-6 on Tue 24 Nov 2026, ")
	require.Contains(t, lines[0], "6 keys will end within 14 days: primary of shop-0 on Sun 6 Dec 2026, ")
	require.Contains(t, lines[0], " and 1 more.")
	require.True(t, r.Status().IsGood())
}

func TestTheLastCheckOfTheBook(t *testing.T) {
	t.Parallel()
	r := alone(t)
	r.state = fleet.State{Now: noon, Bank: noon, Zone: time.UTC}
	require.Empty(t, r.lines(), "a new book")
	r.state.Subscriptions = []*subscription.Subscription{{Name: "shop", Created: noon.AddDate(0, 0, -9)}}
	require.Equal(t, []string{"book: No check of the book is recorded in the last 90 days."}, r.lines())
	r.state.Checked = &audit.Act{At: noon.AddDate(0, 0, -9), Details: backoffice.Proof{}.String()}
	require.Equal(t, []string{"book: The last check of the book is older than 8 days."}, r.lines())
	r.state.Checked.Details = backoffice.Proof{Findings: 3}.String()
	require.Equal(t, []string{"book: The last check of the book has findings: see Proof."}, r.lines())
	require.True(t, r.Status().Troubles[0].Bad)
	r.state.Checked = &audit.Act{At: noon, Details: backoffice.Proof{}.String()}
	require.Empty(t, r.lines())
}
