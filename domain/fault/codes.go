package fault

import "slices"

// The error codes. Each code is declared here and described in the list below;
// the rest of the program uses these constants. A code never changes.
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

	// The service.
	InternalError      = "internal-error"
	Overloaded         = "overloaded"
	ShuttingDown       = "shutting-down"
	StorageUnavailable = "storage-unavailable"
	OutcomeUnknown     = "outcome-unknown"
)

// Remedy says who must act after an error, and how.
type Remedy uint8

const (
	// FixRequest means that the caller corrects the request. It had no effect, but
	// an earlier attempt may have had one unless the status is 400.
	FixRequest Remedy = iota + 1
	// ChangeSubscription means that the operator of the service changes the
	// subscription, or that the caller uses another one. The request had no
	// effect.
	ChangeSubscription
	// NewOperation means that the bank decided the operation and refused it.
	// The caller sends a corrected operation with a new CallerId.
	NewOperation
	// Retry means that the caller waits and sends the same request again. The
	// request had no effect.
	Retry
	// CheckOutcome means that the effect of the request is not known. The
	// caller sends it again with the same CallerId and gets its outcome.
	CheckOutcome
)

// Repeat says what happens if the caller sends the same request again.
type Repeat uint8

const (
	// RepeatFails means that a repeat is harmless but fails in the same way.
	RepeatFails Repeat = iota + 1
	// RepeatAnswersAgain means that a repeat with the same CallerId gets the
	// same answer. Without a CallerId it is a new operation.
	RepeatAnswersAgain
	// RepeatIsSafe means that a repeat is harmless, with or without a CallerId,
	// and may succeed.
	RepeatIsSafe
	// RepeatNeedsCallerID means that only a repeat with the same CallerId is
	// safe. A sale that is sent again without a CallerId may happen twice.
	RepeatNeedsCallerID
)

// Code describes one error code. The OpenAPI document, the error pages, the
// labels of metrics and the documentation are made from these descriptions.
type Code struct {
	// Name is stable and kebab-case. Programs may rely on it.
	Name string
	// Remedy says who must act.
	Remedy Remedy
	// Meaning says in a sentence what happened.
	Meaning string
	// Action says in a sentence or two what the caller should do.
	Action string
	// Example is a typical cause.
	Example string
	// Provoke says how to get this error from a service with the demo book.
	Provoke string
	// Pointer and Detail are set for codes of refused sales. Their faults always
	// point to the same place in the record and have the same detail.
	Pointer, Detail string
	// Naming is a further sentence of the detail if the bank has something to name.
	// %s stands for it. Most codes have none.
	Naming string
}

// Repeat says what happens if the caller sends the same request again.
func (c Code) Repeat() Repeat {
	switch c.Remedy {
	case NewOperation:
		return RepeatAnswersAgain
	case Retry:
		return RepeatIsSafe
	case CheckOutcome:
		return RepeatNeedsCallerID
	case FixRequest, ChangeSubscription:
	}
	return RepeatFails
}

// Codes returns every error code, in the order of the documentation.
func Codes() []Code { return slices.Clone(codes) }

// Describe returns the description of the code with that name. ok is false if
// there is no such code.
func Describe(name string) (c Code, ok bool) {
	i, ok := codeIndex[name]
	if !ok {
		return Code{}, false
	}
	return codes[i], true
}

// codeIndex finds a code in the list by its name.
var codeIndex = func() map[string]int {
	index := make(map[string]int, len(codes))
	for i, c := range codes {
		index[c.Name] = i
	}
	return index
}()

var codes = []Code{
	{
		Name: Required, Remedy: FixRequest,
		Meaning: "A required member is absent, null or an empty text.",
		Action:  "Add the member that the pointer names.",
		Example: "A push notification has no UserId.",
		Provoke: "Send a request with an empty object in Parameters.",
	},
	{
		Name: WrongType, Remedy: FixRequest,
		Meaning: "The value has the wrong JSON type.",
		Action:  "Send the type that detail names. A number in quotes is a string.",
		Example: `CustomerNo is "1001" in quotes.`,
		Provoke: "Send CustomerNo in quotes.",
	},
	{
		Name: UnknownMember, Remedy: FixRequest,
		Meaning: "The object has no member with this name. Names are case-sensitive.",
		Action:  "Correct the name, or remove the member. The detail suggests a similar name if there is one.",
		Example: "The member is spelled userId, not UserId.",
		Provoke: "Send userId in place of UserId.",
	},
	{
		Name: DuplicateMember, Remedy: FixRequest,
		Meaning: "The same member name appears twice in one object.",
		Action:  "Send each member once.",
		Example: "FundAmount appears twice in one sale.",
		Provoke: "Send the member FundAmount twice in one sale.",
	},
	{
		Name: TooLong, Remedy: FixRequest,
		Meaning: "The text has more characters than the field allows.",
		Action:  "Shorten the text. The detail names the limit.",
		Example: "A CallerId has 201 characters.",
		Provoke: "Send a CallerId of 201 characters.",
	},
	{
		Name: TooFew, Remedy: FixRequest,
		Meaning: "The array has too few items.",
		Action:  "Send at least one record in Parameters.",
		Example: "Parameters is an empty array.",
		Provoke: "Send Parameters as an empty array.",
	},
	{
		Name: TooMany, Remedy: FixRequest,
		Meaning: "The array has too many items.",
		Action:  "Split the request. The detail names the limit.",
		Example: "Parameters has 1,001 records.",
		Provoke: "Send a push notification with 101 items in TranData.",
	},
	{
		Name: NotAllowed, Remedy: FixRequest,
		Meaning: "The value is not one of the allowed values.",
		Action:  "Send one of the values that detail lists.",
		Example: "Platform is 66.",
		Provoke: "Send a sale with TransactionType 1.",
	},
	{
		Name: OutOfRange, Remedy: FixRequest,
		Meaning: "The number is too small or too large.",
		Action:  "Send a number in the range that detail names.",
		Example: "FundAmount is 0.",
		Provoke: "Send a sale with FundAmount 0.",
	},
	{
		Name: NotAnInteger, Remedy: FixRequest,
		Meaning: "The number has a fraction, but the field takes integers only.",
		Action:  "Send an integer.",
		Example: "CustomerNo is 1001.5.",
		Provoke: "Send a sale with CustomerNo 1001.5.",
	},
	{
		Name: TooManyDecimals, Remedy: FixRequest,
		Meaning: "The number has more decimals than the field allows.",
		Action:  "Round the number to the decimals that detail names.",
		Example: "FundAmount has seven decimals.",
		Provoke: "Send a sale with FundAmount 1.0000001.",
	},
	{
		Name: InvalidFormat, Remedy: FixRequest,
		Meaning: "The text does not have the format of the field.",
		Action:  "Send the format that detail describes.",
		Example: "IMKBCode is in lower case.",
		Provoke: "Send a sale with IMKBCode afa.",
	},
	{
		Name: InvalidDate, Remedy: FixRequest,
		Meaning: "The text is not a real date in YYYY-MM-DD format.",
		Action:  "Send the date as YYYY-MM-DD, without a time.",
		Example: "SendDate is 2026-11-20T10:00:00Z.",
		Provoke: "Send a sale with SelectedTransactionDate 20.11.2026.",
	},
	{
		Name: DateInThePast, Remedy: FixRequest,
		Meaning: "The date is before the bank's current day.",
		Action:  "Send today's date in the bank's time zone, a later date, or no date.",
		Example: "A sale for today is sent after midnight in the bank's time zone.",
		Provoke: "Send a sale with SelectedTransactionDate 2020-01-01.",
	},
	{
		Name: DateTooFar, Remedy: FixRequest,
		Meaning: "The date is more than 366 days ahead.",
		Action:  "Send a date that is at most 366 days ahead.",
		Example: "The year of the date is mistyped.",
		Provoke: "Send a sale with SelectedTransactionDate 9999-01-01.",
	},
	{
		Name: DatesDiffer, Remedy: FixRequest,
		Meaning: "The sales of one request have different dates.",
		Action:  "Send one request for each date.",
		Example: "The first sale has no date and the second one has tomorrow's date.",
		Provoke: "Send two sales with different values of SelectedTransactionDate.",
	},
	{
		Name: InvalidURL, Remedy: FixRequest,
		Meaning: "The text is not a URL.",
		Action:  "Send a valid URL, or leave the field empty.",
		Example: "DeepLinkUrl has a space in it.",
		Provoke: "Send a push notification whose DeepLinkUrl has a space in it.",
	},
	{
		Name: InvalidCurrency, Remedy: FixRequest,
		Meaning: "The text is not an active ISO 4217 currency code with a minor unit.",
		Action:  "Send an active currency code in capitals.",
		Example: "CurrencyCode is TL, not TRY.",
		Provoke: "Send a sale with CurrencyCode TL.",
	},
	{
		Name: InvalidCharacter, Remedy: FixRequest,
		Meaning: "The text has a character that is not allowed.",
		Action:  "Remove the character that detail names.",
		Example: "A text contains U+0000.",
		Provoke: `Send a push notification with Subject "a\u0000b".`,
	},
	{
		Name: InvalidJSON, Remedy: FixRequest,
		Meaning: "The body is not valid JSON.",
		Action:  "Correct the body. The detail has the position of the error in bytes.",
		Example: "The body ends in the middle of an object.",
		Provoke: `Send the body {"Header":{.`,
	},
	{
		Name: NestingTooDeep, Remedy: FixRequest,
		Meaning: "The body has more than 16 levels of objects and arrays.",
		Action:  "Send the documented structure.",
		Example: "The client sends an array of arrays.",
		Provoke: "Send 17 opening brackets and as many closing ones.",
	},

	{
		Name: HoldingNotFound, Remedy: NewOperation,
		Pointer: "/FundToProcess", Detail: "The customer has no holding of this fund at this institution.",
		Meaning: "The customer has no holding of this fund at this institution.",
		Action:  "Check CustomerNo, IMKBCode and HolderCorporationName.",
		Example: "HolderCorporationName is spelled differently.",
		Provoke: "Send the demo sale with CustomerNo 999999.",
	},
	{
		Name: HoldingInsufficient, Remedy: NewOperation,
		Pointer: "/FundAmount", Detail: "The holding does not have enough units.",
		Meaning: "The customer has fewer units than the sale asks for.",
		Action:  "Send a sale with fewer units.",
		Example: "An earlier sale of the same array takes most of the units.",
		Provoke: "Send the demo sale with FundAmount 1000000000.",
	},
	{
		Name: PriceNotFound, Remedy: NewOperation,
		Pointer: "/FundToProcess/PriceID", Detail: "This fund has no such price at this institution.",
		Meaning: "The fund has no price with this PriceID at this institution.",
		Action:  "Check PriceID, IMKBCode and HolderCorporationName.",
		Example: "PriceID belongs to another fund.",
		Provoke: "Send the demo sale with PriceID 999999.",
	},
	{
		Name: PriceNotCurrent, Remedy: NewOperation,
		Pointer: "/FundToProcess/PriceID", Detail: "This is not the current price of the fund.",
		Naming:  "The current PriceID is %s.",
		Meaning: "The fund has a newer price than the one the customer agreed to.",
		Action:  "Show the customer the current price and send its PriceID, which the detail names.",
		Example: "A new price became valid after the customer saw the old one.",
		Provoke: "In the sandbox, send the demo sale with IMKBCode SBXOLD and PriceID 9001.",
	},
	{
		Name: AccountNotFound, Remedy: NewOperation,
		Pointer: "/DestinationAccount", Detail: "The account does not exist.",
		Meaning: "The destination account does not exist.",
		Action:  "Check BranchCode, CustomerNo, AccountSuffix and CurrencyCode.",
		Example: "The account has another suffix.",
		Provoke: "Send the demo sale with AccountSuffix 999999.",
	},
	{
		Name: CurrencyMismatch, Remedy: NewOperation,
		Pointer: "/DestinationAccount/CurrencyCode", Detail: "The price and the account have different currencies.",
		Meaning: "The price has a different currency than the destination account.",
		Action:  "Send an account in the currency of the price.",
		Example: "The fund is priced in USD and the account is in TRY.",
		Provoke: "Send the demo sale with AccountSuffix 2 and CurrencyCode USD.",
	},
	{
		Name: AmountMismatch, Remedy: NewOperation,
		Pointer: "/Amount", Detail: "Amount is not equal to the proceeds.",
		Naming:  "The proceeds are %s.",
		Meaning: "Amount is given and is not equal to the proceeds.",
		Action:  "Send the proceeds that the detail names if the customer agrees, or leave Amount out.",
		Example: "Amount was calculated with another price.",
		Provoke: "Send the demo sale with Amount 1.",
	},
	{
		Name: ProceedsZero, Remedy: NewOperation,
		Pointer: "/FundAmount", Detail: "The proceeds round to zero.",
		Meaning: "The proceeds of the sale round to zero.",
		Action:  "Sell more units.",
		Example: "The sale is for a millionth of a unit.",
		Provoke: "Send the demo sale with FundAmount 0.000001.",
	},
	{
		Name: ProceedsOutOfRange, Remedy: NewOperation,
		Pointer: "/FundAmount", Detail: "The proceeds are too large.",
		Meaning: "The proceeds are greater than 2^63-1 minor units.",
		Action:  "Sell fewer units.",
		Example: "A price in the bank's book has too many digits.",
		Provoke: "In the sandbox, send the demo sale with IMKBCode SBXBIG, PriceID 9003 and FundAmount 1000000000000.",
	},
	{
		Name: BalanceOutOfRange, Remedy: NewOperation,
		Pointer: "/DestinationAccount", Detail: "The balance of the account would become too large.",
		Meaning: "The balance of the account would become greater than 2^63-1 minor units.",
		Action:  "Use another account.",
		Example: "A balance in the bank's book has too many digits.",
		Provoke: "In the sandbox, send the demo sale with DestinationAccount.CustomerNo 9103.",
	},
	{
		Name: Cancelled, Remedy: NewOperation,
		Pointer: "/SelectedTransactionDate", Detail: "The bank cancelled the sale before its day.",
		Meaning: "The sale was recorded for a later day, and the bank cancelled it before that day.",
		Action:  "Ask the bank why.",
		Example: "The customer asked the bank not to sell.",
		Provoke: "In the sandbox, send the demo sale for tomorrow with CustomerNo 9104, move the clock, and send it again.",
	},
	{
		Name: DayClosed, Remedy: NewOperation,
		Pointer: "/SelectedTransactionDate", Detail: "The bank is closed on this day.",
		Naming:  "The next open day is %s.",
		Meaning: "The bank carries out no sales on this day.",
		Action:  "Send the sale for an open day, such as the one that the detail names.",
		Example: "The day is a public holiday.",
		Provoke: "Send the demo sale for the 200th day after the demo book was loaded. bankingapi export calendar prints that day.",
	},
	{
		Name: AfterCutOff, Remedy: NewOperation,
		Pointer: "/SelectedTransactionDate", Detail: "The bank takes no more sales for today.",
		Naming:  "The next open day is %s.",
		Meaning: "The sale is for today, and it arrived after the hour until which the bank takes sales for the day.",
		Action:  "Send the sale for the day that the detail names.",
		Example: "The customer sells late in the evening.",
		Provoke: "In the sandbox, move the clock to 23:59 of the bank's day, and send the demo sale.",
	},

	{
		Name: KeyMissing, Remedy: FixRequest,
		Meaning: "The request has no subscription key.",
		Action:  "Send the key in the header Ocp-Apim-Subscription-Key.",
		Example: "The key is in the query string.",
		Provoke: "Send a request without the header Ocp-Apim-Subscription-Key.",
	},
	{
		Name: KeyInvalid, Remedy: ChangeSubscription,
		Meaning: "The key does not belong to an active subscription.",
		Action:  "Check the key. If it is right, ask the bank if the subscription is active and if its key was changed.",
		Example: "The key was regenerated.",
		Provoke: "Send any other text as the key.",
	},
	{
		Name: OperationNotGranted, Remedy: ChangeSubscription,
		Meaning: "The subscription may not call this operation.",
		Action:  "Ask the bank to allow this operation for the subscription.",
		Example: "The subscription was created for push notifications only.",
		Provoke: "In the sandbox, add -push-only to the key and send a sale.",
	},
	{
		Name: ContradictsSubscription, Remedy: FixRequest,
		Meaning: "AppKey, Channel or TellerName has another value than the one defined for the subscription.",
		Action:  "Send the defined value, or leave the field out.",
		Example: "Channel is WEB, but the subscription has Channel MOBILE.",
		Provoke: "In the sandbox, add -mobile to the key and send a request with Channel WEB.",
	},
	{
		Name: CallerIDReused, Remedy: FixRequest,
		Meaning: "This CallerId belongs to an operation with other content. The header Operation-Id names it.",
		Action:  "Repeat that operation with its own content to learn its State. Use a new CallerId for each new operation.",
		Example: "The client corrected a field but kept the CallerId.",
		Provoke: "Send the demo sale twice with the same CallerId and different values of FundAmount.",
	},
	{
		Name: RateLimitExceeded, Remedy: Retry,
		Meaning: "The subscription sent more requests per second than it may.",
		Action:  "Wait for the seconds in Retry-After, then send the same request again.",
		Example: "A batch job sends its requests without a pause.",
		Provoke: "In the sandbox, send the header Sandbox-Fault: rate-limited.",
	},

	{
		Name: UnknownPath, Remedy: FixRequest,
		Meaning: "The service has nothing at this path. Paths are case-sensitive.",
		Action:  "Correct the path.",
		Example: "The path is in lower case.",
		Provoke: "Send a request to /BankingApiV01/Unknown.",
	},
	{
		Name: MethodNotAllowed, Remedy: FixRequest,
		Meaning: "The path does not support this HTTP method.",
		Action:  "Use a method that the header Allow lists.",
		Example: "The request is a GET.",
		Provoke: "Send a GET request to an operation.",
	},
	{
		Name: BodyTooLarge, Remedy: FixRequest,
		Meaning: "The body has more bytes than the service accepts.",
		Action:  "Split the request. The detail names the limit.",
		Example: "A request has 1,000 push notifications with long contents.",
		Provoke: "Send a body of 2 MiB.",
	},
	{
		Name: UnsupportedMediaType, Remedy: FixRequest,
		Meaning: "The body is not application/json in UTF-8.",
		Action:  "Send JSON in UTF-8 with Content-Type application/json.",
		Example: "Content-Type is text/plain.",
		Provoke: "Send a request with Content-Type text/plain.",
	},
	{
		Name: UnsupportedContentEncoding, Remedy: FixRequest,
		Meaning: "The body is compressed or encoded.",
		Action:  "Send the body without Content-Encoding.",
		Example: "The client compresses its requests with gzip.",
		Provoke: "Send a request with Content-Encoding gzip.",
	},

	{
		Name: InternalError, Remedy: CheckOutcome,
		Meaning: "The service failed unexpectedly.",
		Action:  "Send the same request again with the same CallerId. If it fails again, tell the bank the X-Request-Id.",
		Example: "The service has a bug.",
		Provoke: "In the sandbox, send the header Sandbox-Fault: internal.",
	},
	{
		Name: Overloaded, Remedy: Retry,
		Meaning: "The service has too many waiting requests. This request changed nothing.",
		Action:  "Wait for the seconds in Retry-After, then send the same request again.",
		Example: "Many clients send at the same time.",
		Provoke: "In the sandbox, send the header Sandbox-Fault: overloaded.",
	},
	{
		Name: ShuttingDown, Remedy: Retry,
		Meaning: "The service is shutting down. This request changed nothing.",
		Action:  "Send the same request again. Another instance or the restarted service will answer it.",
		Example: "The service is being updated.",
		Provoke: "In the sandbox, send the header Sandbox-Fault: shutting-down.",
	},
	{
		Name: StorageUnavailable, Remedy: Retry,
		Meaning: "The service cannot carry out requests right now. This request changed nothing.",
		Action:  "Wait for the seconds in Retry-After, then send the same request again with the same CallerId.",
		Example: "The database is restarting.",
		Provoke: "In the sandbox, send the header Sandbox-Fault: unavailable-before.",
	},
	{
		Name: OutcomeUnknown, Remedy: CheckOutcome,
		Meaning: "The service lost its database during the commit. The effect of the request is not known.",
		Action:  "Send the same request again with the same CallerId. The answer then says how the operation ended.",
		Example: "The database failed over to its standby during the request.",
		Provoke: "In the sandbox, send the header Sandbox-Fault: unavailable-after.",
	},
}
