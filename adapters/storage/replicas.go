package storage

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/fleet"
	"bankingapi/domain/operation"
)

// replicas implements fleet.Replicas.
type replicas struct {
	db     *tables.Database
	engine Engine
}

var _ fleet.Replicas = replicas{}

// Keep implements fleet.Replicas. A replica that was started again has the name of its row, but
// another ID.
func (d replicas) Keep(ctx context.Context, r fleet.Replica, replaced time.Duration) error {
	return d.db.Change(ctx, func(tx *gorm.DB) error {
		now, err := d.now(tx)
		if err != nil {
			return err
		}
		row, err := tables.NewReplicaRow(r, now)
		if err != nil {
			return err
		}
		silent := tables.Microsecond(now.Add(-replaced))
		old := tables.Microsecond(now.Add(-fleet.Forget))
		err = tx.Where("replica_id <> ?", row.ReplicaID).Where("name = ? AND seen_at < ? OR seen_at < ?", row.Name, silent, old).Delete(&tables.ReplicaRow{}).Error
		if err != nil {
			return err
		}
		return tx.Clauses(clause.OnConflict{
			Columns:   []clause.Column{{Name: "replica_id"}},
			DoUpdates: clause.AssignmentColumns([]string{"seen_at", "silence", "name", "troubles"}),
		}).Create(&row).Error
	})
}

// now returns the time of the server, or of this machine if the engine has no server.
func (d replicas) now(tx *gorm.DB) (time.Time, error) {
	var row struct{ Now batch.Instant }
	err := tx.Raw("SELECT " + d.engine.Facts().Now + " AS now").Scan(&row).Error
	if row.Now.Time.IsZero() {
		return time.Now().UTC(), err //nolint:forbidigo // the clock of the bank may be moved
	}
	return row.Now.Time, err
}

// All implements fleet.Replicas.
func (d replicas) All(ctx context.Context) (all []fleet.Replica, err error) {
	query := d.db.Query(ctx)
	now, err := d.now(query)
	if err != nil {
		return nil, d.db.Translate(err)
	}
	var rows []tables.ReplicaRow
	err = d.db.Query(ctx).Order("name, replica_id").Find(&rows).Error
	if err != nil {
		return nil, d.db.Translate(err)
	}
	for i := range rows {
		replica, err := rows[i].Replica(now)
		if err != nil {
			return nil, d.db.Translate(err)
		}
		all = append(all, replica)
	}
	return all, nil
}

// Remove implements fleet.Replicas.
func (d replicas) Remove(ctx context.Context, id operation.ID) error {
	return d.db.Change(ctx, func(tx *gorm.DB) error {
		return tx.Delete(&tables.ReplicaRow{ReplicaID: batch.UUID(id)}).Error
	})
}
