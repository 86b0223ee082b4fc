package tables

import (
	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
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

// NewAuditRow returns the row of an act.
func NewAuditRow(a *audit.Act) AuditRow {
	return AuditRow{
		AuditID: batch.UUID(a.ID), At: batch.Instant{Time: a.At}, Actor: a.Actor, SystemUser: a.SystemUser,
		Origin: a.Origin, Action: a.Action, Object: a.Object, Reason: a.Reason, Details: a.Details,
	}
}

// Act converts the row.
func (r *AuditRow) Act() (audit.Act, error) {
	return audit.Act{
		ID: operation.ID(r.AuditID), At: r.At.Time,
		Who:    audit.Who{Actor: r.Actor, SystemUser: r.SystemUser, Origin: r.Origin, Reason: r.Reason},
		Action: r.Action, Object: r.Object, Details: r.Details,
	}, nil
}
