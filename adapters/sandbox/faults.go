package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"bankingapi/application/commit"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// FaultHeader is the header that requests a fault for one request.
const FaultHeader = "Sandbox-Fault"

// The names of the faults that are more than an error of the operation.
const (
	cutBefore   = "cut-before"
	cutMiddle   = "cut-middle"
	cutAfter    = "cut-after"
	slow        = "slow"
	rateLimited = "rate-limited"
	badGateway  = "bad-gateway"
)

// losing has the faults that lose the answer after the operation was done.
var losing = []string{cutAfter, cutMiddle, badGateway}

// Fault is a fault that a caller can arm.
type Fault struct {
	// Header is a value of Sandbox-Fault.
	Header string
	// CustomerNo is the customer whose sales have this fault.
	CustomerNo int64
	// Effect says what happens.
	Effect string

	// instead is returned instead of doing the operation, after is returned after it was done.
	// Both may be nil.
	instead, after error
	// delay is the delay of slow.
	delay time.Duration
}

// Name returns the name of the fault, as in reserved texts.
func (f Fault) Name() string { name, _, _ := strings.Cut(f.Header, "="); return name }

// String returns the value of Sandbox-Fault. It is empty for the zero value, which is no fault.
func (f Fault) String() string {
	if f.delay != 0 {
		return f.Name() + "=" + f.delay.String()
	}
	return f.Header
}

var allFaults = []Fault{
	{"unavailable-before", 9201, "Nothing is done. The answer is 503 storage-unavailable.", injected(fault.Unavailable), nil, 0},
	{"unavailable-after", 9202, "The operation is done. The answer is 503 outcome-unknown, without Data.", nil, injected(fault.Indeterminate), 0},
	{cutBefore, 9203, "Nothing is done. The connection is closed without an answer.", nil, nil, 0},
	{cutAfter, 9204, "The operation is done. The connection is closed without an answer.", nil, nil, 0},
	{cutMiddle, 9211, "The operation is done. The connection is closed in the middle of the answer.", nil, nil, 0},
	{slow + "=2s", 9205, "The service waits 2 s, or the duration that you name (at most 60 s), and does the operation, even if the caller has given up.", nil, nil, 2 * time.Second},
	{rateLimited, 9206, "Nothing is done. The answer is 429 rate-limit-exceeded.", nil, nil, 0},
	{"internal", 9207, "Nothing is done. The answer is 500 internal-error, without Data.", injected(fault.Internal), nil, 0},
	{"overloaded", 9208, "Nothing is done. The answer is 503 overloaded.", injected(fault.Busy), nil, 0},
	{"shutting-down", 9209, "Nothing is done. The answer is 503 shutting-down.", shuttingDown(), nil, 0},
	{badGateway, 9210, "The operation is done. The answer is 502, an HTML page of a gateway.", nil, nil, 0},
}

func injected(kind fault.Kind) error {
	return fault.Wrap(kind, errors.New("injected by the sandbox"), "")
}

func shuttingDown() error {
	c, _ := fault.Describe(fault.ShuttingDown)
	return fault.New(fault.Busy, c.Meaning, fault.Fault{Code: c.Name, Detail: c.Meaning + " " + c.Action})
}

// Faults lists all faults.
func Faults() []Fault { return slices.Clone(allFaults) }

// Faults implements operator.Sandbox.
func (*Sandbox) Faults() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, f := range allFaults {
			if !yield(f.Header, f.Effect) {
				return
			}
		}
	}
}

const (
	// reservedPrefix is the prefix of a CallerId or UserId that requests a fault.
	reservedPrefix = "sandbox-"
	maxDelay       = time.Minute
)

// parseFault reads a value of Sandbox-Fault. pointer is its place.
func parseFault(pointer, text string) (Fault, error) {
	name, value, hasValue := strings.Cut(text, "=")
	at := slices.IndexFunc(allFaults, func(f Fault) bool { return f.Name() == name })
	if at < 0 {
		return Fault{}, unknownFault(pointer, text, "")
	}
	f := allFaults[at]
	if !hasValue {
		return f, nil
	}
	var err error
	if f.delay, err = time.ParseDuration(value); err != nil || name != slow || f.delay < 0 || f.delay > maxDelay {
		return Fault{}, faultNotAllowed(pointer, "Only slow takes a value: a duration of at most 60s, such as slow=2s.")
	}
	return f, nil
}

// unknownFault returns the error of an unknown fault. It lists the known values.
func unknownFault(pointer, text, prefix string) error {
	var names []string
	for _, f := range allFaults {
		names = append(names, prefix+f.Name())
	}
	detail := "Must be one of " + strings.Join(names, ", ") + "."
	if meant, ok := fault.Closest(prefix+strings.TrimRight(text, "-0123456789"), slices.Values(names), 3); ok {
		detail += " Did you mean " + meant + "?"
	}
	return faultNotAllowed(pointer, detail)
}

func faultNotAllowed(pointer, detail string) error {
	if pointer == "" {
		detail = "The header " + FaultHeader + ": " + detail
	}
	return refuse(fault.Fault{Pointer: pointer, Code: fault.NotAllowed, Detail: detail})
}

// reservedFault reads a text such as sandbox-cut-after or sandbox-cut-after-17. Any other text
// with the prefix is an error, because otherwise the request would have no fault.
func reservedFault(pointer, text string) (Fault, error) {
	rest, ok := strings.CutPrefix(text, reservedPrefix)
	if !ok {
		return Fault{}, nil
	}
	for _, f := range allFaults {
		if strings.HasPrefix(rest+"-", f.Name()+"-") {
			return f, nil
		}
	}
	return Fault{}, unknownFault(pointer, rest, reservedPrefix)
}

const (
	// maxArmed limits the list of armed faults, maxCount the requests of one fault.
	maxArmed = 100
	maxCount = 1000
	// maxSpent limits the memory. After this many requests, reserved values have their faults
	// again.
	maxSpent = 100_000
)

var errTooManyArmed = refuse(fault.Fault{Code: fault.TooMany, Detail: fmt.Sprintf("At most %d faults.", maxArmed)})

// armed is operator.ArmedFault in JSON.
type armed struct {
	Operation string `json:"operation,omitempty"`
	Fault     string `json:"fault"`
	Count     int    `json:"count"`
}

// faults has the faults of the next requests. It is safe for concurrent use.
type faults struct {
	mutex sync.Mutex
	armed []armed
	// spent has the requests that had the fault of a reserved value.
	spent map[[sha256.Size]byte]bool
}

func (f *faults) reset() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.armed = nil
	f.spent = nil
}

func (f *faults) list() []armed {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return append([]armed{}, f.armed...)
}

// arm replaces the armed faults.
func (f *faults) arm(list []armed) error {
	if len(list) > maxArmed {
		return errTooManyArmed
	}
	var wrong fault.List
	for i, a := range list {
		at := fmt.Sprintf("/%d", i)
		if _, err := parseFault(at+"/fault", a.Fault); err != nil {
			wrong = append(wrong, fault.Of(err)...)
		}
		if a.Operation != "" && a.Operation != quotesName && !slices.Contains(operation.AllNames(), a.Operation) {
			wrong.Add(at+"/operation", fault.NotAllowed, "Must be BuyFundFromCustomer, AddPushNotificationResponse or quotes, or absent for both operations.")
		}
		if a.Count < 1 || a.Count > maxCount {
			wrong.Add(at+"/count", fault.OutOfRange, fmt.Sprintf("Must be from 1 to %d.", maxCount))
		}
	}
	if len(wrong) > 0 {
		return refuse(wrong...)
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.armed = list
	return nil
}

// next returns the armed fault of a request to the operation at that path.
func (f *faults) next(path string) (met Fault) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	at := slices.IndexFunc(f.armed, func(a armed) bool {
		if path == quotesPath {
			return a.Operation == quotesName
		}
		return a.Operation == "" || path == operations+a.Operation
	})
	if at < 0 {
		return met
	}
	met, _ = parseFault("", f.armed[at].Fault) // arm has validated it
	if f.armed[at].Count--; f.armed[at].Count == 0 {
		f.armed = slices.Delete(f.armed, at, at+1)
	}
	return met
}

// isFirst reports whether it is called for the first time with these words.
func (f *faults) isFirst(words ...string) bool {
	key := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.spent == nil || len(f.spent) >= maxSpent {
		f.spent = make(map[[sha256.Size]byte]bool)
	}
	seen := f.spent[key]
	f.spent[key] = true
	return !seen
}

// find returns the fault of the header, the armed fault, or the fault of a reserved value. A
// quote ignores the CallerId and has no effect, so reserved values of its body mean nothing.
func (f *faults) find(r *http.Request, body []byte) (Fault, error) {
	texts := r.Header.Values(FaultHeader)
	if len(texts) > 0 {
		return parseFault("", strings.TrimSpace(strings.Join(texts, ", ")))
	}
	armed := f.next(r.URL.Path)
	if armed.Name() != "" {
		return armed, nil
	}
	if r.URL.Path == quotesPath {
		return Fault{}, nil
	}
	met, identity, err := reserved(body)
	if err != nil || met.Name() == "" || !f.isFirst(met.Name(), r.URL.Path, r.Header.Get(keyHeader), identity) {
		return Fault{}, err
	}
	return met, nil
}

// maxRecords is in how many records of a request reserved values are looked for. A request with more
// meets none: an operation refuses it, unless http.parameters_limit is ten times its default.
const maxRecords = 10_000

var errTooManyRecords = errors.New("too many records")

// reservedRecord is the part of a record that may have a reserved value.
type reservedRecord struct{ CustomerNo, UserId jsontext.Value }

// reserved looks for reserved values in the body of an operation. identity is
// the CallerId, or the whole body if the request has no CallerId.
func reserved(body []byte) (met Fault, identity string, err error) {
	var request struct {
		Header     struct{ CallerId jsontext.Value }
		Parameters []reservedRecord
	}
	count := 0
	err = json.Unmarshal(body, &request, json.WithUnmarshalers(counted[reservedRecord](&count, maxRecords, errTooManyRecords)),
		json.MatchCaseInsensitiveNames(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return met, "", nil //nolint:nilerr // the operation reports it
	}
	callerID := textOf(request.Header.CallerId)
	identity = cmp.Or(callerID, string(body))
	met, err = reservedFault("/Header/CallerId", callerID)
	for n, record := range request.Parameters {
		if met.Name() != "" || err != nil {
			break
		}
		met, err = reservedFault(fmt.Sprintf("/Parameters/%d/UserId", n), textOf(record.UserId))
		for _, f := range allFaults {
			if string(record.CustomerNo) == strconv.FormatInt(f.CustomerNo, 10) {
				met = f
			}
		}
	}
	return met, identity, err
}

// textOf returns a JSON string, or "" for any other value.
func textOf(raw jsontext.Value) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

type metKey struct{}

// metIn returns the recording of a request to an operation. Check sets its fault.
func metIn(ctx context.Context) *recording { return ctx.Value(metKey{}).(*recording) }

// maxSlow is how many requests of a world may wait for the fault slow at the same time.
const maxSlow = 20

// maxPeeked limits how much of a body is read to find reserved values.
const maxPeeked = 4 << 20

// Check is for httpapi.Options.Check. It finds the fault of the request.
func (b *Sandbox) Check(r *http.Request) (wait time.Duration, err error) {
	wait = b.keys.wait(r)
	if wait > 0 {
		return wait, nil
	}
	if !meetsFaults(r.URL.Path) {
		return 0, nil
	}
	found, err := b.faults.find(r, peek(r))
	answer := metIn(r.Context())
	answer.met = found
	switch found.Name() {
	case slow:
		if !b.wait(found.delay) {
			answer.met = Fault{}
			return time.Second, nil
		}
	case cutBefore:
		panic(http.ErrAbortHandler)
	case rateLimited:
		return time.Second, err
	}
	return 0, err
}

// wait waits for the fault slow. It reports false if too many requests wait. The delay does not
// end when the caller disconnects, and the body is kept until then.
func (b *Sandbox) wait(delay time.Duration) bool {
	defer b.slow.Add(-1)
	if b.slow.Add(1) > maxSlow {
		return false
	}
	time.Sleep(delay)
	return true
}

// peek returns the beginning of the body of a request, which can still be read whole.
func peek(r *http.Request) []byte {
	// A caller that waits for "100 Continue" sends no body if the service refuses its header.
	isWelcome := r.ContentLength <= maxPeeked && r.Header["Content-Encoding"] == nil && r.Header.Get("Content-Type") == "application/json"
	if r.Header["Expect"] != nil && !isWelcome {
		return nil
	}
	var peeked bytes.Buffer
	_, err := peeked.ReadFrom(io.LimitReader(r.Body, maxPeeked))
	rest := io.Reader(r.Body)
	if err != nil {
		rest = failing{err}
	}
	r.Body = body{io.MultiReader(bytes.NewReader(peeked.Bytes()), rest), r.Body}
	return peeked.Bytes()
}

// body is the body of a request that is read through another reader.
type body struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Do implements operator.SandboxPart.
func (*Sandbox) Do(ctx context.Context, do func(context.Context) (operation.Outcome, error)) (operation.Outcome, error) {
	answer := metIn(ctx)
	if answer.met.instead != nil {
		return operation.Outcome{}, answer.met.instead
	}
	if answer.met.Name() == slow {
		ctx = commit.WithWait(context.WithoutCancel(ctx), maxDelay) // the operation is done even if the answer is late
	}
	outcome, err := do(ctx)
	if err != nil {
		return outcome, err
	}
	answer.done = true
	if answer.met.after != nil {
		return operation.Outcome{}, answer.met.after
	}
	return outcome, nil
}
