package storage

import (
	"context"
	"strings"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// AuditRow is a row of the table audits: an act of administration.
type AuditRow struct {
	AuditID    batch.UUID    `gorm:"primaryKey"`
	At         batch.Instant `gorm:"not null"`
	Actor      string        `gorm:"not null"`
	SystemUser string        `gorm:"not null"`
	Origin     string        `gorm:"not null"`
	Action     string        `gorm:"not null"`
	Object     string        `gorm:"not null;default:''"`
	Reason     string        `gorm:"not null;default:''"`
	Details    string        `gorm:"not null;default:''"`
}

// actWrites writes the act that ctx carries, if it carries one, and the entries in
// the trail of the act and of what it has changed. more is added to its details.
func (d leafMaker) actWrites(ctx context.Context, changed []trail.Entry, more ...string) []batch.Request {
	var rows []AuditRow
	if act, ok := audit.From(ctx); ok {
		rows = []AuditRow{{
			AuditID: batch.UUID(act.ID), At: batch.Instant{Time: act.At}, Actor: act.Actor, SystemUser: act.SystemUser,
			Origin: act.Origin, Action: act.Action, Object: act.Object, Reason: act.Reason,
			Details: strings.TrimPrefix(strings.Join(append([]string{act.Details}, more...), "; "), "; "),
		}}
		changed = append(changed, d.audits.leaves.entry(&rows[0]))
	}
	return batch.NonEmpty(d.audits.add.Request(rows), d.trail.request(changed...))
}

func (r *AuditRow) act() (audit.Act, error) {
	return audit.Act{
		ID: operation.ID(r.AuditID), At: r.At.Time,
		Who:    audit.Who{Actor: r.Actor, SystemUser: r.SystemUser, Origin: r.Origin, Reason: r.Reason},
		Action: r.Action, Object: r.Object, Details: r.Details,
	}, nil
}

// acts is backoffice.Audit.
type acts struct{ leafMaker }

func (a acts) Record(ctx context.Context, act audit.Act) error {
	ctx = audit.With(ctx, act)
	return a.Transact(ctx, func(session batch.Session) error { return session.Commit(ctx, a.actWrites(ctx, nil)...) })
}
