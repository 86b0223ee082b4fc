// Package trail is what a storage has of the log of everything that happened: the
// batches that transactions have written, and those that are sealed.
package trail

import (
	"context"
	"errors"

	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// Ports are what a storage with a trail has. All are safe for concurrent use. An
// error of a storage that does not answer has the kind fault.Unavailable.
type Ports struct {
	Writer Writer
	Log    Log
	Finder Finder
	Origin Origin
}

// None are the ports of a storage that keeps no trail.
var None = new(Ports)

// Writer writes leaves.
type Writer interface {
	// Use makes every later transaction write the leaves of what it writes. newID makes the IDs
	// of batches. They grow, and are larger than those of the operations in the batch.
	Use(keys *proof.Keys, newID func() operation.ID)
	// Follow gives the state of the log that the MACs of later batches name.
	Follow(base proof.Base)
}

// Origin begins logs.
type Origin interface {
	// Adopt writes leaves of everything that is older than the trail, once in the life of a
	// log, and returns how many. It writes at least that of the calendar: verify takes its batch
	// for the beginning of the log. An attempt that was interrupted may be repeated.
	Adopt(ctx context.Context) (leaves int64, err error)
	// TakeIn writes leaves of the rows that have none although the log has begun: a service with
	// a wrong key, or without one, wrote them. It keeps the act that act returns for these rows
	// in the same transaction, and returns their names, which are those of verify. A row that has another leaf already gets a new
	// one only if a service may have changed it: an end, a subscription, the calendar, or a price
	// that is withdrawn now. Without such rows it keeps no act. It changes nothing if
	// somebody else takes rows in, or changes such a row, at the same time: the error is a
	// fault.Unavailable.
	TakeIn(ctx context.Context, act func(names []string) audit.Act) (names []string, err error)
	// Clear removes the log with all its batches and checkpoints, so that another one can begin. It
	// keeps the act in the same transaction: no log ends without it. Adopt writes the leaf of the act.
	Clear(ctx context.Context, act audit.Act) error
}

// Log is the log of sealed batches.
type Log interface {
	// State reads the newest state.
	State(ctx context.Context) (State, error)
	// Seal calls seal with the oldest batches that are not sealed, at most limit, and stores
	// what it returns, or returns its error and stores nothing. Callers exclude each other. It
	// may call seal again after a lost race. It does not call seal if there is no such batch.
	// It leaves out the batches that no service with the keys of Use has made for this log.
	// mark adds a batch without leaves before them, which belongs to this place of the log: a
	// copy of the book has a log of its own after it.
	Seal(ctx context.Context, limit int, mark bool, seal Seal) (Round, error)
	// Hashes reads stored hashes.
	Hashes(ctx context.Context, indexes []int64) ([]proof.Hash, error)
	// IsOf reports whether a service with these keys made one of the oldest batches, or
	// whether there are no batches. keys may be nil: then it reports whether there are none.
	IsOf(ctx context.Context, keys *proof.Keys) (bool, error)
}

// Round says what Log.Seal did.
type Round struct {
	Sealed  int
	Foreign int            // how many batches were left out
	LeftOut []operation.ID // the first of these
}

// State is a state of the log.
type State struct {
	Size       int64
	Checkpoint string // signed; empty if the log is
}

// Seal appends records to a log in this state.
type Seal func(state State, records [][]byte, hashes proof.Hashes) (Sealed, error)

// Sealed is what Seal adds: the stored hashes from First on, and the next checkpoint.
type Sealed struct {
	First      int64
	Hashes     []proof.Hash
	Checkpoint string
}

// Finder finds leaves.
type Finder interface {
	// Leaves finds the leaves of an operation or an act, in the batches that a service with the
	// keys of Use has made for this log: first the one with which the operation was answered,
	// then those of its end and its reversal. The error is ErrNotFound if there is none.
	Leaves(ctx context.Context, id operation.ID) ([]Leaf, error)
}

// Leaf is a leaf in its batch.
type Leaf struct {
	Content    []byte
	Batch      proof.Batch
	Index      int
	BatchIndex int64 // of the batch in the log; -1 if it is not sealed yet
}

// Flaw says what is wrong with the log. Readiness shows it: it has no secrets.
type Flaw string

func (f Flaw) Error() string { return string(f) }

// ErrNotFound is the error of Finder for an operation without a leaf, or with
// rows that are not those of its leaf.
var ErrNotFound = errors.New("the trail has no leaf of this operation")
