package fleet

import (
	"net/http"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
	"bankingapi/domain/operation"
)

// Activity counts the answers of this process in the last hour. The numbers of subscriptions,
// codes and keys limit its memory. It is safe for concurrent use, and counting a request takes
// less than a microsecond.
type Activity struct {
	began time.Time // of the process

	mu      sync.Mutex
	minutes [hour + 1]minute // one more: the time of a page may be a little old
}

const (
	hour = 60
	// quarter is how many minutes an unexpected failure is a trouble. The alerts have the same time.
	quarter = 15
	// maxKeys is how many different unknown keys a minute counts.
	maxKeys = 100
	// busyRate is the number of requests a second from which the API is busy.
	busyRate = 100
)

type minute struct {
	number   int64 // minutes since 1970
	requests int
	seconds  [60]int // requests of each second
	// failures counts the requests of any kind that were answered 5xx, by their first code.
	failures map[string]int
	// These count requests to operations: answered with 2xx that repeated an operation, rejected
	// with 4xx, and failed with 5xx.
	replayed, rejected, failed int
	partners                   map[string]partner
	// refused counts the requests whose refusal was not stored.
	refused map[backoffice.RefusedKey]int64
	// unknownKeys counts requests with a key of no subscription, keys has hashes of such keys.
	unknownKeys int
	keys        map[uint64]bool
}

// partner is what one subscription sent in a minute. refused counts answers 4xx and refusals of
// the bank, codes their first codes.
type partner struct {
	requests, refused int
	codes             map[string]int
}

// NewActivity returns the counts of a process that began at that time.
func NewActivity(began time.Time) *Activity { return &Activity{began: began} }

// Began returns when the process began.
func (a *Activity) Began() time.Time { return a.began }

// at returns the minute of a time. It forgets one of another time: the clock may be set back.
func (a *Activity) at(t time.Time) *minute {
	number := t.Unix() / 60
	m := &a.minutes[number%int64(len(a.minutes))]
	if m.number != number {
		*m = minute{number: number, partners: make(map[string]partner), refused: make(map[backoffice.RefusedKey]int64),
			failures: make(map[string]int), keys: make(map[uint64]bool)}
	}
	return m
}

// Request counts a request and its answer, as the metrics do, so that the dashboard and the
// page Today agree.
func (a *Activity) Request(x *summary.Exchange) {
	at := x.Start.Add(x.Duration)
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.at(at)
	m.requests++
	m.seconds[at.Unix()%60]++
	if x.Status == http.StatusUnauthorized && x.KeyHash != 0 {
		m.unknownKeys++
		if len(m.keys) < maxKeys {
			m.keys[x.KeyHash] = true
		}
	}
	if x.Status >= http.StatusInternalServerError {
		m.failures[firstCode(x)]++
	}
	if x.Operation == "" {
		return
	}
	switch {
	case x.Status >= http.StatusInternalServerError:
		m.failed++
	case x.Status >= http.StatusBadRequest:
		m.rejected++
	case x.Status < http.StatusMultipleChoices && x.Replayed:
		m.replayed++
	}
	if len(x.Codes) > 0 && x.State != operation.Failed {
		m.refused[backoffice.RefusedKey{Subscription: x.Subscription, Code: x.Codes[0]}]++
	}
	if x.Subscription != "" {
		m.countPartner(x)
	}
}

// firstCode returns the first code of an answer. It is empty if the answer has none.
func firstCode(x *summary.Exchange) string {
	if len(x.Codes) == 0 {
		return ""
	}
	return x.Codes[0]
}

func (m *minute) countPartner(x *summary.Exchange) {
	of := m.partners[x.Subscription]
	of.requests++
	isRejected := x.Status >= http.StatusBadRequest && x.Status < http.StatusInternalServerError
	if isRejected || x.State == operation.Failed {
		of.refused++
		if of.codes == nil {
			of.codes = make(map[string]int)
		}
		if len(x.Codes) > 0 {
			of.codes[x.Codes[0]]++
		}
	}
	m.partners[x.Subscription] = of
}

// IsBusy reports whether the API answers many requests now.
func (a *Activity) IsBusy(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	second := now.Unix() % 60
	before := now.Add(-time.Second)
	return a.at(now).seconds[second]+a.at(before).seconds[before.Unix()%60] >= busyRate
}

// last calls do for each of the last minutes, the current minute last. seconds is how many
// seconds of the minute have passed. It begins at most an hour ago, and not before the process.
func (a *Activity) last(minutes int, now time.Time, do func(m *minute, seconds float64)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := max(0, int(now.Unix()/60-a.began.Unix()/60)) // the clock may go back
	for ago := min(minutes-1, known); ago >= 0; ago-- {
		seconds := 60.0
		if ago == 0 {
			seconds = max(1, float64(now.Unix()%60))
		}
		do(a.at(now.Add(-time.Duration(ago)*time.Minute)), seconds)
	}
}

// BusiestMinute returns the requests a second of a subscription in its busiest minute of the
// last hour.
func (a *Activity) BusiestMinute(name string, now time.Time) (rate float64) {
	a.last(hour, now, func(m *minute, seconds float64) {
		rate = max(rate, float64(m.partners[name].requests)/seconds)
	})
	return rate
}

// LastHour is what this process answered in the last hour.
type LastHour struct {
	Replayed, Rejected, Failed int
	Refused                    map[backoffice.RefusedKey]int64
}

// LastHour counts the answers of the last hour.
func (a *Activity) LastHour(now time.Time) LastHour {
	h := LastHour{Refused: make(map[backoffice.RefusedKey]int64)}
	a.last(hour, now, func(m *minute, _ float64) {
		h.Replayed += m.replayed
		h.Rejected += m.rejected
		h.Failed += m.failed
		for key, n := range m.refused {
			h.Refused[key] += n
		}
	})
	return h
}

// failedWith counts the requests of the last quarter of an hour that were answered 5xx with a code.
func (a *Activity) failedWith(code string, now time.Time) (count int) {
	a.last(quarter, now, func(m *minute, _ float64) {
		count += m.failures[code]
	})
	return count
}

// traffic is what arrived in a period.
type traffic struct {
	minutes, requests, failed, unknownKeys int
	keys                                   map[uint64]bool
	partners                               map[string]partner
}

func (t *traffic) add(m *minute) {
	t.minutes++
	t.requests += m.requests
	for _, n := range m.failures {
		t.failed += n
	}
	t.unknownKeys += m.unknownKeys
	for key := range m.keys {
		t.keys[key] = true
	}
	for name, of := range m.partners {
		sum := t.partners[name]
		sum.requests += of.requests
		sum.refused += of.refused
		if sum.codes == nil {
			sum.codes = make(map[string]int)
		}
		for code, n := range of.codes {
			sum.codes[code] += n
		}
		t.partners[name] = sum
	}
}

// recent is how many minutes count as now. The rest of the hour is what was before.
const recent = 2

// compare returns the traffic of the last two minutes, and of the rest of the hour before them.
func (a *Activity) compare(now time.Time) (current, before traffic) {
	for _, t := range []*traffic{&current, &before} {
		t.keys = make(map[uint64]bool)
		t.partners = make(map[string]partner)
	}
	latest := now.Unix()/60 - recent + 1
	a.last(hour, now, func(m *minute, _ float64) {
		if m.number >= latest {
			current.add(m)
		} else {
			before.add(m)
		}
	})
	return current, before
}
