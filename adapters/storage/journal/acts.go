package journal

import (
	"context"
	"strings"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// Changes is what an act has changed, beside operations.
type Changes struct {
	// Entries are the entries of prices and subscriptions.
	Entries []proof.Entry
	// ID is the ID of the postings in Adjusted, which the act shares unless a host chose another.
	ID               operation.ID
	Adjusted, Erased *proof.Sum
}

// ActWrites writes the act that ctx carries, if any. It also writes the entries of the act and
// of what it has changed. more is added to the details of the act.
func (j Journal) ActWrites(ctx context.Context, c Changes, more ...string) []batch.Request {
	act, hasAct := audit.From(ctx)
	entries, adjusted := c.Entries, c.Adjusted
	if adjusted.Rows() > 0 && (!hasAct || act.ID != c.ID) {
		l := proof.OfAct(c.ID, nil, adjusted, nil)
		entries, adjusted = append(entries, l.Entry()), nil
	}
	var rows []tables.AuditRow
	if hasAct {
		act.Details = strings.TrimPrefix(strings.Join(append([]string{act.Details}, more...), "; "), "; ")
		l := proof.OfAct(act.ID, &act, adjusted, c.Erased)
		entries = append(entries, l.Entry())
		rows = []tables.AuditRow{tables.NewAuditRow(&act)}
	}
	return batch.NonEmpty(j.db.Audits.Add.Request(rows), j.Write(entries...))
}
