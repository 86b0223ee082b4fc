// Package operator says what the service and a console for its operators need of each
// other, and what the service and a sandbox do. Those of this module are packages
// adapters/console and adapters/sandbox; a host may have others.
package operator

import (
	"context"
	"iter"
	"net/http"
	"net/netip"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/fleet"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// Console is the operator's console of a running service. It handles /console/ of the
// ops listener.
type Console interface {
	http.Handler
	// Link hands a one-time link to the console at that address, a host and port, to
	// Options.Show.
	Link(address string)
	// ForOperators refuses requests to h of users who are no operators.
	ForOperators(h http.Handler) http.Handler
	// Close ends what the console does in the background.
	Close()
}

// ConsoleKey is the purpose for which the service derives the key of the console from the key of
// the trail. The acts that show a customer name it by a hash with this key.
const ConsoleKey = "console"

// Options are what the service gives to a console. All fields without another word are
// required.
type Options struct {
	// Office reads on connections of its own, unless the host has opened the storage. Its Audit
	// keeps the looks at unmasked data; if that fails, the page is not sent.
	Office *backoffice.Office
	// Corrector corrects, and looks up what it corrects, on the connections of the service.
	Corrector *backoffice.Corrector
	// Subscriptions changes the callers of the API.
	Subscriptions *subscriptions.Manager
	// Fleet says what is wrong with every replica and with the book. Activity has the requests
	// that this replica answered.
	Fleet    *fleet.Watch
	Activity *fleet.Activity
	// Zone returns the bank's time zone. Machine is the real time, and Bank the time of the
	// bank. The two clocks differ in a sandbox only.
	Zone          func() *time.Location
	Machine, Bank func() time.Time

	// UserHeader is the header in which an identity proxy names the user. If it
	// is empty, a one-time link signs in.
	UserHeader string
	// TrustedProxies may set UserHeader. Requests from elsewhere are refused.
	TrustedProxies []netip.Prefix
	// Operators are the users behind UserHeader who may show numbers and texts,
	// and change things. Other users are viewers.
	Operators []string
	// Key is a secret of the service. Behind an identity proxy, every replica with the
	// same key knows all sessions. Customers are named in the audit by a hash with it. If
	// it is empty, the console makes one that only this replica has.
	Key []byte
	// Show receives each one-time link. Only the person at the terminal may see
	// it. Show is not called if UserHeader is set. It may be nil.
	Show func(link string)

	// Looked is told that a user looked at unmasked data.
	Looked func(user, page string)
	// DueUntil is the last day whose sales are due, and Due counts those that are not settled.
	// Forecast says what would happen to the sales until a day if they were settled now, the
	// first due first.
	DueUntil func() day.Day
	Due      func(context.Context) (buyfund.Waits, error)
	// ForecastOf says it of these sales alone, in this order.
	Forecast   func(ctx context.Context, until day.Day) iter.Seq2[fund.Forecast, error]
	ForecastOf func(ctx context.Context, sales []fund.SaleEntry) ([]fund.Forecast, error)
	// Trail is nil if the service keeps none.
	Trail Trail
	// Sandbox is nil outside a sandbox.
	Sandbox Sandbox
	// Failed receives errors of pages.
	Failed func(page string, err error)
}

// Trail proves operations.
type Trail interface {
	// VerifyingKey verifies the proofs.
	VerifyingKey() string
	// Prove returns the file that proves an operation.
	Prove(ctx context.Context, id operation.ID) ([]byte, error)
}
