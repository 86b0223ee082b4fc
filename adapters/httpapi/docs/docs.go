// Package docs is the service's contract as people read it: a guide with both
// operations, recipes, a page for every error code, and one from which requests are sent.
//
// The pages are Markdown templates in folder pages, filled with the fields of the OpenAPI
// document, the error codes and the limits, and shown as HTML and as Markdown. One script, in
// the page, adds search, tabs, copy buttons, and sends the requests of /docs/try. The page's
// Content-Security-Policy lets it talk to its own host only, and a key of a bank stays in the
// page's memory. Folder examples has a request and its real answer for each error code,
// recorded by make generate. Folder recipes has programs that the tests run.
package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"bankingapi/adapters/httpapi/openapi"
)

//go:embed CHANGELOG.md pages/* recipes/* examples/* layout.html style.css
var files embed.FS

// script is the script of every page of the guide.
//
//go:embed guide.js
var script string

// guidePolicy allows a page its style sheet, its script, and to ask its own service.
var guidePolicy = fmt.Sprintf("default-src 'none'; object-src 'none'; style-src 'self'; img-src data:; script-src 'sha256-%s'; "+
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", base64.StdEncoding.EncodeToString(scriptSum[:]))

var scriptSum = sha256.Sum256([]byte(script))

// Pages returns a handler for each exact path, for everyone: /docs, the pages and
// files below it, each page as Markdown, and the OpenAPI documents. Mount them for GET
// and HEAD, under a prefix behind http.StripPrefix. Links are relative. Called with
// another method, the pages answer a bare 405.
func Pages(o openapi.Guide) (map[string]http.Handler, error) {
	pages, err := guide(o)
	if err != nil {
		return nil, err
	}
	pages["/docs/style.css"] = newPage("text/css", func() []byte { return read("style.css") })
	if o.Sandbox {
		described, err := o.OpenAPI.SandboxPages()
		if err != nil {
			return nil, err
		}
		maps.Copy(pages, described)
	}
	documents, err := o.OpenAPI.Pages()
	maps.Copy(pages, documents)
	return pages, err
}

func read(name string) []byte {
	content, _ := files.ReadFile(name) // every name is one of an embedded file
	return content
}

// newPage serves one file of that type. It is made when it is first asked for, then kept: to make all
// of them takes as long as everything else that a start takes, and a service that is asked for none
// keeps none in memory.
func newPage(contentType string, write func() []byte) http.Handler {
	plain := sync.OnceValue(write)
	compressed := sync.OnceValue(func() []byte { // browsers get this
		var out bytes.Buffer
		// Neither can fail: the level is valid, and a write to memory always succeeds.
		writer, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
		_, _ = writer.Write(plain())
		_ = writer.Close()
		return out.Bytes()
	})
	return openapi.ReadOnly(contentType+"; charset=utf-8", func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", guidePolicy)
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Vary", "Accept-Encoding")
		written := plain
		if acceptsGzip(r.Header.Values("Accept-Encoding")) {
			header.Set("Content-Encoding", "gzip")
			written = compressed
		}
		body := written()
		header.Set("Content-Length", strconv.Itoa(len(body)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(body) // ignore a client that went away
		}
	})
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
