package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/fleet"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
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

// goneAfter is how long alone waits for the row of a killed replica to become too old.
const goneAfter = 3 * time.Second

// alone implements Alone of store.Store. An engine knows the connections of a service by their name,
// which storage.dsn or a host may have chosen. So alone also looks for the rows of running replicas.
func (d service) alone(ctx context.Context) error {
	err := d.engine.Alone(ctx)
	if err != nil {
		return err
	}
	if d.db.OneWriter {
		return nil
	}
	err = d.db.Ready(ctx)
	if isUnusable(err) {
		return nil // no replica uses this book
	}
	if err != nil {
		return err
	}
	deadline := time.After(goneAfter)
	for {
		all, err := replicas{d.db, d.engine}.All(ctx)
		if err != nil {
			return err
		}
		running := slices.IndexFunc(all, func(r fleet.Replica) bool { return !r.IsMissing() })
		if running < 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(goneAfter / 30):
		case <-deadline:
			return fmt.Errorf("another process uses the database: the replica %s is running. Stop all replicas first", all[running].Name)
		}
	}
}

// isUnusable reports whether an error of Ready says that the book does not fit, and not only that
// the database did not answer.
func isUnusable(err error) bool {
	_, isOther := errors.AsType[store.MarkError](err)
	finding, isKnown := errors.AsType[*fault.Error](err)
	return isOther || isKnown && finding.Cause == nil
}

// Remove implements fleet.Replicas.
func (d replicas) Remove(ctx context.Context, id operation.ID) error {
	return d.db.Change(ctx, func(tx *gorm.DB) error {
		return tx.Delete(&tables.ReplicaRow{ReplicaID: batch.UUID(id)}).Error
	})
}
