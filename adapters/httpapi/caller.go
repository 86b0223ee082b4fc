package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
)

// Callers recognises callers by their keys.
type Callers interface {
	// Find returns the active subscription with that key, or nil if there is none. The
	// error is fault.Unavailable if subscriptions cannot be read now.
	Find(ctx context.Context, presented string) (*subscription.Subscription, error)
	// Name returns the name of the subscription that was last known to have this key,
	// for logs: it may not use it now, or cannot be read. It is empty if none is known.
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
			x.Subscription = a.callers.Name(keys[0])
			return nil, problemOf(err)
		}
		if caller != nil && hasCertificate(r, caller) {
			x.Subscription = caller.Name
			if !x.count(caller.Name) {
				return nil, x.noRoom(r)
			}
			return caller, nil
		}
		x.Subscription = a.callers.Name(keys[0])
		if x.Subscription == "" {
			start := sha256.Sum256([]byte(keys[0][:min(4, len(keys[0]))]))
			x.KeyStart = hex.EncodeToString(start[:4])
			x.KeyHash = maphash.String(keySeed, keys[0])
		}
	}
	return nil, x.challenge(r, fault.KeyInvalid, invalidKey)
}

// keySeed makes the hashes of keys useless to other processes.
var keySeed = maphash.MakeSeed()

const invalidKey = "Access denied due to invalid subscription key. Make sure to provide a valid key for an active subscription."

// hasCertificate reports whether the caller presented the client certificate of the
// subscription, if it has one. The handshake and admitting have checked the authority.
func hasCertificate(r *http.Request, s *subscription.Subscription) bool {
	if r.Context().Value(lockedOutKey{}) != nil {
		return false
	}
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
		`AzureApiManagementKey realm="https://`+saneHost(r.Host)+x.api.Mounted+`/BankingApiV01",name="`+keyHeader+`",type="header"`)
}

// saneHost returns a Host header if it can stand in a quoted string, or localhost.
func saneHost(host string) string {
	if host == "" || len(host) > 255 || strings.TrimLeft(host, alphanumeric+".-:[]") != "" {
		return "localhost"
	}
	return host
}

// admit applies the rate limit of the subscription, and Check.
func (a *api) admit(x *exchange, r *http.Request, caller *subscription.Subscription) *problem {
	if !a.rates.allow(caller, a.Now()) {
		// Rates are whole requests per second, so the next one is at most a second away.
		return tooManyRequests("Rate limit is exceeded.", time.Second)
	}
	x.Admitted = true
	if a.Check == nil {
		return nil
	}
	// Check may read the body, and wait.
	refused := a.openBody(x, r)
	if refused != nil {
		return refused
	}
	wait, err := a.Check(r)
	if err != nil {
		return problemOf(err)
	}
	if wait > 0 {
		return tooManyRequests("Rate limit is exceeded.", wait)
	}
	return nil
}

// tooManyRequests is the answer 429. The caller may try again after the time, in whole seconds.
func tooManyRequests(detail string, after time.Duration) *problem {
	seconds := strconv.Itoa(int(math.Ceil(after.Seconds())))
	return refusal(http.StatusTooManyRequests, fault.RateLimitExceeded, detail+" Try again in "+seconds+" seconds.").with("Retry-After", seconds)
}

// rates limits the requests of each subscription that has a limit. The requests
// of one second may come at once.
type rates struct {
	mutex       sync.Mutex
	last, swept time.Time
	byName      map[string]*rate.Limiter
}

func (l *rates) allow(s *subscription.Subscription, now time.Time) bool {
	if s.RequestsPerSecond == 0 {
		return true
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	// A limiter would wait until a clock that was set back is where it was. Requests
	// that overtake each other are not that far apart.
	if l.byName == nil || l.last.Sub(now) > time.Second {
		l.byName = make(map[string]*rate.Limiter)
		l.swept = now
	}
	l.last = now
	// A limiter that is full again does what a new one does. So the callers of the last
	// two seconds bound the memory.
	if now.Sub(l.swept) >= time.Second {
		l.swept = now
		maps.DeleteFunc(l.byName, func(_ string, idle *rate.Limiter) bool { return idle.TokensAt(now) >= float64(idle.Burst()) })
	}
	limiter, known := l.byName[s.Name]
	switch limit := rate.Limit(s.RequestsPerSecond); {
	case !known:
		limiter = rate.NewLimiter(limit, s.RequestsPerSecond)
		l.byName[s.Name] = limiter
	case limiter.Limit() != limit: // the subscription was changed
		limiter.SetLimitAt(now, limit)
		limiter.SetBurstAt(now, s.RequestsPerSecond)
	}
	return limiter.AllowN(now, 1)
}
