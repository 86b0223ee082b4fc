package fault

import (
	_ "embed" // the descriptions
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The error codes. Each code is declared here and described in codes.md; the rest
// of the program uses these constants. A code never changes.
const (
	// Rules about fields.
	Required         = "required"
	WrongType        = "wrong-type"
	UnknownMember    = "unknown-member"
	DuplicateMember  = "duplicate-member"
	TooLong          = "too-long"
	TooFew           = "too-few"
	TooMany          = "too-many"
	NotAllowed       = "not-allowed"
	OutOfRange       = "out-of-range"
	NotAnInteger     = "not-an-integer"
	TooManyDecimals  = "too-many-decimals"
	InvalidFormat    = "invalid-format"
	InvalidDate      = "invalid-date"
	DateInThePast    = "date-in-the-past"
	DateTooFar       = "date-too-far"
	DatesDiffer      = "dates-differ"
	InvalidURL       = "invalid-url"
	InvalidCurrency  = "invalid-currency"
	InvalidCharacter = "invalid-character"
	InvalidJSON      = "invalid-json"
	NestingTooDeep   = "nesting-too-deep"

	// The bank refuses a sale.
	HoldingNotFound     = "holding-not-found"
	HoldingInsufficient = "holding-insufficient"
	PriceNotFound       = "price-not-found"
	PriceNotCurrent     = "price-not-current"
	AccountNotFound     = "account-not-found"
	CurrencyMismatch    = "currency-mismatch"
	AmountMismatch      = "amount-mismatch"
	ProceedsZero        = "proceeds-zero"
	ProceedsOutOfRange  = "proceeds-out-of-range"
	BalanceOutOfRange   = "balance-out-of-range"
	Cancelled           = "cancelled"
	DayClosed           = "day-closed"
	AfterCutOff         = "after-cut-off"

	// The subscription and its CallerIds.
	KeyMissing              = "key-missing"
	KeyInvalid              = "key-invalid"
	OperationNotGranted     = "operation-not-granted"
	ContradictsSubscription = "contradicts-subscription"
	CallerIDReused          = "caller-id-reused"
	RateLimitExceeded       = "rate-limit-exceeded"

	// HTTP.
	UnknownPath                = "unknown-path"
	MethodNotAllowed           = "method-not-allowed"
	BodyTooLarge               = "body-too-large"
	UnsupportedMediaType       = "unsupported-media-type"
	UnsupportedContentEncoding = "unsupported-content-encoding"
	CursorLost                 = "cursor-lost"

	// The service.
	InternalError      = "internal-error"
	Overloaded         = "overloaded"
	ShuttingDown       = "shutting-down"
	StorageUnavailable = "storage-unavailable"
	OutcomeUnknown     = "outcome-unknown"
)

// Remedy says who must act after an error, and how, in the words of codes.md. It decides
// whether a repeat of the request is safe.
type Remedy string

const (
	// FixRequest means that the caller corrects the request. It had no effect, but
	// an earlier attempt may have had one unless the answer has Data.
	FixRequest Remedy = "fix the request"
	// ChangeSubscription means that the operator of the service changes the
	// subscription, or that the caller uses another one. The request had no
	// effect, and a repeat fails in the same way.
	ChangeSubscription Remedy = "change the subscription"
	// NewOperation means that the bank decided the operation and refused it.
	// The caller sends a corrected operation with a new CallerId. A repeat with the
	// same CallerId gets the same answer.
	NewOperation Remedy = "new operation"
	// Retry means that the caller waits and sends the same request again. The
	// request had no effect.
	Retry Remedy = "retry"
	// CheckOutcome means that the effect of the request is not known. The
	// caller sends it again with the same CallerId and gets its outcome. A sale that
	// is sent again without a CallerId may happen twice.
	CheckOutcome Remedy = "check the outcome"
)

// Code describes one error code. The OpenAPI document, the error pages, the
// labels of metrics and the documentation are made from these descriptions.
type Code struct {
	Name    string // stable and kebab-case: programs may rely on it
	Number  int    // stable: the Code of an answer's member Error; no other code ever has it
	Remedy  Remedy // who must act
	Meaning string // what happened, in a sentence
	Action  string // what the caller should do, in a sentence or two
	Example string // a typical cause
	Provoke string // how to get this error from a service with the demo book

	// Pointer and Detail are set for codes of refused sales. Their faults always
	// point to the same place in the record and have the same detail.
	Pointer, Detail string
	// Naming is a further sentence of the detail if the bank has something to name.
	// %s stands for it. Most codes have none.
	Naming                 string
	Turkish, TurkishNaming string // Detail and Naming in Turkish
}

// Codes returns every error code, in the order of the documentation.
func Codes() []Code { return slices.Clone(codes().list) }

// Describe returns the description of the code with that name. ok is false if
// there is no such code.
func Describe(name string) (c Code, ok bool) {
	c, ok = codes().byName[name]
	return c, ok
}

// Unlisted is the number of a code that is not in the list, such as one of an
// operation that a host adds.
const Unlisted = 9999

// NumberOf returns the Number of the code with that name. It is Unlisted if there
// is no such code.
func NumberOf(name string) int {
	c, ok := Describe(name)
	if !ok {
		return Unlisted
	}
	return c.Number
}

// Refusal returns the detail of a refused sale: what happened, and what the bank
// names, if it names anything. turkish is for a customer's screen in Turkish.
func (c Code) Refusal(named string, turkish bool) string {
	detail := c.Detail
	naming := c.Naming
	if turkish {
		detail = c.Turkish
		naming = c.TurkishNaming
	}
	if named != "" && naming != "" {
		detail += " " + strings.Replace(naming, "%s", named, 1)
	}
	return detail
}

//go:embed codes.md
var descriptions string

type described struct {
	list   []Code
	byName map[string]Code
}

// codes reads the descriptions: a section for each code, with a line for each of its texts.
var codes = sync.OnceValue(func() described {
	d := described{byName: make(map[string]Code)}
	_, sections, _ := strings.Cut(descriptions, "\n## ")
	for section := range strings.SplitSeq(sections, "\n## ") {
		name, lines, _ := strings.Cut(section, "\n")
		c := Code{Name: name}
		texts := map[string]*string{
			"Remedy": (*string)(&c.Remedy), "Pointer": &c.Pointer, "Detail": &c.Detail, "Naming": &c.Naming, "Turkish": &c.Turkish, "Turkish naming": &c.TurkishNaming,
			"Meaning": &c.Meaning, "Action": &c.Action, "Example": &c.Example, "Provoke": &c.Provoke,
		}
		for line := range strings.SplitSeq(lines, "\n") {
			label, text, _ := strings.Cut(strings.TrimPrefix(line, "- "), ": ")
			to := texts[label]
			if to != nil {
				*to = text
			}
			if label == "Number" {
				c.Number, _ = strconv.Atoi(text) // a test checks every number
			}
		}
		d.list = append(d.list, c)
		d.byName[name] = c
	}
	return d
})
