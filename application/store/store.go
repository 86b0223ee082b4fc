// Package store defines what the service needs from a storage adapter: a struct of ports. An
// adapter is any package with a function that opens a Store. It is registered by a name, which
// storage.driver selects. This package does not know gorm or SQL.
package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"bankingapi/application/addpush"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/fleet"
	"bankingapi/application/requestlog"
	"bankingapi/application/subscriptions"
	"bankingapi/application/trail"
)

// Options control how to open a storage. An adapter ignores the options that have no meaning
// for it.
type Options struct {
	// DSN names the place of the data, in the adapter's own format. It is a secret.
	DSN              string
	MaxConnections   int           // 0 means the adapter's default
	StatementTimeout time.Duration // the maximum time of a statement
	// MaxSize is the maximum size of the tables in bytes. What does not fit is refused like on a
	// full disk, until something was deleted. Postgres may exceed it by what is written in a
	// second. 0 means no limit. A SQLite database that a host has opened has none.
	MaxSize int64
	// TablePrefix is the prefix of every table and index name, for a database
	// that has other tables. Letters, digits and underscores.
	TablePrefix string
	// DataFolder is where the service keeps its own files if the storage has no folder.
	DataFolder string
	// MustExist makes it an error if the book does not exist, so that the adapter creates
	// nothing. An adapter whose data are on a server ignores it.
	MustExist bool
	// AsItIs makes opening change nothing: the storage is only read, or written in its present
	// state.
	AsItIs bool
	// ReadCopied is called when the storage has CopiedMark, which may be read then: only what would
	// write fails with the MarkError. If it is nil, every call fails.
	ReadCopied func()
	// Mark is the mark that the storage must have. Empty means no mark: the storage is the book
	// of a bank. If a storage has another mark, every call fails with a MarkError.
	Mark string
	// Now returns the current time in UTC. It dates what imports write.
	Now func() time.Time
	// MayWrite returns an error while this service must not change the book, because its answers
	// would do lasting harm: for example if its clock is wrong. An adapter calls it before each
	// transaction that writes, except in a transaction of the host, and returns its error. It is
	// quick, and may read the storage. nil means that the service may always write.
	MayWrite func(ctx context.Context) error
	// Trace starts a span for one call to the database. The function that it
	// returns ends the span. name contains no values. nil means no traces.
	Trace func(ctx context.Context, name string) (context.Context, func(error))
	// Slow receives calls to the database that took a second or longer: the names of the
	// statements, or their SQL with placeholders, but never values. It may be nil.
	Slow func(statements string, took time.Duration)
}

// Opener returns the Store of an adapter, which its Start opens. sqlite.Open, postgres.Open and the
// functions that sqlite.Use and postgres.Use return are Openers. So is Open of a finished Store.
type Opener func(context.Context, Options) (*Store, error)

// Store is a storage: the ports of the use cases, and functions for the
// service itself. Every port and function is required. An adapter begins with Unsupported, which
// has those that it lacks and those of later versions. All fields are safe for concurrent use.
type Store struct {
	// Name is a short name of the storage, such as sqlite. The metrics use it as a label. Empty
	// means the name of the driver.
	Name string

	Books         buyfund.Books
	Inboxes       addpush.Inboxes
	Subscriptions subscriptions.Repository
	Usage         subscriptions.Usage
	Requests      requestlog.Storage
	Replicas      fleet.Replicas
	Backoffice    backoffice.Ports
	Trail         *trail.Ports // trail.None if the storage keeps no trail
	Schema        Schema
	Marker        Marker

	// Guarded says that the adapter calls Options.MayWrite itself. Otherwise Books and Inboxes are
	// called only while the service may write.
	Guarded bool

	// MigrateAtStart says that the service migrates this storage when it opens it, even without
	// the setting storage.migrate.
	MigrateAtStart bool

	// Ping returns nil if the storage responds.
	Ping func(ctx context.Context) error
	// Risks lists what may lose data although the storage responds: settings of the server, or
	// the connection to it.
	Risks func(ctx context.Context) ([]Risk, error)
	// Clock returns the time of the storage's own clock, and when the newest operation was
	// received. Each is zero if it does not exist.
	Clock func(ctx context.Context) (now, newest time.Time, err error)
	// Within returns the Store inside a transaction of the host. The adapter defines which
	// types tx may have, and returns an error for other types. It does not retry a transaction
	// that lost a race: the error is fault.Unavailable, and the host rolls back.
	Within func(tx any) (*Store, error)
	// Pools return the connection pools by their purpose, for the metrics. They may be
	// opened by Start.
	Pools map[string]func() *sql.DB
	// FreeSpace returns the free bytes on the disk of the data, for the metrics. It is negative
	// if this is not known, even after Start.
	FreeSpace func() int64
	// LogSize returns the size of the write-ahead log in bytes, for the metrics. It is negative if
	// the data are in no file.
	LogSize func() int64
	// DataFolder is the folder of the data, if they are in a file. The service
	// keeps its certificate there.
	DataFolder  string
	HasDataFile bool // the data are in a file in DataFolder

	// Grace is the maximum time that a call of Books or Inboxes takes after its context has
	// ended, whatever the storage does. 0 means that Grace is not known.
	Grace time.Duration

	// Index prepares lookups for rows that were written since its last call, or for
	// some of them. Without it lookups are slower. The service calls it every second.
	Index func(ctx context.Context) error

	// Alone returns an error if another process uses the storage, as far as the adapter can see
	// that. No other code in this process may use the storage during the call.
	Alone func(ctx context.Context) error

	// Backup writes a consistent copy of the data to a new file, while the storage is used.
	Backup func(ctx context.Context, file string) error

	// Copy copies all data to another storage of the adapter, whose Options.Mark is CopyMark,
	// and compares both. Then it marks this storage with CopiedMark, and keeps the act that ctx
	// carries. RemoveMark of the other storage ends the copy. Until then, the next Copy
	// continues. It returns the number of rows that both have. A storage with CopiedMark can only
	// finish the copy that was interrupted after it was marked.
	Copy func(ctx context.Context, to *Store, w CopyWatch) (rows int64, err error)
	// RemoveMark removes Options.Mark, and keeps the act that ctx carries. Then the storage is the
	// book of a bank.
	RemoveMark func(ctx context.Context) error

	// Start opens the storage. Before Start the adapter has made no file, no connection and no
	// goroutine, and every call fails.
	Start func(ctx context.Context) error
	// Close closes what the adapter opened, but nothing that a host passed in. It may be called
	// before Start.
	Close func() error
}

// CopyMark is the mark of a storage that does not have all data yet. No service uses it.
const CopyMark = "copy that is not finished"

// CopiedMark is the mark of a storage whose copy is complete. No service uses it: it would sell
// what the copy sells.
const CopiedMark = "book whose copy is used instead"

// SandboxMark is the mark of the storage of a sandbox.
const SandboxMark = "sandbox"

// CopyWatch receives the progress of a copy. An adapter gets both functions.
type CopyWatch struct {
	Phase func(name string, rows int64) // begins with each table, or with its comparison
	Row   func(rows int64)              // called after some rows of the phase, with their number
}

// Risk is something that may lose data.
type Risk struct {
	// Detail says in sentences what it is, what it may cost and what to do. It
	// contains no secrets.
	Detail string
	// Unsafe says that an acknowledged operation may be lost in a crash. Then the service is
	// not ready unless the settings allow it.
	Unsafe bool
	// CanWait says that nothing has gone wrong: it is how the database was set up. An alarm that
	// lasts for months would hide others.
	CanWait bool
}

// Open returns the Store. It is the Opener of a Store that a host has made itself, without these
// Options: so its adapter does not call their MayWrite.
func (s *Store) Open(context.Context, Options) (*Store, error) {
	finished := *s
	finished.Guarded = false
	return &finished, nil
}

// SchemaVersion is the version of the relational schema that this program needs. A test of the
// adapters compares their migrations with it.
const SchemaVersion = 1

// Schema migrates a storage between versions.
type Schema interface {
	// Up migrates to the version that this program needs, and returns what it applied. Replicas
	// may call it at the same time: they wait for each other. It marks an empty storage with
	// Options.Mark. It changes nothing in a storage that has data and another mark.
	Up(ctx context.Context) ([]Migration, error)
	// Status reads which migrations the storage has.
	Status(ctx context.Context) (Status, error)
	// Require returns nil if the storage has the version that this program needs. Once it has
	// returned nil, it does not ask again: a newer program may migrate while this program runs,
	// and newer versions only add. Readiness finds a schema that others change or remove.
	Require(ctx context.Context) error
}

// Migration is one version of a schema.
type Migration struct {
	Version int64
	Name    string
	Applied time.Time // zero for a version that the storage does not have
}

// Status is the state of a schema.
type Status struct {
	Version    int64       // the version of the storage, 0 if the storage is empty
	Wanted     int64       // the version that this program needs
	Migrations []Migration // all migrations that this program knows, ascending
}

// ErrDSN is the error of a storage.dsn that no database can have.
var ErrDSN = errors.New("storage.dsn is not a Postgres URL")

// MarkError is the error of a storage with another mark than Options.Mark. Its value is the
// mark of the storage.
type MarkError string

// Error names the mark.
func (e MarkError) Error() string {
	if e == "" {
		return "the book of a bank"
	}
	return "a " + string(e)
}

// Marker is the mark of a storage that is not the book of a bank. The mark is Options.Mark, and
// Schema.Up writes it. Each method fails if the storage does not have it.
type Marker interface {
	// Note returns the note that was set last, or "".
	Note(ctx context.Context) (string, error)
	// SetNote stores a note.
	SetNote(ctx context.Context, note string) error
	// Empty deletes everything except the subscriptions, and sets the note, in one transaction.
	Empty(ctx context.Context, note string) error
}
