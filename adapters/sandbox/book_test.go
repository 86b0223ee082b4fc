package sandbox

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/domain/fault"
)

// listOf returns a JSON array of objects without members.
func listOf(count int) string {
	return "[" + strings.TrimSuffix(strings.Repeat("{},", count), ",") + "]"
}

// A body of 4 MiB has a million objects without members. All their faults would take gigabytes.
func TestShortListsCostLittle(t *testing.T) {
	t.Parallel()
	office := &backoffice.Office{Ports: backoffice.Ports{Imports: struct{ backoffice.Imports }{}}} // no list reaches it
	for _, kind := range []string{"prices", "holdings", "accounts", "calendar"} {
		_, err := importJSON(t.Context(), office, []byte(`{"`+kind+`":`+listOf(maxRows+1)+`}`))
		require.Equal(t, []fault.Fault{{Code: fault.TooMany, Detail: "At most 50000 rows in one seed."}}, fault.Of(err), kind)

		_, err = importJSON(t.Context(), office, []byte(`{"`+kind+`":`+listOf(maxRows)+`}`))
		found := fault.Of(err)
		require.Greater(t, len(found), 1, kind)
		require.Less(t, len(found), maxFaults+10, kind)
	}
	_, err := importJSON(t.Context(), office, []byte(`{"prices":`+listOf(maxRows/2)+`,"accounts":`+listOf(maxRows/2+1)+`}`))
	require.Equal(t, fault.TooMany, fault.Of(err)[0].Code, "all lists count")
}

func TestAShortListOfFaultsCostsLittle(t *testing.T) {
	t.Parallel()
	tooMany := []fault.Fault{{Code: fault.TooMany, Detail: "At most 100 faults."}}
	b := new(Sandbox)
	_, err := b.serveFaults(httptest.NewRequest(http.MethodPut, "/_sandbox/faults", strings.NewReader(listOf(maxArmed+1))))
	require.Equal(t, tooMany, fault.Of(err))
	require.Equal(t, tooMany, fault.Of(b.faults.arm(make([]armed, maxArmed+1))))
}

// The fault of an unknown list names the lists, and that of an unknown column does not.
func TestAnUnknownListIsToldTheLists(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"price":[]}`:          "The object has prices, holdings, accounts and calendar.",
		`{"prices":[{"ID":1}]}`: "A row has the columns of the file of its kind.",
	} {
		_, err := importJSON(t.Context(), new(backoffice.Office), []byte(body))
		found := fault.Of(err)
		require.Len(t, found, 1, body)
		require.Equal(t, fault.UnknownMember, found[0].Code, body)
		require.Equal(t, want, found[0].Detail, body)
	}
}
