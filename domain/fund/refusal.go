package fund

import "bankingapi/domain/fault"

// The reasons for which the bank refuses a well-formed sale (the contract,
// section 5).
const (
	HoldingNotFound     = "holding-not-found"
	HoldingInsufficient = "holding-insufficient"
	PriceNotFound       = "price-not-found"
	PriceNotCurrent     = "price-not-current"
	AccountNotFound     = "account-not-found"
	CurrencyMismatch    = "currency-mismatch"
	AmountMismatch      = "amount-mismatch"
	ProceedsZero        = "proceeds-zero"
	// The last two are sums beyond 2^63-1: a refusal, never a wrap.
	ProceedsOutOfRange = "proceeds-out-of-range"
	BalanceOutOfRange  = "balance-out-of-range"
)

// refusals says, for each code, where it points in the record and why.
var refusals = map[string]fault.Fault{
	HoldingNotFound:     {Pointer: "/FundToProcess", Detail: "The customer has no holding of this fund at this institution."},
	HoldingInsufficient: {Pointer: "/FundAmount", Detail: "The holding has fewer units."},
	PriceNotFound:       {Pointer: "/FundToProcess/PriceID", Detail: "There is no such price of this fund at this institution."},
	PriceNotCurrent:     {Pointer: "/FundToProcess/PriceID", Detail: "The price is not the fund's current one."},
	AccountNotFound:     {Pointer: "/DestinationAccount", Detail: "There is no such account."},
	CurrencyMismatch:    {Pointer: "/DestinationAccount/CurrencyCode", Detail: "The price is in another currency than the account."},
	AmountMismatch:      {Pointer: "/Amount", Detail: "Amount is not equal to the proceeds."},
	ProceedsZero:        {Pointer: "/FundAmount", Detail: "The proceeds round to zero."},
	ProceedsOutOfRange:  {Pointer: "/FundAmount", Detail: "The proceeds are more than one sale can have."},
	BalanceOutOfRange:   {Pointer: "/DestinationAccount", Detail: "The balance would be more than an account can have."},
}

// Refusal is the refusal of that code, with its pointer from the record.
func Refusal(code string) fault.Fault {
	f := refusals[code]
	f.Code = code
	return f
}
