package tables

import (
	"time"

	"github.com/go-json-experiment/json"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/fleet"
	"bankingapi/domain/operation"
)

// ReplicaRow is a row of the table replicas. The table belongs neither to the book nor to the
// trail.
type ReplicaRow struct {
	ReplicaID batch.UUID    `gorm:"primaryKey"`
	BeganAt   batch.Instant `gorm:"not null"`
	SeenAt    batch.Instant `gorm:"not null"`
	Silence   int64         `gorm:"not null"` // in microseconds
	Name      string        `gorm:"not null"`
	Version   string        `gorm:"not null;default:''"`
	Troubles  string        `gorm:"not null;default:''"`
}

// NewReplicaRow returns the row of a replica that is seen now.
func NewReplicaRow(r fleet.Replica, now time.Time) (ReplicaRow, error) {
	troubles, err := json.Marshal(r.Troubles)
	return ReplicaRow{
		ReplicaID: batch.UUID(r.ID), BeganAt: Microsecond(r.Began), SeenAt: Microsecond(now),
		Silence: r.Silence.Microseconds(), Name: r.Name, Version: r.Version, Troubles: string(troubles),
	}, err
}

// Replica converts the row, as of now.
func (r *ReplicaRow) Replica(now time.Time) (fleet.Replica, error) {
	replica := fleet.Replica{
		ID: operation.ID(r.ReplicaID), Name: r.Name, Version: r.Version, Began: r.BeganAt.Time, Seen: r.SeenAt.Time,
		Age: max(0, now.Sub(r.SeenAt.Time)), Silence: time.Duration(r.Silence) * time.Microsecond,
	}
	err := json.Unmarshal([]byte(r.Troubles), &replica.Troubles)
	return replica, err
}
