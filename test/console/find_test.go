package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// search looks for a text and returns where the only hit leads, or the page.
func (v *visitor) search(text string) (location, body string) {
	v.t.Helper()
	status, body, header := v.do(http.MethodPost, "/console/search", url.Values{"csrf": {v.csrf()}, "q": {text}})
	require.Contains(v.t, []int{http.StatusOK, http.StatusSeeOther}, status)
	return header.Get("Location"), body
}

func message(callerID, pushID string) string {
	return `{"Header":{"CallerId":"` + callerID + `"},"Parameters":[{"ExternalApplicationCode":"MOBILE","UserId":"user-1","PushId":"` + pushID + `","Platform":65,"Subject":"S","Content":"C","SendStatus":1,"SendDate":"2026-11-20"}]}`
}

// A CallerId finds the operations of every kind. Each kind may use it once.
func TestACallerIDFindsEveryKindOfOperation(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	push := s.call(t, "AddPushNotificationResponse", message("only-a-push", "push-1"))
	to, _ := v.search("only-a-push")
	require.Equal(t, "/console/sale/"+push, to)

	sold := s.call(t, "BuyFundFromCustomer", sale("both", "1", ""))
	push = s.call(t, "AddPushNotificationResponse", message("both", "push-2"))
	to, body := v.search("both")
	require.Empty(t, to)
	for _, text := range []string{"/console/sale/" + sold, "/console/sale/" + push, "BuyFundFromCustomer from demo", "AddPushNotificationResponse from demo"} {
		require.Contains(t, body, text)
	}

	s.call(t, "AddPushNotificationResponse", message("stored-before", "push-2"))
	to, body = v.search("stored-before")
	require.Empty(t, to, "the operation has no page")
	require.Contains(t, body, "all its notifications were stored before")
	require.Equal(t, 1, strings.Count(body, `<th scope="row">CallerId`))
}
