package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"bankingapi/application/owner"
)

const (
	// maxRequests is how many requests are kept.
	maxRequests = 1000
	// maxBody is how much of each body is kept, and maxHeader how much of each header.
	maxBody   = 16 << 10
	maxHeader = 4 << 10
	// maxKept limits the bytes of all kept requests, as the file has them, maxFile the size of
	// the file, and maxPage the size of an answer.
	maxKept = 8 << 20
	maxFile = 16 << 20
	maxPage = 1 << 20
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

// entry is a request with the size of its line in the file.
type entry struct {
	*request
	size int
}

// requests keeps the last requests, also in a file if it has a name. It is safe for
// concurrent use.
type requests struct {
	name  string // of the file, which has a line for each request
	mutex sync.Mutex
	count int64
	last  []entry // newest first
	bytes int     // of all in last
	file  int     // the size of the file
}

func (q *requests) add(r *request) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	r.Number = q.count + 1
	line := lineOf(r)
	q.keep(r, len(line))
	if q.file+len(line) > maxFile {
		q.rewrite()
		return
	}
	q.write(os.O_APPEND, line)
}

// lineOf returns the line of a request in the file.
func lineOf(r *request) []byte {
	line, _ := json.Marshal(r) // it has texts and numbers
	return append(line, '\n')
}

// keep adds a request, and forgets the oldest ones if there are too many.
func (q *requests) keep(r *request, size int) {
	q.count = r.Number
	q.bytes += size
	q.last = slices.Insert(q.last, 0, entry{r, size})
	for len(q.last) > maxRequests || q.bytes > maxKept {
		oldest := len(q.last) - 1
		q.bytes -= q.last[oldest].size
		q.last[oldest] = entry{}
		q.last = q.last[:oldest]
	}
}

// rewrite writes the kept requests to a file without others.
func (q *requests) rewrite() {
	lines := make([]byte, 0, q.bytes)
	for _, r := range slices.Backward(q.last) {
		lines = append(lines, lineOf(r.request)...)
	}
	q.file = 0
	q.write(os.O_TRUNC, lines)
}

// write writes lines to the file. If it fails, the requests are kept until the program ends.
func (q *requests) write(how int, lines []byte) {
	if q.name == "" {
		return
	}
	q.file += len(lines)
	file, err := owner.Create(q.name, os.O_WRONLY|how, 0o600)
	if err != nil {
		return
	}
	_, _ = file.Write(lines)
	_ = file.Close()
}

// restore reads the requests that an earlier run has written.
func (q *requests) restore() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.read()
	q.rewrite()
}

// read reads the file. It does not exist at first.
func (q *requests) read() {
	file, err := os.Open(q.name)
	if err != nil {
		return
	}
	defer file.Close()
	lines := bufio.NewReader(io.LimitReader(file, 2*maxFile))
	for {
		line, err := lines.ReadBytes('\n')
		r := new(request)
		if json.Unmarshal(line, r) == nil { // a crash may have truncated it
			q.keep(r, len(line))
		}
		if err != nil {
			return
		}
	}
}

func (q *requests) reset() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.count = 0
	q.last = nil
	q.bytes = 0
	q.rewrite()
}

func (q *requests) after(number int64) []entry {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return slices.DeleteFunc(append([]entry{}, q.last...), func(r entry) bool { return r.Number <= number })
}

// newestRequests asks a page for the newest requests.
const newestRequests = -1

// page returns the requests that fit into one answer, newest first: those that follow the given
// number, so that a caller who begins with 0 and asks again and again gets all, or the newest.
func (q *requests) page(after int64) []*request {
	found := q.after(after)
	if after != newestRequests {
		slices.Reverse(found)
	}
	page := []*request{}
	size := 0
	for _, r := range found {
		size += r.size
		if size > maxPage {
			break
		}
		page = append(page, r.request)
	}
	if after != newestRequests {
		slices.Reverse(page)
	}
	return page
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

// serve lets the handler answer. The header is written here if the handler writes nothing, as it
// may do for HEAD.
func (w *recording) serve(handler http.Handler, r *http.Request) {
	handler.ServeHTTP(w, r)
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
}

// WriteHeader implements http.ResponseWriter. It adds the time of the bank.
func (w *recording) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.Header()[ClockHeader] = []string{w.now()}
		w.status, w.header = status, w.Header().Clone()
	}
	switch {
	case !w.loses() || w.met.Name() == cutMiddle:
		w.ResponseWriter.WriteHeader(status)
	case w.met.Name() == badGateway:
		clear(w.Header())
		w.Header()["Content-Type"] = []string{"text/html"}
		w.Header()[ClockHeader] = []string{w.now()}
		w.ResponseWriter.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w.ResponseWriter, gatewayPage) // ignore a caller that left
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

// FlushError is for http.ResponseController. Nothing is sent of an answer before which the connection
// is cut.
func (w *recording) FlushError() error {
	if w.loses() && w.met.Name() == cutAfter {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (w *recording) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// kept keeps the first part of what is written.
type kept struct{ buffer bytes.Buffer }

func (k *kept) Write(p []byte) (int, error) {
	k.buffer.Write(p[:min(len(p), maxBody-k.buffer.Len())])
	return len(p), nil
}

func (k *kept) String() string { return k.buffer.String() }

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
	size := 0
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			if slices.Contains(secretHeaders, name) {
				value = masked
			}
			value = mask(value, keys)
			size += len(name) + len(value)
			if size > maxHeader {
				return kept
			}
			kept[name] = append(kept[name], strings.ToValidUTF8(value, "\uFFFD"))
		}
	}
	return kept
}
