package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bankingapi/domain/day"
)

// openTimeout bounds the opening of a storage, without its migration.
const openTimeout = 10 * time.Second

// Open opens a storage with an adapter, and completes it.
func Open(adapter func(context.Context, Options) (Database, error), o Options) (*Store, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	database, err := adapter(ctx, o)
	if err != nil {
		return nil, err
	}
	opened, err := database.Bind(o)
	if err != nil {
		return nil, err
	}
	s, err := Complete(opened)
	if err == nil {
		s.DataFolder = cmp.Or(opened.DataFolder, o.DataFolder, s.DataFolder)
	}
	return s, err
}

// Complete returns a copy of an adapter's Store in which no field is nil. What
// is optional gets a stand-in that does nothing. The error names the required
// fields that are missing.
func Complete(opened *Store) (*Store, error) {
	s := *opened
	var missing []string
	require := func(name string, isMissing bool) {
		if isMissing {
			missing = append(missing, name)
		}
	}
	require("Books", s.Books == nil)
	require("Inboxes", s.Inboxes == nil)
	require("Subscriptions", s.Subscriptions == nil)
	require("Backoffice.Imports", s.Backoffice.Imports == nil)
	require("Backoffice.Book", s.Backoffice.Book == nil)
	require("Backoffice.History", s.Backoffice.History == nil)
	require("Backoffice.Lookups", s.Backoffice.Lookups == nil)
	require("Backoffice.Evidence", s.Backoffice.Evidence == nil)
	require("Ping", s.Ping == nil)
	require("Close", s.Close == nil)
	if len(missing) > 0 {
		return nil, fmt.Errorf("the storage that was opened is incomplete: its store.Store has no %s", strings.Join(missing, ", "))
	}
	if s.Schema == nil {
		s.Schema = noSchema{}
	}
	if s.Risks == nil {
		s.Risks = func(context.Context) ([]Risk, error) { return nil, nil }
	}
	if s.CountDue == nil {
		s.CountDue = func(context.Context, day.Day) (int64, day.Day, error) { return 0, day.Day{}, nil }
	}
	if s.Clock == nil {
		s.Clock = func(context.Context, string) (now, newest time.Time, err error) { return now, newest, nil }
	}
	if s.Backup == nil {
		s.Backup = func(context.Context, string) error {
			return errors.New("this storage is backed up with its own tools: for Postgres use pg_dump, or a base backup with WAL archiving")
		}
	}
	if s.Within == nil {
		s.Within = func(any) (*Store, error) {
			return nil, errors.New("this storage cannot work inside a transaction of the host")
		}
	}
	s.DataFolder = cmp.Or(s.DataFolder, "data")
	return &s, nil
}

// HasSchema reports whether the storage has something to migrate.
func (s *Store) HasSchema() bool {
	_, none := s.Schema.(noSchema)
	return s.Schema != nil && !none
}

// noSchema is the schema of a storage that has nothing to migrate.
type noSchema struct{}

func (noSchema) Up(context.Context) ([]Migration, error) { return nil, nil }
func (noSchema) Down(context.Context) (Migration, error) {
	return Migration{}, errors.New("this storage has no schema to migrate")
}
func (noSchema) Status(context.Context) (Status, error) { return Status{}, nil }
func (noSchema) Require(context.Context) error          { return nil }
