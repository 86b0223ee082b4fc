package settings

import "strings"

// gone has what to do about each setting that earlier programs had, by its path. Nothing is
// ignored silently: a person who sets one expects something of it.
var gone = map[string]string{
	"commit":              "remove it: the program knows how large a batch and a queue may be",
	"commit.batch_limit":  "remove it: the program knows how large a batch may be",
	"commit.queue_limit":  "remove it: the program knows how long a queue may be",
	"console.dsn":         "remove it: the console reads the database of the service through two connections of its own",
	"http.contact_email":  inDocumentInfo,
	"http.contact_name":   inDocumentInfo,
	"http.contact_url":    inDocumentInfo,
	"http.header_timeout": "remove it: the header of a request may take 5s, and no longer than http.read_timeout",
	"http.idle_timeout":   "remove it: an idle connection stays open for 75s, longer than balancers keep one",
	"http.outcomes":       "remove it: GET /outcomes is always served",
	"http.terms_url":      inDocumentInfo,
	"settlement.interval": "remove it: the service looks for due sales every 2s",
	"trail.interval":      "remove it: the service signs a checkpoint of the trail every second",
}

const inDocumentInfo = "write it into a YAML file that http.document_info names, with the members contact (name, email, url) and termsOfService"

// Gone returns what to do about a setting that earlier programs had. It returns false for any
// other path.
func Gone(path string) (what string, ok bool) {
	what, ok = gone[path]
	return "is no setting any more: " + what, ok
}

// pathOf returns the path of the setting that an environment variable would set.
func pathOf(variable string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(variable, envPrefix)), "__", ".")
}
