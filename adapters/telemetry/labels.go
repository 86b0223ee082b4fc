package telemetry

import (
	"net/http"
	"strconv"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// Labels for what has no name of its own.
const (
	other  = "other"
	noCode = "none"
)

// knownCodes are all that an answer can name: a test holds them to the OpenAPI
// document.
var knownCodes = setOf(
	fault.Required, fault.WrongType, fault.TooLong, fault.TooMany, fault.TooFew, fault.NotAllowed, fault.OutOfRange,
	fault.NotAnInteger, fault.TooManyDecimals, fault.InvalidFormat, fault.InvalidDate, fault.DateInThePast,
	fault.DateTooFar, fault.DatesDiffer, fault.InvalidURL, fault.InvalidCurrency, fault.InvalidCharacter,

	fund.HoldingNotFound, fund.HoldingInsufficient, fund.PriceNotFound, fund.PriceNotCurrent, fund.AccountNotFound,
	fund.CurrencyMismatch, fund.AmountMismatch, fund.ProceedsZero, fund.ProceedsOutOfRange, fund.BalanceOutOfRange,

	// The codes of HTTP, JSON and subscriptions are literals where they are used.
	"unknown-member", "duplicate-member", "too-short", "invalid-json", "nesting-too-deep",
	"key-missing", "key-invalid", "operation-not-granted", "contradicts-subscription",
	"unknown-path", "method-not-allowed", "body-too-large", "unsupported-media-type", "unsupported-content-encoding",
	"caller-id-reused", "rate-limit-exceeded",
	"internal-error", "overloaded", "shutting-down", "storage-unavailable", "outcome-unknown",
)

// refusedKeys are the codes that blame the key, and their reasons.
var refusedKeys = map[string]string{
	"key-missing":           "missing",
	"key-invalid":           "invalid",
	"operation-not-granted": "not-granted",
}

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

func codeOf(found []string) string {
	switch {
	case len(found) == 0:
		return noCode
	case knownCodes[found[0]]:
		return found[0]
	}
	return other
}

// statuses are the statuses that HTTP defines, and 499, as labels; the rest
// are empty. Made once, so that no request allocates one.
var statuses = func() (all [600]string) {
	for status := range all {
		if http.StatusText(status) != "" || status == 499 {
			all[status] = strconv.Itoa(status)
		}
	}
	return all
}()

func statusOf(status int) string {
	if 0 <= status && status < len(statuses) && statuses[status] != "" {
		return statuses[status]
	}
	return other
}

var classes = [...]string{"1xx", "2xx", "3xx", "4xx", "5xx"}

func statusClassOf(status int) string {
	if class := status/100 - 1; 0 <= class && class < len(classes) {
		return classes[class]
	}
	return other
}
