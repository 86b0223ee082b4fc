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
		if selected := o.Sales[i].terms.SelectedDay; !selected.IsNone() && selected != arrived {
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
