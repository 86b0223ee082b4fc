// Package store says what the service needs of a storage adapter: a struct of
// ports. An adapter is any package with a function that opens one. It plugs in
// by a name, as storage.driver gives it, and nothing here knows gorm or SQL.
package store

import (
	"context"
	"database/sql"
	"time"

	"bankingapi/application/addpush"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/requestlog"
	"bankingapi/application/subscriptions"
	"bankingapi/application/trail"
)

// Options say how to open a storage. An adapter ignores the options that have
// no meaning for it.
type Options struct {
	// DSN names the place of the data, in the adapter's own format. It is a secret.
	DSN              string
	MaxConnections   int           // 0 means the adapter's default
	StatementTimeout time.Duration // ends statements that take longer
	// TablePrefix is the prefix of every table and index name, for a database
	// that has other tables. Letters, digits and underscores.
	TablePrefix string
	// DataFolder is where the service keeps its own files if the storage has no folder.
	DataFolder string
	// MustExist makes it an error if there is no book: the adapter creates
	// nothing. An adapter whose data are on a server ignores it.
	MustExist bool
	// AsItIs lets opening change nothing: the storage is only read, or written as it is.
	AsItIs bool
	// Outcomes says that partners read outcomes.
	Outcomes bool
	// Mark is the mark that the storage must have. Empty means none: it is the book of a bank.
	// A storage with another mark fails every call, with a MarkError.
	Mark string
	// DropData lets Schema.Down delete rows. Without it, Down fails if there are any.
	DropData bool
	// Now returns the current time in UTC. It dates what imports write.
	Now func() time.Time
	// Trace starts a span for one call to the database. The function that it
	// returns ends the span. name contains no values. nil means no traces.
	Trace func(ctx context.Context, name string) (context.Context, func(error))
	// Slow is told of calls to the database that took a second or longer: the names
	// of the statements, or their SQL with placeholders, and never values. It may be nil.
	Slow func(statements string, took time.Duration)
}

// Database is a database without options. Bind makes its Store. A Store is a Database too,
// so that a driver can return either.
type Database interface {
	Bind(o Options) (*Store, error)
}

// Store is a storage: the ports of the use cases, and functions for the
// service itself. Every port and function is required. An adapter that
// cannot do everything begins with Unsupported. All fields are safe for concurrent use.
type Store struct {
	// Name is a short name of the storage, such as sqlite. The metrics have it as
	// a label. Empty means the name of the driver.
	Name string

	Books         buyfund.Books
	Inboxes       addpush.Inboxes
	Subscriptions subscriptions.Repository
	Usage         subscriptions.Usage
	Requests      requestlog.Storage
	Backoffice    backoffice.Ports
	Trail         *trail.Ports // trail.None if the storage keeps none
	Schema        Schema
	Marker        Marker

	// MigrateAtStart says that the service migrates this storage when it opens
	// it, also without the setting storage.migrate.
	MigrateAtStart bool

	// Ping returns nil if the storage answers.
	Ping func(ctx context.Context) error
	// Risks lists what may lose data although the storage answers: settings of
	// the server, or the way to it.
	Risks func(ctx context.Context) ([]Risk, error)
	// Clock returns the time of the storage's own clock, and when the newest sale was
	// received. Either is zero if there is none. It is an error if the days of the book
	// are those of another time zone. The first call decides the zone of a book.
	Clock func(ctx context.Context, zone string) (now, newest time.Time, err error)
	// Within returns the Store inside a transaction of the host. The adapter says which types
	// tx may have, and returns an error for others. It does not retry a transaction that lost a
	// race: the error is fault.Unavailable, and the host rolls back.
	Within func(tx any) (*Store, error)
	// Pools return the connection pools by their purpose, for the metrics. They may be
	// opened by Start.
	Pools map[string]func() *sql.DB
	// FreeSpace is the room on the disk of the data in bytes, for the metrics. It is
	// negative if that is not known, also after Start.
	FreeSpace func() int64
	// DataFolder is the folder of the data, if they are in a file. The service
	// keeps its certificate there.
	DataFolder  string
	HasDataFile bool // the data are in a file in DataFolder

	// Grace is the maximum time that a call of Books or Inboxes takes after its context
	// has ended, whatever the storage does. 0 means that it is not known.
	Grace time.Duration

	// Index prepares lookups for rows that were written since its last call, or for
	// some of them. Without it lookups are slower. The service calls it every second.
	Index func(ctx context.Context) error

	// Alone returns an error if another process uses the storage, as far as the adapter
	// can see that. Nothing else in this process may use it meanwhile.
	Alone func(ctx context.Context) error

	// Backup writes a consistent copy of the data to a new file, while the storage is used.
	Backup func(ctx context.Context, file string) error

	// Copy copies all data to another storage of the adapter, whose Options.Mark is
	// CopyMark, and compares both. The mark is gone when that is done. If it fails, the
	// next Copy goes on. It returns the number of rows that both have.
	Copy func(ctx context.Context, to *Store, w CopyWatch) (rows int64, err error)

	// Start opens the storage. Before, the adapter has made no file, no connection and no
	// goroutine, and every call fails.
	Start func(ctx context.Context) error
	// Close closes what the adapter opened, and nothing that a host handed in. It may be
	// called before Start.
	Close func() error
}

// CopyMark is the mark of a storage that has not all data yet. No service uses it.
const CopyMark = "copy that is not finished"

// SandboxMark is the mark of the storage of a sandbox.
const SandboxMark = "sandbox"

// CopyWatch is told how far a copy is.
type CopyWatch struct {
	Phase func(name string, rows int64) // begins with each table, or with its comparison
	Row   func(rows int64)              // called after some rows of the phase, with their number
}

// Risk is something that may lose data.
type Risk struct {
	// Detail says in sentences what it is, what it may cost and what to do. It
	// contains no secrets.
	Detail string
	// Unsafe says that an acknowledged operation may be lost in a crash. Then the
	// service is not ready unless the settings allow it.
	Unsafe bool
}

// Bind returns s: the driver that opened it had the options before.
func (s *Store) Bind(Options) (*Store, error) { return s, nil }

// SchemaVersion is the version of the relational schema that this program
// needs. A test of the adapters holds their migrations to it.
const SchemaVersion = 15

// Schema migrates a storage between versions.
type Schema interface {
	// Up migrates to the version that this program needs, and returns what it applied. Replicas
	// may call it at the same time: they wait for each other. It marks an empty storage with
	// Options.Mark. It changes nothing in a storage that has data and another mark.
	Up(ctx context.Context) ([]Migration, error)
	// Down undoes the newest migration, with all data in its tables. It fails if
	// the storage has rows, unless Options.DropData allows it. It fails if another
	// process uses the storage, as far as the adapter can see that. It fails if
	// the storage has another mark than Options.Mark, because the mark would be lost.
	Down(ctx context.Context) (Migration, error)
	// Status reads which migrations the storage has.
	Status(ctx context.Context) (Status, error)
	// Require returns nil if the storage has the version that this program
	// needs. Once it returned nil it always does: a newer version, which a newer
	// program brings while this one runs, only adds.
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
	Version    int64       // of the storage, 0 for an empty one
	Wanted     int64       // the version that this program needs
	Migrations []Migration // all that this program knows, ascending
}

// MarkError says that a storage has another mark than Options.Mark wants. It is
// the mark that the storage has.
type MarkError string

// Error names the mark.
func (e MarkError) Error() string {
	if e == "" {
		return "the book of a bank"
	}
	return "a " + string(e)
}

// Marker is the mark of a storage that is not the book of a bank. The mark is
// Options.Mark; Schema.Up makes it. Each method fails without it.
type Marker interface {
	// Note returns the note that was set last; empty at first.
	Note(ctx context.Context) (string, error)
	// SetNote keeps a note.
	SetNote(ctx context.Context, note string) error
	// Empty deletes everything but the subscriptions, and sets the note, in one transaction.
	Empty(ctx context.Context, note string) error
}
