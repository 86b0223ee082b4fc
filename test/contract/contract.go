// Package contract has one suite of tests for each port of the use cases. An implementation of
// a port must pass its suite. The suites check what the comments of the ports promise.
//
// A suite takes a function that opens a new, empty implementation, with functions to fill it
// and to read its contents. Run it from a test of the implementation:
//
//	func TestBooks(t *testing.T) {
//		contract.Books(t, func(t *testing.T) contract.BooksUnderTest {
//			…
//		})
//	}
//
// Every test opens its own implementation and runs in parallel with the others.
// The function must close it with t.Cleanup.
package contract

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/value"
)

var currency = value.Currency

// Trouble makes an implementation fail on demand. A nil function means that the implementation
// cannot fail in this way, and the tests that need it are skipped.
type Trouble struct {
	// Disconnect makes the storage unreachable from now on.
	Disconnect func()
	// FailCommit makes the next commit fail. The commit may or may not take effect.
	FailCommit func()
	// LoseRace makes the next transaction fail with a conflict at its commit,
	// after its callback, so that it has to be retried.
	LoseRace func()
}

// each returns a function that runs a test of a suite on an implementation of its own,
// in parallel with the others.
func each[S any](t *testing.T, open func(t *testing.T) S) func(name string, test func(t *testing.T, s S)) {
	return func(name string, test func(t *testing.T, s S)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// callers is the number of concurrent callers in tests in which only one may succeed.
const callers = 20

// together runs f in n goroutines that start at the same moment, and returns their
// errors in the order of their numbers.
func together(n int, f func(i int) error) []error {
	var done sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, n)
	for i := range n {
		done.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	done.Wait()
	return errs
}

// ended returns a context that has ended.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// unreachable checks that calls are unavailable if their context has ended, and
// without the storage.
func unreachable(t *testing.T, trouble Trouble, calls func(ctx context.Context) []error) {
	t.Helper()
	for _, err := range calls(ended(t)) {
		fails(t, fault.Unavailable, err)
	}
	if lacks(t, trouble.Disconnect, "connection to cut on demand") {
		return
	}
	trouble.Disconnect()
	for _, err := range calls(t.Context()) {
		fails(t, fault.Unavailable, err)
	}
}

// equal compares values, including unexported fields. Times are equal if they
// are the same instant.
func equal(t *testing.T, want, got any) {
	t.Helper()
	if reflect.DeepEqual(want, got) { // takes a tenth of the time
		return
	}
	everything := cmp.Exporter(func(reflect.Type) bool { return true })
	diff := cmp.Diff(want, got, everything, cmpopts.EquateEmpty())
	if diff != "" {
		t.Fatalf("want (-), got (+):\n%s", diff)
	}
}

// fails requires an error of the given kind.
func fails(t *testing.T, kind fault.Kind, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, kind, fault.KindOf(err), "%v", err)
}

// unkeepable requires that a use case on the storage refuses every text that no
// storage may be asked to keep: in a record, and in the header.
func unkeepable(t *testing.T, do func(caller *subscription.Subscription, header operation.Header, text string) error) {
	t.Helper()
	caller := &subscription.Subscription{Name: "s"}
	for _, text := range value.Unkeepable {
		fails(t, fault.Invalid, do(caller, operation.Header{CallerID: "c"}, text))
		fails(t, fault.Invalid, do(caller, operation.Header{CallerID: text}, ""))
		fails(t, fault.Invalid, do(caller, operation.Header{ChannelSessionID: text}, ""))
	}
}

// lacks reports whether the implementation cannot fail in the way that a test needs. Such a
// test ends, and is not skipped, because no promise is left unchecked.
func lacks(t *testing.T, trouble func(), name string) bool {
	t.Helper()
	if trouble != nil {
		return false
	}
	t.Logf("this implementation has no %s", name)
	return true
}

// odd returns a text of exactly n characters that storage may handle wrongly:
// characters of one to four bytes, quotes, wildcards, line ends and other
// control characters, several normal forms, spaces at both ends.
func odd(n int, salt string) string {
	const pieces = " İıŞşĞğ\t\r\n\x01\x1f\x7f'\"`\\%_;--?$1{}é e\u0301 \u200f\u2028 漢字 😀👩‍👩‍👧 \uffff\ufffd\U0010ffff "
	runes := []rune(salt + strings.Repeat(pieces, n/20+1))
	runes[n-1] = ' '
	return string(runes[:n])
}

// at returns an instant to the microsecond. All its parts differ, and each n
// gives another instant.
func at(n int) time.Time {
	return time.Date(2026, time.November, 20, 13, 7, 9, 123_456_000, time.UTC).Add(time.Duration(n) * time.Hour)
}

// on returns the day n days after at(0).
func on(n int) day.Day { return day.Of(at(0), time.UTC).Plus(n) }

// id returns an ID whose bytes all differ. IDs sort by n.
func id(n int) operation.ID {
	return operation.ID{1, 2, 3, 4, byte(n >> 8), byte(n), 0x77, 8, 0x89, 0xff, 11, 12, 13, 14, 15, 16}
}

// header returns a header with a different text of the maximum length in every field.
func header(callerID string) operation.Header {
	return operation.Header{
		AppKey:           odd(200, "app key"),
		Channel:          odd(200, "channel"),
		TellerName:       odd(200, "teller name"),
		CallerID:         callerID,
		ChannelSessionID: odd(200, "session"),
		ChannelRequestID: odd(200, "request"),
	}
}
