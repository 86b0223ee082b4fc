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
	"strconv"
	"strings"
	"sync"
	"time"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// The names of the faults that a caller can order, in the header Sandbox-Fault.
const (
	unavailableBefore = "unavailable-before"
	unavailableAfter  = "unavailable-after"
	cutBefore         = "cut-before"
	cutAfter          = "cut-after"
	slow              = "slow"
	rateLimited       = "rate-limited"
	internalError     = "internal"
	overloaded        = "overloaded"
	shuttingDown      = "shutting-down"
)

// FaultHeader orders a fault for one request.
const FaultHeader = "Sandbox-Fault"

// Order describes a fault that a caller can order.
type Order struct {
	// Header is a value of Sandbox-Fault.
	Header string
	// CustomerNo is the customer whose sales have this fault.
	CustomerNo int64
	// Effect says what happens.
	Effect string
}

// Name is the name of the fault, as reserved texts have it.
func (o Order) Name() string { name, _, _ := strings.Cut(o.Header, "="); return name }

// Orders lists all faults.
func Orders() []Order {
	return []Order{
		{unavailableBefore, firstFaulty, "Nothing is done. The answer is 503 `storage-unavailable`."},
		{unavailableAfter, firstFaulty + 1, "The operation is done. The answer is 503 `outcome-unknown`, without `Data`."},
		{cutBefore, firstFaulty + 2, "Nothing is done. The connection is closed without an answer."},
		{cutAfter, firstFaulty + 3, "The operation is done. The connection is closed without an answer."},
		{slow + "=2s", firstFaulty + 4, "The service waits before it handles the request: 2 s, or the duration that you name (at most 60 s)."},
		{rateLimited, firstFaulty + 5, "Nothing is done. The answer is 429 `rate-limit-exceeded`."},
		{internalError, firstFaulty + 6, "Nothing is done. The answer is 500 `internal-error`, without `Data`."},
		{overloaded, firstFaulty + 7, "Nothing is done. The answer is 503 `overloaded`."},
		{shuttingDown, firstFaulty + 8, "Nothing is done. The answer is 503 `shutting-down`."},
	}
}

// FaultTable has Orders in Markdown, for the documentation.
func FaultTable() string {
	var rows strings.Builder
	for _, o := range Orders() {
		fmt.Fprintf(&rows, "| `%s` | %d | %s |\n", o.Header, o.CustomerNo, o.Effect)
	}
	return rows.String()
}

// Faults are Orders as plain text: each value of Sandbox-Fault, and what happens.
func Faults(yield func(header, effect string) bool) {
	for _, o := range Orders() {
		if !yield(o.Header, strings.ReplaceAll(o.Effect, "`", "")) {
			return
		}
	}
}

const (
	// firstFaulty is the first customer of Orders.
	firstFaulty = 9201
	// reservedPrefix begins a CallerId or UserId that orders a fault.
	reservedPrefix = "sandbox-"
	defaultDelay   = 2 * time.Second
	maxDelay       = time.Minute
)

// ordered is the fault that was ordered for a request.
type ordered struct {
	name  string
	delay time.Duration
}

func (o ordered) String() string {
	if o.name == slow {
		return slow + "=" + o.delay.String()
	}
	return o.name
}

// parseOrder reads a value of Sandbox-Fault.
func parseOrder(text string) (ordered, bool) {
	name, value, hasValue := strings.Cut(text, "=")
	o := ordered{name, defaultDelay}
	if hasValue {
		var err error
		if o.delay, err = time.ParseDuration(value); err != nil || name != slow || o.delay < 0 || o.delay > maxDelay {
			return ordered{}, false
		}
	}
	for _, each := range Orders() {
		if each.Name() == name {
			return o, true
		}
	}
	return ordered{}, false
}

// reservedOrder reads a text such as sandbox-cut-after or sandbox-cut-after-17.
func reservedOrder(text string) (ordered, bool) {
	rest, ok := strings.CutPrefix(text, reservedPrefix)
	if !ok {
		return ordered{}, false
	}
	for _, each := range Orders() {
		if after, ok := strings.CutPrefix(rest, each.Name()); ok && (after == "" || after[0] == '-') {
			return ordered{each.Name(), defaultDelay}, true
		}
	}
	return ordered{}, false
}

// struck remembers the requests that had the fault of a reserved value, because
// it strikes only once. It is safe for concurrent use.
type struck struct {
	mutex sync.Mutex
	seen  map[[sha256.Size]byte]bool
}

// maxStruck bounds the memory. After that many requests, faults strike again.
const maxStruck = 100_000

// first reports whether it is called for the first time with these words.
func (s *struck) first(words ...string) bool {
	key := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.seen[key] {
		return false
	}
	if s.seen == nil || len(s.seen) >= maxStruck {
		s.seen = make(map[[sha256.Size]byte]bool)
	}
	s.seen[key] = true
	return true
}

func (s *struck) reset() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.seen = nil
}

// maxPeeked bounds how much of a body is read to find reserved values.
const maxPeeked = 1 << 20

// orderOf returns the fault that a request orders, or the zero value. If the
// fault may be in the body, it reads the body and puts it back.
func (b *Sandbox) orderOf(r *http.Request) (ordered, error) {
	if texts := r.Header.Values(FaultHeader); len(texts) > 0 {
		o, ok := parseOrder(strings.TrimSpace(texts[0]))
		if !ok || len(texts) > 1 {
			return ordered{}, unknownOrder()
		}
		return o, nil
	}
	if o, ok := b.next.take(); ok {
		return o, nil
	}
	var peeked bytes.Buffer
	_, err := peeked.ReadFrom(io.LimitReader(r.Body, maxPeeked))
	rest := r.Body
	if err != nil {
		rest = io.NopCloser(failing{err})
	}
	r.Body = body{io.MultiReader(bytes.NewReader(peeked.Bytes()), rest), r.Body}
	o, identity := reserved(peeked.Bytes())
	if o.name == "" || !b.struck.first(o.name, r.URL.Path, r.Header.Get(keyHeader), identity) {
		return ordered{}, nil
	}
	return o, nil
}

// next is the fault of the next requests. It is safe for concurrent use.
type next struct {
	mutex sync.Mutex
	order ordered
	left  int
}

func (n *next) set(o ordered, requests int) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.order, n.left = o, requests
}

func (n *next) take() (ordered, bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.left <= 0 {
		return ordered{}, false
	}
	n.left--
	return n.order, true
}

// OrderFault makes the next requests to operations fail, unless they order a
// fault of their own. order is a value of Sandbox-Fault; 0 requests take an
// order back. The error is fault.Invalid if there is no such fault.
func (b *Sandbox) OrderFault(order string, requests int) error {
	o, ok := parseOrder(order)
	if !ok && requests > 0 {
		return unknownOrder()
	}
	b.next.set(o, requests)
	return nil
}

// Ordered returns the fault that OrderFault ordered, as a value of Sandbox-Fault,
// and how many requests are left to have it.
func (b *Sandbox) Ordered() (order string, requests int) {
	b.next.mutex.Lock()
	defer b.next.mutex.Unlock()
	if b.next.left <= 0 {
		return "", 0
	}
	return b.next.order.String(), b.next.left
}

func unknownOrder() error {
	names := make([]string, 0, len(Orders()))
	for _, each := range Orders() {
		names = append(names, each.Header)
	}
	return fault.New(fault.Invalid, "The request breaks a rule.", fault.Fault{
		Code: fault.NotAllowed, Detail: "The header " + FaultHeader + " must be one of " + strings.Join(names, ", ") + ".",
	})
}

// reserved looks for reserved values in the body of an operation. identity is
// the CallerId, or the whole body if the request has no CallerId.
func reserved(content []byte) (o ordered, identity string) {
	var request struct {
		Header     struct{ CallerId, X json.RawMessage }
		Parameters []struct{ CustomerNo, UserId json.RawMessage }
	}
	if json.Unmarshal(content, &request) != nil {
		return ordered{}, ""
	}
	identity = textOf(request.Header.CallerId)
	if identity == "" {
		identity = string(content)
	}
	if o, ok := reservedOrder(textOf(request.Header.CallerId)); ok {
		return o, identity
	}
	for _, record := range request.Parameters {
		if o, ok := reservedOrder(textOf(record.UserId)); ok {
			return o, identity
		}
		for _, each := range Orders() {
			if string(record.CustomerNo) == strconv.FormatInt(each.CustomerNo, 10) {
				return ordered{each.Name(), defaultDelay}, identity
			}
		}
	}
	return ordered{}, identity
}

func textOf(raw json.RawMessage) (text string) {
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// body is a body whose first part was read before.
type body struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type orderKey struct{}

// order is what the middleware passes on in the context of a request.
type order struct {
	ordered
	err error
}

func orderIn(ctx context.Context) order {
	o, _ := ctx.Value(orderKey{}).(order)
	return o
}

// Check is for the HTTP API to call before it handles an operation. limited says
// that the request counts as one too many.
func Check(r *http.Request) (limited bool, err error) {
	o := orderIn(r.Context())
	return o.name == rateLimited, o.err
}

// Do is an operation of the HTTP API.
type Do[Record any] = func(context.Context, *subscription.Subscription, operation.Header, []Record) (operation.Outcome, error)

// Inject returns an operation that fails as its request has ordered.
func Inject[Record any](do Do[Record]) Do[Record] {
	return func(ctx context.Context, caller *subscription.Subscription, header operation.Header, records []Record) (operation.Outcome, error) {
		name := orderIn(ctx).name
		cause := errors.New("ordered by " + FaultHeader)
		switch name {
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
