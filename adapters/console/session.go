package console

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	cookiePrefix = "bankingapi-console"
	// idle is how long a session lasts without a request.
	idle = 8 * time.Hour
	// maxSessions bounds the memory. The session that was idle longest ends.
	maxSessions = 500
)

// session is one browser of one user.
type session struct {
	user string
	// operator is false for a viewer, who sees masked numbers and no texts.
	operator bool
	// seal encrypts what a URL must not show.
	seal cipher.AEAD
	// browser is the hash of what the browser sends with every request.
	browser [sha256.Size]byte

	used time.Time // guarded by sessions.mu

	mu       sync.Mutex
	revealed bool
	// made counts the form tokens. spent are those of forms that were carried out.
	// Those up to forgotten are too old.
	made, forgotten int64
	spent           map[int64]bool
	// flash is what a form did. The next page at flashPath shows it, once.
	flash, flashPath string
}

// maxSpent bounds the memory.
const maxSpent = 500

// formToken is in a hidden field of each form, sealed: a page of another site cannot
// make one.
type formToken struct{ FormNumber int64 }

// newFormToken returns the token of another form.
func (s *session) newFormToken() string {
	s.mu.Lock()
	s.made++
	token := formToken{s.made}
	s.mu.Unlock()
	return s.refer(token)
}

// readFormToken returns the number of a form that this session got.
func (s *session) readFormToken(text string) (number int64, err error) {
	var token formToken
	if s.follow(text, &token) != nil || token.FormNumber < 1 {
		return 0, errForm
	}
	return token.FormNumber, nil
}

// spend takes a form that is about to change something. It fails if the form
// was sent before.
func (s *session) spend(number int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.spent[number]:
		return errSent
	case number <= s.forgotten:
		return errForm
	}
	if len(s.spent) >= maxSpent {
		s.forgotten = slices.Min(slices.Collect(maps.Keys(s.spent)))
		delete(s.spent, s.forgotten)
	}
	s.spent[number] = true
	return nil
}

// unspend gives a form back that changed nothing.
func (s *session) unspend(number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.spent, number)
}

// setFlash keeps what a form did, for the page that is shown next.
func (s *session) setFlash(path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flash, s.flashPath = text, path
}

// takeFlash returns what setFlash kept for a page, once.
func (s *session) takeFlash(path string) (text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if path == s.flashPath {
		text, s.flash, s.flashPath = s.flash, "", ""
	}
	return text
}

// reveals reports whether the session shows numbers and texts in full.
func (s *session) reveals() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.operator && s.revealed
}

func (s *session) reveal(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revealed = on && s.operator
}

// refer returns a text for a URL that only this session can read.
func (s *session) refer(value any) string {
	plain, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(s.seal.Seal(nil, nil, plain, nil)) //nolint:gosec // the cipher makes the nonce
}

// follow reads what refer made.
func (s *session) follow(text string, into any) error {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return errReference
	}
	plain, err := s.seal.Open(nil, nil, sealed, nil)
	if err != nil || json.Unmarshal(plain, into) != nil {
		return errReference
	}
	return nil
}

// sessions are all sessions, by the hash of their cookie.
type sessions struct {
	now     func() time.Time
	header  string
	proxies []netip.Prefix
	// operators are the users behind the header who see everything.
	operators []string

	mu      sync.Mutex
	open    map[[sha256.Size]byte]*session
	address string    // of the console, as links have it
	token   string    // of the link that was not used yet
	asked   time.Time // when the last link was asked for
}

func newSessions(o *Options) *sessions {
	return &sessions{now: o.Machine, header: o.UserHeader, proxies: o.TrustedProxies, operators: o.Operators, open: make(map[[sha256.Size]byte]*session)}
}

// behindProxy reports whether an identity proxy says who the user is.
func (s *sessions) behindProxy() bool { return s.header != "" }

// linkTo returns the token of the link that was not used yet, or makes one.
func (s *sessions) linkTo(address string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.address = address; s.token == "" {
		s.token = rand.Text()
	}
	return s.token
}

// mayAsk reports whether a link may be printed now, and for which address.
func (s *sessions) mayAsk() (address string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := s.now().Sub(s.asked); 0 <= since && since < 5*time.Second || s.address == "" {
		return "", false
	}
	s.asked = s.now()
	return s.address, true
}

// spend reports whether the token is that of the link, which is used then.
func (s *sessions) spend(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		return false
	}
	s.token = ""
	return true
}

// begin makes a session and its cookie.
func (s *sessions) begin(r *http.Request, user string, operator bool) (*session, *http.Cookie) {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	block, _ := aes.NewCipher(key)                 // 32 bytes are a key
	seal, _ := cipher.NewGCMWithRandomNonce(block) // of AES
	id := rand.Text()
	made := &session{user: user, operator: operator, spent: make(map[int64]bool), seal: seal, browser: browserOf(r), used: s.now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxSessions {
		delete(s.open, slices.MinFunc(slices.Collect(maps.Keys(s.open)), func(a, b [sha256.Size]byte) int { return s.open[a].used.Compare(s.open[b].used) }))
	}
	s.open[sha256.Sum256([]byte(id))] = made
	return made, s.cookie(r, id)
}

// cookieName has the port, because a browser sends the cookies of a host to all
// its ports: two consoles on one host do not end each other's sessions.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return cookiePrefix + "-" + port
	}
	return cookiePrefix
}

func (s *sessions) cookie(r *http.Request, id string) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // the reason for Secure is given below
		Name: cookieName(r), Value: id, Path: "/console/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: s.behindProxy(), // the link is plain HTTP on loopback
	}
}

// end ends the session of a request and returns a cookie that removes its own.
func (s *sessions) end(r *http.Request) *http.Cookie {
	if id, ok := idOf(r); ok {
		s.mu.Lock()
		delete(s.open, id)
		s.mu.Unlock()
	}
	gone := s.cookie(r, "") //nolint:gosec // as above
	gone.MaxAge = -1
	return gone
}

// find returns the session of a request, or nil. If another browser sends the
// cookie, it was copied, so the session ends.
func (s *sessions) find(r *http.Request) *session {
	id, ok := idOf(r)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.open[id]
	if found == nil {
		return nil
	}
	now := s.now()
	if now.Sub(found.used) > idle || found.browser != browserOf(r) {
		delete(s.open, id)
		return nil
	}
	if r.Header.Get("X-Live") == "" { // a page that refreshes itself is idle
		found.used = now
	}
	return found
}

func idOf(r *http.Request) (id [sha256.Size]byte, ok bool) {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil || cookie.Value == "" {
		return id, false
	}
	return sha256.Sum256([]byte(cookie.Value)), true
}

// browserOf returns a hash of the headers that a browser sends with every
// request.
func browserOf(r *http.Request) [sha256.Size]byte {
	return sha256.Sum256([]byte(r.Header.Get("User-Agent")))
}

// proxied returns the user that a trusted proxy names. ok is false if the
// request comes from another host or names no user.
func (s *sessions) proxied(r *http.Request) (user string, ok bool) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return "", false
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return "", false
	}
	address = address.Unmap()
	trusted := slices.ContainsFunc(s.proxies, func(p netip.Prefix) bool { return p.Contains(address) })
	names := r.Header.Values(s.header)
	if !trusted || len(names) != 1 { // a proxy that appends to what the client sent is not trusted either
		return "", false
	}
	user = strings.TrimSpace(names[0])
	return user, user != "" && len(user) <= 200
}

// isOperator reports whether a user of the proxy sees everything.
func (s *sessions) isOperator(user string) bool { return slices.Contains(s.operators, user) }
