// Package docs is the service's contract as people read it: a page that shows
// the OpenAPI document and tries the operations out with a key pasted into it.
//
// The page is Swagger UI, embedded, so it needs no internet, and it runs under
// a Content-Security-Policy that lets it talk to its own host only. The key
// stays in the page's memory and is gone when the page is.
//
// Folder swagger-ui holds files of the npm package swagger-ui-dist 5.35.0 as
// they were delivered; folder page is ours.
package docs

import (
	"bytes"
	"compress/gzip"
	"embed"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed page/* swagger-ui/*
var files embed.FS

// policy allows the page nothing but its own files and its own service. Images
// in data: URLs are the icons of Swagger UI's style sheet.
const policy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var contentTypes = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".txt":  "text/plain; charset=utf-8",
	"":      "text/plain; charset=utf-8",
}

// asset is one file as it goes out, plain or compressed.
type asset struct {
	contentType string
	plain       []byte
	compressed  func() []byte
}

func newAsset(name string, content []byte) asset {
	return asset{
		contentType: contentTypes[path.Ext(name)],
		plain:       content,
		// Swagger UI is 1.9 MB; a slow client would not get it within the
		// write time-out. Compressed when first asked for, then kept.
		compressed: sync.OnceValue(func() []byte { return compress(content) }),
	}
}

// Handler serves the page at /docs and /docs/ and its files below, to
// everyone, for GET and HEAD. Under a prefix, mount it behind
// http.StripPrefix: the page finds its files and the service relative to
// itself. Mount it at Paths for these two methods, so that the router answers
// everything else in its own error form; called with another path or method,
// it answers a bare 404 or 405.
//
// The page expects the OpenAPI document at BankingApiV01/openapi.json beside
// /docs.
func Handler() http.Handler {
	assets := load()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found, ok := assets[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		found.serve(w, r)
	})
}

// Paths returns every path that Handler knows, sorted.
func Paths() []string {
	return slices.Sorted(maps.Keys(load()))
}

// load reads the embedded files. It cannot fail: what does not exist was
// refused by the compiler.
func load() map[string]asset {
	assets := map[string]asset{}
	for _, folder := range []string{"page", "swagger-ui"} {
		entries, _ := files.ReadDir(folder)
		for _, entry := range entries {
			content, _ := files.ReadFile(path.Join(folder, entry.Name()))
			assets["/docs/"+entry.Name()] = newAsset(entry.Name(), content)
		}
	}
	// A browser at /docs resolves links against the parent, one at /docs/
	// against the folder; the file is written for the first.
	page := assets["/docs/index.html"]
	assets["/docs"] = page
	assets["/docs/"] = newAsset("index.html", bytes.ReplaceAll(page.plain, []byte(`="docs/`), []byte(`="./`)))
	delete(assets, "/docs/index.html")
	return assets
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", a.contentType)
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store") // the contract, section 1
	header.Set("Vary", "Accept-Encoding")
	body := a.plain
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		header.Set("Content-Encoding", "gzip")
		body = a.compressed()
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(body) // a client that went away is nobody's error
}

// acceptsGzip reports whether one of the header's codings is gzip, and not
// ruled out by weight 0.
func acceptsGzip(values []string) bool {
	for coding := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, parameters, _ := strings.Cut(coding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			weight, _ := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
			return strings.Trim(weight, "0.") != "" || weight == ""
		}
	}
	return false
}

func compress(content []byte) []byte {
	var out bytes.Buffer
	// Neither can fail: the level is known, and memory takes every write.
	writer, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, _ = writer.Write(content)
	_ = writer.Close()
	return out.Bytes()
}
