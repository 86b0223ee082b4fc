package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
)

// Callers recognises callers by their keys.
type Callers interface {
	// Find returns the active subscription with that key, or nil if there is
	// none. The API does not change it. The error is fault.Unavailable if
	// subscriptions cannot be read now.
	Find(ctx context.Context, presented string) (*subscription.Subscription, error)
	// Name returns the name of a subscription that has this key but is not active,
	// whose key has expired, or whose client certificate is missing. It is empty if no subscription is known to have it.
	Name(presented string) string
}

const keyHeader = "Ocp-Apim-Subscription-Key"

// identify returns the subscription of the caller. Its error responses are like
// those of API Management, so that existing clients understand them.
func (a *api) identify(x *exchange, r *http.Request) (*subscription.Subscription, *problem) {
	keys := r.Header[keyHeader]
	if len(keys) == 0 || (len(keys) == 1 && keys[0] == "") {
		return nil, x.challenge(r, fault.KeyMissing,
			"Access denied due to missing subscription key. Make sure to include subscription key when making requests to an API.")
	}
	if len(keys) == 1 { // with several keys, it is not known which one is meant
		caller, err := a.callers.Find(r.Context(), keys[0])
		if err != nil {
			return nil, problemOf(err)
		}
		if caller != nil && hasCertificate(r, caller) {
			x.Subscription = caller.Name
			return caller, nil
		}
		if x.Subscription = a.callers.Name(keys[0]); x.Subscription == "" {
			start := sha256.Sum256([]byte(keys[0][:min(4, len(keys[0]))]))
			x.KeyStart = hex.EncodeToString(start[:4])
		}
	}
	return nil, x.challenge(r, fault.KeyInvalid,
		"Access denied due to invalid subscription key. Make sure to provide a valid key for an active subscription.")
}

// hasCertificate reports whether the caller presented the client certificate of the
// subscription, if it has one. The handshake has checked the authority.
func hasCertificate(r *http.Request, s *subscription.Subscription) bool {
	if s.ClientCertificate == "" {
		return true
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	digest := sha256.Sum256(r.TLS.PeerCertificates[0].Raw)
	return hex.EncodeToString(digest[:]) == s.ClientCertificate
}

// challenge also notes the address: a caller without a key is known by nothing else.
func (x *exchange) challenge(r *http.Request, code, detail string) *problem {
	x.Address = callerAddress(r, x.api.TrustedProxies)
	return refusal(http.StatusUnauthorized, code, detail).with("WWW-Authenticate",
		`AzureApiManagementKey realm="https://`+saneHost(r.Host)+`/BankingApiV01",name="`+keyHeader+`",type="header"`)
}

// saneHost returns a Host header if it can stand in a quoted string. Otherwise
// it returns localhost.
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

// admit applies the rate limit of the subscription, and Check.
func (a *api) admit(r *http.Request, caller *subscription.Subscription) *problem {
	limited := !a.rates.allow(caller, a.Now())
	if a.Check != nil && !limited {
		var err error
		if limited, err = a.Check(r); err != nil {
			return problemOf(err)
		}
	}
	if !limited {
		return nil
	}
	// Rates are whole requests per second, so the next one is at most a second away.
	return refusal(http.StatusTooManyRequests, fault.RateLimitExceeded,
		"Rate limit is exceeded. Try again in 1 seconds.").with("Retry-After", "1")
}

// rates limits the requests of each subscription that has a limit. The requests
// of one second may come at once.
type rates struct {
	mutex   sync.Mutex
	last    time.Time
	byName  map[string]*rate.Limiter
	sweepAt int
}

// minSweep is how many limiters are kept without checking which are idle.
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
	// A limiter would wait until a clock that was set back is where it was. Requests
	// that overtake each other are not that far apart.
	if l.last.Sub(now) > time.Second {
		l.byName = nil
	}
	l.last = now
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

// sweep drops limiters that are full again, because a new one does the same. So
// the callers of the last second bound the memory.
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
