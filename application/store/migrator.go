package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"bankingapi/domain/fault"
)

const (
	// migrateEvery is the time between two attempts to migrate.
	migrateEvery = 2 * time.Second
	// markTimeout bounds how long Start waits for the mark of a storage.
	markTimeout = 3 * time.Second
)

// Migrator migrates a storage when the service starts. Make one with
// NewMigrator.
type Migrator struct {
	// Migrated is called when a storage that had a schema was migrated. It may be nil.
	Migrated func([]Migration)

	store  *Store
	wanted bool
	report func(error)
	ctx    context.Context
	cancel context.CancelFunc
	retry  sync.WaitGroup
}

// NewMigrator returns a Migrator. It migrates if the operator wants it or the
// storage asks for it (MigrateAtStart). report receives the error of each
// attempt that is retried.
func NewMigrator(s *Store, wanted bool, report func(error)) *Migrator {
	m := &Migrator{store: s, wanted: wanted, report: report}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Start migrates, and refuses a storage with another mark. If the storage cannot
// be reached yet, Start returns nil and retries in the background until Stop. A
// storage that asks to be migrated must be reachable now, and must not have a
// newer schema.
func (m *Migrator) Start(ctx context.Context) error {
	if err := m.migrate(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	// A storage that cannot be reached yet is checked before its first transaction.
	if err := m.store.Schema.Require(ctx); isMarked(err) {
		return err
	}
	return nil
}

func (m *Migrator) migrate(ctx context.Context) error {
	if !m.wanted && !m.store.MigrateAtStart {
		return nil
	}
	err := m.up(ctx)
	switch {
	case m.store.MigrateAtStart && err == nil:
		return m.store.Schema.Require(ctx)
	case isMarked(err):
		return err // it stays so
	case !m.store.MigrateAtStart && err != nil && fault.KindOf(err) == fault.Unavailable:
		m.retry.Go(func() { m.keepTrying(ctx, err) })
		return nil
	}
	return err
}

func (m *Migrator) up(ctx context.Context) error {
	applied, err := m.store.Schema.Up(ctx)
	if m.Migrated != nil && len(applied) > 0 && applied[0].Version > 1 {
		m.Migrated(applied)
	}
	return err
}

func isMarked(err error) bool {
	_, ok := errors.AsType[MarkError](err)
	return ok
}

// keepTrying migrates with the values of ctx, which has ended by then.
func (m *Migrator) keepTrying(ctx context.Context, err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(m.ctx, cancel)()

	ticker := time.NewTicker(migrateEvery)
	defer ticker.Stop()
	for err != nil {
		m.report(err)
		select {
		case <-m.ctx.Done():
			return
		case <-ticker.C:
		}
		err = m.up(ctx)
	}
}

// Stop ends the retries and waits for one that is running.
func (m *Migrator) Stop() {
	m.cancel()
	m.retry.Wait()
}
