// Package trail keeps the log of everything that happened: it seals the batches
// that transactions have written, and proves what is in them.
package trail

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// Ports are what a storage with a trail has. All are safe for concurrent use. An
// error of a storage that does not answer has the kind fault.Unavailable.
type Ports struct {
	Writer Writer
	Log    Log
	Finder Finder
}

// Writer writes leaves.
type Writer interface {
	// Record makes every later transaction write the leaves of what it writes.
	// newID makes the IDs of batches. They grow, and are larger than those of the
	// operations in the batch. Record is called once, before the first transaction.
	Record(keys *trail.Keys, newID func() operation.ID)
	// Adopt writes leaves of everything that is older than the trail, once in the
	// life of a log, and returns how many. An attempt that was interrupted may be
	// repeated.
	Adopt(ctx context.Context) (leaves int64, err error)
}

// Log is the log of sealed batches.
type Log interface {
	// State reads the newest state.
	State(ctx context.Context) (State, error)
	// Seal calls seal with the oldest batches that are not sealed, at most limit,
	// and stores what it returns, or returns its error and stores nothing. Callers
	// exclude each other. It may call seal again after a lost race. It does not
	// call seal if there is no such batch. It returns how many were sealed.
	Seal(ctx context.Context, limit int, seal Seal) (sealed int, err error)
	// Hashes reads stored hashes.
	Hashes(ctx context.Context, indexes []int64) ([]trail.Hash, error)
	// IsOf reports whether a service with these keys made a batch, or whether
	// there are no batches. keys may be nil: then it reports whether there are none.
	IsOf(ctx context.Context, keys *trail.Keys) (bool, error)
}

// State is a state of the log.
type State struct {
	Size       int64
	Checkpoint string // signed; empty if the log is
}

// Seal appends records to a log in this state.
type Seal func(state State, records [][]byte, hashes Hashes) (Sealed, error)

// Hashes reads stored hashes.
type Hashes func(indexes []int64) ([]trail.Hash, error)

// Sealed is what Seal adds: the stored hashes from First on, and the next
// checkpoint.
type Sealed struct {
	First      int64
	Hashes     []trail.Hash
	Checkpoint string
}

// Finder finds leaves.
type Finder interface {
	// Leaf finds the newest leaf of an operation, or of an act. The error is
	// ErrNotFound if there is none.
	Leaf(ctx context.Context, id operation.ID) (Leaf, error)
}

// Leaf is a leaf in its batch.
type Leaf struct {
	Content  []byte
	Batch    trail.Batch
	Index    int
	Position int64 // of the batch in the log; -1 if it is not sealed yet
}

// ErrNotFound is the error of Finder for an operation without a leaf, or with
// rows that are not those of its leaf.
var ErrNotFound = errors.New("the trail has no leaf of this operation")

// Notary signs states of the log.
type Notary interface {
	// Append appends records. It returns an error if the state is not one that
	// this notary has signed, or if the hashes do not belong to it.
	Append(state State, records [][]byte, hashes Hashes) (Sealed, error)
}

// File keeps checkpoints outside the database.
type File interface {
	// Extends returns nil if the state has everything of the newest checkpoint in
	// the file.
	Extends(state State, hashes Hashes) error
	// Append adds a checkpoint.
	Append(checkpoint string) error
}

// Sealer seals batches. Any number of replicas may have one.
type Sealer struct {
	ports  Ports
	notary Notary
	file   File

	mu    sync.Mutex // held while a round runs
	begun bool
}

// NewSealer returns a Sealer.
func NewSealer(ports Ports, notary Notary, file File) *Sealer {
	return &Sealer{ports: ports, notary: notary, file: file}
}

// batches is how many are sealed in one transaction.
const batches = 500

// Seal seals everything that is not sealed yet. The first call of a process also
// adopts what is older than the trail.
func (s *Sealer) Seal(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		// A log that has lost what a checkpoint has takes no rows over: their leaves
		// would make them genuine.
		state, err := s.ports.Log.State(ctx)
		if err == nil && state.Size == 0 {
			err = s.file.Extends(state, func(indexes []int64) ([]trail.Hash, error) { return s.ports.Log.Hashes(ctx, indexes) })
		}
		if err != nil {
			return fmt.Errorf("begin the trail: %w", err)
		}
		if _, err := s.ports.Writer.Adopt(ctx); err != nil {
			return fmt.Errorf("begin the trail: %w", err)
		}
		s.begun = true
	}
	for {
		var added Sealed
		n, err := s.ports.Log.Seal(ctx, batches, func(state State, records [][]byte, hashes Hashes) (Sealed, error) {
			if err := s.file.Extends(state, hashes); err != nil {
				return Sealed{}, err
			}
			var err error
			added, err = s.notary.Append(state, records, hashes)
			return added, err
		})
		if err != nil || n == 0 {
			return err
		}
		if err := s.file.Append(added.Checkpoint); err != nil {
			return fmt.Errorf("write the checkpoint to its file: %w", err)
		}
		if n < batches {
			return nil
		}
	}
}

// Run seals every interval until ctx ends, when ready returns nil. report is told
// the error of each round, which may be nil.
func (s *Sealer) Run(ctx context.Context, interval time.Duration, ready func(context.Context) error, report func(error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
		err := ready(ctx)
		if err == nil {
			err = s.Seal(ctx)
		}
		if ctx.Err() == nil {
			report(err)
		}
	}
}
