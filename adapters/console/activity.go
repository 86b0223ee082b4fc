package console

import (
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
	"bankingapi/domain/operation"
)

// activity counts the answers of this process in the last hour. The numbers of subscriptions
// and codes limit its memory. It is safe for concurrent use, and counting a request takes less
// than a microsecond.
type activity struct {
	began time.Time // of the process

	mu      sync.Mutex
	minutes [hour + 1]minute // one more: the time of a page may be a little old
}

const hour = 60

type minute struct {
	number   int64 // minutes since 1970
	requests int
	seconds  [60]int // requests of each second
	// These count requests to operations: answered with 2xx, replayed because they repeated an
	// operation, rejected with 4xx, and failed with 5xx.
	answered, replayed, rejected, failed int
	latencies                            [buckets]int32
	partners                             map[string]int64
	// refused counts the requests whose refusal was not stored.
	refused map[backoffice.RefusedKey]int64
}

// at returns the minute of a time. It forgets one of another time: the clock may be set back.
func (a *activity) at(t time.Time) *minute {
	number := t.Unix() / 60
	m := &a.minutes[number%int64(len(a.minutes))]
	if m.number != number {
		*m = minute{number: number, partners: make(map[string]int64), refused: make(map[backoffice.RefusedKey]int64)}
	}
	return m
}

// Request counts a request and its answer, as the metrics do, so that the dashboard and the
// page Today agree.
func (c *Console) Request(x *summary.Exchange) {
	a, at := c.activity, x.Start.Add(x.Duration)
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.at(at)
	m.requests++
	m.seconds[at.Unix()%60]++
	if x.Operation == "" {
		return
	}
	if x.Subscription != "" {
		m.partners[x.Subscription]++
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
		m.refused[backoffice.RefusedKey{Subscription: x.Subscription, Code: x.Codes[0]}]++
	}
}

// busyRate is the number of requests a second from which the API is busy.
const busyRate = 100

func (a *activity) isBusy(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	second, before := now.Unix()%60, now.Add(-time.Second)
	return a.at(now).seconds[second]+a.at(before).seconds[before.Unix()%60] >= busyRate
}

// last calls do for each of the last minutes, the current minute last. seconds is how many
// seconds of the minute have passed. It begins at most an hour ago, and not before the process.
func (a *activity) last(minutes int, now time.Time, do func(m *minute, seconds float64)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for ago := min(minutes-1, max(0, int(now.Unix()/60-a.began.Unix()/60))); ago >= 0; ago-- { // the clock may go back
		seconds := 60.0
		if ago == 0 {
			seconds = max(1, float64(now.Unix()%60))
		}
		do(a.at(now.Add(-time.Duration(ago)*time.Minute)), seconds)
	}
}

// rates returns the requests a second of a subscription in each of the last minutes.
func (a *activity) rates(name string, now time.Time) (rates []float64) {
	a.last(hour, now, func(m *minute, seconds float64) { rates = append(rates, float64(m.partners[name])/seconds) })
	return rates
}

// lastHour is what this process did in the last hour, for the page Today.
type lastHour struct {
	Replayed, Rejected, Failed int
	Refused                    map[backoffice.RefusedKey]int64
	// rate is in requests a second, median and slow in milliseconds, by minute.
	rate, median, slow []float64
}

func (a *activity) lastHour(now time.Time) lastHour {
	h := lastHour{Refused: make(map[backoffice.RefusedKey]int64)}
	a.last(hour, now, func(m *minute, seconds float64) {
		h.Replayed, h.Rejected, h.Failed = h.Replayed+m.replayed, h.Rejected+m.rejected, h.Failed+m.failed
		h.rate, h.median, h.slow = append(h.rate, float64(m.requests)/seconds), append(h.median, m.quantile(0.5)), append(h.slow, m.quantile(0.99))
		for key, n := range m.refused {
			h.Refused[key] += n
		}
	})
	return h
}

// Latencies are counted in buckets by their upper bound, from 100 microseconds to 30 s.
const (
	buckets  = 58
	growth   = 1.25
	smallest = float64(100 * time.Microsecond)
)

func bucketOf(d time.Duration) int {
	return int(min(max(0, math.Ceil(math.Log(float64(max(d, 1))/smallest)/math.Log(growth))), buckets-1))
}

// quantile returns the bound of the bucket of a quantile in milliseconds; 0 without answers.
func (m *minute) quantile(q float64) float64 {
	left := int32(q * float64(m.answered))
	i := slices.IndexFunc(m.latencies[:], func(n int32) bool {
		left -= n
		return left < 0
	})
	if i < 0 {
		return 0
	}
	return smallest * math.Pow(growth, float64(i)) / float64(time.Millisecond)
}
