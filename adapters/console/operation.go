package console

import (
	"bufio"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

type operationPage struct {
	*backoffice.Operation
	Chosen int
	// Act cancelled, reversed or booked the operation. It is nil if it is unknown.
	Act *audit.Act
	// Forecast is what would happen to the chosen sale if it were settled now, after the earlier
	// sales of its customer. It is nil unless the sale waits.
	Forecast *fund.Forecast
	// SettleFrom is the hour from which the bank settles the sales of a day.
	SettleFrom string
	// Twins are sales of the same terms within a minute.
	Twins []fund.SaleEntry
	// AreTwo is set if the chosen sale and one of them both still count.
	AreTwo bool
}

func operationOf(q *request) (*backoffice.Operation, error) {
	id, err := operation.ParseID(q.r.PathValue("id"))
	if err != nil {
		return nil, errNothing
	}
	q.about = id.String()
	found, err := q.Options.Office.Operation(q.ctx, id)
	if len(found.Sales) > 0 {
		q.customer = found.Sales[0].Terms.Holding.CustomerNo
	}
	return &found, err
}

// showOperation returns the page for the kind of the operation that the path names. The ID of a
// reversal leads to the page of what it reversed, which has its postings.
func showOperation(q *request) (any, error) {
	found, err := operationOf(q)
	if err != nil {
		return nil, err
	}
	if found.ID.String() != q.about {
		return q.redirect(salePath(found.ID, 0))
	}
	p := operationPage{Operation: found}
	switch {
	case found.Refusal != nil:
		q.template = "refused"
	case found.Answered != nil && found.Answered.Operation == operation.AddPushNotificationResponse:
		q.template = "messages"
	case len(found.Sales) > 0:
		if err := p.showSales(q); err != nil {
			return nil, err
		}
	case len(found.Postings) > 0:
		q.template = "booking"
	default:
		return nil, errNothing
	}
	p.Act, err = q.Options.Office.Correction(q.ctx, found)
	return p, err
}

// maxBefore is how many waiting sales of a customer a forecast of one of them reads.
const maxBefore = 500

// showSales selects the sale that the query names, forecasts it, and finds its twins.
func (p *operationPage) showSales(q *request) (err error) {
	if n, err := strconv.Atoi(q.query("sale")); err == nil && n >= 1 && n <= len(p.Sales) {
		p.Chosen = n - 1
	}
	for i := range p.Sales {
		if p.Reversal != nil {
			p.Sales[i].ReversedAt = p.Reversal.At
		}
	}
	chosen := &p.Sales[p.Chosen]
	p.Twins, err = twinsOf(q, chosen)
	if err != nil {
		return err
	}
	p.AreTwo = counts(chosen) && slices.ContainsFunc(p.Twins, func(s fund.SaleEntry) bool { return counts(&s) })
	if chosen.State != operation.Recorded {
		return nil
	}
	var before []fund.SaleEntry // of the customer, which take its units first
	for s, err := range q.Options.Office.Reader.Sales(q.ctx, backoffice.Query{
		CustomerNo: chosen.Terms.Holding.CustomerNo, State: operation.Recorded, DueUntil: chosen.Terms.SelectedDay, Order: backoffice.ByDay, Limit: maxBefore,
	}) {
		if err != nil {
			return err
		}
		if s.ID == p.ID {
			break
		}
		before = append(before, s)
	}
	all, err := q.Options.ForecastOf(q.ctx, append(before, p.Sales...))
	if err != nil {
		return err
	}
	p.Forecast = &all[len(before)+p.Chosen]
	rules, err := q.Options.Office.RuleBook.Rules(q.ctx)
	p.SettleFrom = rules.Fields().SettleFrom
	return err
}

// twinWithin is how close to each other sales of the same terms look like one that was sent twice.
const twinWithin = time.Minute

// twinsOf finds other sales of the same customer with the same terms that were received within a
// minute.
func twinsOf(q *request, of *fund.SaleEntry) (twins []fund.SaleEntry, err error) {
	around := backoffice.Query{
		CustomerNo: of.Terms.Holding.CustomerNo, Since: of.ReceivedAt.Add(-twinWithin), Until: of.ReceivedAt.Add(twinWithin + 1),
		Order: backoffice.Newest, Limit: maxBefore,
	}
	twins, err = backoffice.Collect(q.Options.Office.Reader.Sales(q.ctx, around))
	return slices.DeleteFunc(twins, func(s fund.SaleEntry) bool { return !areTwins(of, &s) }), err
}

// areTwins reports whether two sales have the same terms and were received within a minute.
func areTwins(a, b *fund.SaleEntry) bool {
	isSame := a.ID == b.ID && a.Index == b.Index
	apart := a.ReceivedAt.Sub(b.ReceivedAt).Abs()
	return !isSame && apart <= twinWithin && a.Terms == b.Terms
}

// counts reports whether a sale waits, or was completed and is not reversed.
func counts(s *fund.SaleEntry) bool {
	return s.State == operation.Recorded || s.State == operation.Completed && s.ReversedAt.IsZero()
}

func correctOperation(q *request) (any, error) {
	reason := strings.TrimSpace(q.field("reason"))
	if reason == "" || q.field("confirm") != "yes" {
		return nil, errReason
	}
	found, err := operationOf(q)
	if err != nil {
		return nil, err
	}
	ctx := q.by(q.ctx, reason)
	page := salePath(found.ID, 0)
	switch q.field("action") {
	case "cancel":
		return q.done(q.Options.Corrector.Cancel(ctx, found.ID), page, "The operation is cancelled. A repeat is answered 8 Failed.")
	case "reverse":
		_, err = q.Options.Corrector.Reverse(ctx, found.ID)
		return q.done(err, page, "The operation is reversed: the units are back and the money is taken.")
	}
	return nil, errNothing
}

// downloadProof sends the file that proves an operation. The file has unmasked numbers.
func downloadProof(q *request) (any, error) {
	switch {
	case q.Options.Trail == nil:
		return nil, errNoPage
	case !q.Operator:
		return nil, errRole
	case !q.Revealed():
		return nil, errMasked
	}
	found, err := operationOf(q)
	if err != nil {
		return nil, err
	}
	proof, err := q.Options.Trail.Prove(q.ctx, found.ID)
	f := &file{name: "proof-" + found.ID.String() + ".json", kind: "application/json", limits: downloadLimits, write: func(w *bufio.Writer) error {
		_, _ = w.Write(proof) // Flush returns its error
		return w.Flush()
	}}
	return response(f.send), err
}
