package sandbox

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Request is a request to the API and its answer. Keys are masked.
type Request struct {
	// Number counts the requests since the start, from 1.
	Number int64 `json:"number"`
	// ReceivedAt is the real time, Clock that of the bank.
	ReceivedAt time.Time `json:"receivedAt"`
	Clock      string    `json:"clock"`
	Method     string    `json:"method"`
	Path       string    `json:"path"`
	// Fault is the fault that the request met; empty if it met none.
	Fault  string              `json:"fault"`
	Header map[string][]string `json:"header"`
	Body   string              `json:"body"`
	// Milliseconds is how long the answer took.
	Milliseconds float64 `json:"milliseconds"`
	Answer       Answer  `json:"answer"`
}

// Answer is the answer to a Request.
type Answer struct {
	// Status is 0 if the connection was closed without an answer.
	Status int `json:"status"`
	// Lost says that the answer was made but not sent.
	Lost   bool                `json:"lost"`
	Header map[string][]string `json:"header"`
	Body   string              `json:"body"`
}

const (
	// maxRequests is how many requests are kept.
	maxRequests = 1000
	// maxBody is how much of each body is kept.
	maxBody = 16 << 10
)

// requests keeps the last requests. It is safe for concurrent use.
type requests struct {
	mutex sync.Mutex
	count int64
	last  []*Request // newest first
}

func (q *requests) add(r *Request) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.count++
	r.Number = q.count
	q.last = slices.Insert(q.last[:min(len(q.last), maxRequests-1)], 0, r)
}

func (q *requests) reset() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.count, q.last = 0, nil
}

// after returns the requests with a number above the given one, newest first.
func (q *requests) after(number int64) []Request {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	found := []Request{}
	for _, r := range q.last {
		if r.Number > number {
			found = append(found, *r)
		}
	}
	return found
}

// recording is the http.ResponseWriter of a request that is recorded.
type recording struct {
	http.ResponseWriter
	now    func() string
	met    *injection
	status int
	header http.Header
	body   kept
}

// loses reports whether the caller does not get the answer, or not all of it.
func (w *recording) loses() bool {
	return w.met.Name() == cutAfter || w.met.Name() == cutMiddle || w.met.Name() == badGateway
}

// WriteHeader implements http.ResponseWriter. It adds the time of the bank.
func (w *recording) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.Header()[ClockHeader] = []string{w.now()}
		w.status, w.header = status, w.Header().Clone()
	}
	if !w.loses() || w.met.Name() == cutMiddle {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (w *recording) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	_, _ = w.body.Write(p)
	switch {
	case w.met.Name() == cutMiddle:
		_, err := w.ResponseWriter.Write(p[:len(p)/2])
		return len(p), err
	case w.loses():
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *recording) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// kept keeps the first part of what is written.
type kept struct{ bytes.Buffer }

func (k *kept) Write(p []byte) (int, error) {
	k.Buffer.Write(p[:min(len(p), maxBody-k.Len())])
	return len(p), nil
}

const masked = "***"

var appKey = regexp.MustCompile(`("AppKey"\s*:\s*)"(?:[^"\\]|\\.)*"?`)

// mask hides the keys in a text.
func mask(text string, keys []string) string {
	for _, key := range keys {
		if key != "" {
			text = strings.ReplaceAll(text, key, masked)
		}
	}
	return appKey.ReplaceAllString(text, `$1"`+masked+`"`)
}

// secretHeaders are the headers whose values are not kept.
var secretHeaders = []string{keyHeader, "Authorization", "Proxy-Authorization", "Cookie"}

func maskHeader(h http.Header, keys []string) map[string][]string {
	kept := make(map[string][]string, len(h))
	for name, values := range h {
		for _, value := range values {
			if slices.Contains(secretHeaders, name) {
				value = masked
			}
			kept[name] = append(kept[name], mask(value, keys))
		}
	}
	return kept
}
