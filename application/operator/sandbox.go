package operator

import (
	"context"
	"iter"
	"net/http"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// Sandbox is what people and Go tests do with a sandbox: a service in which a partner
// tries everything. It is safe for concurrent use.
type Sandbox interface {
	// Now returns the time of the bank, in its time zone.
	Now() time.Time
	// MoveClock moves the clock forward. It stops on each day for which sales are recorded
	// and settles them, so that each gets the price of its day. It counts the operations
	// that were settled. The error is fault.Invalid if the time is in the past.
	MoveClock(ctx context.Context, to time.Time) (buyfund.Settlement, error)
	// AdvanceClock moves the clock forward by a duration, as MoveClock does.
	AdvanceClock(ctx context.Context, by time.Duration) (buyfund.Settlement, error)
	// Reset brings the book back to its beginning and the clock to the real time, and
	// forgets the requests and faults. Keys stay as they are.
	Reset(ctx context.Context) error
	// Requests returns the last requests, at most a thousand, with a number above the
	// given one, newest first.
	Requests(after int64) []SandboxRequest
	// Faults are the faults that can be armed, by their values of the header
	// Sandbox-Fault, with what they do.
	Faults() iter.Seq2[string, string]
	// ArmFaults makes the next requests to operations meet these faults, in this order,
	// unless they name a fault of their own. It replaces the faults that were armed. The
	// error is fault.Invalid if a fault does not exist. A Count of 0 means one.
	ArmFaults(list ...ArmedFault) error
	// ArmedFaults returns the faults that the next requests meet.
	ArmedFaults() []ArmedFault
}

// SandboxRequest is a request to the API of a sandbox, and its answer. Keys are masked.
type SandboxRequest struct {
	// Number counts the requests since the book was reset, from 1.
	Number int64
	// ReceivedAt is the real time, Clock that of the bank.
	ReceivedAt   time.Time
	Clock        string
	Method, Path string
	// Fault is the fault that the request met; empty if it met none.
	Fault  string
	Header map[string][]string
	Body   string
	// Milliseconds is how long the answer took.
	Milliseconds float64
	Answer       struct {
		// Status is 0 if the connection was closed without an answer.
		Status int
		// Lost says that the answer was made but not sent.
		Lost   bool
		Header map[string][]string
		Body   string
	}
}

// ArmedFault is a fault that the next requests meet.
type ArmedFault struct {
	// Operation is the name of an operation. If it is empty, requests to any
	// operation meet the fault.
	Operation string
	// Fault is a value of Sandbox-Fault.
	Fault string
	// Count is how many requests meet it.
	Count int
}

// SandboxPart is a sandbox as a part of its service: the HTTP API asks it first.
type SandboxPart interface {
	Sandbox
	// Prepare sets the clock to where it was before the program stopped, and reads the
	// requests of then. It loads the book of a new sandbox.
	Prepare(ctx context.Context) error
	// Close closes the worlds.
	Close(ctx context.Context) error
	// SettleDue settles what is due. It waits while the clock moves.
	SettleDue(ctx context.Context) (buyfund.Settlement, error)
	// Find returns the caller with a key, or nil, and Name names nobody.
	Find(ctx context.Context, key string) (*subscription.Subscription, error)
	Name(key string) string
	// Handler is around the HTTP API, and sends each request to the world of its key.
	Handler(api http.Handler) http.Handler
	// Check and Endpoints are options of the HTTP API.
	Check(r *http.Request) (wait time.Duration, err error)
	Endpoints() map[string]func(*http.Request) (any, error)
	// Do does an operation of the HTTP API, unless its request meets a fault.
	Do(ctx context.Context, do func(context.Context) (operation.Outcome, error)) (operation.Outcome, error)
}

// SandboxOptions are what a sandbox needs of the service. All are required that may not
// be empty.
type SandboxOptions struct {
	// Rules returns the rules of the bank. BeginRules gives an empty book its rules. Machine is
	// the real time, Bank the time of the bank, and SetAhead sets how far that is ahead.
	Rules         func() fund.Rules
	BeginRules    func(ctx context.Context) error
	Machine, Bank func() time.Time
	SetAhead      func(time.Duration)
	// Marker keeps how far the clock is ahead, and empties the book.
	Marker store.Marker
	// Office is the book.
	Office *backoffice.Office
	// DueFunds lists the funds and days of recorded sales (buyfund.Books).
	DueFunds func(ctx context.Context, until day.Day, count bool) ([]buyfund.DueFund, error)
	// Settle settles what is due now.
	Settle func(ctx context.Context) (buyfund.Settlement, error)
	// CalendarChanged is called after the calendar of the bank may have changed.
	CalendarChanged func()
	// Keys makes the keys that callers ask for, and Find knows those of subscriptions.
	Keys *subscriptions.Manager
	Find func(ctx context.Context, key string) (*subscription.Subscription, error)
	// OpenWorld opens the world of a subscription: a sandbox with a book, a clock, faults
	// and requests of its own. It is nil in a world.
	OpenWorld func(ctx context.Context, subscription string) (World, error)
	// DeleteWorld deletes the data of the world of a subscription, which is not open. It is nil
	// in a world.
	DeleteWorld func(ctx context.Context, subscription string) error
	// WorldsInUse is how many worlds requests may use at the same time.
	WorldsInUse int
	// ReceiptKey returns the public key of receipts; empty if there are none.
	ReceiptKey func() string
	// RequestsFile is where the last requests are kept. If it is empty, they are
	// forgotten when the program ends.
	RequestsFile string
}

// World is the sandbox of one subscription.
type World interface {
	// Handler returns the HTTP API of the world.
	Handler() http.Handler
	// Close ends the world. Its book stays.
	Close(context.Context) error
}

// SandboxKeyPrefix begins a key of a sandbox, so that nobody takes it for a key of a bank.
// The rest is the key of the subscription. A key without the prefix works too.
const SandboxKeyPrefix = "sandbox_"
