// Package summary has what one adapter tells another: a request and its answer,
// for logs, metrics and traces, and whether the service is ready.
package summary

import (
	"bytes"
	"strconv"
	"time"

	"bankingapi/domain/operation"
)

// Check is a condition for the service to be ready, and its result.
type Check struct {
	Name    string
	Problem string // empty if the condition is met; contains no secrets
	// OfStorage means that the storage could not answer, so that nothing is known of the condition.
	OfStorage bool
	Warnings  []Warning // risks of a service that is ready
}

// Warning is a risk of a service that is ready.
type Warning struct {
	Text string // contains no secrets
	// CanWait means that nothing has gone wrong: it is how something was set up, for months.
	CanWait bool
}

// Warnings returns warnings that need an operator now.
func Warnings(texts []string) (all []Warning) {
	for _, text := range texts {
		all = append(all, Warning{Text: text})
	}
	return all
}

// Texts returns what the warnings say.
func Texts(warnings []Warning) (all []string) {
	for _, w := range warnings {
		all = append(all, w.Text)
	}
	return all
}

// Exchange is one request and its answer, which HTTP fills in: everything that a log
// line, a metric or a trace may know of it. It has no keys, no contents and no
// numbers of customers or accounts.
type Exchange struct {
	Method    string // one of the nine of HTTP, or OTHER
	Route     string // the path of a route, or empty for an unknown path
	Operation string // the name of the operation, or empty for another route
	Status    int
	State     operation.State // Data.State of an outcome, or 0 if there is none
	Replayed  bool            // the request repeats an operation and got its outcome
	Codes     []string        // the codes in the answer's errors, each once
	// Start is when the header of the request was read. Duration is the time from
	// Start to the end of the answer.
	Start    time.Time
	Duration time.Duration
	// BytesIn is how much of the body was read, and BytesOut the size of the answer's body.
	BytesIn, BytesOut int64
	RequestID         string // the answer's X-Request-Id
	// Subscription is the name of the subscription, or empty if the key belongs
	// to none. If Status is 401, it is suspended or cancelled, its key expired, or its
	// client certificate was not presented.
	Subscription string
	// Admitted says that the subscription is known and has not exceeded its rate, if it has one. A
	// subscription may send any number of requests that are not admitted.
	Admitted bool
	// KeyStart identifies the first four characters of a key that belongs to no
	// subscription, by the first 8 hex digits of their SHA-256.
	KeyStart string
	// KeyHash tells such keys apart within a process, also those that begin alike. It is never
	// written anywhere.
	KeyHash uint64
	// Records is how many records Parameters has. It is 0 for a request that was
	// refused before it was decided.
	Records         int
	WithoutCallerID bool   // a request to BuyFundFromCustomer that had no CallerId
	OperationID     string // the answer's Operation-Id, or empty if nothing was decided
	Customer        Masked // the CustomerNo of the first record that has one
	// Address is the caller's IP address. It is empty unless Status is 401, or the
	// service was told which proxies to trust.
	Address string
	// CallerID, ChannelSessionID and ChannelRequestID come from the caller: at most
	// 200 characters of any kind. Escape them wherever they are written.
	CallerID, ChannelSessionID, ChannelRequestID string

	Gone bool // the caller had left before the end of the answer
	// TraceID is the trace that the request belongs to, if there is one. HTTP does not know it.
	TraceID string
	// Err is why the service failed, for logs only. It is nil unless Status is 499, 500 or 503.
	Err error
}

// Answered is an entry of the log of requests. It has the time, and of Exchange what stands
// before BytesIn, RequestID, Subscription, OperationID and CallerID; Start is zero.
type Answered struct {
	ID operation.ID // orders entries by the times of their answers
	At time.Time    // the time of the bank at the end of the answer
	Exchange
	Omitted int64 // how many requests were left out shortly before this one
}

// Masked is the masked number of a customer or an account: ******1234. It has the last four
// digits, and never more than half of a number. The zero value is no number.
type Masked struct {
	digits [4]byte
	length int8
	given  bool
}

// Mask masks a number. It allocates nothing.
func Mask(n int64) Masked {
	var memory [20]byte // no number is longer
	digits := bytes.TrimPrefix(strconv.AppendInt(memory[:0], n, 10), []byte("-"))
	m := Masked{given: true, length: int8(min(4, len(digits)/2))}
	copy(m.digits[:], digits[len(digits)-int(m.length):])
	return m
}

// String returns the number as people may see it. It is empty for no number.
func (m Masked) String() string {
	if !m.given {
		return ""
	}
	return "******" + string(m.digits[:m.length])
}
