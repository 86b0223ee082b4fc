package telemetry

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"bankingapi/domain/fault"
)

// Labels for values without a name.
const (
	other  = "other"
	noCode = "none"
)

// refusedKeys maps the codes about keys to their reasons.
var refusedKeys = map[string]string{
	fault.KeyMissing:          "missing",
	fault.KeyInvalid:          "invalid",
	fault.OperationNotGranted: "not-granted",
}

// codeOf returns the label of the first code. A code that is not in the list of
// codes gets the label "other", so that the set of labels is closed.
func codeOf(found []string) string {
	if len(found) == 0 {
		return noCode
	}
	if _, known := fault.Describe(found[0]); known {
		return found[0]
	}
	return other
}

func statusOf(status int) string {
	if http.StatusText(status) != "" || status == 499 {
		return strconv.Itoa(status)
	}
	return other
}

func statusClassOf(status int) string {
	if class := status / 100; 1 <= class && class <= 5 {
		return strconv.Itoa(class) + "xx"
	}
	return other
}

// maxSubscriptions limits the labels of subscriptions. A bank has some dozens of partners. A
// bank that creates a subscription for each customer must not fill the memory of Prometheus.
const maxSubscriptions = 200

// subscriptions has the names that are labels: the subscriptions that called first. Only keys
// that the operator has created lead to a name.
type subscriptions struct {
	mu    sync.Mutex
	names map[string]bool
}

// label returns the label of a subscription.
func (s *subscriptions) label(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.names[name]:
		return name
	case len(s.names) >= maxSubscriptions, !utf8.ValidString(name):
		return other
	case s.names == nil:
		s.names = make(map[string]bool)
	}
	s.names[strings.Clone(name)] = true
	return name
}
