package contract

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/requestlog"
	"bankingapi/application/summary"
	"bankingapi/domain/operation"
)

// RequestsUnderTest is an implementation of requestlog.Storage, with the reader of what it
// keeps.
type RequestsUnderTest struct {
	requestlog.Storage
	Reader backoffice.Reader
	Trouble
}

// Requests is the suite of the port requestlog.Storage.
func Requests(t *testing.T, open func(t *testing.T) RequestsUnderTest) {
	run := each(t, func(t *testing.T) requests { return requests{open(t), t} })
	run("requests are listed as they were added, newest first", testRequests)
	run("old requests are forgotten, and all but the newest", testForget)
	run("requests are not added without the storage", testRequestsWithoutStorage)
}

type requests struct {
	RequestsUnderTest
	t *testing.T
}

func (s requests) list(q backoffice.Query) []summary.Answered {
	s.t.Helper()
	return all(s.t, s.Reader.Requests(s.t.Context(), newest(q)))
}

// answered is a request of the hour n. They differ in status, partner and IDs.
func answered(n int) summary.Answered {
	return summary.Answered{ID: idAt(at(n), byte(n)), At: at(n), Omitted: int64(n), Exchange: summary.Exchange{
		Method: "POST", Route: "/BankingApiV01/BuyFundFromCustomer", Operation: "BuyFundFromCustomer", Duration: time.Duration(n) * time.Millisecond,
		Status: []int{422, 200, 503}[n%3], State: []operation.State{0, operation.Completed, 0}[n%3], Replayed: n%3 == 1,
		Codes: [][]string{{"caller-id-reused", "required"}, nil, {"unavailable"}}[n%3], Subscription: []string{"shop", ""}[n%2],
		CallerID: odd(200, "caller"), RequestID: "request-" + at(n/2).String(), OperationID: id(n).String(),
	}}
}

func testRequests(t *testing.T, s requests) {
	var want []summary.Answered
	for n := range 6 {
		want = append(want, answered(n))
	}
	want[5].CallerID = "another"
	require.NoError(t, s.Add(t.Context(), want[:4]))
	require.NoError(t, s.Add(t.Context(), want[3:]), "an entry that it has stays as it is")
	slices.Reverse(want)
	equal(t, want, s.list(backoffice.Query{}))
	equal(t, want[:2], s.list(backoffice.Query{Limit: 2}))
	equal(t, want[2:4], s.list(backoffice.Query{Limit: 2, After: backoffice.Cursor{OperationID: want[1].ID}}))
	equal(t, want[2:4], s.list(backoffice.Query{Since: at(2), Until: at(4)}))
	equal(t, want[:2], s.list(backoffice.Query{RequestID: want[0].RequestID}))
	equal(t, want[:1], s.list(backoffice.Query{CallerID: "another"}))
	equal(t, want[1:], s.list(backoffice.Query{CallerID: want[1].CallerID}))
	equal(t, []summary.Answered{want[1], want[3], want[5]}, s.list(backoffice.Query{Subscription: "shop"}))
	equal(t, []summary.Answered{want[0], want[3]}, s.list(backoffice.Query{Class: 5}))
	equal(t, []summary.Answered{want[1], want[4]}, s.list(backoffice.Query{Class: 2}))
	equal(t, []summary.Answered{want[5]}, s.list(backoffice.Query{Class: 4, Subscription: "shop"}))
	slices.Reverse(want)
	equal(t, want, all(t, s.Reader.Requests(t.Context(), backoffice.Query{})))
}

func testForget(t *testing.T, s requests) {
	const many = 2500 // more than one step deletes
	entries := make([]summary.Answered, many)
	for i := range entries {
		entries[i] = answered(0)
		entries[i].ID = idAt(at(0).Add(time.Duration(i)*time.Second), 1)
	}
	require.NoError(t, s.Add(t.Context(), entries))
	require.NoError(t, s.Add(t.Context(), []summary.Answered{answered(10), answered(11), answered(12)}))
	require.NoError(t, s.Forget(t.Context(), at(-1), many+3, many+3))
	require.Len(t, s.list(backoffice.Query{}), many+3)
	require.NoError(t, s.Forget(t.Context(), at(10), many+3, many+3))
	equal(t, []summary.Answered{answered(12), answered(11), answered(10)}, s.list(backoffice.Query{}))
	require.NoError(t, s.Forget(t.Context(), at(-1), 2, 2))
	equal(t, []summary.Answered{answered(12), answered(11)}, s.list(backoffice.Query{}))
	require.NoError(t, s.Add(t.Context(), []summary.Answered{answered(13), answered(14), answered(15)}))
	require.NoError(t, s.Forget(t.Context(), at(-1), many, 2))
	equal(t, []summary.Answered{answered(15), answered(14), answered(13), answered(12)}, s.list(backoffice.Query{}))
	require.NoError(t, s.Forget(t.Context(), at(16), 2, 2))
	require.Empty(t, s.list(backoffice.Query{}))
}

func testRequestsWithoutStorage(t *testing.T, s requests) {
	if lacks(t, s.Disconnect, "Disconnect") {
		return
	}
	s.Disconnect()
	require.Error(t, s.Add(t.Context(), []summary.Answered{answered(1)}))
	require.Error(t, s.Forget(t.Context(), at(0), 1, 1))
}
