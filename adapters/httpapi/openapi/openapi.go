// Package openapi is the service's contract as programs read it: an OpenAPI document in version
// 3.1 and, for gateways and generators that do not read 3.1, in 3.0.3.
//
// openapi.yaml is written by hand. The tests make both JSON files from it (make
// generate) and fail if they differ, so the program needs no YAML.
package openapi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed openapi.json
var document31 []byte

//go:embed openapi-3.0.json
var document30 []byte

// sandbox describes the endpoints of a sandbox.
//
//go:embed sandbox.json
var sandbox []byte

// SandboxPath is where integrators find the document of a sandbox's own endpoints.
const SandboxPath = "/_sandbox/openapi.json"

// The versions of OpenAPI in which the document exists.
const (
	Version31 = "3.1"
	Version30 = "3.0"
)

// Path and Path30 are where integrators find the documents.
const (
	Path   = "/BankingApiV01/openapi.json"
	Path30 = "/BankingApiV01/openapi-3.0.json"
)

// Options are the parts of the document that differ from bank to bank. An empty
// field leaves the document as it is in openapi.yaml.
type Options struct {
	// Server is the base URL of the service, for example https://bank.example.
	// Gateways that import the document as a file need it.
	Server                                string
	ContactName, ContactURL, ContactEmail string // who answers questions
	TermsURL                              string // the page with the terms of service
	// Day is the day in examples of sales for a later day, as YYYY-MM-DD, so that they do not
	// grow old.
	Day string
	// Posts are operations that a host adds: for each path the Operation Object of
	// its POST, in JSON that both versions of OpenAPI understand. It may refer to
	// the components of the document.
	Posts map[string]string
}

// Document returns the OpenAPI 3.1 document as indented JSON. The caller owns the bytes.
func Document() []byte { return bytes.Clone(document31) }

// laterDay is the day in examples of sales for a later day in openapi.yaml.
const laterDay = "2027-06-15"

// Document returns the document in Version30 or Version31 as indented JSON.
func (o Options) Document(version string) ([]byte, error) {
	text, known := map[string][]byte{Version31: document31, Version30: document30}[version]
	if !known {
		return nil, fmt.Errorf("unknown OpenAPI version %q: use %s or %s", version, Version30, Version31)
	}
	if o.Day != "" {
		text = bytes.ReplaceAll(text, []byte(laterDay), []byte(o.Day))
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read the embedded document: %w", err)
	}
	if err := o.apply(&d); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("write the document: %w", err)
	}
	return out.Bytes(), nil
}

// document has all members of the embedded documents, in their order.
type document struct {
	OpenAPI string `json:"openapi"`
	Info    struct {
		Title       string          `json:"title"`
		Version     string          `json:"version"`
		Terms       string          `json:"termsOfService,omitempty"`
		Contact     contact         `json:"contact"`
		License     json.RawMessage `json:"license"`
		Description string          `json:"description"`
	} `json:"info"`
	// ExternalDocs must have an absolute URL.
	ExternalDocs map[string]string `json:"externalDocs,omitempty"`
	Servers      []server          `json:"servers"`
	Security     json.RawMessage   `json:"security"`
	Tags         json.RawMessage   `json:"tags"`
	Paths        json.RawMessage   `json:"paths"`
	Components   json.RawMessage   `json:"components"`
}

type contact struct {
	Name  string `json:"name,omitempty"`
	URL   string `json:"url,omitempty"`
	Email string `json:"email,omitempty"`
}

type server struct {
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
}

func (o Options) apply(d *document) error {
	if o.Server != "" {
		base := strings.TrimSuffix(o.Server, "/")
		d.Servers = []server{{URL: base}}
		d.ExternalDocs = map[string]string{"description": "The guide", "url": base + "/docs"}
	}
	d.Info.Contact = cmp.Or(contact{o.ContactName, o.ContactURL, o.ContactEmail}, d.Info.Contact)
	d.Info.Terms = cmp.Or(o.TermsURL, d.Info.Terms)
	for _, path := range slices.Sorted(maps.Keys(o.Posts)) {
		post := o.Posts[path]
		if !json.Valid([]byte(post)) {
			return fmt.Errorf("the OpenAPI description of %s is not JSON", path)
		}
		d.Paths = fmt.Appendf(bytes.TrimSuffix(d.Paths, []byte("}")), ",%q:{\"post\":%s}}", path, post)
	}
	return nil
}

// SandboxPages returns the handler of the document of a sandbox, by its path. Its server is
// Options.Server: behind a proxy that adds a prefix, the root of the host is another one.
func (o Options) SandboxPages() (map[string]http.Handler, error) {
	document := sandbox
	if o.Server != "" {
		address, err := json.Marshal(strings.TrimSuffix(o.Server, "/"))
		if err != nil {
			return nil, err
		}
		document = bytes.Replace(sandbox, []byte(`"url": "/"`), append([]byte(`"url": `), address...), 1)
	}
	return map[string]http.Handler{SandboxPath: handler(document)}, nil
}

// Pages returns a handler for each path of a document, for everyone. Mount them for
// GET and HEAD. Called with another method, they answer a bare 405.
func (o Options) Pages() (map[string]http.Handler, error) {
	pages := map[string]http.Handler{}
	for path, version := range map[string]string{Path: Version31, Path30: Version30} {
		text, err := o.Document(version)
		if err != nil {
			return nil, err
		}
		pages[path] = handler(text)
	}
	return pages, nil
}

// relativeServer is the server of the document if Options.Server is empty.
var relativeServer = []byte(`"servers": [
    {
      "url": "/",`)

// handler serves a document. Without Options.Server its server is the address that it was asked
// at. The ETag is for programs that ask whether their own copy is still good.
//
// No request gets a copy of the document: callers without a key could make many, and not read them.
func handler(document []byte) http.Handler {
	before, after, isRelative := bytes.Cut(document, relativeServer)
	digest := sha256.Sum256(document)
	return ReadOnly("application/json", func(w http.ResponseWriter, r *http.Request) {
		parts := [][]byte{document}
		address := ""
		if isRelative {
			address = addressOf(r)
			server := bytes.Replace(relativeServer, []byte(`"/"`), []byte(`"`+address+`"`), 1)
			parts = [][]byte{before, server, after}
		}
		length := 0
		for _, part := range parts {
			length += len(part)
		}
		tag := sha256.Sum256(append(digest[:], address...))
		etag := `"` + hex.EncodeToString(tag[:16]) + `"`
		w.Header().Set("ETag", etag)
		if hasTag(r.Header.Values("If-None-Match"), etag) {
			w.Header().Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(length))
		if r.Method == http.MethodHead {
			return
		}
		for _, part := range parts {
			_, _ = w.Write(part) // ignore a client that went away
		}
	})
}

// hasTag reports whether a header If-None-Match names the tag, or any.
func hasTag(values []string, etag string) bool {
	for tag := range strings.SplitSeq(strings.Join(values, ","), ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == etag || tag == "*" {
			return true
		}
	}
	return false
}

// plainHost is a Host header that can stand in a URL.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.\-]+(:[0-9]+)?$|^\[[0-9A-Fa-f:.]+\](:[0-9]+)?$`)

// addressOf returns the address that a request was sent to, or / if it cannot be known. Behind
// a proxy that ends TLS only the proxy knows it, and says so.
func addressOf(r *http.Request) string {
	scheme := r.Header.Get("X-Forwarded-Proto")
	if r.TLS != nil {
		scheme = "https"
	}
	if scheme == "" {
		scheme = "http"
	}
	if (scheme != "http" && scheme != "https") || !plainHost.MatchString(r.Host) {
		return "/"
	}
	return scheme + "://" + r.Host
}

// ReadOnly serves a document of this type for GET and HEAD. Another method is answered a
// bare 405. No answer of the service may be cached (the contract, section 1).
func ReadOnly(contentType string, serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			header.Set("Allow", "GET, HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		header.Set("Content-Type", contentType)
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		serve(w, r)
	})
}

// Guide is what the documentation for people (package docs) says about this service. A field that is zero has
// the default of the service.
type Guide struct {
	OpenAPI         Options // how the OpenAPI documents describe it
	BodyLimit       int64   // the largest request body in bytes
	ParametersLimit int     // the maximum number of records in one request
	TimeZone        string  // the name of the bank's time zone
	// Day is the day 180 days ahead, as YYYY-MM-DD, for requests of examples. The
	// demo book and a sandbox are closed 20 days later.
	Day string
	// Sandbox says that the service is a sandbox, where callers make their own keys.
	Sandbox bool
}
