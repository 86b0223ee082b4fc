package sandbox

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"bankingapi/application/operator"
	"bankingapi/application/owner"
)

const (
	// maxRequests is how many requests are kept.
	maxRequests = 1000
	// maxBody is how much of each body is kept.
	maxBody = 16 << 10
)

// request is operator.SandboxRequest in JSON.
type request struct {
	Number       int64               `json:"number"`
	ReceivedAt   time.Time           `json:"receivedAt"`
	Clock        string              `json:"clock"`
	Method       string              `json:"method"`
	Path         string              `json:"path"`
	Fault        string              `json:"fault"`
	Header       map[string][]string `json:"header"`
	Body         string              `json:"body"`
	Milliseconds float64             `json:"milliseconds"`
	Answer       struct {
		Status int                 `json:"status"`
		Lost   bool                `json:"lost"`
		Header map[string][]string `json:"header"`
		Body   string              `json:"body"`
	} `json:"answer"`
}

// requests keeps the last requests, also in a file if it has a name. It is safe for
// concurrent use.
type requests struct {
	name  string // of the file, which has a line for each request
	mutex sync.Mutex
	count int64
	last  []*request // newest first
	lines int        // in the file
}

func (q *requests) add(r *request) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	r.Number = q.count + 1
	q.keep(r)
	if q.lines++; q.lines > 4*maxRequests {
		q.write(os.O_TRUNC, q.last)
	} else {
		q.write(os.O_APPEND, q.last[:1])
	}
}

func (q *requests) keep(r *request) {
	q.count = r.Number
	q.last = slices.Insert(q.last[:min(len(q.last), maxRequests-1)], 0, r)
}

// write writes requests to the file. If it fails, they are kept until the program ends.
func (q *requests) write(how int, newestFirst []*request) {
	if q.name == "" {
		return
	}
	if how == os.O_TRUNC {
		q.lines = len(newestFirst)
	}
	var lines []byte
	for _, r := range slices.Backward(newestFirst) {
		line, _ := json.Marshal(r) // it has texts and numbers
		lines = append(append(lines, line...), '\n')
	}
	if file, err := owner.Create(q.name, os.O_WRONLY|how, 0o600); err == nil {
		_, _ = file.Write(lines)
		_ = file.Close()
	}
}

// restore reads the requests that an earlier run has written.
func (q *requests) restore() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	kept, _ := os.ReadFile(q.name) // the file does not exist at first
	for line := range bytes.Lines(kept) {
		if r := new(request); json.Unmarshal(line, r) == nil { // a crash may have truncated it
			q.keep(r)
		}
	}
	q.write(os.O_TRUNC, q.last)
}

func (q *requests) reset() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.count, q.last = 0, nil
	q.write(os.O_TRUNC, nil)
}

// Requests implements operator.Sandbox.
func (q *requests) Requests(after int64) (found []operator.SandboxRequest) {
	for _, r := range q.after(after) {
		found = append(found, operator.SandboxRequest(*r))
	}
	return found
}

func (q *requests) after(number int64) []*request {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return slices.DeleteFunc(append([]*request{}, q.last...), func(r *request) bool { return r.Number <= number })
}

// recording is the http.ResponseWriter of a request that is recorded.
type recording struct {
	http.ResponseWriter
	now    func() string
	met    Fault
	done   bool // whether the operation was done
	status int
	header http.Header
	body   kept
}

// loses reports whether the caller does not get the whole answer.
func (w *recording) loses() bool {
	return w.done && slices.Contains(losing, w.met.Name())
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
	case w.loses() && w.met.Name() == cutMiddle:
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
