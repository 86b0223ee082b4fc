package fault

// The codes of broken rules. Refusals of the bank have their codes where they
// are decided (package fund).
const (
	Required         = "required"
	WrongType        = "wrong-type"
	TooLong          = "too-long"
	TooMany          = "too-many"
	TooFew           = "too-few"
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
)
