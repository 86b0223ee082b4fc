package fund

import (
	"cmp"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
)

// Operation is one BuyFundFromCustomer. Either all its sales are carried out, or no sale.
type Operation struct {
	operation.Envelope
	operation.Checked
	Sales []Sale // what the caller asks for, in order; never empty

	// Today is the bank's day when the request arrived. A sale without a day takes place on
	// this day. If Today is not set, the sale takes place on the day of settling.
	Today day.Day
	// DayFaults are the rules about the day that the request broke when it arrived
	// (Request.DayFaults). An operation with DayFaults is not carried out, but a repeat gets
	// its answer.
	DayFaults []fault.Fault
	// Zone is the time zone of the bank's day. It gives the day on which an earlier operation
	// with the same CallerId arrived. nil means UTC.
	Zone *time.Location
	// Rules are the rules of the bank by which Today, DayFaults, Zone and Closed were determined
	// (Rules.String). If the book has other rules, Settle decides nothing, and Outcome returns
	// ErrRulesChanged. Without Rules this is not checked.
	Rules string
	// Closed is the reason why the bank refuses sales for this day (Calendar.Refusal). Like
	// DayFaults it was determined when the operation arrived.
	Closed []fault.Fault

	// Due marks an operation that was recorded for a later day and is settled now. All its sales
	// have their SelectedDay. It stays recorded until each of its funds has a price whose
	// ValidFrom is that very day.
	Due bool

	outcome operation.Outcome
	err     error
}

func (o *Operation) today(current day.Day) day.Day {
	if o.Due || o.Today.IsNone() {
		return current
	}
	return o.Today
}

// Key returns the identity of the operation. ok is false if its caller sent no CallerId.
func (o *Operation) Key() (key idempotency.Key, ok bool) {
	return idempotency.KeyOf(operation.BuyFundFromCustomer, &o.Envelope)
}

// Outcome returns how the operation ended, after a Book settled it. The error is
// fault.Conflict if the CallerId was used for other content. Then the outcome has only the ID
// of the operation that has the CallerId. If the operation is not a repeat, the error is its
// Contradiction, or fault.Invalid if it has DayFaults.
func (o *Operation) Outcome() (operation.Outcome, error) { return o.outcome, o.err }

// faultsBySale returns the faults of the outcome for each sale, in order.
func (o *Operation) faultsBySale() [][]fault.Fault {
	bySale := make([][]fault.Fault, len(o.Sales))
	for _, f := range o.outcome.Faults {
		i, ok := operation.ParameterOf(f.Pointer)
		if ok && i < len(bySale) {
			bySale[i] = append(bySale[i], f)
		}
	}
	return bySale
}

func (o *Operation) fingerprint() idempotency.Fingerprint {
	return o.fingerprintOn(func(selected day.Day) day.Day { return selected })
}

// fingerprints returns the fingerprints that the same content may have if it first arrived as
// the operation with the ID first. A sale without a day and a sale for the day on which it
// arrived are the same content (the contract, section 6). Only the day of the first operation
// is known.
func (o *Operation) fingerprints(first operation.ID) []idempotency.Fingerprint {
	arrived := day.Of(first.Time(), cmp.Or(o.Zone, time.UTC))
	for i := range o.Sales {
		selected := o.Sales[i].terms.SelectedDay
		if !selected.IsNone() && selected != arrived {
			return nil
		}
	}
	return []idempotency.Fingerprint{
		o.fingerprintOn(func(day.Day) day.Day { return day.Day{} }),
		o.fingerprintOn(func(day.Day) day.Day { return arrived }),
	}
}

// fingerprintOn returns the fingerprint as if each sale had the day that on returns for its
// SelectedDay.
func (o *Operation) fingerprintOn(on func(day.Day) day.Day) idempotency.Fingerprint {
	var d idempotency.Digest
	d.Header(&o.Header, o.Filled)
	for i := range o.Sales {
		t := &o.Sales[i].terms
		d.Int(t.Holding.CustomerNo)
		d.Int(int64(t.Units))
		d.Int(t.Account.BranchCode)
		d.Int(t.Account.CustomerNo)
		d.Int(t.Account.AccountSuffix)
		d.Text(t.Account.Currency.Code())
		d.Text(t.Holding.IMKBCode)
		d.Text(t.Holding.HolderCorporationName)
		d.Int(t.PriceID)
		d.Int(t.ControlTotal)
		d.Text(on(t.SelectedDay).String())
	}
	return d.Sum()
}

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
	r.Faults = operation.CountFaults(len(parameters), limit)
	if r.Faults != nil {
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
		f.Code = fault.DateInThePast
		f.Detail = "Must not be before the bank's current day."
	case on.After(today.Plus(MaxDaysAhead)):
		f.Code = fault.DateTooFar
		f.Detail = "Must be at most 366 days ahead."
	case on != first:
		f.Code = fault.DatesDiffer
		f.Detail = "All sales of one request must have the same date."
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
