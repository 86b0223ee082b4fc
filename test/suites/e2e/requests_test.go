package e2e_test

import (
	"bankingapi/test/kit/payload"
)

// The bodies of successful responses.
const (
	recorded  = `{"Data":{"State":1}}`
	completed = `{"Data":{"State":2}}`
)

// sale returns a request to sell units of AFA, the fund of the demo book. day
// is its SelectedTransactionDate.
func sale(callerID string, customer int, units, day string) string {
	return payload.Request(payload.CallerID(callerID), payload.Demo(customer, units, day).String())
}

// push returns a request to store a push message.
func push(pushID string) string {
	return `{"Header":{},"Parameters":[{"ExternalApplicationCode":"MOBILE","UserId":"user-1","PushId":"` + pushID +
		`","Platform":73,"SendStatus":1}]}`
}
