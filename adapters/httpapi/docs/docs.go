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
	"net/http"
	"path"
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

// Pages returns a handler for each exact path that the page needs, for
// everyone: /docs and /docs/ (the page) and its files below. Mount them for GET
// and HEAD, so that the router answers everything else in its own error form;
// called with another method, they answer a bare 405.
//
// Under a prefix, mount them behind http.StripPrefix: the page finds its files
// and the service relative to itself. It expects the OpenAPI document at
// BankingApiV01/openapi.json beside /docs.
func Pages() map[string]http.Handler {
	pages := map[string]http.Handler{}
	for _, folder := range []string{"page", "swagger-ui"} {
		entries, _ := files.ReadDir(folder) // what does not exist was refused by the compiler
		for _, entry := range entries {
			pages["/docs/"+entry.Name()] = newPage(entry.Name(), func() []byte {
				content, _ := files.ReadFile(path.Join(folder, entry.Name()))
				return content
			})
		}
	}
	index := func() []byte {
		content, _ := files.ReadFile("page/index.html")
		return content
	}
	delete(pages, "/docs/index.html")
	pages["/docs"] = newPage("index.html", index)
	// A browser at /docs resolves links against the parent, one at /docs/
	// against the folder; the file is written for the first.
	pages["/docs/"] = newPage("index.html", func() []byte {
		return bytes.ReplaceAll(index(), []byte(`="docs/`), []byte(`="./`))
	})
	return pages
}

// page is one file as it goes out.
type page struct {
	contentType string
	plain       func() []byte
	// compressed is what browsers get: Swagger UI is 1.9 MB, which a slow one
	// would not have within the write time-out. It is made when first asked
	// for, then kept.
	compressed func() []byte
}

func newPage(name string, plain func() []byte) *page {
	return &page{contentTypes[path.Ext(name)], plain, sync.OnceValue(func() []byte { return compress(plain()) })}
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	header.Set("Content-Type", p.contentType)
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store") // the contract, section 1
	header.Set("Vary", "Accept-Encoding")
	var body []byte
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		header.Set("Content-Encoding", "gzip")
		body = p.compressed()
	} else {
		body = p.plain()
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // a client that went away is nobody's error
	}
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
