package store

import (
	"context"
	"errors"
	"time"

	"bankingapi/domain/fault"
)

// markTimeout limits how long Start waits for the mark of a storage.
const markTimeout = 3 * time.Second

// Migrator migrates a storage when the service starts, if the operator wants it or the
// storage asks for it (MigrateAtStart).
type Migrator struct {
	Store    *Store
	Wanted   bool
	Migrated func([]Migration) // called when a storage was migrated, with at least one migration
	failed   error             // the error of the last attempt, if Retry must try again
}

// Start migrates, and refuses a storage with another mark. If the storage cannot be reached
// yet, Start returns nil, and Retry migrates later. A storage with MigrateAtStart must be
// reachable now, and must not have a newer schema.
func (m *Migrator) Start(ctx context.Context) error {
	if m.Wanted || m.Store.MigrateAtStart {
		err := m.up(ctx)
		if err != nil && (m.Store.MigrateAtStart || isMarked(err) || fault.KindOf(err) != fault.Unavailable) {
			return err
		}
		m.failed = err
	}
	if m.Store.MigrateAtStart {
		return m.Store.Schema.Require(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	// A storage that cannot be reached yet is checked before its first transaction.
	if err := m.Store.Schema.Require(ctx); isMarked(err) {
		return err
	}
	return nil
}

func (m *Migrator) up(ctx context.Context) error {
	applied, err := m.Store.Schema.Up(ctx)
	if len(applied) > 0 {
		m.Migrated(applied)
	}
	return err
}

// Retry migrates if the last attempt could not reach the storage.
func (m *Migrator) Retry(ctx context.Context) error {
	if m.failed != nil {
		m.failed = m.up(ctx)
	}
	return m.failed
}

func isMarked(err error) bool {
	_, ok := errors.AsType[MarkError](err)
	return ok
}
