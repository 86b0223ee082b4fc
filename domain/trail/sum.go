package trail

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math/bits"

	"bankingapi/domain/operation"
)

// Sum is the hash of a number of rows, in any order, which may be too many for
// one leaf: the sum of their keyed hashes. It says nothing without the key: then
// rows with the same sum could be found. Make one with NewSum.
type Sum struct {
	row     Leaf
	mac     hash.Hash
	words   [4]uint64 // the lowest first
	counted int64
}

// NewSum returns the sum of no rows.
func NewSum(keys *Keys) *Sum { return &Sum{mac: hmac.New(sha256.New, keys.rows)} }

// Row adds a row; encode hands over its columns.
func (s *Sum) Row(table string, encode func(*Leaf)) {
	s.row.content = s.row.content[:0]
	s.row.BeginRow(table)
	encode(&s.row)
	s.row.EndRow()
	s.mac.Reset()
	s.mac.Write(s.row.content)
	var buffer [sha256.Size]byte
	added := s.mac.Sum(buffer[:0])
	var carry uint64
	for i := range s.words {
		s.words[i], carry = bits.Add64(s.words[i], binary.LittleEndian.Uint64(added[8*i:]), carry)
	}
	s.counted++
}

// Rows is the number of rows.
func (s *Sum) Rows() int64 { return s.counted }

// Leaf is the leaf that has the sum.
func (s *Sum) Leaf(kind Kind, id operation.ID) Leaf {
	l := NewLeaf(nil, kind, id)
	l.BeginRow("rows")
	l.Int("count", s.counted)
	var sum []byte
	for _, word := range s.words {
		sum = binary.LittleEndian.AppendUint64(sum, word)
	}
	l.Bytes("keyed_sum", sum)
	l.EndRow()
	return l
}

// Tree is the Merkle tree of a log, of which only the newest edge is kept.
type Tree struct {
	size  int64
	edges []Hash // the roots of the full subtrees, largest first
}

// Append adds the hash of a record. It returns the hashes that a log stores for it:
// that of the record, and those of the subtrees that it completes. The first one
// has the index StoredHashes(t.Size()) before the call.
func (t *Tree) Append(record []byte) (stored []Hash) {
	hash := LeafHash(record)
	stored = append(make([]Hash, 0, 2), hash)
	for n := t.size; n&1 == 1; n >>= 1 {
		last := len(t.edges) - 1
		hash = Node(t.edges[last], hash)
		stored = append(stored, hash)
		t.edges = t.edges[:last]
	}
	t.edges = append(t.edges, hash)
	t.size++
	return stored
}

// StoredHashes is how many hashes a log of that size stores.
func StoredHashes(size int64) int64 {
	return 2*size - int64(bits.OnesCount64(uint64(size))) //nolint:gosec // a size is not negative
}

// Size is the number of records.
func (t *Tree) Size() int64 { return t.size }

// Root is the root of the tree.
func (t *Tree) Root() Hash {
	if len(t.edges) == 0 {
		return sha256.Sum256(nil)
	}
	root := t.edges[len(t.edges)-1]
	for i := len(t.edges) - 2; i >= 0; i-- {
		root = Node(t.edges[i], root)
	}
	return root
}

// LoadTree reads the tree of a log that had this size. read reads stored hashes.
func LoadTree(size int64, read func(indexes []int64) ([]Hash, error)) (*Tree, error) {
	var indexes []int64
	for rest := size; rest > 0; {
		full := int64(1) << (bits.Len64(uint64(rest)) - 1)
		rest -= full
		// The root of a subtree is stored with its last record, above the smaller ones.
		indexes = append(indexes, StoredHashes(size-rest)-1)
	}
	edges, err := read(indexes)
	return &Tree{size, edges}, err
}
