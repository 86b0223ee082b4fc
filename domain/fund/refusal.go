package fund

import "bankingapi/domain/fault"

// The reasons for which the bank refuses a well-formed sale (the contract,
// section 5). Package fault declares and describes them all. A new reason needs
// no second name here.
const (
	HoldingNotFound     = fault.HoldingNotFound
	HoldingInsufficient = fault.HoldingInsufficient
	PriceNotFound       = fault.PriceNotFound
	PriceNotCurrent     = fault.PriceNotCurrent
	AccountNotFound     = fault.AccountNotFound
	CurrencyMismatch    = fault.CurrencyMismatch
	AmountMismatch      = fault.AmountMismatch
	ProceedsZero        = fault.ProceedsZero
	// ProceedsOutOfRange and BalanceOutOfRange are sums greater than 2^63-1.
	// Such a sale is refused; a sum never wraps.
	ProceedsOutOfRange = fault.ProceedsOutOfRange
	BalanceOutOfRange  = fault.BalanceOutOfRange
	DayClosed          = fault.DayClosed
	AfterCutOff        = fault.AfterCutOff
)

// Refusal returns the fault of a refused sale, with its pointer from the
// record (/FundAmount).
func Refusal(code string) fault.Fault { return RefusalNaming(code, "") }

// RefusalNaming is Refusal with a detail that names what the caller needs to know,
// such as the current PriceID. If named is empty, the detail is that of the code.
func RefusalNaming(code, named string) fault.Fault {
	c, _ := fault.Describe(code)
	f := fault.Fault{Pointer: c.Pointer, Code: code, Detail: c.Refusal(named, false)}
	if c.Naming != "" {
		f.Named = named
	}
	return f
}
