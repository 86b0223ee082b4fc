// Package console is the operator's console: pages that show what the service
// does and has done. It is a handler for /console/ of the ops listener.
//
// The pages work without a script, and nothing comes from another host. No URL has a
// number of a customer or an account: pages of a customer are addressed by references
// that only the service can read.
//
// A page is a row of the table in pages.go. Templates show values of the domain through a
// viewer. It masks numbers and texts, and an operator can unmask them. Each page with unmasked
// data is recorded before it is sent, with the person whose data it shows. A cookie has the
// whole session, encrypted: replicas with the same key share it.
//
// The console takes little from the API: at most two requests read at a time, a page for at
// most two seconds. One download or check of the book runs at a time, and holds one of the two
// places until it ends. If the API is busy, the place then pauses. Lists are read page by page.
package console

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"bankingapi/application/operator"
	"bankingapi/domain/audit"
)

// Options configure the console.
type Options = operator.Options

// Console is the handler. Make one with Open and stop it with Close.
type Console struct {
	o         Options
	sessions  *sessions
	mux       *http.ServeMux
	find      http.Handler // handles /console/find/ID
	templates map[string]*template.Template
	menu      []*page
	origins   http.CrossOriginProtection
	// reading has two places. A request holds one of them while it reads.
	reading chan struct{}
	// long is locked by a download or a check of the book: pages have the other place.
	long   sync.Mutex
	proof  proof
	glance glance
}

// Open returns the console. It is an argument of bootstrap.WithConsole.
func Open(o Options) *Console {
	c := &Console{o: o, mux: http.NewServeMux(),
		templates: parseTemplates(), reading: make(chan struct{}, 2)}
	c.sessions = newSessions(&c.o)
	for _, name := range []string{"console.css", "console.js", "icon.svg", "icon-bad.svg"} {
		c.mux.HandleFunc("GET /console/"+name, func(w http.ResponseWriter, r *http.Request) {
			own, _ := assetPath(name)
			if r.URL.RequestURI() == own { // a page of another version must not keep this one
				w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			}
			http.ServeFileFS(w, r, files, "pages/"+name)
		})
	}
	c.mux.HandleFunc("GET /console/enter", c.enter)
	c.mux.HandleFunc("POST /console/link", c.askLink)
	handle := func(pattern string, p *page, h handler) {
		if h != nil {
			c.mux.Handle(pattern, c.serve(p, h))
		}
	}
	for _, p := range pages() {
		if p.Menu == p.Title {
			c.menu = append(c.menu, p)
		}
		handle("GET /console/"+p.path, p, p.show)
		handle("POST /console/"+p.path, p, p.post)
		handle("GET /console/"+p.path+"/export", &page{path: p.path + "/export", Title: p.Title}, p.export)
	}
	c.find = c.serve(&page{Title: "Search", template: "search"}, showSearch)
	handle("/console/", noPage, func(*request) (any, error) { return nil, errNoPage })
	return c
}

// Link implements operator.Console. It shows an unused link again.
func (c *Console) Link(address string) {
	if c.sessions.behindProxy() || c.o.Show == nil {
		return
	}
	link := c.sessions.link(address)
	if link != "" {
		c.o.Show(link)
	}
}

// Close stops a running check of the book.
func (c *Console) Close() { c.proof.stop() }

// policy allows only what the pages use: one stylesheet, one script, and forms of the console.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		h.Set(name, value)
	}
	isLink := r.Header.Get("Sec-Fetch-Mode") == "navigate" || r.Header.Get("Sec-Fetch-Site") == "" // as in a ticket: it may be followed
	if isForeign(r) && !isLink || c.origins.Check(r) != nil {
		http.Error(w, "A page of another site must not use the console.", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	id, is := strings.CutPrefix(r.URL.Path, "/console/find/")
	if is && (r.Method == http.MethodGet || r.Method == http.MethodHead) { // the mux would redirect a//b to a/b
		r.SetPathValue("id", id)
		c.find.ServeHTTP(w, r)
		return
	}
	c.mux.ServeHTTP(w, r)
}

// isForeign reports whether a page of another site has caused the request. An older browser, and
// some over plain HTTP, do not send Sec-Fetch-Site. Then Referer names the page, unless that page
// forbids it.
func isForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return true
	case "":
		referer := r.Header.Get("Referer")
		page, err := url.Parse(referer)
		return referer != "" && (err != nil || page.Host != r.Host)
	}
	return false
}

// ForOperators implements operator.Console. Clients without the proxy are on a private network.
func (c *Console) ForOperators(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.sessions.isFromProxy(r) && !slices.Contains(c.o.Operators, c.sessions.proxied(r)) {
			http.Error(w, errRole.Text, errRole.Status)
			return
		}
		h.ServeHTTP(w, r)
	})
}

//go:embed pages
var files embed.FS

// assetPath returns the path of an asset. It changes with the content.
func assetPath(name string) (string, error) {
	content, err := files.ReadFile("pages/" + name)
	sum := sha256.Sum256(content)
	return "/console/" + name + "?" + hex.EncodeToString(sum[:6]), err
}

// stolenText tells the owner of a session that another browser has sent its cookie.
const stolenText = "Another browser has sent the cookie of your session, so the session has ended. If it was not you, somebody has copied the cookie: see Audit, action console.stolen."

// refuse responds with the page Sign in. why is empty, form, spent, asked, stolen or left.
func (c *Console) refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = c.templates["signin"].ExecuteTemplate(w, "signin.html", map[string]any{"Why": why, "Stolen": stolenText, "Proxy": c.sessions.behindProxy()}) // it fails only if the client disconnected
}

// enter signs in with the token of a link, and redirects to the page that the person requested
// before. A HEAD request does not use the token.
func (c *Console) enter(w http.ResponseWriter, r *http.Request) {
	if c.sessions.behindProxy() || r.Method == http.MethodHead || !c.sessions.spend(r.URL.Query().Get("token")) {
		c.refuse(w, http.StatusForbidden, "spent")
		return
	}
	s := c.begin(r, "operator")
	s.Operator = true
	c.sessions.save(w, r, s)
	to := "/console/"
	if wanted, err := r.Cookie(cookieName(r, "-wanted")); err == nil && unseal(c.sessions.box, "wanted", wanted.Value, &to) {
		c.sessions.setCookie(w, r, "-wanted", "", true)
	}
	w.Header().Set("Location", to) // http.Redirect would change a//b
	w.WriteHeader(http.StatusSeeOther)
}

// begin makes a session and records it. It is valid even if it cannot be recorded.
func (c *Console) begin(r *http.Request, user string) *session {
	s := c.sessions.begin(r, user)
	c.record(r, s, audit.ConsoleSignIn)
	return s
}

// record keeps an act that begins or ends a session.
func (c *Console) record(r *http.Request, s *session, action string) {
	if err := c.request(s).record(r.Context(), action, "console"); err != nil {
		c.o.Failed("Sign in", err)
	}
}

// askLink prints a link on the terminal of the service. Everyone can ask for a link. So the
// link has the address that the service reported, and an unused link stays valid.
func (c *Console) askLink(w http.ResponseWriter, _ *http.Request) {
	c.Link("")
	c.refuse(w, http.StatusOK, "asked")
}

// noPage is for addresses without a page, also those of forms.
var noPage = &page{Title: "Not found"}

// signedIn answers a request without a session, and returns nil. Who signs in then gets the page
// that was wanted, if there is one.
func (c *Console) signedIn(w http.ResponseWriter, r *http.Request, p *page) *session {
	s, stolen := c.sessions.find(r)
	why := ""
	if stolen {
		c.record(r, s, audit.ConsoleStolen) // for the owner of the session
		s = nil
	}
	wasStolen := s == nil && r.Header.Get("X-Live") == "" && c.sessions.wasStolen(r)
	if c.sessions.behindProxy() {
		user := c.sessions.proxied(r)
		if user == "" {
			c.refuse(w, http.StatusForbidden, why)
			return nil
		}
		if s == nil || s.Name != user {
			s = c.begin(r, user)
			if wasStolen {
				s.Flash = stolenText
				s.FlashPath = r.URL.Path
			}
		}
		s.Operator = slices.Contains(c.o.Operators, user) // the cookie may be older than the settings
	} else if s == nil {
		if wasStolen {
			why = "stolen"
		} else if r.Method == http.MethodPost {
			why = "form"
		} else if r.Method == http.MethodGet && p != noPage && r.Header.Get("X-Live") == "" {
			c.sessions.setCookie(w, r, "-wanted", seal(c.sessions.box, "wanted", r.URL.RequestURI()), false)
		}
		c.refuse(w, http.StatusUnauthorized, why)
	}
	return s
}

// If the API is busy, the place of a page pauses for nine times as long as the page took. So
// pages use at most a tenth of the time of two connections.
const (
	restFactor = 9
	maxRest    = 500 * time.Millisecond
)

// inTurn calls work when one of the two places to read is free.
func (c *Console) inTurn(ctx context.Context, work func() error) error {
	select {
	case c.reading <- struct{}{}:
		begun := c.o.Machine()
		defer func() {
			end := func() { <-c.reading }
			now := c.o.Machine()
			if c.o.Activity.IsBusy(now) {
				time.AfterFunc(min(restFactor*now.Sub(begun), maxRest), end)
			} else {
				end()
			}
		}()
		return caught(work)
	case <-ctx.Done():
		return errBusy
	}
}
