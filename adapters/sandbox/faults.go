package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bankingapi/application/commit"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// FaultHeader asks for a fault of one request.
const FaultHeader = "Sandbox-Fault"

// The names of the faults.
const (
	unavailableBefore = "unavailable-before"
	unavailableAfter  = "unavailable-after"
	cutBefore         = "cut-before"
	cutMiddle         = "cut-middle"
	cutAfter          = "cut-after"
	slow              = "slow"
	rateLimited       = "rate-limited"
	internalError     = "internal"
	overloaded        = "overloaded"
	shuttingDown      = "shutting-down"
	badGateway        = "bad-gateway"
)

// Fault is a fault that a caller can arm.
type Fault struct {
	// Header is a value of Sandbox-Fault.
	Header string
	// CustomerNo is the customer whose sales have this fault.
	CustomerNo int64
	// Effect says what happens.
	Effect string
}

// Name is the name of the fault, as reserved texts have it.
func (f Fault) Name() string { name, _, _ := strings.Cut(f.Header, "="); return name }

// Faults lists all faults.
func Faults() []Fault {
	return []Fault{
		{unavailableBefore, 9201, "Nothing is done. The answer is 503 storage-unavailable."},
		{unavailableAfter, 9202, "The operation is done. The answer is 503 outcome-unknown, without Data."},
		{cutBefore, 9203, "Nothing is done. The connection is closed without an answer."},
		{cutAfter, 9204, "The operation is done. The connection is closed without an answer."},
		{cutMiddle, 9211, "The operation is done. The connection is closed in the middle of the answer."},
		{slow + "=2s", 9205, "The service waits 2 s, or the duration that you name (at most 60 s), and does the operation, even if the caller has given up."},
		{rateLimited, 9206, "Nothing is done. The answer is 429 rate-limit-exceeded."},
		{internalError, 9207, "Nothing is done. The answer is 500 internal-error, without Data."},
		{overloaded, 9208, "Nothing is done. The answer is 503 overloaded."},
		{shuttingDown, 9209, "Nothing is done. The answer is 503 shutting-down."},
		{badGateway, 9210, "The operation is done. The answer is 502, an HTML page of a gateway."},
	}
}

const (
	// reservedPrefix begins a CallerId or UserId that asks for a fault.
	reservedPrefix = "sandbox-"
	defaultDelay   = 2 * time.Second
	maxDelay       = time.Minute
)

// injection is the fault that a request meets. The zero value is none.
type injection struct {
	name  string
	delay time.Duration
}

func (i injection) String() string {
	if i.name == slow {
		return slow + "=" + i.delay.String()
	}
	return i.name
}

// parseFault reads a value of Sandbox-Fault. pointer is where it stands.
func parseFault(pointer, text string) (injection, error) {
	name, value, hasValue := strings.Cut(text, "=")
	i := injection{name, defaultDelay}
	var err error
	if hasValue {
		i.delay, err = time.ParseDuration(value)
	}
	if err != nil || hasValue && name != slow || i.delay < 0 || i.delay > maxDelay || !slices.ContainsFunc(Faults(), func(f Fault) bool { return f.Name() == name }) {
		return injection{}, unknownFault(pointer, text, "")
	}
	return i, nil
}

// unknownFault is the error of a fault that does not exist, with the values that do.
func unknownFault(pointer, text, prefix string) error {
	var names []string
	for _, f := range Faults() {
		names = append(names, prefix+f.Name())
	}
	detail := "Must be one of " + strings.Join(names, ", ") + "."
	if meant, ok := fault.Closest(prefix+strings.TrimRight(text, "-0123456789"), slices.Values(names), 3); ok {
		detail += " Did you mean " + meant + "?"
	}
	if pointer == "" {
		detail = "The header " + FaultHeader + ": " + detail
	}
	return refuse(fault.Fault{Pointer: pointer, Code: fault.NotAllowed, Detail: detail})
}

// reservedFault reads a text such as sandbox-cut-after or sandbox-cut-after-17. Any
// other text with the prefix is an error: it would be an ordinary request.
func reservedFault(pointer, text string) (injection, error) {
	rest, ok := strings.CutPrefix(text, reservedPrefix)
	if !ok {
		return injection{}, nil
	}
	for _, f := range Faults() {
		if after, ok := strings.CutPrefix(rest, f.Name()); ok && (after == "" || after[0] == '-') {
			return injection{f.Name(), defaultDelay}, nil
		}
	}
	return injection{}, unknownFault(pointer, rest, reservedPrefix)
}

// Armed is a fault that the next requests meet.
type Armed struct {
	// Operation is the name of an operation. If it is empty, requests to any
	// operation meet the fault.
	Operation string `json:"operation,omitempty"`
	// Fault is a value of Sandbox-Fault.
	Fault string `json:"fault"`
	// Count is how many requests meet it. 0 means one.
	Count int `json:"count"`
}

const (
	// maxArmed bounds the list of armed faults, maxCount the requests that meet one.
	maxArmed = 100
	maxCount = 1000
	// maxSpent bounds the memory. After that many requests, reserved values have their
	// faults again.
	maxSpent = 100_000
)

// faults are what the requests of a world are going to meet. It is safe for
// concurrent use.
type faults struct {
	mutex sync.Mutex
	armed []Armed
	// spent has the requests that had the fault of a reserved value: each has it once.
	spent map[[sha256.Size]byte]bool
}

func (f *faults) reset() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.armed, f.spent = nil, nil
}

func (f *faults) list() []Armed {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return append([]Armed{}, f.armed...)
}

// arm replaces the armed faults.
func (f *faults) arm(list []Armed) error {
	list = slices.Clone(list)
	var wrong []fault.Fault
	if len(list) > maxArmed {
		wrong = append(wrong, fault.Fault{Code: fault.TooMany, Detail: fmt.Sprintf("At most %d faults.", maxArmed)})
	}
	for i := range list {
		a, at := &list[i], fmt.Sprintf("/%d", i)
		if a.Count == 0 {
			a.Count = 1
		}
		if _, err := parseFault(at+"/fault", a.Fault); err != nil {
			wrong = append(wrong, fault.Of(err)...)
		}
		if a.Operation != "" && !slices.ContainsFunc(operation.Names[:], func(n operation.Name) bool { return n.String() == a.Operation }) {
			wrong = append(wrong, fault.Fault{Pointer: at + "/operation", Code: fault.NotAllowed, Detail: "Must be BuyFundFromCustomer or AddPushNotificationResponse, or absent for both."})
		}
		if a.Count < 1 || a.Count > maxCount {
			wrong = append(wrong, fault.Fault{Pointer: at + "/count", Code: fault.OutOfRange, Detail: fmt.Sprintf("Must be from 1 to %d.", maxCount)})
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
func (f *faults) next(path string) (i injection) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	at := slices.IndexFunc(f.armed, func(a Armed) bool { return a.Operation == "" || path == operations+a.Operation })
	if at < 0 {
		return injection{}
	}
	i, _ = parseFault("", f.armed[at].Fault) // arm has checked it
	if f.armed[at].Count--; f.armed[at].Count == 0 {
		f.armed = slices.Delete(f.armed, at, at+1)
	}
	return i
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

// find returns the fault that a request meets: that of its header, the armed one, or
// that of a reserved value in its body.
func (f *faults) find(r *http.Request, body []byte) (injection, error) {
	if texts := r.Header.Values(FaultHeader); len(texts) > 0 {
		return parseFault("", strings.TrimSpace(strings.Join(texts, ", ")))
	}
	if i := f.next(r.URL.Path); i.name != "" {
		return i, nil
	}
	i, identity, err := reserved(body)
	if err != nil || i.name == "" || !f.isFirst(i.name, r.URL.Path, r.Header.Get(keyHeader), identity) {
		return injection{}, err
	}
	return i, nil
}

// reserved looks for reserved values in the body of an operation. identity is
// the CallerId, or the whole body if the request has no CallerId.
func reserved(body []byte) (i injection, identity string, err error) {
	var request struct {
		Header     struct{ CallerId json.RawMessage }
		Parameters []struct{ CustomerNo, UserId json.RawMessage }
	}
	if json.Unmarshal(body, &request) != nil {
		return injection{}, "", nil //nolint:nilerr // the operation reports it
	}
	callerID := textOf(request.Header.CallerId)
	identity = callerID
	if identity == "" {
		identity = string(body)
	}
	i, err = reservedFault("/Header/CallerId", callerID)
	for n, record := range request.Parameters {
		if i.name != "" || err != nil {
			break
		}
		i, err = reservedFault(fmt.Sprintf("/Parameters/%d/UserId", n), textOf(record.UserId))
		for _, f := range Faults() {
			if string(record.CustomerNo) == strconv.FormatInt(f.CustomerNo, 10) {
				i = injection{f.Name(), defaultDelay}
			}
		}
	}
	return i, identity, err
}

func textOf(raw json.RawMessage) (text string) {
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

type injectionKey struct{}

// injectionIn is the fault of a request, which Check finds.
func injectionIn(ctx context.Context) *injection {
	if i, ok := ctx.Value(injectionKey{}).(*injection); ok {
		return i
	}
	return new(injection)
}

// maxPeeked bounds how much of a body is read to find reserved values.
const maxPeeked = 1 << 20

// Check is for the HTTP API to call before it handles an operation. It finds the
// fault of the request. limited says that the request counts as one too many.
func (b *Sandbox) Check(r *http.Request) (limited bool, err error) {
	if err := worldError(r.Context()); err != nil || !strings.HasPrefix(r.URL.Path, operations) {
		return false, err
	}
	var peeked bytes.Buffer
	_, failed := peeked.ReadFrom(io.LimitReader(r.Body, maxPeeked))
	rest := io.Reader(r.Body)
	if failed != nil {
		rest = failing{failed}
	}
	r.Body = body{io.MultiReader(bytes.NewReader(peeked.Bytes()), rest), r.Body}
	found, err := b.faults.find(r, peeked.Bytes())
	*injectionIn(r.Context()) = found
	switch found.name {
	case slow:
		time.Sleep(found.delay) // a caller who gives up changes nothing
	case cutBefore:
		panic(http.ErrAbortHandler)
	}
	return found.name == rateLimited, err
}

// body is a body whose first part was read before.
type body struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Do is an operation of the HTTP API.
type Do[Record any] = func(context.Context, *subscription.Subscription, operation.Header, []Record) (operation.Outcome, error)

// Inject returns an operation that meets the fault of its request.
func Inject[Record any](do Do[Record]) Do[Record] {
	return func(ctx context.Context, caller *subscription.Subscription, header operation.Header, records []Record) (operation.Outcome, error) {
		cause := errors.New("injected by the sandbox")
		name := injectionIn(ctx).name
		switch name {
		case slow:
			ctx = commit.WithWait(context.WithoutCancel(ctx), maxDelay) // however late the answer is
		case unavailableBefore:
			return operation.Outcome{}, fault.Wrap(fault.Unavailable, cause, "")
		case internalError:
			return operation.Outcome{}, fault.Wrap(fault.Internal, cause, "")
		case overloaded:
			return operation.Outcome{}, fault.Wrap(fault.Busy, cause, "")
		case shuttingDown:
			c, _ := fault.Describe(fault.ShuttingDown)
			return operation.Outcome{}, fault.New(fault.Busy, c.Meaning, fault.Fault{Code: c.Name, Detail: c.Meaning + " " + c.Action})
		}
		outcome, err := do(ctx, caller, header, records)
		if err == nil && name == unavailableAfter {
			return operation.Outcome{}, fault.Wrap(fault.Indeterminate, cause, "")
		}
		return outcome, err
	}
}
