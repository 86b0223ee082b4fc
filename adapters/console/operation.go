package console

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// operationPage is what the pages of all operations have: of sales, of a refusal, of
// messages, and of what was booked without a sale.
type operationPage struct {
	*backoffice.Operation
	// Wrong says why a form changed nothing.
	Wrong string
	// Repeat is what a repeat of the request is answered. It is empty if that is not kept.
	Repeat string
	// TrailKey verifies the proof of the operation. It is empty if there is none.
	TrailKey string
}

// salePage is the page of one sale of an operation.
type salePage struct {
	operationPage
	Sale   *fund.SaleEntry
	Chosen int // counted from 1
	// Request is the request as it was understood, as far as it is shown: the service does
	// not keep its bytes. It has the values that the subscription defines.
	Request  []fund.SaleEntry
	Exact    string // the proceeds before they are rounded
	Postings []fund.PostingEntry
	// Act cancelled or reversed the operation. It is nil if it is not known.
	Act *audit.Act
	// Cancel and Reverse say what the user may do.
	Cancel, Reverse bool
}

// bookingPage is the page of a reversal, an adjustment or an import.
type bookingPage struct {
	operationPage
	Kind     string
	PostedAt time.Time
	Act      *audit.Act // nil if it is not known
	// Reversed is the operation that a reversal undid. It is empty if it is not known.
	Reversed string
	Shown    []fund.PostingEntry
}

const (
	// maxPostings is how many postings of an import are shown.
	maxPostings = 200
	// maxRequested is how many sales of a request are shown.
	maxRequested = 20
)

func showOperation(q *request) (any, error) { return newOperationPage(q, 0, "") }

// operationOf finds the operation that the path names.
func operationOf(q *request) (*backoffice.Operation, error) {
	id, err := operation.ParseID(q.r.PathValue("id"))
	if err != nil {
		return nil, errNothing
	}
	q.of.text = id.String()
	found, err := q.Office.Operation(q.ctx, id)
	if len(found.Sales) > 0 {
		q.of.customer = found.Sales[0].Terms.Holding.CustomerNo
	}
	return &found, err
}

// newOperationPage returns the page for the kind of the operation that the path names.
// wrong says why a correction changed nothing.
func newOperationPage(q *request, status int, wrong string) (any, error) {
	found, err := operationOf(q)
	if err != nil {
		return nil, err
	}
	p := operationPage{Operation: found, Wrong: wrong}
	if found.Record != nil {
		var indented bytes.Buffer
		if err := json.Indent(&indented, q.Answer(found.Record.Outcome), "", "  "); err != nil {
			return nil, err
		}
		p.Repeat = indented.String()
	}
	if q.Trail != nil && q.Operator {
		p.TrailKey = q.Trail.VerifyingKey()
	}
	answer := shown{status, "refused", p}
	switch {
	case found.Refusal != nil:
	case len(found.Notifications) > 0:
		answer.template = "messages"
	case len(found.Sales) > 0:
		answer.template = "sale"
		answer.content, err = newSalePage(q, p)
	case len(found.Postings) > 0:
		answer.template = "booking"
		answer.content, err = newBookingPage(q, p)
	default:
		err = errNothing
	}
	return answer, err
}

// correctOperation cancels or reverses an operation.
func correctOperation(q *request) (any, error) {
	reason := strings.TrimSpace(q.field("reason"))
	if reason == "" || q.field("confirm") != "yes" {
		return newOperationPage(q, http.StatusBadRequest, "Nothing was changed: give a reason and tick the box.")
	}
	found, err := operationOf(q)
	if err != nil {
		return nil, err
	}
	ctx := q.by(q.ctx, reason)
	var done string
	switch q.field("action") {
	case "cancel":
		err = q.Office.Corrector.Cancel(ctx, found.ID)
		done = "The operation is cancelled. A repeat is answered 8 Failed."
	case "reverse":
		_, err = q.Office.Corrector.Reverse(ctx, found.ID)
		done = "The operation is reversed: the units are back and the money is taken."
	default:
		return nil, errNothing
	}
	if err == nil {
		return q.done(salePath(found.ID, 0), done)
	}
	if wrong, ok := reasonOf(err); ok {
		return newOperationPage(q, http.StatusConflict, "Nothing was changed. "+wrong)
	}
	return nil, err
}

func newSalePage(q *request, common operationPage) (any, error) {
	found := common.Operation
	p := salePage{operationPage: common, Chosen: 1, Request: found.Sales[:min(len(found.Sales), maxRequested)]}
	if n, err := strconv.Atoi(q.query("sale")); err == nil && n >= 1 && n <= len(found.Sales) {
		p.Chosen = n
	}
	s := &found.Sales[p.Chosen-1]
	p.Sale = s
	if s.State == operation.Completed {
		p.Exact = grouped(fund.ExactProceeds(s.Terms.Units, s.PerUnit))
	}
	for _, all := range [][]fund.PostingEntry{found.Postings, found.ReversalPostings} {
		for i := range all {
			if all[i].Index == s.Index {
				p.Postings = append(p.Postings, all[i])
			}
		}
	}
	var err error
	if found.Reversal != nil {
		p.Act, err = q.Office.Correction(q.ctx, found.Reversal.ID, found.Reversal.At)
	} else if s.Refusal == fault.Cancelled {
		p.Act, err = q.Office.Correction(q.ctx, s.OperationID, s.SettledAt)
	}
	if err != nil {
		return nil, err
	}
	if q.Operator {
		p.Cancel = s.State == operation.Recorded && s.Terms.SelectedDay.After(q.Today())
		p.Reverse = s.State == operation.Completed && found.Reversal == nil
	}
	if found.Reversal != nil {
		for i := range found.Sales {
			found.Sales[i].ReversedAt = found.Reversal.At
		}
	}
	return p, nil
}

// bookingPage tells a reversal, an adjustment and an import apart.
func newBookingPage(q *request, common operationPage) (any, error) {
	first := &common.Postings[0]
	p := bookingPage{operationPage: common, Kind: "Import", PostedAt: first.PostedAt, Shown: common.Postings[:min(len(common.Postings), maxPostings)]}
	act, err := q.Office.Correction(q.ctx, common.ID, first.PostedAt)
	if err != nil {
		return nil, err
	}
	if p.Act = act; act != nil {
		p.Kind = "Adjustment"
	}
	if first.Kind == fund.ReversalPosting {
		if p.Kind = "Reversal of a sale"; act != nil {
			p.Reversed = act.Object
		}
	}
	return p, nil
}

// Members are the members of the header that are not empty, in the order of their names.
func (p salePage) Members() []fact {
	h := &p.Sale.Header
	all := []fact{
		{Name: "AppKey", Value: h.AppKey}, {Name: "CallerId", Value: h.CallerID}, {Name: "Channel", Value: h.Channel}, {Name: "ChannelRequestId", Value: h.ChannelRequestID},
		{Name: "ChannelSessionId", Value: h.ChannelSessionID}, {Name: "TellerName", Value: h.TellerName},
	}
	return slices.DeleteFunc(all, func(m fact) bool { return m.Value == "" })
}

// AuditPath lists the acts of a day.
func (v *viewer) AuditPath(at time.Time) string {
	return with("/console/audit", "day", v.Day(at).String())
}

// downloadProof sends the file that proves an operation. The file has the
// numbers in full, so it is a look at them.
func downloadProof(q *request) (any, error) {
	switch {
	case q.Trail == nil:
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
	proof, err := q.Trail.Prove(q.ctx, found.ID)
	f := &file{"proof-" + found.ID.String() + ".json", "application/json", func(w io.Writer) error {
		_, err := w.Write(proof)
		return err
	}, q.Machine, downloadLimits}
	return response(f.send), err
}
