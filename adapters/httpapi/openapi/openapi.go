// Package openapi is the service's contract as programs read it: an OpenAPI
// 3.1 document with both operations, every field's rule, every status with an
// example and every error code.
//
// openapi.yaml is written by hand. openapi.json is made from it by the tests
// (flag -update), which also fail when the two differ, so that the program
// itself needs no YAML and no conversion.
package openapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"time"
)

//go:embed openapi.json
var document []byte

// Path is where integrators find the document, beside the operations it
// describes.
const Path = "/BankingApiV01/openapi.json"

// Document returns the OpenAPI 3.1 document as indented JSON that ends in a
// newline. It is the same for every call; the bytes are the caller's own.
func Document() []byte {
	return bytes.Clone(document)
}

// Handler serves the document, to everyone, for GET and HEAD. Mount it at Path
// for these two methods, so that the router answers all others in its own
// error form; called with another one, it answers a bare 405.
//
// No answer of the service may be cached (the contract, section 1), hence
// no-store. The ETag is for programs that keep their own copy and ask whether
// it is still good: If-None-Match answers 304.
func Handler() http.Handler {
	digest := sha256.Sum256(document)
	etag := `"` + hex.EncodeToString(digest[:16]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			header.Set("Allow", "GET, HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		header.Set("Content-Type", "application/json")
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(document))
	})
}
