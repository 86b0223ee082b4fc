package console

import (
	"context"
	"iter"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
)

// auditView is the page Audit.
type auditView struct {
	Day          string
	Rows         []actRow
	Next, Export string
}

type actRow struct {
	At                               *moment
	Who, Where, Action, Object, Path string
	Reason, Details                  string
}

func (q *request) actRow(a *audit.Act) actRow {
	row := actRow{At: q.moment(a.At), Who: a.Actor, Where: a.Origin, Action: a.Action, Object: a.Object, Reason: a.Reason, Details: a.Details}
	if id, err := operation.ParseID(a.Object); err == nil {
		row.Path = salePath(id, 0)
	}
	if a.Action == "adjust.holding" || a.Action == "adjust.account" {
		row.Object = q.text(a.Object) // it names a customer
	}
	return row
}

func (q *request) auditFilter() (f backoffice.Query, day string, err error) {
	day = q.URL.Query().Get("day")
	if f, err = q.onDay(day); err != nil {
		return f, day, err
	}
	f.After, err = cursor(q.URL.Query().Get("before"))
	return f, day, err
}

func showAudit(q *request) error {
	f, day, err := q.auditFilter()
	if err != nil {
		return err
	}
	if err := q.look(); err != nil {
		return err
	}
	v := auditView{Day: day, Export: with("/console/audit/export", "day", day)}
	f.Limit = pageSize + 1
	last := ""
	for a, err := range q.o.Office.Reader.Acts(q.ctx, f) {
		if err != nil {
			return err
		}
		if len(v.Rows) == pageSize {
			v.Next = with("/console/audit", "day", day, "before", last)
			break
		}
		v.Rows, last = append(v.Rows, q.actRow(&a)), place(a.ID, 0)
	}
	return q.show("audit", v)
}

func exportAudit(q *request) error {
	f, _, err := q.auditFilter()
	if err != nil {
		return err
	}
	f.After = backoffice.Cursor{}
	rows := func(ctx context.Context) iter.Seq2[audit.Act, error] { return q.o.Office.Reader.Acts(ctx, f) }
	return export(q, "audit", []string{"At", "AuditId", "Actor", "SystemUser", "Origin", "Action", "Object", "Reason", "Details"}, rows, func(a *audit.Act) []string {
		return []string{instant(a.At), a.ID.String(), a.Actor, a.SystemUser, a.Origin, a.Action, q.actRow(a).Object, a.Reason, a.Details}
	})
}
