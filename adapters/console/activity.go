package console

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"bankingapi/application/buyfund"
	"bankingapi/application/summary"
	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

// activity counts what this process does: by minute for the last hour, and in
// total for the bank's day. Its memory is bounded. It is safe for concurrent
// use, and a request costs it less than a microsecond.
type activity struct {
	zone *time.Location
	bank func() time.Time // the bank's clock, which decides the day

	mu      sync.Mutex
	began   time.Time // of the process
	since   time.Time // of the totals
	minutes ring[minute]
	// second is that of the last request, since 1970. requests are those in it, and
	// before those in the second before it.
	second           int64
	requests, before int
	day              day.Day
	ends             time.Time // of the day
	totals           totals
	// refusals are those of the day, at most maxRefusals.
	refusals map[refusal]int
	// partners are the requests of each subscription, at most maxCounted of them.
	partners map[string]*ring[int]
}

const (
	hour        = 60
	maxRefusals = 1000
	maxCounted  = 500
)

// ring has something for each of the last 60 minutes.
type ring[T any] [hour]struct {
	number int64 // of the minute, since 1970
	value  T
}

// at is the value of a minute, the zero value at first. A request of an
// earlier hour counts for the minute that took its place.
func (r *ring[T]) at(t time.Time) *T {
	number := t.Unix() / 60
	slot := &r[number%hour]
	if slot.number < number {
		*slot = struct {
			number int64
			value  T
		}{number: number}
	}
	return &slot.value
}

// minute counts the requests of one minute. Answered are the requests to operations
// that were answered 2xx: their latencies are counted by bucketOf.
type minute struct {
	requests, answered, failed int
	latencies                  [buckets]int32
}

// totals are those of the requests of the bank's day to this replica.
type totals struct {
	// Replayed requests repeated an operation. Rejected are requests that were answered
	// 4xx, Failed those with 5xx.
	Replayed, Rejected, Failed int
	// Settled are due sales that were completed, Lapsed those that failed.
	Settled, Lapsed int
}

// refusal is a kind of refused requests.
type refusal struct {
	// Partner is empty if the key belongs to no subscription. Code is the first of the
	// answer.
	Partner, Code string
	// Kept says that the bank refused the operation, so that it is stored.
	Kept bool
}

// newActivity begins to count.
func newActivity(zone *time.Location, bank func() time.Time, now time.Time) *activity {
	return &activity{zone: zone, bank: bank, began: now, since: now, partners: make(map[string]*ring[int])}
}

// Request counts a request and its answer, as the metrics do: the dashboard and the
// page Today say the same.
func (c *Console) Request(x *summary.Exchange) {
	if c == nil {
		return
	}
	a, at := c.activity, x.Start.Add(x.Duration)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn(at, a.bank())
	a.tick(at)
	a.requests++
	m := a.minutes.at(at)
	m.requests++
	if x.Operation == "" {
		return
	}
	if x.Status < http.StatusMultipleChoices {
		m.answered++
		m.latencies[bucketOf(x.Duration)]++
	}
	p := a.partners[x.Subscription]
	if p == nil && x.Subscription != "" && len(a.partners) < maxCounted {
		p = new(ring[int])
		a.partners[x.Subscription] = p
	}
	if p != nil {
		*p.at(at)++
	}
	switch {
	case x.Status >= http.StatusInternalServerError:
		a.totals.Failed++
		m.failed++
	case x.Status >= http.StatusBadRequest:
		a.totals.Rejected++
	case x.Replayed:
		a.totals.Replayed++
	}
	if len(x.Codes) == 0 {
		return
	}
	key := refusal{x.Subscription, x.Codes[0], x.State == operation.Failed}
	if _, known := a.refusals[key]; known || len(a.refusals) < maxRefusals {
		a.refusals[key]++
	}
}

// Settled counts a round of settlement.
func (c *Console) Settled(s buyfund.Settlement) {
	if c == nil {
		return
	}
	a := c.activity
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn(c.o.Machine(), a.bank())
	a.totals.Settled += s.Completed
	a.totals.Lapsed += s.Failed
}

// turn begins a new day at the bank's midnight. now is the time of the machine.
func (a *activity) turn(now, bank time.Time) {
	if !a.day.IsNone() && bank.Before(a.ends) {
		return
	}
	if !a.day.IsNone() {
		a.since = now
		if midnight := a.ends; bank.Sub(now).Abs() < time.Minute && midnight.Before(now) {
			a.since = midnight // nothing was asked since
		}
	}
	a.day = day.Of(bank, a.zone)
	a.ends = a.day.Plus(1).Start(a.zone)
	a.totals, a.refusals = totals{}, make(map[refusal]int)
}

// tick begins a new second.
func (a *activity) tick(now time.Time) {
	switch past := now.Unix() - a.second; {
	case past == 1:
		a.second, a.requests, a.before = a.second+1, 0, a.requests
	case past > 1:
		a.second, a.requests, a.before = a.second+past, 0, 0
	}
}

// busyRate is how many requests a second make the API busy.
const busyRate = 100

// isBusy reports whether the API had that many requests in this second and the one
// before.
func (a *activity) isBusy(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tick(now)
	return a.requests+a.before >= busyRate
}

// rates are the requests a second of a subscription in each of the last 60
// minutes, the running one last.
func (a *activity) rates(name string, now time.Time) (rates []float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.partners[name]
	if p == nil {
		return make([]float64, hour)
	}
	for ago := hour - 1; ago >= 0; ago-- {
		at := now.Add(-time.Duration(ago) * time.Minute)
		rates = append(rates, float64(*p.at(at))/secondsOf(ago, now))
	}
	return rates
}

// failures are the requests of this minute and the one before that were answered 5xx,
// and all requests.
func (a *activity) failures(now time.Time) (failed, requests int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range []time.Time{now, now.Add(-time.Minute)} {
		m := a.minutes.at(at)
		failed, requests = failed+m.failed, requests+m.requests
	}
	return failed, requests
}

// secondsOf is how much of a minute has passed, counted back from the running one.
func secondsOf(ago int, now time.Time) float64 {
	if ago == 0 {
		return max(1, float64(now.Unix()%60))
	}
	return 60
}

// snapshot is what the Today page shows.
type snapshot struct {
	totals
	Since    time.Time // when counting began
	Refusals []refusalCount
	// rate is in requests a second, median and slow in milliseconds: one value for
	// each of the last 60 minutes that this process has seen, the running one last.
	rate, median, slow []float64
}

type refusalCount struct {
	refusal
	Requests int
}

func (a *activity) snapshot(now time.Time) snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn(now, a.bank())
	s := snapshot{totals: a.totals, Since: a.since}
	for key, n := range a.refusals {
		s.Refusals = append(s.Refusals, refusalCount{key, n})
	}
	slices.SortFunc(s.Refusals, func(x, y refusalCount) int {
		return cmp.Or(cmp.Compare(y.Requests, x.Requests), cmp.Compare(x.Partner, y.Partner), cmp.Compare(x.Code, y.Code))
	})
	for ago := min(hour-1, int(now.Unix()/60-a.began.Unix()/60)); ago >= 0; ago-- {
		m := a.minutes.at(now.Add(-time.Duration(ago) * time.Minute))
		s.rate = append(s.rate, float64(m.requests)/secondsOf(ago, now))
		s.median = append(s.median, m.quantile(0.5))
		s.slow = append(s.slow, m.quantile(0.99))
	}
	return s
}

// buckets of latencies grow by a quarter each, from 100 microseconds to 30 s.
const buckets = 58

var bounds = func() (b [buckets]time.Duration) {
	d := 100 * time.Microsecond
	for i := range b {
		b[i] = d
		d += d / 4
	}
	return b
}()

func bucketOf(d time.Duration) int {
	i, _ := slices.BinarySearch(bounds[:], d)
	return min(i, buckets-1)
}

// quantile is the upper bound of the bucket that has it, in milliseconds; 0
// without answers.
func (m *minute) quantile(q float64) float64 {
	if m.answered == 0 {
		return 0
	}
	left := int32(q * float64(m.answered))
	for i, n := range m.latencies {
		if left -= n; left < 0 {
			return float64(bounds[i].Microseconds()) / 1000
		}
	}
	return float64(bounds[buckets-1].Milliseconds())
}
