package fund

import (
	"cmp"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Request is an array of Parameters that was checked when it arrived.
type Request struct {
	Sales  []Sale        // nil if there are Faults
	Today  day.Day       // the bank's day when the request was checked
	Faults []fault.Fault // the rules that the request breaks on every day
	// DayFaults are the rules about the day of the sales: not earlier than today, at most 366
	// days later, and the same for all sales. They are separate, because a repeat of an
	// operation gets its answer although its day has passed (the contract, section 6).
	DayFaults []fault.Fault
}

// MaxDaysAhead is how many days ahead a sale may be recorded (the contract, section 5).
const MaxDaysAhead = 366

// NewRequest checks an array of Parameters: it must have 1 to limit records, and each record
// must follow every rule. It finds all faults. Their pointers start with /Parameters.
func NewRequest(parameters []SaleFields, limit int, today day.Day) Request {
	return newRequest(parameters, limit, today, false)
}

func newRequest(parameters []SaleFields, limit int, today day.Day, quoted bool) Request {
	r := Request{Today: today}
	if r.Faults = operation.CountFaults(len(parameters), limit); r.Faults != nil {
		return r
	}
	r.Sales = make([]Sale, len(parameters))
	var first day.Day // the day of the first sale; the other sales must have the same day
	for i, fields := range parameters {
		terms, hasDay, faults := check(fields, quoted)
		r.Sales[i] = Sale{terms}
		r.Faults = append(r.Faults, operation.UnderParameter(i, faults)...)
		if !hasDay {
			continue
		}
		on := terms.dayOr(today)
		first = cmp.Or(first, on)
		r.DayFaults = append(r.DayFaults, operation.UnderParameter(i, dayFaults(on, first, today))...)
	}
	if len(r.Faults) > 0 {
		r.Sales = nil
	}
	return r
}

func dayFaults(on, first, today day.Day) []fault.Fault {
	f := fault.Fault{Pointer: "/SelectedTransactionDate"}
	switch {
	case on.Before(today):
		f.Code, f.Detail = fault.DateInThePast, "Must not be before the bank's current day."
	case on.After(today.Plus(MaxDaysAhead)):
		f.Code, f.Detail = fault.DateTooFar, "Must be at most 366 days ahead."
	case on != first:
		f.Code, f.Detail = fault.DatesDiffer, "All sales of one request must have the same date."
	default:
		return nil
	}
	return []fault.Fault{f}
}

// NameDay makes the fault of a past day name the bank's current day and its time zone. A caller
// in another zone cannot know which day it is for the bank.
func (r *Request) NameDay(zone *time.Location) {
	for i := range r.DayFaults {
		f := &r.DayFaults[i]
		if f.Code == fault.DateInThePast {
			f.Detail = "Must not be before the bank's current day, which is " + r.Today.String() + " in the time zone " + zone.String() + "."
		}
	}
}

// dayOr returns the day of the sale. A sale without a day takes place today.
func (t *Terms) dayOr(today day.Day) day.Day { return cmp.Or(t.SelectedDay, today) }
