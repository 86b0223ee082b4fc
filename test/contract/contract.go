// Package contract has one suite of tests for each port of the use cases. An
// implementation passes its suite, or it is none: what the suites ask for is
// what the ports' comments promise.
//
// A suite takes a function that opens a fresh, empty implementation, together
// with a small way to arrange what is in it and to see what became of it. Run
// it from a test of the implementation:
//
//	func TestBooks(t *testing.T) {
//		contract.Books(t, func(t *testing.T) contract.BooksUnderTest {
//			…
//		})
//	}
//
// Every test opens its own and runs in parallel with the others; what it
// opened is to be closed with t.Cleanup.
package contract

import (
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
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Trouble makes an implementation fail on demand. What is nil cannot be done
// to it: the tests that need it are skipped, and say so.
type Trouble struct {
	// Disconnect makes the storage unreachable from now on.
	Disconnect func()
	// FailCommit makes the next commit fail. Whether its effect stays is open.
	FailCommit func()
	// LoseRace makes the next transaction lose a race at its commit, after it
	// called back, so that it has to be run again.
	LoseRace func()
}

// callers is how many try the same thing at once, where one may succeed.
const callers = 20

// together runs f in n goroutines that start at the same moment.
func together(n int, f func(i int)) {
	var done sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		done.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	done.Wait()
}

// equal compares by value, also what is unexported; times are equal when they
// are the same instant.
func equal(t *testing.T, want, got any) {
	t.Helper()
	everything := cmp.Exporter(func(reflect.Type) bool { return true })
	if diff := cmp.Diff(want, got, everything, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("want (-), got (+):\n%s", diff)
	}
}

// fails checks the kind of an error, and that it is one.
func fails(t *testing.T, kind fault.Kind, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, kind, fault.KindOf(err), "%v", err)
}

// needs skips a test whose trouble cannot be made.
func needs(t *testing.T, trouble func(), name string) {
	t.Helper()
	if trouble == nil {
		t.Skipf("this implementation has no %s to test with", name)
	}
}

// odd is a text of exactly n characters with all that storage may trip over:
// characters of one to four bytes, quotes, wildcards, line ends and other
// control characters, several normal forms, spaces at both ends.
func odd(n int, salt string) string {
	const pieces = " İıŞşĞğ\t\r\n\x01\x1f\x7f'\"`\\%_;--?$1{}é e\u0301 \u200f\u2028 漢字 😀👩‍👩‍👧 \uffff\ufffd\U0010ffff "
	runes := []rune(salt + strings.Repeat(pieces, n/20+1))
	runes[n-1] = ' '
	return string(runes[:n])
}

// at is an instant with a different number in each of its parts, to the
// microsecond; n makes it another one.
func at(n int) time.Time {
	return time.Date(2026, time.November, 20, 13, 7, 9, 123_456_000, time.UTC).Add(time.Duration(n) * time.Hour)
}

// on is the day n days after at(0).
func on(n int) day.Day { return day.Of(at(0), time.UTC).Plus(n) }

// id is an ID whose bytes all differ; later n sort after earlier ones.
func id(n int) operation.ID {
	return operation.ID{1, 2, 3, 4, byte(n >> 8), byte(n), 0x77, 8, 0x89, 0xff, 11, 12, 13, 14, 15, 16}
}

// header has a different text in every field, as long as they may be.
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

func currency(code string) money.Currency {
	c, ok := money.ParseCurrency(code)
	if !ok {
		panic("no currency: " + code)
	}
	return c
}
