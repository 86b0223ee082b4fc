package proof

import (
	"errors"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// Hash is the hash of a leaf or of an inner node (RFC 6962, section 2.1).
type Hash = tlog.Hash

// Hashes reads stored hashes of a log.
type Hashes = tlog.HashReaderFunc

// StoredHashes returns how many hashes a log of this size stores.
func StoredHashes(size int64) int64 { return tlog.StoredHashCount(size) }

// ErrSize is returned for a log with a size below 0.
var ErrSize = errors.New("a log cannot have a size below 0")

// Tree is the Merkle tree of a log. Only its newest edge is kept.
type Tree struct {
	size  int64
	edges []Hash // the roots of the full subtrees, largest first
}

// Append adds the hash of a record. It returns the hashes that a log stores for the record: the
// hash of the record, and the roots of the subtrees that the record completes. The first one
// has the index StoredHashes(t.Size()) before the call.
func (t *Tree) Append(record []byte) (stored []Hash) { return t.add(tlog.RecordHash(record)) }

func (t *Tree) add(hash Hash) []Hash {
	var kept int
	stored, _ := tlog.StoredHashesForRecordHash(t.size, hash, Hashes(func(completed []int64) ([]Hash, error) {
		kept = len(t.edges) - len(completed)
		return t.edges[kept:], nil
	}))
	t.edges = append(t.edges[:kept], stored[len(stored)-1])
	t.size++
	return stored
}

// Size returns the number of records.
func (t *Tree) Size() int64 { return t.size }

// Root returns the root of the tree.
func (t *Tree) Root() Hash {
	root, _ := tlog.TreeHash(t.size, Hashes(func([]int64) ([]Hash, error) { return t.edges, nil }))
	return root
}

// LoadTree reads the tree of a log of this size. It returns ErrSize if the size is below 0,
// which is only possible if the row of the log was changed.
func LoadTree(size int64, hashes Hashes) (*Tree, error) {
	if size < 0 {
		return nil, ErrSize
	}
	var indexes []int64
	for rest := size; rest > 0; {
		rest -= 1 << (bits.Len64(uint64(rest)) - 1)
		// The root of a subtree is stored with its last record, after the smaller subtrees.
		indexes = append(indexes, StoredHashes(size-rest)-1)
	}
	edges, err := hashes(indexes)
	return &Tree{size, edges}, err
}
