package httpapi

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// Callers recognises callers by their keys.
type Callers interface {
	// Find returns the active subscription that a presented key opens, nil when
	// there is none. It is not changed by the API. The error is
	// fault.Unavailable when nobody can be recognised now.
	Find(ctx context.Context, presented string) (*subscription.Subscription, error)
}

const keyHeader = "Ocp-Apim-Subscription-Key"

// identify finds out who calls. The answers are those of API Management, so
// that its clients understand them.
func (a *api) identify(r *http.Request) (*subscription.Subscription, *problem) {
	keys := r.Header[keyHeader]
	if len(keys) == 0 || (len(keys) == 1 && keys[0] == "") {
		return nil, challenge(r, "key-missing",
			"Access denied due to missing subscription key. Make sure to include subscription key when making requests to an API.")
	}
	if len(keys) == 1 { // of several, nobody can say which is meant
		caller, err := a.callers.Find(r.Context(), keys[0])
		if err != nil {
			return nil, problemOf(err)
		}
		if caller != nil {
			return caller, nil
		}
	}
	return nil, challenge(r, "key-invalid",
		"Access denied due to invalid subscription key. Make sure to provide a valid key for an active subscription.")
}

func challenge(r *http.Request, code, detail string) *problem {
	return refusal(http.StatusUnauthorized, code, detail).with("WWW-Authenticate",
		`AzureApiManagementKey realm="https://`+saneHost(r.Host)+`/BankingApiV01",name="`+keyHeader+`",type="header"`)
}

// saneHost is a Host header that can stand in a quoted string. Any other is
// not repeated.
func saneHost(host string) string {
	const others = ".-:[]"
	unusual := func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune(others, c)
	}
	if host == "" || len(host) > 255 || strings.ContainsFunc(host, unusual) {
		return "localhost"
	}
	return host
}

// admit says whether the caller may call the operation, and now.
func (a *api) admit(caller *subscription.Subscription, o operation.Name) *problem {
	if !caller.MayCall(o) {
		return refusal(http.StatusForbidden, "operation-not-granted", "The subscription may not call this operation.")
	}
	if !a.rates.allow(caller, a.Now()) {
		// Rates are whole requests per second: the next is never further away.
		return refusal(http.StatusTooManyRequests, "rate-limit-exceeded",
			"Rate limit is exceeded. Try again in 1 seconds.").with("Retry-After", "1")
	}
	return nil
}

// rates limits the requests of each subscription that has a limit. A second's
// worth of requests may come at once.
type rates struct {
	mutex   sync.Mutex
	byName  map[string]*rate.Limiter
	sweepAt int
}

// minSweep is how many limiters are kept without a look at who is idle.
const minSweep = 1024

func (l *rates) allow(s *subscription.Subscription, now time.Time) bool {
	if s.RequestsPerSecond == 0 {
		return true
	}
	return l.of(s, now).AllowN(now, 1)
}

func (l *rates) of(s *subscription.Subscription, now time.Time) *rate.Limiter {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	limiter, known := l.byName[s.Name]
	switch limit := rate.Limit(s.RequestsPerSecond); {
	case !known:
		l.sweep(now)
		limiter = rate.NewLimiter(limit, s.RequestsPerSecond)
		l.byName[s.Name] = limiter
	case limiter.Limit() != limit: // the subscription was changed
		limiter.SetLimitAt(now, limit)
		limiter.SetBurstAt(now, s.RequestsPerSecond)
	}
	return limiter
}

// sweep forgets limiters that are full again: a new one does the same. So
// memory is bounded by the callers of the last second.
func (l *rates) sweep(now time.Time) {
	if l.byName == nil {
		l.byName, l.sweepAt = make(map[string]*rate.Limiter), minSweep
	}
	if len(l.byName) < l.sweepAt {
		return
	}
	for name, limiter := range l.byName {
		if limiter.TokensAt(now) >= float64(limiter.Burst()) {
			delete(l.byName, name)
		}
	}
	l.sweepAt = max(minSweep, 2*len(l.byName))
}
