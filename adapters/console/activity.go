package console

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/summary"
	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

// activity counts what this process answered, by minute for the last hour. Its memory
// is bounded. It is safe for concurrent use, and a request costs it less than a
// microsecond.
type activity struct {
	began time.Time // of the process

	mu      sync.Mutex
	minutes [hour]minute
	// second is that of the last request, since 1970. requests are those in it, and
	// before those in the second before it.
	second           int64
	requests, before int
	settled          settled
}

const (
	hour = 60
	// maxCounted is how many subscriptions and refusals a minute tells apart.
	maxCounted = 500
)

// minute counts the requests of one minute.
type minute struct {
	number   int64 // since 1970
	requests int
	// The others are requests to operations. Answered are those with 2xx: their latencies
	// are counted by bucketOf. Replayed ones repeated an operation. Rejected were
	// answered 4xx, and failed 5xx.
	answered, replayed, rejected, failed int
	latencies                            [buckets]int32
	partners                             map[string]int
	// refused are those whose refusal was not stored.
	refused map[backoffice.RefusedKey]int
}

// settled are the due sales that this process settled on a day of the bank.
type settled struct {
	day               day.Day
	Completed, Failed int
}

// at is the minute of a time. A request of an earlier hour counts for the minute that
// took its place.
func (a *activity) at(t time.Time) *minute {
	number := t.Unix() / 60
	m := &a.minutes[number%hour]
	if m.number < number {
		*m = minute{number: number, partners: make(map[string]int), refused: make(map[backoffice.RefusedKey]int)}
	}
	return m
}

// increment counts a key, unless there are too many.
func increment[K comparable](counts map[K]int, key K) {
	if _, known := counts[key]; known || len(counts) < maxCounted {
		counts[key]++
	}
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
	a.tick(at)
	a.requests++
	m := a.at(at)
	m.requests++
	if x.Operation == "" {
		return
	}
	if x.Subscription != "" {
		increment(m.partners, x.Subscription)
	}
	switch {
	case x.Status >= http.StatusInternalServerError:
		m.failed++
	case x.Status >= http.StatusBadRequest:
		m.rejected++
	case x.Status < http.StatusMultipleChoices:
		m.answered++
		m.latencies[bucketOf(x.Duration)]++
		if x.Replayed {
			m.replayed++
		}
	}
	if len(x.Codes) > 0 && x.State != operation.Failed {
		increment(m.refused, backoffice.RefusedKey{Subscription: x.Subscription, Code: x.Codes[0]})
	}
}

// Settled counts a round of settlement.
func (c *Console) Settled(s buyfund.Settlement) {
	if c == nil {
		return
	}
	today := day.Of(c.o.Bank(), c.o.Zone)
	c.activity.mu.Lock()
	defer c.activity.mu.Unlock()
	before := c.activity.settledOn(today)
	c.activity.settled = settled{today, before.Completed + s.Completed, before.Failed + s.Failed}
}

func (a *activity) settledOn(today day.Day) settled {
	if a.settled.day != today {
		return settled{}
	}
	return a.settled
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

// last calls do with each of the last minutes, the running one last, and with how many
// seconds of it have passed. It ends with the hour and begins with the process.
func (a *activity) last(minutes int, now time.Time, do func(m *minute, seconds float64)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for ago := min(minutes-1, int(now.Unix()/60-a.began.Unix()/60)); ago >= 0; ago-- {
		seconds := 60.0
		if ago == 0 {
			seconds = max(1, float64(now.Unix()%60))
		}
		do(a.at(now.Add(-time.Duration(ago)*time.Minute)), seconds)
	}
}

// rates are the requests a second of a subscription in each of the last minutes.
func (a *activity) rates(name string, now time.Time) (rates []float64) {
	a.last(hour, now, func(m *minute, seconds float64) { rates = append(rates, float64(m.partners[name])/seconds) })
	return rates
}

// lastHour is what this process did in the last hour, as Today shows it.
type lastHour struct {
	Replayed, Rejected, Failed int
	Settled                    settled // today
	Refused                    []refused
	// rate is in requests a second, median and slow in milliseconds: one value for
	// each minute.
	rate, median, slow []float64
}

// refused is how many requests of a partner were refused with a code, or operations.
// Partner is empty if the key belongs to no subscription.
type refused struct {
	Partner, Code string
	Count         int64
}

// sorted lists refusals, most frequent first.
func sorted[N int | int64](counts map[backoffice.RefusedKey]N) (all []refused) {
	for key, n := range counts {
		all = append(all, refused{key.Subscription, key.Code, int64(n)})
	}
	slices.SortFunc(all, func(x, y refused) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Partner, y.Partner), cmp.Compare(x.Code, y.Code))
	})
	return all
}

func (a *activity) lastHour(now time.Time, today day.Day) (h lastHour) {
	counts := make(map[backoffice.RefusedKey]int)
	a.last(hour, now, func(m *minute, seconds float64) {
		h.Replayed, h.Rejected, h.Failed = h.Replayed+m.replayed, h.Rejected+m.rejected, h.Failed+m.failed
		h.rate, h.median, h.slow = append(h.rate, float64(m.requests)/seconds), append(h.median, m.quantile(0.5)), append(h.slow, m.quantile(0.99))
		for key, n := range m.refused {
			counts[key] += n
		}
		h.Settled = a.settledOn(today)
	})
	h.Refused = sorted(counts)
	return h
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
	i := slices.IndexFunc(m.latencies[:], func(n int32) bool {
		left -= n
		return left < 0
	})
	return float64(bounds[i].Microseconds()) / 1000
}
