package fund

import "bankingapi/domain/fault"

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
