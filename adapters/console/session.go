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
	idle    = 8 * time.Hour   // how long a session lasts without a request, and a form is valid
	renewal = 5 * time.Minute // the age at which the cookie of a session in use is renewed
)

// session is one browser of one user. The cookie has the whole session, encrypted, so that
// every replica with the same key can read it.
type session struct {
	ID, Name string
	// Operator is false for a viewer, who sees masked numbers and no texts.
	Operator, Unmasked bool
	Browser            string // its User-Agent header
	Used               time.Time
	// Flash says what a form did. The next page at FlashPath shows it once.
	Flash, FlashPath string

	*boxes
	// foreign is true for a request that a page of another site has caused, as a link in a ticket.
	// Everything is masked then, so that nobody can make it look as if the user had seen it.
	foreign bool
	changed bool // the browser needs a new cookie
	over    bool
}

// boxes encrypt what browsers get. refs is for references, which every session can read.
type boxes struct{ box, refs cipher.AEAD }

// Revealed reports whether the session shows numbers and texts in full.
func (s *session) Revealed() bool { return s.Operator && s.Unmasked && !s.foreign }

// refer encrypts a value for a URL or a form, so that only this service can read it.
func (s *session) refer(value any) string { return seal(s.refs, "reference", value) }

func (s *session) follow(text string, into any) error {
	if !unseal(s.refs, "reference", text, into) {
		return errReference
	}
	return nil
}

// seal encrypts a value for a purpose, so that it cannot be used for another purpose.
func seal(box cipher.AEAD, purpose string, value any) string {
	plain, _ := json.Marshal(value)                                                         // texts, numbers and times
	return base64.RawURLEncoding.EncodeToString(box.Seal(nil, nil, plain, []byte(purpose))) //nolint:gosec // the cipher makes the nonce
}

func unseal(box cipher.AEAD, purpose, text string, into any) bool {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	plain, err := box.Open(nil, nil, sealed, []byte(purpose))
	return err == nil && json.Unmarshal(plain, into) == nil
}

// formToken is in each form, encrypted for its session: a page of another site cannot make it.
type formToken struct {
	Form string
	Made time.Time
}

// sessions has what this replica stores about sessions.
type sessions struct {
	*Options
	boxes

	mu sync.Mutex
	// over has ended sessions and processed forms, for as long as they would be valid.
	over map[string]time.Time
	// stolen has the sessions that another browser has ended, until their owner knows it.
	stolen  map[string]bool
	address string    // of the console, for links
	token   string    // of the unused link
	asked   time.Time // when the last link was asked for
}

// newSessions makes a key if Options has none. Without a proxy, sessions end with the service.
func newSessions(o *Options) *sessions {
	if len(o.Key) == 0 {
		o.Key = []byte(rand.Text())
	}
	s := &sessions{Options: o, over: make(map[string]time.Time), stolen: make(map[string]bool)}
	key := sha256.Sum256(o.Key)
	if !s.behindProxy() {
		_, _ = rand.Read(key[:])
	}
	s.box = newBox(key)
	s.refs = newBox(sha256.Sum256(append([]byte("console reference "), o.Key...)))
	return s
}

func newBox(key [sha256.Size]byte) cipher.AEAD {
	block, _ := aes.NewCipher(key[:])             // a key of 32 bytes is valid
	box, _ := cipher.NewGCMWithRandomNonce(block) // AES has the required block size
	return box
}

// behindProxy reports whether an identity proxy names the user.
func (s *sessions) behindProxy() bool { return s.UserHeader != "" }

// end ends a session, or marks a form as used. It returns false if this was done before.
func (s *sessions) end(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Machine()
	maps.DeleteFunc(s.over, func(_ string, since time.Time) bool { return now.Sub(since) > idle })
	if _, is := s.over[id]; is {
		return false
	}
	s.over[id] = now
	return true
}

func (s *sessions) giveBack(form string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.over, form)
}

// readFormToken returns the ID of a form that was made for the session.
func (s *sessions) readFormToken(of *session, text string) (form string, err error) {
	var token formToken
	if !unseal(s.box, of.ID, text, &token) || token.Form == "" || s.Machine().Sub(token.Made) > idle {
		return "", errForm
	}
	return token.Form, nil
}

// link returns the unused link, or makes a new link. Without an address it uses the last
// address, and returns "" if links are requested too often.
func (s *sessions) link(address string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if address == "" {
		since := s.Machine().Sub(s.asked)
		if 0 <= since && since < 5*time.Second || s.address == "" {
			return ""
		}
		s.asked = s.Machine()
		address = s.address
	}
	s.address = address
	if s.token == "" {
		s.token = rand.Text()
	}
	return "http://" + address + "/console/enter?token=" + s.token
}

// spend reports whether the token belongs to the unused link. If so, the link is used.
func (s *sessions) spend(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		return false
	}
	s.token = ""
	return true
}

func (s *sessions) begin(r *http.Request, user string) *session {
	return &session{ID: rand.Text(), Name: user, Browser: r.UserAgent(), boxes: &s.boxes, changed: true}
}

// find returns the session of a request, or nil. It ends a session that another browser sends:
// somebody may have copied its cookie. Then stolen is true, once.
func (s *sessions) find(r *http.Request) (_ *session, stolen bool) {
	found := &session{boxes: &s.boxes}
	cookie, err := r.Cookie(cookieName(r, ""))
	if err != nil || !unseal(s.box, "session", cookie.Value, found) || s.Machine().Sub(found.Used) > idle {
		return nil, false
	}
	stolen = found.Browser != r.UserAgent() && s.end(found.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if stolen {
		maps.DeleteFunc(s.stolen, func(id string, _ bool) bool { _, is := s.over[id]; return !is })
		s.stolen[found.ID] = true
		return found, true
	}
	if _, over := s.over[found.ID]; over {
		return nil, false
	}
	return found, false
}

// wasStolen reports whether another browser has ended the session of the request, and its owner
// does not know it yet.
func (s *sessions) wasStolen(r *http.Request) bool {
	sent := &session{boxes: &s.boxes}
	cookie, err := r.Cookie(cookieName(r, ""))
	if err != nil || !unseal(s.box, "session", cookie.Value, sent) || sent.Browser != r.UserAgent() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stolen := s.stolen[sent.ID]
	delete(s.stolen, sent.ID)
	return stolen
}

// save sends the session to the browser if it has changed or is old. A page that refreshes
// itself does not count as use.
func (s *sessions) save(w http.ResponseWriter, r *http.Request, of *session) {
	now := s.Machine()
	if of.changed || now.Sub(of.Used) > renewal && r.Header.Get("X-Live") == "" {
		of.Used = now
		s.setCookie(w, r, "", seal(s.box, "session", of), of.over)
	}
}

func (s *sessions) setCookie(w http.ResponseWriter, r *http.Request, name, value string, remove bool) {
	c := &http.Cookie{ //nolint:gosec // the reason for Secure is given below
		Name: cookieName(r, name), Value: value, Path: "/console/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: s.behindProxy(), // the link is plain HTTP on loopback
	}
	if remove {
		c.Value = ""
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// cookieName has the port, because a browser sends the cookies of a host to all
// its ports: two consoles on one host do not end each other's sessions.
func cookieName(r *http.Request, name string) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return strings.TrimSuffix("bankingapi-console"+name+"-"+port, "-")
}

func (s *sessions) isFromProxy(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(s.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(from.Addr().Unmap().WithZone("")) })
}

// proxied returns the user that a trusted proxy names, or nothing.
func (s *sessions) proxied(r *http.Request) string {
	names := r.Header.Values(s.UserHeader)
	if !s.isFromProxy(r) || len(names) != 1 || len(names[0]) > 200 { // rejects also a proxy that appends to the header of the client
		return ""
	}
	return storable(strings.TrimSpace(names[0])) // a name in ISO 8859 would not survive the cookie
}
