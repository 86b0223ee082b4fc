package console

import (
	"context"
	"iter"
	"strings"

	"bankingapi/application/backoffice"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// refusalsList is the page of the operations that were refused at once.
type refusalsList struct {
	Day, Partner, Code  string
	Rows                []refusedRow
	Next, Export, Depth string
	Partners, Codes     []string
}

type refusedRow struct {
	At                           *moment
	ID, Path                     string
	Operation, Partner, CallerID string
	Faults                       []whyView
}

func (q *request) refusalsFilter() (f backoffice.Query, err error) {
	values := q.URL.Query()
	if f, err = q.onDay(values.Get("day")); err != nil {
		return f, err
	}
	f.Subscription, f.Code = values.Get("partner"), values.Get("code")
	f.After, err = cursor(values.Get("before"))
	return f, err
}

// onDay takes what was received on a day of the bank, newest first; everything if it
// is empty.
func (q *request) onDay(text string) (f backoffice.Query, err error) {
	f.Order = backoffice.Newest
	d, err := q.day(text)
	if err == nil && !d.IsNone() {
		f.Since, f.Until = d.Start(q.o.Zone), d.Plus(1).Start(q.o.Zone)
	}
	return f, err
}

func (q *request) refusedRow(r *operation.Refusal) refusedRow {
	row := refusedRow{At: q.moment(r.ReceivedAt), ID: shortID(r.ID), Path: salePath(r.ID, 0), Operation: r.Operation.String(), Partner: r.Subscription, CallerID: r.Header.CallerID}
	for _, f := range r.Faults {
		why := explainCode(f.Code)
		why.Pointer = f.Pointer
		row.Faults = append(row.Faults, why)
	}
	return row
}

func showRefusals(q *request) error {
	f, err := q.refusalsFilter()
	if err != nil {
		return err
	}
	values := q.URL.Query()
	list := refusalsList{Day: values.Get("day"), Partner: f.Subscription, Code: f.Code, Codes: refusalCodes()}
	filter := []string{"day", list.Day, "partner", list.Partner, "code", list.Code}
	list.Export = with("/console/refusals/export", filter...)
	if list.Partners, err = q.partners(); err != nil {
		return err
	}
	f.Limit, f.ScanLimit = pageSize+1, pageDepth
	f.Truncated = func(c backoffice.Cursor) {
		list.Next = with("/console/refusals", append(filter, "before", place(c.OperationID, 0))...)
		list.Depth = grouped(itoa(pageDepth))
	}
	last := ""
	for r, err := range q.o.Office.Reader.Refusals(q.ctx, f) {
		if err != nil {
			return err
		}
		if len(list.Rows) == pageSize {
			list.Next = with("/console/refusals", append(filter, "before", last)...)
			break
		}
		list.Rows, last = append(list.Rows, q.refusedRow(&r)), place(r.ID, 0)
	}
	return q.show("refusals", list)
}

// refusalCodes are the codes of refusals by the bank.
func refusalCodes() (names []string) {
	for _, c := range fault.Codes() {
		if c.Remedy == fault.NewOperation {
			names = append(names, c.Name)
		}
	}
	return names
}

func exportRefusals(q *request) error {
	f, err := q.refusalsFilter()
	if err != nil {
		return err
	}
	f.After = backoffice.Cursor{}
	rows := func(ctx context.Context) iter.Seq2[operation.Refusal, error] {
		return q.o.Office.Reader.Refusals(ctx, f)
	}
	columns := []string{"ReceivedAt", "OperationId", "Operation", "Partner", "CallerId", "RequestId", "Codes", "Pointers"}
	return export(q, "refusals", columns, rows, func(r *operation.Refusal) []string {
		var codes, pointers []string
		for _, f := range r.Faults {
			codes, pointers = append(codes, f.Code), append(pointers, f.Pointer)
		}
		return []string{instant(r.ReceivedAt), r.ID.String(), r.Operation.String(), r.Subscription, r.Header.CallerID, r.Header.RequestID, strings.Join(codes, " "), strings.Join(pointers, " ")}
	})
}
