package fund

import (
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Operation is one BuyFundFromCustomer: its sales are all carried out, or
// none.
type Operation struct {
	ID           operation.ID
	Subscription string
	Header       operation.Header
	ReceivedAt   time.Time
	// Sales is what the caller asks for, in order; never empty.
	Sales []Sale
	// Due marks an operation that storage recorded for a later day, and that
	// is to be settled now. Its sales all have their SelectedDay.
	Due bool

	outcome operation.Outcome
	err     error
}

// NewSales checks an array of Parameters: 1 to limit records, every fault of
// all of them that one can see without a clock, with pointers from /Parameters.
func NewSales(parameters []SaleFields, limit int) ([]Sale, []fault.Fault) {
	if faults := operation.CountFaults(len(parameters), limit); faults != nil {
		return nil, faults
	}
	sales := make([]Sale, len(parameters))
	var all []fault.Fault
	for i, fields := range parameters {
		sale, faults := NewSale(fields)
		sales[i] = sale
		all = append(all, operation.UnderParameter(i, faults)...)
	}
	return sales, all
}

// furthest is how many days ahead a sale may be recorded.
const furthest = 366

// DayFaults are the rules about the day that depend on today: not earlier, not
// more than 366 days later, and the same for all sales. They are apart from
// the other rules because a repeat of an operation is answered even when its
// day has gone by since (the contract, section 6). A sale without a day is one
// of today; one whose day has a fault of its own is passed over.
func DayFaults(sales []Sale, today day.Day) []fault.Fault {
	var all []fault.Fault
	var first day.Day // the others have to have it too
	for i, s := range sales {
		if s.dayUnknown {
			continue
		}
		f := fault.Fault{Pointer: "/SelectedTransactionDate"}
		on := s.terms.dayOr(today)
		if first.IsNone() {
			first = on
		}
		switch {
		case on.Before(today):
			f.Code, f.Detail = fault.DateInThePast, "Not earlier than the bank's current day."
		case on.After(today.Plus(furthest)):
			f.Code, f.Detail = fault.DateTooFar, "At most 366 days ahead."
		case on != first:
			f.Code, f.Detail = fault.DatesDiffer, "All sales of one request have the same day."
		default:
			continue
		}
		all = append(all, operation.UnderParameter(i, []fault.Fault{f})...)
	}
	return all
}

func (t *Terms) dayOr(today day.Day) day.Day {
	if t.SelectedDay.IsNone() {
		return today
	}
	return t.SelectedDay
}

// Key is the operation's identity; ok is false when its caller gave none.
func (o *Operation) Key() (key operation.Key, ok bool) {
	return operation.Key{
		CallerID:     o.Header.CallerID,
		Subscription: o.Subscription,
		Operation:    operation.BuyFundFromCustomer,
	}, o.Header.CallerID != ""
}

// Outcome is how the operation ended, once a Book settled it. The error is
// fault.Conflict for a CallerId of another content, fault.Invalid for a day
// that was not possible any more.
func (o *Operation) Outcome() (operation.Outcome, error) { return o.outcome, o.err }

func (o *Operation) fingerprint() operation.Fingerprint {
	var d operation.Digest
	d.Header(&o.Header)
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
		d.Text(t.SelectedDay.String())
	}
	return d.Sum()
}
